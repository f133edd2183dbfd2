"""Builders that move accumulators of mma.sync between memory and the lanes of a warp.

Lane numbers: `quad` is lane / 4, `lane_in_quad` is lane % 4. [PTX] "Matrix Fragments
for mma": of an accumulator piece, a lane holds elements 2 * `lane_in_quad` and the
next, in row `quad` and in row `quad` + 8. Where rows are interleaved, those are rows
2 * `quad` and the next of the matrix; where columns are, a lane's elements of two
neighbouring pieces are columns 4 * `lane_in_quad` to 4 * `lane_in_quad` + 3, the pieces
in turn.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import field
from typing import Any

from alcop_mlir.analysis.ir.alignment import address_alignment, divisor, element_bytes
from alcop_mlir.analysis.layout.fragment_layout import FragmentLayout
from alcop_mlir.bindings import gpu, ir, memref, nvvm, vector
from alcop_mlir.frozen import frozen
from alcop_mlir.passes import build
from alcop_mlir.target import WARP_SIZE

HALF = 8  # rows of an accumulator piece between those of one lane
QUAD = 4  # lanes that a row of an accumulator piece is distributed to
PIECE_COLUMNS = 8  # of an accumulator piece

Indices = Sequence[Any]


@frozen
class Pieces:
    """The fragments of one matrix, row by row of its layout."""

    layout: FragmentLayout
    counts: dict[str, int]
    values: tuple[Any, ...]

    def at(self, **piece: int) -> Any:
        """The fragment of a piece, as in `at(m=0, k=1)`."""
        number = 0
        for dim in self.layout.dims:
            number = number * self.counts[dim] + piece.get(dim, 0)
        return self.values[number]


def pieces(layout: FragmentLayout, kind: ir.Type, values: Sequence[ir.Value]) -> Pieces:
    """The fragments of a vector of type `kind`."""
    return Pieces(layout, layout.grid(kind), tuple(values))


def neighbours(layout: FragmentLayout) -> int:
    """Elements of a row that a lane holds side by side: of one piece, or of two."""
    return 4 if "n" in layout.interleaved else 2


@frozen
class AccumulatorLane:
    """A lane's part of accumulators distributed as `layout`; index values."""

    quad: Any
    lane_in_quad: Any
    layout: FragmentLayout

    @property
    def half(self) -> int:
        """Rows from its upper element to its lower one."""
        return 1 if "m" in self.layout.interleaved else HALF

    def row(self) -> Any:
        """Row of its upper elements in a piece."""
        return build.mul(self.quad, 2 if "m" in self.layout.interleaved else 1)

    def column(self) -> Any:
        """Column of its first element of a piece."""
        return build.mul(self.lane_in_quad, neighbours(self.layout))

    def first(self) -> tuple[Any, Any]:
        """Row and column of its first element of a piece."""
        return self.row(), self.column()


def accumulator_lane(threads: int, layout: FragmentLayout) -> AccumulatorLane:
    """Built where accumulators are accessed, so that loops need no register for it."""
    number = lane(threads)
    return AccumulatorLane(build.div(number, QUAD), build.rem(number, QUAD), layout)


def lane_rows(layout: FragmentLayout, piece: int) -> tuple[int, int]:
    """Both rows that a lane holds of a piece, from its first row on."""
    first = layout.extents["m"] * piece
    return first, first + (1 if "m" in layout.interleaved else HALF)


def lane_columns(layout: FragmentLayout, piece: int) -> tuple[int, int]:
    """Both columns that a lane holds of a piece, from its first column on."""
    side_by_side = neighbours(layout) // 2
    group, place = divmod(piece, side_by_side)
    first = PIECE_COLUMNS * side_by_side * group + place
    return first, first + side_by_side


def lane(threads: int) -> Any:
    """The number of a lane within its warp."""
    thread = gpu.thread_id(gpu.Dimension.x, upper_bound=threads)
    return build.rem(thread, WARP_SIZE)


@frozen
class AccumulatorSource:
    """Memory that accumulators are read from, and the indices of the first element.

    dims: the dimension of rows, and that of columns; None where they are broadcast
    """

    memory: Any
    indices: Indices
    dims: tuple[int | None, int | None]

    def shifted(self, by: tuple[Any, Any]) -> AccumulatorSource:
        """The source with values added to row and column."""
        indices = list(self.indices)
        for dim, value in zip(self.dims, by, strict=True):
            if dim is not None:
                indices[dim] = build.add(indices[dim], value)
        return AccumulatorSource(self.memory, indices, self.dims)

    def at(self, row: int, column: int) -> list[Any]:
        """The indices, with constants added to row and column."""
        indices = list(self.indices)
        for dim, number in zip(self.dims, (row, column), strict=True):
            if dim is not None:
                indices[dim] = build.plus(indices[dim], number)
        return indices

    def allows(self, elements: int) -> bool:
        """Whether so many columns can be loaded at once."""
        is_along_memory = self.dims[1] == self.memory.type.rank - 1
        return is_along_memory and allows(self.memory, self.indices, elements)


