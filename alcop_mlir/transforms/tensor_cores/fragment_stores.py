"""Builders that store accumulators, 16 bytes of one row by each lane where that can be.

In an accumulator piece a lane holds two elements of a row, the quad eight. The lanes of
a quad first exchange 32-bit words by shuffles, so that each has a longer part of one
row and the quad's stores fill whole 32-byte sectors. Shuffles read one register in all
lanes, so which one a lane sends and where it puts what it receives is by selects.
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
    Indices,
    Owner,
    Pieces,
    allows,
    moved,
    owner,
    places,
    shifted,
)
from alcop_mlir.transforms.tensor_cores.staged_stores import Stages, store_staged

_WORD_BYTES = 4  # what a lane sends in a shuffle
_WORDS = 4  # of the widest store
_ROW_BYTES = _WORDS * _WORD_BYTES


def store_accumulators(
    write: Any, held: Pieces, target: Any, indices: Indices, stages: Stages
) -> None:
    """What the transfer `write` stores: runs of a row that fill sectors, if may be.

    16 bytes by each lane where rows are aligned; else through shared memory, if there
    is room; else what each lane holds.
    """
    kind = write.operands[0].type
    lane = owner(stages.threads, held.layout)
    by_itself = _store_fours if "n" in held.layout.interleaved else _store_pairs
    together = _for_aligned_rows(target, indices, held.layout)
    if together is not None and not _surely_split_sectors(target):
        together(held, target, indices, kind, lane)
        return
    stage = stages.at(write, held.layout)
    if stage is None:
        (together or by_itself)(held, target, indices, kind, lane)
    else:
        store_staged(held, target, indices, stage)


def _for_aligned_rows(
    target: Any, indices: Indices, layout: FragmentLayout
) -> Callable[..., None] | None:
    """What stores 16 bytes by each lane; None if rows or elements do not allow it."""
    size = element_bytes(target.type)
    if not allows(target, indices, _ROW_BYTES // size):
        return None
    if "n" in layout.interleaved:
        return _store_fours if size == _WORD_BYTES else None
    return {_WORD_BYTES: _store_words, _WORD_BYTES // 2: _store_half_words}.get(size)


def _surely_split_sectors(target: Any) -> bool:
    """Whether rows begin within sectors, so that a quad's 32 bytes lie in two."""
    strides, _ = target.type.get_strides_and_offset()
    if len(strides) < 2 or target.type.is_dynamic_stride_or_offset(strides[-2]):
        return False
    return bool(strides[-2] * element_bytes(target.type) % SECTOR_BYTES)


def _store_words(
    held: Pieces, target: Any, indices: Indices, kind: Any, lane: Owner
) -> None:
    """Lanes 2i and 2i + 1 trade: the first gets four elements of the upper row."""
    odd, upper = lane.is_odd(), lane.is_upper()
    row = build.add(lane.row(), build.mul(odd, build.index(lane.half)))
    corner = shifted(indices, (row, build.mul(upper, build.index(_WORDS))))
    is_odd = _is_set(odd)
    for value, place in zip(held.values, places(held.layout, kind), strict=True):
        above, below = _words(value)
        traded = [
            _trade(one, other, is_odd, 1)
            for one, other in zip(above, below, strict=True)
        ]
        words = [first for first, _ in traded] + [second for _, second in traded]
        _store_row(words, target, moved(corner, *place), kind.element_type)


def _store_half_words(
    held: Pieces, target: Any, indices: Indices, kind: Any, lane: Owner
) -> None:
    """The quad transposes its 4x4 words of two neighbouring pieces.

    A lane then has a whole row of a piece: lanes 0 and 1 the upper rows of the two,
    lanes 2 and 3 the lower ones.
    """
    odd, upper = lane.is_odd(), lane.is_upper()
    row = build.add(lane.row(), build.mul(upper, build.index(lane.half)))
    corner = shifted(indices, (row, build.mul(odd, build.index(PIECE_COLUMNS))))
    is_odd, is_upper = _is_set(odd), _is_set(upper)
    where = places(held.layout, kind)
    for number in range(0, len(where), 2):
        (up_left,), (down_left,) = _words(held.values[number])
        (up_right,), (down_right,) = _words(held.values[number + 1])
        up = _trade(up_left, up_right, is_odd, 1)
        down = _trade(down_left, down_right, is_odd, 1)
        first, third = _trade(up[0], down[0], is_upper, 2)
        second, fourth = _trade(up[1], down[1], is_upper, 2)
        place = moved(corner, *where[number])
        _store_row([first, second, third, fourth], target, place, kind.element_type)


def _store_pairs(
    held: Pieces, target: Any, indices: Indices, kind: Any, lane: Owner
) -> None:
    """Each lane stores what it holds, without exchange: for rows badly aligned."""
    corner = shifted(indices, lane.pair())
    is_wide = allows(target, indices, 2)
    for value, (row, column) in zip(
        held.values, places(held.layout, kind), strict=True
    ):
        for half in range(2):
            pair = vector.extract(value, [], [half])
            place = moved(corner, row + half * lane.half, column)
            if is_wide:
                vector.store(pair, target, place, alignment=2 * element_bytes(kind))
                continue
            for number in range(2):
                element = vector.extract(pair, [], [number])
                memref.store(element, target, moved(place, 0, number))


def _store_fours(
    held: Pieces, target: Any, indices: Indices, kind: Any, lane: Owner
) -> None:
    """Each lane stores what it holds of two pieces: four elements of a row."""
    corner = shifted(indices, lane.four())
    is_wide = allows(target, indices, 4)
    row_type = ir.VectorType.get([4], kind.element_type)
    where = places(held.layout, kind)
    for number in range(0, len(where), 2):
        row, column = where[number]
        for half in range(2):
            elements = [
                vector.extract(held.values[number + piece], [], [half, place])
                for place in range(2)
                for piece in range(2)
            ]
            at = moved(corner, row + half * lane.half, column)
            if is_wide:
                four = vector.from_elements(row_type, elements)
                size = 4 * element_bytes(kind)
                vector.store(four, target, at, alignment=size)
                continue
            for place, element in enumerate(elements):
                memref.store(element, target, moved(at, 0, place))


def _trade(one: Any, other: Any, is_second: Any, distance: int) -> tuple[Any, Any]:
    """Between two lanes `distance` apart: the first keeps `one`, the second `other`.

    Returns, in both lanes, what the first had of it and what the second had.
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


def _words(fragment: Any) -> list[list[Any]]:
    """The 32-bit words of the upper and of the lower row."""
    count = 2 * element_bytes(fragment.type) // _WORD_BYTES
    kind = ir.VectorType.get([2, count], ir.IntegerType.get_signless(32))
    cast = vector.bitcast(kind, fragment)
    return [
        [vector.extract(cast, [], [row, word]) for word in range(count)]
        for row in range(2)
    ]


def _store_row(words: list[Any], target: Any, place: Indices, element: Any) -> None:
    i32 = ir.IntegerType.get_signless(32)
    row = vector.from_elements(ir.VectorType.get([_WORDS], i32), words)
    size = _WORDS * _WORD_BYTES
    kind = ir.VectorType.get([size * 8 // element.width], element)
    vector.store(vector.bitcast(kind, row), target, place, alignment=size)


def _is_set(flag: Any) -> Any:
    return arith.cmpi(arith.CmpIPredicate.ne, flag, build.index(0))
