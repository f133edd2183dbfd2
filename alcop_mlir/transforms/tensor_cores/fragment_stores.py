"""Builders that store accumulators, where possible 16 bytes of one row by each lane.

Of a row of an accumulator piece a lane holds two elements, the quad eight. The lanes of
a quad first exchange 32-bit words by shuffles, so that each has a longer part of one
row and the quad's stores fill whole 32-byte sectors. Shuffles read one register in all
lanes; selects choose the word that a lane sends, and the register of what it receives.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from alcop_mlir.analysis.ir.alignment import element_bytes
from alcop_mlir.analysis.layout.fragment_layout import FragmentLayout
from alcop_mlir.bindings import arith, gpu, ir, memref, vector
from alcop_mlir.passes import build
from alcop_mlir.target import SECTOR_BYTES, WARP_SIZE
from alcop_mlir.transforms.tensor_cores.fragment_access import (
    PIECE_COLUMNS,
    AccumulatorLane,
    Indices,
    Pieces,
    accumulator_lane,
    allows,
    moved,
    piece_offsets,
    shifted,
)
from alcop_mlir.transforms.tensor_cores.staged_stores import Stages, store_staged

_WORD_BYTES = 4  # what a lane sends in a shuffle
_WORDS = 4  # of the widest store
_ROW_BYTES = _WORDS * _WORD_BYTES


def store_accumulators(
    write: ir.Operation,
    fragments: Pieces,
    target: ir.Value,
    indices: Indices,
    stages: Stages,
) -> None:
    """Store the vector of the transfer `write`, in runs that fill sectors if possible.

    16 bytes by each lane where rows are aligned; else through shared memory, if there
    is room; else the elements that each lane holds.
    """
    kind = write.operands[0].type
    lane = accumulator_lane(stages.threads, fragments.layout)
    by_lanes = _store_fours if "n" in fragments.layout.interleaved else _store_pairs
    by_rows = _for_aligned_rows(target, indices, fragments.layout)
    if by_rows is not None and not _surely_split_sectors(target):
        by_rows(fragments, target, indices, kind, lane)
        return
    stage = stages.at(write, fragments.layout)
    if stage is None:
        (by_rows or by_lanes)(fragments, target, indices, kind, lane)
    else:
        store_staged(fragments, target, indices, stage)


def _for_aligned_rows(
    target: ir.Value, indices: Indices, layout: FragmentLayout
) -> Callable[..., None] | None:
    """The builder that stores 16 bytes by each lane; None if rows are unaligned."""
    size = element_bytes(target.type)
    if not allows(target, indices, _ROW_BYTES // size):
        return None
    if "n" in layout.interleaved:
        return _store_fours if size == _WORD_BYTES else None
    return {_WORD_BYTES: _store_words, _WORD_BYTES // 2: _store_half_words}.get(size)


def _surely_split_sectors(target: ir.Value) -> bool:
    """Whether rows begin within sectors, so that a quad's 32 bytes are in two."""
    strides, _ = target.type.get_strides_and_offset()
    if len(strides) < 2 or target.type.is_dynamic_stride_or_offset(strides[-2]):
        return False
    return bool(strides[-2] * element_bytes(target.type) % SECTOR_BYTES)


def _store_words(
    fragments: Pieces,
    target: ir.Value,
    indices: Indices,
    kind: ir.Type,
    lane: AccumulatorLane,
) -> None:
    """Lanes 2i and 2i + 1 exchange: the first gets four elements of the upper row."""
    odd, upper = lane.is_odd(), lane.is_upper()
    row = build.add(lane.row(), build.mul(odd, build.index(lane.half)))
    first = shifted(indices, (row, build.mul(upper, build.index(_WORDS))))
    is_odd = _is_set(odd)
    for value, offset in zip(
        fragments.values, piece_offsets(fragments.layout, kind), strict=True
    ):
        above, below = _words(value)
        exchanged = [
            _exchanged(one, other, is_odd, 1)
            for one, other in zip(above, below, strict=True)
        ]
        words = [one for one, _ in exchanged] + [other for _, other in exchanged]
        _store_row(words, target, moved(first, *offset), kind.element_type)


