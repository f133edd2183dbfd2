"""Builders of what tile code does with C: initialise accumulators, store results."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from alcop_mlir.bindings import arith, ir, memref
from alcop_mlir.passes import build
from alcop_mlir.transforms.linalg.matrices import matrix
from alcop_mlir.transforms.tiling.tile_access import TileWindow, warp_window
from alcop_mlir.transforms.tiling.tile_epilogues import store_epilogue
from alcop_mlir.transforms.tiling.tiled_contractions import BlockTile, accumulator_type
from alcop_mlir.transforms.tiling.vector_code import rounded


def initial_accumulators(tile: BlockTile) -> Any:
    """The accumulator initialisation: a warp tile of f32, or i32."""
    contraction = tile.contraction
    element = accumulator_type(contraction.out.type.element_type)
    kind = ir.VectorType.get(list(contraction.schedule.warp), element)
    start = contraction.accumulator_source
    if start is None:
        return build.zero(kind)
    values = warp_window(tile).read(*start)
    return values if values.type == kind else arith.extf(kind, values)


def store_accumulators(tile: BlockTile, accumulators: ir.Value) -> None:
    """Store the results of each warp; only blocks at an edge check bounds."""
    contraction = tile.contraction
    if not contraction.epilogue:
        accumulators = rounded(accumulators, contraction.out.type.element_type)
    window = warp_window(tile)

    def write(window: TileWindow) -> None:
        if contraction.epilogue:
            store_epilogue(contraction, window, accumulators)
        else:
            window.write(accumulators, contraction.out, contraction.out_loops)

    if all(window.in_bounds):
        write(window)
        return
    # Most blocks are inside C, and need no condition at each store.
    inside = replace(window, in_bounds=(True, True))
    build.branch(_is_inside(tile), lambda: write(inside), lambda: write(window))


def store_initial(tile: BlockTile, thread: ir.Value) -> None:
    """Store the initial value of C element by element, where K is empty."""
    contraction, sizes = tile.contraction, tile.sizes
    out = matrix(contraction.out, contraction.out_loops, sizes, tile.batch)
    window = warp_window(tile)
    rows, columns, _ = contraction.schedule.block
    width = build.index(columns)

    def element(number: ir.Value, _: list[Any]) -> None:
        row = build.add(tile.block["m"], build.div(number, width))
        column = build.add(tile.block["n"], build.rem(number, width))
        inside = arith.andi(
            build.less(row, sizes["m"].value), build.less(column, sizes["n"].value)
        )
        here = replace(window, first={"m": row, "n": column})

        def store() -> None:
            memref.store(_initial_value(tile, here), out, [row, column])

        build.branch(inside, store)

    build.for_loop((thread, rows * columns, contraction.schedule.threads), [], element)


def _initial_value(tile: BlockTile, window: TileWindow) -> Any:
    """The initial value of C at the window's first element."""
    kind = tile.contraction.out.type.element_type
    start = tile.contraction.accumulator_source
    if start is None:
        return build.zero(kind)
    value = window.load(*start)
    return value if value.type == kind else arith.extf(kind, value)


def _is_inside(tile: BlockTile) -> Any:
    """Whether all of the block's tile is inside C."""
    inside = arith.constant(build.integer(1), 1)
    for loop, extent in zip("mn", tile.contraction.schedule.block, strict=False):
        if not tile.sizes[loop].divides(extent):
            room = build.sub(tile.sizes[loop].value, tile.block[loop])
            fits = arith.cmpi(arith.CmpIPredicate.sge, room, build.index(extent))
            inside = arith.andi(inside, fits)
    return inside
