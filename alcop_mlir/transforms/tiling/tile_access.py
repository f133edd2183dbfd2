"""Builders of the transfers between memory and the vectors of a warp in tile code."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from alcop_mlir.analysis.linalg.contraction_letters import matrix_loops
from alcop_mlir.analysis.linalg.epilogue_fusion import FIRST
from alcop_mlir.bindings import ir, memref, vector
from alcop_mlir.dialects import alcop
from alcop_mlir.frozen import frozen
from alcop_mlir.passes import build
from alcop_mlir.rectangles import Rectangles
from alcop_mlir.transforms.linalg.matrices import Size, matrix
from alcop_mlir.transforms.tiling.tiled_contractions import BlockTile


@frozen
class TileWindow:
    """Rows and columns of C that a warp works on, and their part of other buffers.

    first:     the first row and column, as values
    shape:     how many there are
    in_bounds: whether all rows, and all columns, are known to exist
    rectangles: the order of rows, if that is not the one of memory
    """

    sizes: dict[str, Size]
    batch: Mapping[str, Any]
    first: dict[str, Any]
    shape: tuple[int, int]
    in_bounds: tuple[bool, bool]
    rectangles: Rectangles | None = None

    def rows(self, first: int, count: int) -> TileWindow:
        """The window of some of the rows."""
        offsets = {**self.first, "m": build.plus(self.first["m"], first)}
        return replace(self, first=offsets, shape=(count, self.shape[1]))

    def group(self, first: int, columns: int, parts: int) -> TileWindow:
        """So many columns of what has one for `parts` of these, from `first` on."""
        column = build.plus(build.div(self.first["n"], parts), first // parts)
        size = Size((self.sizes["n"].known or 0) // parts, None, None)
        return replace(
            self,
            sizes={**self.sizes, "n": size},
            first={**self.first, "n": column},
            shape=(self.shape[0], columns),
        )

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
        padding = build.zero(kind.element_type)
        where, known = self._indices(dims), self._in_bounds(dims)
        by = transfer_map(dims)
        return vector.transfer_read(kind, source, where, by, padding, known)

    def write(self, value: ir.Value, buffer: ir.Value, loops: str) -> None:
        """Store a vector of the window's shape."""
        target, dims = self._memory(buffer, loops)
        where, known = self._indices(dims), self._in_bounds(dims)
        vector.transfer_write(None, value, target, where, transfer_map(dims), known)

    def _memory(self, buffer: ir.Value, loops: str) -> tuple[Any, str]:
        """The buffer's matrix for the batch, and the loops that index it."""
        sizes = {**self.sizes, FIRST: Size(1, build.index(1), build.index(1))}
        memory, dims = matrix(buffer, loops, sizes, self.batch), matrix_loops(loops)
        if self.rectangles is not None and "m" in dims:
            memory = _in_rectangles(memory, self.rectangles)
        return memory, dims

    def _indices(self, dims: str) -> list[Any]:
        return [self.first[dim] if dim in "mn" else build.index(0) for dim in dims]

    def _in_bounds(self, dims: str) -> list[bool]:
        """The attribute of a transfer; along a broadcast it is in bounds."""
        known = zip("mn", self.in_bounds, strict=True)
        return [dim not in dims or inside for dim, inside in known]


def warp_window(tile: BlockTile) -> TileWindow:
    """The part of C that a warp computes."""
    schedule = tile.contraction.schedule
    rows, columns, _ = schedule.block
    known = (tile.sizes["m"].divides(rows), tile.sizes["n"].divides(columns))
    first = {i: build.add(tile.block[i], tile.warp[i]) for i in "mn"}
    return TileWindow(
        tile.sizes, tile.batch, first, schedule.warp, known, tile.rectangles
    )


def read_tile(source: ir.Value, offsets: list[ir.Value], shape: list[int]) -> Any:
    """A vector of the part of a workgroup buffer that begins at `offsets`."""
    element = source.type.element_type
    padding = build.zero(element)
    kind = ir.VectorType.get(shape, element)
    by = build.loop_map(len(shape), range(len(shape)))
    return vector.transfer_read(kind, source, offsets, by, padding, [True, True])


def _in_rectangles(memory: ir.Value, order: Rectangles) -> Any:
    """A matrix with its rows in the order of rectangles of positions."""
    rows, columns = memory.type.shape
    kind = build.memref_like(memory.type, [order.numbers(rows), columns])
    view = ir.Operation.create("alcop.rows", [kind], [memory])
    alcop.set_rectangles(view, order)
    return view.results[0]


def transfer_map(dims: str) -> Any:
    """The map from dimensions of memory to rows and columns; 0 for a broadcast."""
    return build.loop_map(
        len(dims), [dims.index(loop) if loop in dims else None for loop in "mn"]
    )
