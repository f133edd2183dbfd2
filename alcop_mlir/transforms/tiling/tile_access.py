"""Builders of the transfers between memory and the vectors of a warp in tile code."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from alcop_mlir.analysis.linalg.epilogue_fusion import FIRST
from alcop_mlir.bindings import arith, ir, memref, vector
from alcop_mlir.passes import build
from alcop_mlir.transforms.linalg.matrices import Size, matrix
from alcop_mlir.transforms.tiling.tiled_contractions import TileOffsets


@dataclass(frozen=True)
class TileWindow:
    """Rows and columns of C that a warp works on, and their part of other buffers.

    first:     the first row and column, as values
    shape:     how many there are
    in_bounds: whether all rows, and all columns, are known to exist
    """

    sizes: dict[str, Size]
    batch: Any
    first: dict[str, Any]
    shape: tuple[int, int]
    in_bounds: tuple[bool, bool]

    def rows(self, first: int, count: int) -> TileWindow:
        """The window of some of the rows."""
        offsets = {**self.first, "m": build.plus(self.first["m"], first)}
        shape = (count, self.shape[1])
        return TileWindow(self.sizes, self.batch, offsets, shape, self.in_bounds)

    def inside(self, in_bounds: tuple[bool, bool]) -> TileWindow:
        """The same window, with these bounds known."""
        return TileWindow(self.sizes, self.batch, self.first, self.shape, in_bounds)

    def at(self, row: ir.Value, column: ir.Value) -> TileWindow:
        """The window of the same shape at another row and column."""
        first = {"m": row, "n": column}
        return TileWindow(self.sizes, self.batch, first, self.shape, self.in_bounds)

    def load(self, buffer: ir.Value, loops: str) -> Any:
        """The first element, as a scalar."""
        source, dims = self._memory(buffer, loops)
        return memref.load(source, self._indices(dims))

    def read(self, buffer: ir.Value, loops: str) -> Any:
        """The elements of a buffer with these loops as a vector of the window's shape.

        A buffer without rows or columns is broadcast along them.
        """
        kind = ir.VectorType.get(self.shape, buffer.type.element_type)
        source, dims = self._memory(buffer, loops)
        if "m" not in dims and "n" not in dims:
            return vector.broadcast(kind, memref.load(source, self._indices(dims)))
        padding = arith.constant(kind.element_type, zero_of(kind))
        where, known = self._indices(dims), self._in_bounds(dims)
        by = _transfer_map(dims)
        return vector.transfer_read(kind, source, where, by, padding, known)

    def write(self, value: ir.Value, buffer: ir.Value, loops: str) -> None:
        """Store a vector of the window's shape."""
        target, dims = self._memory(buffer, loops)
        where, known = self._indices(dims), self._in_bounds(dims)
        vector.transfer_write(None, value, target, where, _transfer_map(dims), known)

    def _memory(self, buffer: ir.Value, loops: str) -> tuple[Any, str]:
        """The buffer's matrix for the batch, and the loops that index it."""
        sizes = {**self.sizes, FIRST: Size(1, build.index(1), build.index(1))}
        return matrix(buffer, loops, sizes, self.batch), loops.replace("b", "")

    def _indices(self, dims: str) -> list[Any]:
        return [self.first[dim] if dim in "mn" else build.index(0) for dim in dims]

    def _in_bounds(self, dims: str) -> list[bool]:
        """The attribute of a transfer; along a broadcast it is in bounds."""
        known = zip("mn", self.in_bounds, strict=True)
        return [dim not in dims or inside for dim, inside in known]


def warp_window(
    sizes: dict[str, Size],
    offsets: TileOffsets,
    shape: tuple[int, int],
    tile: Sequence[int],
) -> TileWindow:
    """The part of C that a warp computes; `tile`: rows and columns of the block's."""
    rows, columns = tile
    known = (sizes["m"].divides(rows), sizes["n"].divides(columns))
    first = {i: build.add(offsets.block[i], offsets.warp[i]) for i in "mn"}
    return TileWindow(sizes, offsets.batch, first, shape, known)


def read_tile(source: ir.Value, offsets: list[ir.Value], shape: list[int]) -> Any:
    """A vector of the part of a workgroup buffer that begins at `offsets`."""
    element = source.type.element_type
    padding = arith.constant(element, zero_of(source.type))
    kind = ir.VectorType.get(shape, element)
    by = ir.AffineMapAttr.get(ir.AffineMap.get_identity(len(shape)))
    return vector.transfer_read(kind, source, offsets, by, padding, [True, True])


def zero_of(kind: ir.Type) -> Any:
    """The zero attribute of the element type of a vector or memref."""
    element = kind.element_type
    if isinstance(element, ir.IntegerType):
        return ir.IntegerAttr.get(element, 0)
    return ir.FloatAttr.get(element, 0.0)


def _transfer_map(dims: str) -> Any:
    """The map from dimensions of memory to rows and columns; 0 for a broadcast."""
    return build.loop_map(
        len(dims), [dims.index(loop) if loop in dims else None for loop in "mn"]
    )