def load_accumulators(
    source: AccumulatorSource, layout: FragmentLayout, kind: ir.Type, threads: int
) -> Pieces:
    """Accumulator pieces, two or four neighbouring elements by each load."""
    owner, count = accumulator_lane(threads, layout), neighbours(layout)
    # Vectors of booleans are bits to LLVM; in memory, each has a byte.
    is_wide = kind.element_type.width > 1 and source.allows(count)
    loads = _Loads(source.shifted(owner.first()), count, is_wide)
    lane_type = layout.lane_type(kind.element_type)
    side_by_side = count // 2  # pieces
    found = []
    for row, column in piece_offsets(layout, kind)[::side_by_side]:
        up, down = loads.row(row, column), loads.row(row + owner.half, column)
        for piece in range(side_by_side):
            held = [*up[piece::side_by_side], *down[piece::side_by_side]]
            found.append(vector.from_elements(lane_type, held))
    return pieces(layout, kind, found)


@frozen
class _Loads:
    """Loads of `count` neighbours of a row, built once: rows may be broadcast."""

    source: AccumulatorSource
    count: int
    is_wide: bool
    made: dict[tuple[int, int], list[Any]] = field(default_factory=dict)

    def row(self, row: int, column: int) -> list[Any]:
        """The elements from there on."""
        rows, columns = self.source.dims
        offset = (0 if rows is None else row, 0 if columns is None else column)
        if offset not in self.made:
            self.made[offset] = self._load(*offset)
        return self.made[offset]

    def _load(self, row: int, column: int) -> list[Any]:
        memory = self.source.memory
        if self.source.dims[1] is None:
            return [memref.load(memory, self.source.at(row, column))] * self.count
        if self.is_wide:
            return load_row(memory, self.source.at(row, column), self.count)
        return [
            memref.load(memory, self.source.at(row, column + number))
            for number in range(self.count)
        ]


def load_row(memory: ir.Value, at: Indices, count: int) -> list[Any]:
    """Neighbours in a row, by one load."""
    whole = build.load(memory, at, count)
    if count == 1:
        return [whole]
    return [vector.extract(whole, [], [number]) for number in range(count)]


def held_row(side_by_side: Sequence[ir.Value], half: int) -> Any:
    """The upper or the lower row that a lane holds of pieces, as a vector."""
    if len(side_by_side) == 1:
        return vector.extract(side_by_side[0], [], [half])
    return build.vector_of(
        [
            vector.extract(piece, [], [half, element])
            for element in range(2)
            for piece in side_by_side
        ]
    )


def words(fragment: ir.Value) -> list[Any]:
    """The 32-bit words of a fragment, row by row."""
    rows, columns = fragment.type.shape
    per_row = columns * fragment.type.element_type.width // 32
    kind = ir.VectorType.get([rows, per_row], build.integer(32))
    cast = vector.bitcast(kind, fragment)
    return [
        vector.extract(cast, [], [row, word])
        for row in range(rows)
        for word in range(per_row)
    ]


def elements(fragment: ir.Value) -> list[Any]:
    """The elements of a fragment, row by row."""
    rows, columns = fragment.type.shape
    places = [[row, column] for row in range(rows) for column in range(columns)]
    return [vector.extract(fragment, [], place) for place in places]


def permute(low: ir.Value, high: ir.Value, selector: ir.Value) -> Any:
    """Four bytes of two words, by the numbers in `selector`; [PTX] prmt."""
    mode = ir.Attribute.parse("#nvvm.permute_mode<default>")
    return nvvm.prmt(low, selector, mode, hi=high)


def allows(memory: ir.Value, indices: Indices, elements: int) -> bool:
    """Whether rows from `indices` on can be accessed `elements` at a time."""
    strides, _ = memory.type.get_strides_and_offset()
    steps = [1] * (len(indices) - 1) + [divisor(indices[-1])]
    size = elements * element_bytes(memory.type)
    return strides[-1] == 1 and address_alignment(memory, steps) % size == 0


def piece_offsets(layout: FragmentLayout, kind: ir.Type) -> list[tuple[int, int]]:
    """The first row and column of each piece, row by row."""
    steps = zip(kind.shape, layout.piece, strict=True)
    rows, columns = (range(0, extent, step) for extent, step in steps)
    return [(row, column) for row in rows for column in columns]


def shifted(indices: Indices, by: tuple[Any, Any]) -> list[Any]:
    """`indices` with values added to the last two."""
    *outer, row, column = indices
    return [*outer, build.add(row, by[0]), build.add(column, by[1])]


def moved(indices: Indices, rows: int, columns: int) -> list[Any]:
    """`indices` with constants added to the last two."""
    *outer, row, column = indices
    return [*outer, build.plus(row, rows), build.plus(column, columns)]
