"""Builders that move accumulators of mma.sync between memory and the lanes of a warp.

Lane numbers: `quad` is lane / 4, `place` is lane % 4. [PTX] "Matrix Fragments for mma":
of an accumulator piece, a lane holds elements 2 * place and the next, in row `quad` and
in row `quad` + 8. Where rows are interleaved, those are rows 2 * `quad` and the next of
the matrix; where columns are, a lane's elements of two neighbouring pieces are columns
4 * place to 4 * place + 3, the pieces in turn.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from alcop_mlir.analysis.ir.alignment import address_alignment, divisor, element_bytes
from alcop_mlir.analysis.layout.fragment_layout import FragmentLayout
from alcop_mlir.bindings import arith, gpu, ir, memref, vector
from alcop_mlir.passes import build
from alcop_mlir.target import WARP_SIZE

HALF = 8  # rows of an accumulator piece between those of one lane
QUAD = 4  # lanes that hold a row of an accumulator piece together
PIECE_COLUMNS = 8  # of an accumulator piece

Indices = Sequence[Any]


@dataclass(frozen=True)
class Pieces:
    """The fragments of one matrix, row by row as its layout has rows."""

    layout: FragmentLayout
    counts: dict[str, int]
    values: tuple[Any, ...]

    def at(self, **place: int) -> Any:
        """The fragment at a place, as in `at(m=0, k=1)`."""
        row, column = self.layout.dims
        return self.values[place[row] * self.counts[column] + place[column]]


def pieces(layout: FragmentLayout, kind: Any, values: Sequence[Any]) -> Pieces:
    """The fragments of a vector of type `kind`."""
    return Pieces(layout, layout.grid(kind), tuple(values))


@dataclass(frozen=True)
class Owner:
    """A lane as an owner of accumulators held as `layout`; index values."""

    quad: Any
    place: Any
    layout: FragmentLayout

    @property
    def half(self) -> int:
        """Rows from its upper element to its lower one."""
        return 1 if "m" in self.layout.interleaved else HALF

    def row(self) -> Any:
        """Row of its upper elements in a piece."""
        if "m" in self.layout.interleaved:
            return build.mul(self.quad, build.index(2))
        return self.quad

    def pair(self) -> tuple[Any, Any]:
        """Row and column of its first element of a piece."""
        return self.row(), build.mul(self.place, build.index(2))

    def four(self) -> tuple[Any, Any]:
        """Row and column of its first element where columns are interleaved."""
        return self.row(), build.mul(self.place, build.index(4))

    def is_odd(self) -> Any:
        """1 if `place` is odd, else 0."""
        return arith.remui(self.place, build.index(2))

    def is_upper(self) -> Any:
        """1 if `place` is 2 or 3, else 0."""
        return arith.divui(self.place, build.index(2))


def owner(threads: int, layout: FragmentLayout) -> Owner:
    """Built where accumulators move: no register is held for it during the loops."""
    number, quad = lane(threads), build.index(QUAD)
    return Owner(arith.divui(number, quad), arith.remui(number, quad), layout)


def lane(threads: int) -> Any:
    """The number of a lane within its warp."""
    thread = gpu.thread_id(gpu.Dimension.x, upper_bound=threads)
    return arith.remui(thread, build.index(WARP_SIZE))


@dataclass(frozen=True)
class AccumulatorSource:
    """Memory that accumulators are read from, where a vector's first element lies.

    dims: the dimension that rows, and that columns, run along; None where all of them
          are the same
    """

    memory: Any
    indices: Indices
    dims: tuple[int | None, int | None]

    def shifted(self, by: tuple[Any, Any]) -> AccumulatorSource:
        """With values added to row and column."""
        places = list(self.indices)
        for dim, value in zip(self.dims, by, strict=True):
            if dim is not None:
                places[dim] = build.add(places[dim], value)
        return AccumulatorSource(self.memory, places, self.dims)

    def at(self, row: int, column: int) -> list[Any]:
        """The indices, with numbers added to row and column."""
        places = list(self.indices)
        for dim, number in zip(self.dims, (row, column), strict=True):
            if dim is not None:
                places[dim] = build.plus(places[dim], number)
        return places

    def allows(self, elements: int) -> bool:
        """Whether so many columns can be loaded at once."""
        is_along_memory = self.dims[1] == self.memory.type.rank - 1
        return is_along_memory and allows(self.memory, self.indices, elements)


def load_accumulators(
    source: AccumulatorSource, layout: FragmentLayout, kind: Any, threads: int
) -> Pieces:
    """Accumulator pieces, two or four neighbouring elements by each load."""
    held = owner(threads, layout)
    lane_type = layout.lane_type(kind.element_type)
    if "n" in layout.interleaved:
        loaded = _load_fours(source, kind, held)
    else:
        loaded = _load_pairs(source, kind, held)
    return pieces(
        layout,
        kind,
        [vector.from_elements(lane_type, [*up, *down]) for up, down in loaded],
    )


_Rows = tuple[list[Any], list[Any]]  # elements of the upper and of the lower row


def _load_pairs(source: AccumulatorSource, kind: Any, held: Owner) -> list[_Rows]:
    loads = _Loads(source.shifted(held.pair()), 2, source.allows(2))
    return [
        (loads.row(row, column), loads.row(row + held.half, column))
        for row, column in places(held.layout, kind)
    ]


def _load_fours(source: AccumulatorSource, kind: Any, held: Owner) -> list[_Rows]:
    """Each load brings the elements of two pieces."""
    loads = _Loads(source.shifted(held.four()), 4, source.allows(4))
    found: list[_Rows] = []
    for row, column in places(held.layout, kind)[::2]:
        up, down = loads.row(row, column), loads.row(row + held.half, column)
        found += [(up[::2], down[::2]), (up[1::2], down[1::2])]
    return found


@dataclass(frozen=True)
class _Loads:
    """Loads of `count` neighbours of a row, each made once: rows may be the same."""

    corner: AccumulatorSource
    count: int
    is_wide: bool
    made: dict[tuple[int, int], list[Any]] = field(default_factory=dict)

    def row(self, row: int, column: int) -> list[Any]:
        """The elements from there on."""
        rows, columns = self.corner.dims
        place = (0 if rows is None else row, 0 if columns is None else column)
        if place not in self.made:
            self.made[place] = self._load(*place)
        return self.made[place]

    def _load(self, row: int, column: int) -> list[Any]:
        memory = self.corner.memory
        if self.corner.dims[1] is None:
            return [memref.load(memory, self.corner.at(row, column))] * self.count
        if not self.is_wide:
            return [
                memref.load(memory, self.corner.at(row, column + number))
                for number in range(self.count)
            ]
        kind = ir.VectorType.get([self.count], memory.type.element_type)
        size = self.count * element_bytes(kind)
        at = self.corner.at(row, column)
        whole = vector.load(kind, memory, at, alignment=size)
        return [vector.extract(whole, [], [number]) for number in range(self.count)]


def allows(memory: Any, indices: Indices, elements: int) -> bool:
    """Whether rows from `indices` on can be accessed `elements` at a time."""
    strides, _ = memory.type.get_strides_and_offset()
    steps = [1] * (len(indices) - 1) + [divisor(indices[-1])]
    size = elements * element_bytes(memory.type)
    return strides[-1] == 1 and address_alignment(memory, steps) % size == 0


def places(layout: FragmentLayout, kind: Any) -> list[tuple[int, int]]:
    """The first row and column of each piece, row by row."""
    steps = zip(kind.shape, layout.piece, strict=True)
    rows, columns = (range(0, extent, step) for extent, step in steps)
    return [(row, column) for row in rows for column in columns]


def shifted(indices: Indices, by: tuple[Any, Any]) -> list[Any]:
    """`indices` with values added to the last two."""
    *outer, row, column = indices
    return [*outer, build.add(row, by[0]), build.add(column, by[1])]


def moved(indices: Indices, rows: int, columns: int) -> list[Any]:
    """`indices` with numbers added to the last two."""
    *outer, row, column = indices
    return [*outer, build.plus(row, rows), build.plus(column, columns)]
