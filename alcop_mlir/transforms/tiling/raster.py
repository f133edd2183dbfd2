"""Builders of the raster: which tile of C a block computes.

Blocks start in the order of their number, along x first. With `raster` rows of tiles in
a group they take the tiles of a group down its rows first, then those of the next:

    raster = 1:  0 1 2 3     raster = 2:  0 2 4 6
                 4 5 6 7                  1 3 5 7
                 8 9 ...                  8 9 ...  (a last group may have fewer rows)

The blocks that run together then lie in a rectangle, not in a few long rows, and read
less of A and B from memory: they share more in L2.
"""

from __future__ import annotations

from typing import Any

from alcop_mlir.bindings import arith, ir
from alcop_mlir.passes import build


def tile_of_block(
    raster: int, block: tuple[Any, Any], rows: int | Any, columns: int | Any
) -> tuple[Any, Any]:
    """Row and column of the tile that the block (x, y) computes.

    rows, columns: of tiles in the grid; values where they are known at run time only
    """
    x, y = block
    group = min(raster, rows) if isinstance(rows, int) else raster
    if group <= 1 or (isinstance(columns, int) and columns <= 1):
        return y, x
    within = build.rem(y, group)
    first = build.sub(y, within)
    number = build.add(build.mul(within, columns), x)
    height, column = _across(number, first, group, rows)
    row = build.add(first, build.sub(number, build.mul(column, height)))
    return row, column


def _across(
    number: ir.Value, first: ir.Value, group: int, rows: int | Any
) -> tuple[Any, Any]:
    """Rows of the group that begins at `first`; the column of its tile `number`."""
    if not isinstance(rows, int):
        height = arith.minui(build.sub(rows, first), build.index(group))
        return height, build.div(number, height)
    column, remaining = build.div(number, group), rows % group
    if not remaining:
        return build.index(group), column
    # Two divisions by constants are faster than one by a value.
    is_whole = build.less(first, rows - remaining)
    return (
        build.select(is_whole, group, remaining),
        build.select(is_whole, column, build.div(number, remaining)),
    )
