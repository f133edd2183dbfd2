"""The grid of blocks of a tiled contraction, and the tile that each block computes.

Blocks run along N first, then along M, then along the batch: x, y and z of the grid.
Along y and z a grid has 65,535 blocks. Where that may not do, as the number of rows of
tiles or the batch is larger, or known at run time only, all blocks lie along x, which
has room for 2^31 - 1, and each block divides its number once:

    number = (batch * rows + row) * columns + column

The number of a matrix in a batch of several loops, of which each block then knows the
iteration, is divided once by the sizes of the inner ones.

In clusters, tiles in a column that follow one another are those of a cluster's blocks:
the grid above is one of clusters, of which each has so many blocks along x.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from alcop_mlir.bindings import gpu, ir
from alcop_mlir.frozen import frozen
from alcop_mlir.passes import build
from alcop_mlir.target import MAX_GRID
from alcop_mlir.transforms.linalg.matrices import Size
from alcop_mlir.transforms.tiling.raster import (
    below_limit,
    tile_of_block,
    tile_of_number,
)

# Of the block arguments of a gpu.launch, the first grid size: after block, thread ids.
_GRID_SIZE = 6
_CLUSTER = 12  # the first number of the cluster: after block sizes


@frozen
class TileGrid:
    """The grid of `rows` x `columns` tiles in a batch.

    rows, columns: of M and N
    batch:         of all outputs together
    batches:       of the loops of the batch that index the outputs, by letter
    tile:          rows and columns of C
    raster:        rows of tiles in a group
    cluster:       blocks of a cluster, which divides the number of rows of tiles
    """

    rows: Size
    columns: Size
    batch: Size
    batches: Mapping[str, Size]
    tile: tuple[int, int]
    raster: int
    cluster: int = 1

    @property
    def is_flat(self) -> bool:
        """Whether all blocks lie along x."""
        rows, batch = _tiles(self.rows, self._rows_of_cluster), self.batch.known
        if rows is None or batch is None:
            return True
        return rows > MAX_GRID[1] or batch > MAX_GRID[2]

    def blocks(self) -> tuple[Any, Any, Any]:
        """Along x, y and z, as values on the host."""
        columns = build.mul(self.columns.blocks(self.tile[1]), self.cluster)
        rows = self.rows.blocks(self._rows_of_cluster)
        if not self.is_flat:
            return columns, rows, self.batch.given
        total = build.mul(columns, rows)
        if self.batch.known != 1:
            total = build.mul(total, self.batch.given)
        return total, build.index(1), build.index(1)

    def tile_of(self, arguments: Sequence[ir.Value]) -> tuple[Any, Any, dict[str, Any]]:
        """Row, column and iteration of the batch of a block, from the arguments of the
        launch's body.
        """
        row, column, matrix = self._numbers(arguments)
        if self.cluster > 1:
            rank = gpu.cluster_block_id(gpu.Dimension.x)
            row = build.add(build.mul(row, self.cluster), rank)
        sizes = [_below_limit(size) for size in self.batches.values()]
        indices = build.coordinates(matrix, sizes)
        return row, column, dict(zip(self.batches, indices, strict=True))

    def _numbers(self, arguments: Sequence[ir.Value]) -> tuple[Any, Any, Any]:
        """Row and column of a block, or of a cluster, and the number of its matrix."""
        first = _CLUSTER if self.cluster > 1 else 0
        x, y, z = arguments[first : first + 3]
        known = _tiles(self.rows, self._rows_of_cluster)
        raster = max(1, self.raster // self.cluster)
        if not self.is_flat and known is not None:
            columns: Any = _tiles(self.columns, self.tile[1])
            if columns is None:
                columns = build.div(arguments[_GRID_SIZE], self.cluster)
            return *tile_of_block(raster, (x, y), known, columns), z
        rows = _counted(self.rows, self._rows_of_cluster)
        columns = _counted(self.columns, self.tile[1])
        batch, number = build.index(0), x
        if self.batch.known != 1:
            blocks = _product(rows, columns)
            batch, number = build.div(x, blocks), build.rem(x, blocks)
        return *tile_of_number(raster, number, rows, columns), batch

    @property
    def _rows_of_cluster(self) -> int:
        """Rows of C that the blocks of a cluster compute."""
        return self.tile[0] * self.cluster


def _tiles(size: Size, tile: int) -> int | None:
    """The number of tiles that cover a size, where that is known."""
    return None if size.known is None else -(-size.known // tile)


def _below_limit(size: Size) -> Any:
    """The size of a loop of the batch, in the kernel."""
    return below_limit(size.given) if size.known is None else size.known


def _counted(size: Size, tile: int) -> Any:
    """The number of tiles that cover a size, in the kernel."""
    known = _tiles(size, tile)
    if known is not None:
        return known
    return below_limit(build.div(build.add(size.given, tile - 1), tile))


def _product(one: Any, other: Any) -> Any:
    """The number of blocks of a matrix, of which there is no more than of all."""
    if isinstance(one, int) and isinstance(other, int):
        return one * other
    return below_limit(build.mul(one, other))
