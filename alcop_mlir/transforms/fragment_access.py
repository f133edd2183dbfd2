"""Builders that move fragments of mma.sync between memory and the lanes of a warp.

Lane numbers: `quad` is lane / 4, `place` is lane % 4. [PTX] "Matrix Fragments for
mma.m16n8k16": of an accumulator piece, a lane holds elements 2 * place and the next, in
row `quad` and in row `quad` + 8.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from alcop_mlir.analysis.alignment import (
    address_alignment,
    behind_casts,
    divisor,
    element_bytes,
)
from alcop_mlir.analysis.fragment_layout import Layout
from alcop_mlir.bindings import affine, arith, gpu, ir, memref, nvgpu, vector
from alcop_mlir.target import WARP_SIZE
from alcop_mlir.transforms import build

_MATRICES = 4  # 8x8 matrices of an ldmatrix.x4; [PTX] ldmatrix
HALF = 8  # rows and columns of one of them
_WHOLE = 2 * HALF  # of the four together
_QUAD = 4  # lanes that hold a row of an accumulator piece together

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
class Corners:
    """Where a lane points an ldmatrix.x4: row and column from the piece's first.

    below:  its second matrix is the one below the first
    beside: its second matrix is the one to the right of the first
    """

    below: tuple[Any, Any]
    beside: tuple[Any, Any]


def corners(threads: int) -> Corners:
    """To be built where the kernel begins: all loads of operands share them."""
    lane = _lane(threads)
    half, whole = build.index(HALF), build.index(_WHOLE)
    second = build.mul(arith.divui(lane, whole), half)
    first = build.mul(arith.divui(arith.remui(lane, whole), half), half)
    return Corners(
        below=(arith.remui(lane, whole), second),
        beside=(build.add(arith.remui(lane, half), second), first),
    )


@dataclass(frozen=True)
class Owner:
    """A lane as an owner of accumulators; index values."""

    quad: Any
    place: Any

    def pair(self) -> tuple[Any, Any]:
        """Row and column of its first element of a piece."""
        return self.quad, build.mul(self.place, build.index(2))

    def is_odd(self) -> Any:
        """1 if `place` is odd, else 0."""
        return arith.remui(self.place, build.index(2))

    def is_upper(self) -> Any:
        """1 if `place` is 2 or 3, else 0."""
        return arith.divui(self.place, build.index(2))


def owner(threads: int) -> Owner:
    """Built where accumulators move: no register is held for it during the loops."""
    lane = _lane(threads)
    quad = build.index(_QUAD)
    return Owner(quad=arith.divui(lane, quad), place=arith.remui(lane, quad))


def _lane(threads: int) -> Any:
    thread = gpu.thread_id(gpu.Dimension.x, upper_bound=threads)
    return arith.remui(thread, build.index(WARP_SIZE))


def load_operand(
    source: Any, indices: Indices, layout: Layout, kind: Any, at: Corners
) -> Pieces:
    """Pieces of a or b by an ldmatrix.x4 each, all of one k before those of the next.

    Its four matrices come in the order of the operand's registers: of a, at (m, k) of
    (0, 0), (8, 0), (0, 8), (8, 8); of b, at (k, n) of the same, a pair of registers for
    each mma.sync.
    """
    source = behind_casts(source)
    start = at.below if layout.dims in ("mk", "kn") else at.beside
    corner = shifted(indices, start)
    lane_type = layout.lane_type(kind.element_type)
    order = sorted(
        places(layout, kind), key=lambda place: place[layout.dims.index("k")]
    )
    loaded = {
        place: nvgpu.ldmatrix(
            lane_type,
            source,
            moved(corner, *place),
            transpose=layout.dims in ("km", "kn"),
            num_tiles=_MATRICES,
        )
        for place in order
    }
    return pieces(layout, kind, [loaded[place] for place in sorted(loaded)])


def halves(piece: Any) -> tuple[Any, Any]:
    """The operands of two mma.sync, of neighbouring n, that a piece of b holds."""
    rows, columns = piece.type.shape
    lane_type = ir.VectorType.get([rows // 2, columns], piece.type.element_type)
    first, second = (
        vector.extract_strided_slice(
            lane_type, piece, [start, 0], [rows // 2, columns], [1, 1]
        )
        for start in (0, rows // 2)
    )
    return first, second


def load_accumulators(
    source: Any, indices: Indices, layout: Layout, kind: Any, threads: int
) -> Pieces:
    """Accumulator pieces, two neighbouring elements by each load."""
    corner = shifted(indices, owner(threads).pair())
    lane_type = layout.lane_type(kind.element_type)
    is_wide = allows(source, indices, 2)
    loaded = []
    for row, column in places(layout, kind):
        value = arith.constant(lane_type, _zeros(lane_type))
        for half in range(2):
            place = moved(corner, row + half * HALF, column)
            pair = _load_pair(source, place, kind.element_type, is_wide)
            value = vector.insert(pair, value, [], [half])
        loaded.append(value)
    return pieces(layout, kind, loaded)


def _load_pair(source: Any, place: Indices, element: Any, is_wide: bool) -> Any:
    kind = ir.VectorType.get([2], element)
    if is_wide:
        return vector.load(kind, source, place, alignment=2 * element_bytes(kind))
    both = [memref.load(source, moved(place, 0, number)) for number in range(2)]
    return vector.from_elements(kind, both)


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
    return [*outer, _plus(row, rows), _plus(column, columns)]


def _plus(value: Any, addend: int) -> Any:
    """By affine.apply: upstream merges it with the offsets of views, constants last.

    LLVM then finds the constants and puts them into the instructions' addresses.
    """
    if not addend:
        return value
    total = ir.AffineExpr.get_symbol(0) + addend
    return affine.apply(ir.AffineMap.get(0, 1, [total]), [value])


def _zeros(kind: Any) -> Any:
    element = kind.element_type
    if isinstance(element, ir.FloatType):
        return ir.DenseElementsAttr.get_splat(kind, ir.FloatAttr.get(element, 0.0))
    return ir.DenseElementsAttr.get_splat(kind, ir.IntegerAttr.get(element, 0))
