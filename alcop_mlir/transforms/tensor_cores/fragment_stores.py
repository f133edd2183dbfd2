"""Builders that store accumulators, where possible 16 bytes of one row by each lane.

Of a row of an accumulator piece a lane holds two elements, the quad eight. The lanes of
a quad first exchange 32-bit words by shuffles, so that each has a longer part of one
row and the quad's stores fill whole 32-byte sectors. Shuffles read one register in all
lanes; selects choose the word that a lane sends, and the register of what it receives.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from alcop_mlir.analysis.ir.alignment import element_bytes
from alcop_mlir.bindings import arith, ir, vector
from alcop_mlir.frozen import frozen
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
    permute,
    piece_offsets,
    shifted,
    words,
)
from alcop_mlir.transforms.tensor_cores.staged_stores import Stages, store_staged

_WORD_BYTES = 4  # what a lane sends in a shuffle
_WORDS = 4  # of the widest store
_ROW_BYTES = _WORDS * _WORD_BYTES
_PIECES_OF_BYTES = 4  # that make a row of 32 bytes, a sector
_PIECE_OF_WORDS = (0x5410, 0x7632)  # the lower halves of two words, the upper ones


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


@frozen
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
        is_whole = self.fragments.counts["n"] % _PIECES_OF_BYTES == 0
        return {
            _WORD_BYTES: self.words,
            _WORD_BYTES // 2: self.half_words,
            1: self.bytes if is_whole else None,
        }.get(size)

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
        quad = self._transposing(PIECE_COLUMNS)
        for number in range(0, len(self.offsets), 2):
            left, right = (
                words(self.fragments.values[number + beside]) for beside in range(2)
            )
            at = moved(quad.start, *self.offsets[number])
            self._row(quad.rows(left, right), at)

    def bytes(self) -> None:
        """As `half_words`, of words with two bytes of each of two neighbouring pieces.

        In the words of a row that a lane then has, the bytes of its first piece come
        first in each, those of the second last.
        """
        quad = self._transposing(2 * PIECE_COLUMNS)
        for number in range(0, len(self.offsets), _PIECES_OF_BYTES):
            left, right = (
                [
                    _word([self.fragments.values[first + n] for n in range(2)], half)
                    for half in range(2)
                ]
                for first in (number, number + 2)
            )
            one, two, three, four = quad.rows(left, right)
            ordered = [
                permute(low, high, build.i32(part))
                for part in _PIECE_OF_WORDS
                for low, high in ((one, two), (three, four))
            ]
            self._row(ordered, moved(quad.start, *self.offsets[number]))

    def _transposing(self, columns: int) -> _Quad:
        """What lanes need to exchange parts of rows of so many columns."""
        odd, upper = _halves_of_quad(self.lane)
        row = build.add(self.lane.row(), build.mul(upper, self.lane.half))
        start = shifted(self.indices, (row, build.mul(odd, columns)))
        return _Quad(_is_set(odd), _is_set(upper), start)

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


@frozen
class _Quad:
    """A lane's place in its quad, and where the first row of it begins."""

    is_odd: Any
    is_upper: Any
    start: Indices

    def rows(self, left: list[Any], right: list[Any]) -> list[Any]:
        """The words of one row, of an upper and a lower word on the left and right."""
        up, down = (
            _exchanged(*pair, self.is_odd, 1) for pair in zip(left, right, strict=True)
        )
        first, third = _exchanged(up[0], down[0], self.is_upper, 2)
        second, fourth = _exchanged(up[1], down[1], self.is_upper, 2)
        return [first, second, third, fourth]


def _word(side_by_side: Sequence[Any], half: int) -> Any:
    """The bytes that a lane holds of a row of two pieces."""
    held = [vector.extract(one, [], [half, n]) for one in side_by_side for n in (0, 1)]
    one = ir.VectorType.get([1], build.integer(32))
    return vector.extract(vector.bitcast(one, build.vector_of(held)), [], [0])


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
