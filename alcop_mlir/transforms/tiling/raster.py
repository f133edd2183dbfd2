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
from alcop_mlir.target import MAX_GRID


def tile_of_block(
    raster: int, block: tuple[Any, Any], rows: int, columns: int | Any
) -> tuple[Any, Any]:
    """Row and column of the tile that the block (x, y) of a grid computes.

    rows, columns: of tiles in the grid; a value where it is known at run time only
    """
    x, y = block
    group = min(raster, rows)
    if group <= 1 or (isinstance(columns, int) and columns <= 1):
        return y, x
    within = build.rem(y, group)
    first = build.sub(y, within)
    number = build.add(build.mul(within, columns), x)
    return _tile_of_group(number, first, group, rows)


def tile_of_number(
    raster: int, number: Any, rows: int | Any, columns: int | Any
) -> tuple[Any, Any]:
    """Row and column of the tile that block `number` of all blocks computes."""
    is_single = any(isinstance(count, int) and count <= 1 for count in (rows, columns))
    if raster <= 1 or is_single:
        return build.div(number, columns), build.rem(number, columns)
    # Of rows that are known at run time only there may be fewer than a group has: all
    # blocks are in the first one then.
    group = min(raster, rows) if isinstance(rows, int) else raster
    if isinstance(columns, int):
        blocks: Any = group * columns
    else:
        blocks = at_most_limit(build.mul(columns, group))
    first = build.mul(build.div(number, blocks), group)
    return _tile_of_group(build.rem(number, blocks), first, group, rows)


def below_limit(count: ir.Value) -> Any:
    """`count`, of blocks, in a form that shows that it is no more than a grid has.

    LLVM then divides by it in 32 bits; a division in 64 bits is many times as long.
    """
    return arith.andi(count, build.index(MAX_GRID[0]))


def at_most_limit(count: ir.Value) -> Any:
    """The least of `count` and of what is more than the number of any block.

    A number of a block divided by it is the same; it has 32 bits, as `below_limit`.
    """
    return arith.minui(count, build.index(MAX_GRID[0]))


def _tile_of_group(
    number: Any, first: Any, group: int, rows: int | Any
) -> tuple[Any, Any]:
    """Of the tile `number` of the group whose rows begin at `first`."""
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
