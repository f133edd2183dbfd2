"""Builders that move accumulators of mma.sync between memory and the lanes of a warp.

Lane numbers: `quad` is lane / 4, `place` is lane % 4. [PTX] "Matrix Fragments for mma":
of an accumulator piece, a lane holds elements 2 * place and the next, in row `quad` and
in row `quad` + 8. Where rows are interleaved, those are rows 2 * `quad` and the next of
the matrix; where columns are, a lane's elements of two neighbouring pieces are columns
4 * place to 4 * place + 3, the pieces in turn.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from alcop_mlir.analysis.alignment import address_alignment, divisor, element_bytes
from alcop_mlir.analysis.fragment_layout import Layout
from alcop_mlir.bindings import arith, gpu, ir, memref, vector
from alcop_mlir.target import WARP_SIZE
from alcop_mlir.transforms import build

HALF = 8  # rows of an accumulator piece between those of one lane
QUAD = 4  # lanes that hold a row of an accumulator piece together

Indices = Sequence[Any]


@dataclass(frozen=True)
class Pieces:
    """The fragments of one matrix, row by row as its layout has rows."""

    layout: Layout
    counts: dict[str, int]
    values: tuple[Any, ...]

    def at(self, **place: int) -> Any:
        """The fragment at a place, as in `at(m=0, k=1)`."""
        row, column = self.layout.dims
        return self.values[place[row] * self.counts[column] + place[column]]


def pieces(layout: Layout, kind: Any, values: Sequence[Any]) -> Pieces:
    """The fragments of a vector of type `kind`."""
    return Pieces(layout, layout.grid(kind), tuple(values))


@dataclass(frozen=True)
class Owner:
    """A lane as an owner of accumulators held as `layout`; index values."""

    quad: Any
    place: Any
    layout: Layout

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


def owner(threads: int, layout: Layout) -> Owner:
    """Built where accumulators move: no register is held for it during the loops."""
    number, quad = lane(threads), build.index(QUAD)
    return Owner(arith.divui(number, quad), arith.remui(number, quad), layout)


def lane(threads: int) -> Any:
    """The number of a lane within its warp."""
    thread = gpu.thread_id(gpu.Dimension.x, upper_bound=threads)
    return arith.remui(thread, build.index(WARP_SIZE))


def load_accumulators(
    source: Any, indices: Indices, layout: Layout, kind: Any, threads: int
) -> Pieces:
    """Accumulator pieces, two or four neighbouring elements by each load."""
    held = owner(threads, layout)
    lane_type = layout.lane_type(kind.element_type)
    if "n" in layout.interleaved:
        loaded = _load_fours(source, indices, kind, held)
    else:
        loaded = _load_pairs(source, indices, kind, held)
    return pieces(
        layout,
        kind,
        [vector.from_elements(lane_type, [*up, *down]) for up, down in loaded],
    )


_Rows = tuple[list[Any], list[Any]]  # elements of the upper and of the lower row


def _load_pairs(source: Any, indices: Indices, kind: Any, held: Owner) -> list[_Rows]:
    corner = shifted(indices, held.pair())
    is_wide = allows(source, indices, 2)
    found = []
    for row, column in places(held.layout, kind):
        up, down = (
            _load_row(source, moved(corner, row + below, column), 2, is_wide)
            for below in (0, held.half)
        )
        found.append((up, down))
    return found


def _load_fours(source: Any, indices: Indices, kind: Any, held: Owner) -> list[_Rows]:
    """Each load brings the elements of two pieces."""
    corner = shifted(indices, held.four())
    is_wide = allows(source, indices, 4)
    found: list[_Rows] = []
    for row, column in places(held.layout, kind)[::2]:
        up, down = (
            _load_row(source, moved(corner, row + below, column), 4, is_wide)
            for below in (0, held.half)
        )
        found += [(up[::2], down[::2]), (up[1::2], down[1::2])]
    return found


def _load_row(source: Any, place: Indices, count: int, is_wide: bool) -> list[Any]:
    if not is_wide:
        return [memref.load(source, moved(place, 0, n)) for n in range(count)]
    kind = ir.VectorType.get([count], source.type.element_type)
    row = vector.load(kind, source, place, alignment=count * element_bytes(kind))
    return [vector.extract(row, [], [number]) for number in range(count)]


def allows(memory: Any, indices: Indices, elements: int) -> bool:
    """Whether rows from `indices` on can be accessed `elements` at a time."""
    strides, _ = memory.type.get_strides_and_offset()
    steps = [1] * (len(indices) - 1) + [divisor(indices[-1])]
    size = elements * element_bytes(memory.type)
    return strides[-1] == 1 and address_alignment(memory, steps) % size == 0


def places(layout: Layout, kind: Any) -> list[tuple[int, int]]:
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