def _store_half_words(
    fragments: Pieces,
    target: ir.Value,
    indices: Indices,
    kind: ir.Type,
    lane: AccumulatorLane,
) -> None:
    """The quad transposes its 4x4 words of two neighbouring pieces.

    A lane then has a whole row of a piece: lanes 0 and 1 the upper rows of the two,
    lanes 2 and 3 the lower ones.
    """
    odd, upper = lane.is_odd(), lane.is_upper()
    row = build.add(lane.row(), build.mul(upper, build.index(lane.half)))
    start = shifted(indices, (row, build.mul(odd, build.index(PIECE_COLUMNS))))
    is_odd, is_upper = _is_set(odd), _is_set(upper)
    where = piece_offsets(fragments.layout, kind)
    for number in range(0, len(where), 2):
        (up_left,), (down_left,) = _words(fragments.values[number])
        (up_right,), (down_right,) = _words(fragments.values[number + 1])
        up = _exchanged(up_left, up_right, is_odd, 1)
        down = _exchanged(down_left, down_right, is_odd, 1)
        first, third = _exchanged(up[0], down[0], is_upper, 2)
        second, fourth = _exchanged(up[1], down[1], is_upper, 2)
        at = moved(start, *where[number])
        _store_row([first, second, third, fourth], target, at, kind.element_type)


def _store_pairs(
    fragments: Pieces,
    target: ir.Value,
    indices: Indices,
    kind: ir.Type,
    lane: AccumulatorLane,
) -> None:
    """Each lane stores what it holds, without exchange: for unaligned rows."""
    first = shifted(indices, lane.pair())
    is_wide = allows(target, indices, 2)
    for value, (row, column) in zip(
        fragments.values, piece_offsets(fragments.layout, kind), strict=True
    ):
        for half in range(2):
            pair = vector.extract(value, [], [half])
            at = moved(first, row + half * lane.half, column)
            if is_wide:
                vector.store(pair, target, at, alignment=2 * element_bytes(kind))
                continue
            for number in range(2):
                element = vector.extract(pair, [], [number])
                memref.store(element, target, moved(at, 0, number))


def _store_fours(
    fragments: Pieces,
    target: ir.Value,
    indices: Indices,
    kind: ir.Type,
    lane: AccumulatorLane,
) -> None:
    """Each lane stores what it holds of two pieces: four elements of a row."""
    first = shifted(indices, lane.four())
    is_wide = allows(target, indices, 4)
    row_type = ir.VectorType.get([4], kind.element_type)
    where = piece_offsets(fragments.layout, kind)
    for number in range(0, len(where), 2):
        row, column = where[number]
        for half in range(2):
            elements = [
                vector.extract(fragments.values[number + piece], [], [half, element])
                for element in range(2)
                for piece in range(2)
            ]
            at = moved(first, row + half * lane.half, column)
            if is_wide:
                four = vector.from_elements(row_type, elements)
                size = 4 * element_bytes(kind)
                vector.store(four, target, at, alignment=size)
                continue
            for along, element in enumerate(elements):
                memref.store(element, target, moved(at, 0, along))


def _exchanged(
    one: Any, other: Any, is_second: ir.Value, distance: int
) -> tuple[Any, Any]:
    """Between two lanes `distance` apart: the first keeps `one`, the second `other`.

    Returns, in both lanes, the word that the first had, and the one of the second.
    """
    i32 = ir.IntegerType.get_signless(32)
    sent = arith.select(is_second, one, other)
    received, _ = gpu.shuffle(
        sent,
        arith.constant(i32, distance),
        arith.constant(i32, WARP_SIZE),
        gpu.ShuffleMode.XOR,
    )
    return (
        arith.select(is_second, received, one),
        arith.select(is_second, other, received),
    )


def _words(fragment: ir.Value) -> list[list[Any]]:
    """The 32-bit words of the upper and of the lower row."""
    count = 2 * element_bytes(fragment.type) // _WORD_BYTES
    kind = ir.VectorType.get([2, count], ir.IntegerType.get_signless(32))
    cast = vector.bitcast(kind, fragment)
    return [
        [vector.extract(cast, [], [row, word]) for word in range(count)]
        for row in range(2)
    ]


def _store_row(
    words: list[ir.Value], target: ir.Value, indices: Indices, element: ir.Type
) -> None:
    i32 = ir.IntegerType.get_signless(32)
    row = vector.from_elements(ir.VectorType.get([_WORDS], i32), words)
    size = _WORDS * _WORD_BYTES
    kind = ir.VectorType.get([size * 8 // element.width], element)
    vector.store(vector.bitcast(kind, row), target, indices, alignment=size)


def _is_set(flag: ir.Value) -> Any:
    return arith.cmpi(arith.CmpIPredicate.ne, flag, build.index(0))
