"""Builders that store accumulators, where possible 16 bytes of one row by each lane.

Of a row of an accumulator piece a lane holds two elements, the quad eight. The lanes of
a quad first exchange 32-bit words by shuffles, so that each has a longer part of one
row and the quad's stores fill whole 32-byte sectors. Shuffles read one register in all
lanes; selects choose the word that a lane sends, and the register of what it receives.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from alcop_mlir.analysis.ir.alignment import element_bytes
from alcop_mlir.bindings import arith, ir, vector
from alcop_mlir.passes import build
from alcop_mlir.target import SECTOR_BYTES
from alcop_mlir.transforms.tensor_cores.fragment_access import (
    PIECE_COLUMNS,
    AccumulatorLane,
    Indices,
    Pieces,
    accumulator_lane,
    allows,
    held_row,
    moved,
    neighbours,
    piece_offsets,
    shifted,
    words,
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
    lane = accumulator_lane(stages.threads, fragments.layout)
    offsets = piece_offsets(fragments.layout, write.operands[0].type)
    store = _Store(fragments, offsets, target, indices, lane)
    by_rows = store.for_aligned_rows()
    if by_rows is not None and not _surely_split_sectors(target):
        by_rows()
        return
    stage = stages.at(write, fragments.layout)
    if stage is None:
        (by_rows or store.as_held)()
    else:
        store_staged(fragments, target, indices, stage)


@dataclass(frozen=True)
class _Store:
    """Pieces at `offsets` of a matrix that begins at `indices` of `target`."""

    fragments: Pieces
    offsets: list[tuple[int, int]]
    target: Any
    indices: Indices
    lane: AccumulatorLane

    def for_aligned_rows(self) -> Callable[[], None] | None:
        """The builder that stores 16 bytes by each lane; None if rows are unaligned."""
        size = element_bytes(self.target.type)
        if not allows(self.target, self.indices, _ROW_BYTES // size):
            return None
        if "n" in self.lane.layout.interleaved:
            return self.as_held if size == _WORD_BYTES else None
        return {_WORD_BYTES: self.words, _WORD_BYTES // 2: self.half_words}.get(size)

    def words(self) -> None:
        """Lanes 2i and 2i + 1 exchange: the first gets four words of the upper row."""
        odd, upper = _halves_of_quad(self.lane)
        row = build.add(self.lane.row(), build.mul(odd, self.lane.half))
        first = shifted(self.indices, (row, build.mul(upper, _WORDS)))
        is_odd = _is_set(odd)
        for value, offset in zip(self.fragments.values, self.offsets, strict=True):
            first_up, second_up, first_down, second_down = words(value)
            one = _exchanged(first_up, first_down, is_odd, 1)
            other = _exchanged(second_up, second_down, is_odd, 1)
            row = [one[0], other[0], one[1], other[1]]
            self._row(row, moved(first, *offset))

    def half_words(self) -> None:
        """The quad transposes its 4x4 words of two neighbouring pieces.

        A lane then has a whole row of a piece: lanes 0 and 1 the upper rows of the two,
        lanes 2 and 3 the lower ones.
        """
        odd, upper = _halves_of_quad(self.lane)
        row = build.add(self.lane.row(), build.mul(upper, self.lane.half))
        start = shifted(self.indices, (row, build.mul(odd, PIECE_COLUMNS)))
        is_odd, is_upper = _is_set(odd), _is_set(upper)
        for number in range(0, len(self.offsets), 2):
            up_left, down_left = words(self.fragments.values[number])
            up_right, down_right = words(self.fragments.values[number + 1])
            up = _exchanged(up_left, up_right, is_odd, 1)
            down = _exchanged(down_left, down_right, is_odd, 1)
            first, third = _exchanged(up[0], down[0], is_upper, 2)
            second, fourth = _exchanged(up[1], down[1], is_upper, 2)
            at = moved(start, *self.offsets[number])
            self._row([first, second, third, fourth], at)

    def as_held(self) -> None:
        """Each lane stores the neighbours that it holds, without exchange."""
        count = neighbours(self.lane.layout)
        side_by_side = count // 2  # pieces
        first = shifted(self.indices, self.lane.first())
        is_wide = allows(self.target, self.indices, count)
        for number in range(0, len(self.offsets), side_by_side):
            row, column = self.offsets[number]
            pieces = self.fragments.values[number : number + side_by_side]
            for half in range(2):
                held = held_row(pieces, half)
                at = moved(first, row + half * self.lane.half, column)
                if is_wide:
                    build.store(held, self.target, at)
                    continue
                for along in range(count):
                    element = vector.extract(held, [], [along])
                    build.store(element, self.target, moved(at, 0, along))

    def _row(self, words: list[ir.Value], at: Indices) -> None:
        element = self.target.type.element_type
        kind = ir.VectorType.get([_ROW_BYTES * 8 // element.width], element)
        build.store(vector.bitcast(kind, build.vector_of(words)), self.target, at)


def _surely_split_sectors(target: ir.Value) -> bool:
    """Whether rows begin within sectors, so that a quad's 32 bytes are in two."""
    strides, _ = target.type.get_strides_and_offset()
    if len(strides) < 2 or target.type.is_dynamic_stride_or_offset(strides[-2]):
        return False
    return bool(strides[-2] * element_bytes(target.type) % SECTOR_BYTES)


def _exchanged(
    one: Any, other: Any, is_second: ir.Value, distance: int
) -> tuple[Any, Any]:
    """Between two lanes `distance` apart: the first keeps `one`, the second `other`.

    Returns, in both lanes, the word that the first had, and the one of the second.
    """
    sent = arith.select(is_second, one, other)
    received = build.shuffle(sent, distance)
    return (
        arith.select(is_second, received, one),
        arith.select(is_second, other, received),
    )


def _halves_of_quad(lane: AccumulatorLane) -> tuple[Any, Any]:
    """1 where a lane is odd, and where it is 2 or 3; else 0."""
    return build.rem(lane.lane_in_quad, 2), build.div(lane.lane_in_quad, 2)


def _is_set(flag: ir.Value) -> Any:
    return arith.cmpi(arith.CmpIPredicate.ne, flag, build.index(0))
