"""Builders of what tile code does with C: initialise accumulators, store results."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from alcop_mlir.bindings import arith, ir, memref, scf
from alcop_mlir.passes import build
from alcop_mlir.transforms.linalg.matrices import Size, matrix
from alcop_mlir.transforms.tiling.tile_access import TileWindow, warp_window, zero_of
from alcop_mlir.transforms.tiling.tile_epilogues import rounded, store_epilogue
from alcop_mlir.transforms.tiling.tiled_contractions import (
    TiledContraction,
    TileOffsets,
)


def initial_accumulators(
    contraction: TiledContraction, sizes: dict[str, Size], offsets: TileOffsets
) -> Any:
    """The accumulator initialisation: a warp tile of f32, or i32."""
    kind = _accumulator_type(contraction)
    start = contraction.accumulator_source
    if start is None:
        return arith.constant(kind, ir.DenseElementsAttr.get_splat(kind, zero_of(kind)))
    values = _window(contraction, sizes, offsets).read(*start)
    return values if values.type == kind else arith.extf(kind, values)


def store_accumulators(
    contraction: TiledContraction,
    sizes: dict[str, Size],
    offsets: TileOffsets,
    accumulators: ir.Value,
) -> None:
    """Store the results of each warp; only blocks at an edge check bounds."""
    if not contraction.epilogue:
        accumulators = rounded(accumulators, contraction.out.type.element_type)
    window = _window(contraction, sizes, offsets)

    def write(window: TileWindow) -> None:
        if contraction.epilogue:
            store_epilogue(contraction, window, accumulators)
        else:
            window.write(accumulators, contraction.out, contraction.out_loops)

    if all(window.in_bounds):
        write(window)
        return
    # Most blocks are inside C, and need no condition at each store.
    choice = scf.IfOp(_is_inside(contraction, sizes, offsets), has_else=True)
    for block, here in (
        (choice.then_block, window.inside((True, True))),
        (choice.else_block, window),
    ):
        with ir.InsertionPoint(block):
            write(here)
            scf.YieldOp([])


def store_initial(
    contraction: TiledContraction,
    sizes: dict[str, Size],
    offsets: TileOffsets,
    thread: ir.Value,
) -> None:
    """Store the initial value of C element by element, where K is empty."""
    out = matrix(contraction.out, contraction.out_loops, sizes, offsets.batch)
    window = _window(contraction, sizes, offsets)
    width = build.index(contraction.schedule.block[1])

    def element(number: ir.Value, _: list[Any]) -> Iterator[Any]:
        row = build.add(offsets.block["m"], build.div(number, width))
        column = build.add(offsets.block["n"], build.rem(number, width))
        inside = arith.andi(
            build.less(row, sizes["m"].value), build.less(column, sizes["n"].value)
        )
        guard = scf.IfOp(inside)
        with ir.InsertionPoint(guard.then_block):
            memref.store(
                _initial_value(contraction, window.at(row, column)), out, [row, column]
            )
            scf.YieldOp([])
        return iter(())

    elements = contraction.schedule.block[0] * contraction.schedule.block[1]
    bounds = (thread, build.index(elements), build.index(contraction.schedule.threads))
    build.for_loop(bounds, [], element)


def _initial_value(contraction: TiledContraction, window: TileWindow) -> Any:
    """The initial value of C at the window's first element."""
    kind = contraction.out.type.element_type
    start = contraction.accumulator_source
    if start is None:
        return arith.constant(kind, zero_of(contraction.out.type))
    value = window.load(*start)
    return value if value.type == kind else arith.extf(kind, value)


def _window(
    contraction: TiledContraction, sizes: dict[str, Size], offsets: TileOffsets
) -> TileWindow:
    return warp_window(
        sizes, offsets, contraction.schedule.warp, contraction.schedule.block[:2]
    )


def _accumulator_type(contraction: TiledContraction) -> Any:
    """A warp tile of accumulators: of f32, of i32 for integers."""
    is_integer = isinstance(contraction.out.type.element_type, ir.IntegerType)
    element = build.integer(32) if is_integer else ir.F32Type.get()
    return ir.VectorType.get(list(contraction.schedule.warp), element)


def _is_inside(
    contraction: TiledContraction, sizes: dict[str, Size], offsets: TileOffsets
) -> Any:
    """Whether all of the block's tile is inside C."""
    inside = arith.constant(build.integer(1), 1)
    for loop, tile in zip("mn", contraction.schedule.block, strict=False):
        if not sizes[loop].divides(tile):
            room = build.sub(sizes[loop].value, offsets.block[loop])
            fits = arith.cmpi(arith.CmpIPredicate.sge, room, build.index(tile))
            inside = arith.andi(inside, fits)
    return inside
