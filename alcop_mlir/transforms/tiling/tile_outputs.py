"""Builders of what tile code does with C: the start of the sums, and their store."""

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
    product: TiledContraction, sizes: dict[str, Size], place: TileOffsets
) -> Any:
    """The accumulators' start: a warp tile of f32, or i32."""
    kind = _accumulators(product)
    start = product.accumulator_source
    if start is None:
        return arith.constant(kind, ir.DenseElementsAttr.get_splat(kind, zero_of(kind)))
    values = _window(product, sizes, place).read(*start)
    return values if values.type == kind else arith.extf(kind, values)


def store_accumulators(
    product: TiledContraction,
    sizes: dict[str, Size],
    place: TileOffsets,
    accumulators: Any,
) -> None:
    """The results, written by each warp; only edge blocks look at their bounds."""
    if not product.epilogue:
        accumulators = rounded(accumulators, product.out.type.element_type)
    window = _window(product, sizes, place)

    def write(window: TileWindow) -> None:
        if product.epilogue:
            store_epilogue(product, window, accumulators)
        else:
            window.write(accumulators, product.out, product.out_loops)

    if all(window.in_bounds):
        write(window)
        return
    # Most blocks lie inside, and need no condition at each store.
    choice = scf.IfOp(_is_inside(product, sizes, place), has_else=True)
    for block, here in (
        (choice.then_block, window.inside((True, True))),
        (choice.else_block, window),
    ):
        with ir.InsertionPoint(block):
            write(here)
            scf.YieldOp([])


def store_start(
    product: TiledContraction, sizes: dict[str, Size], place: TileOffsets, thread: Any
) -> None:
    """What C starts from, element by element: there is nothing to add to it."""
    out = matrix(product.out, product.out_loops, sizes, place.batch)
    window = _window(product, sizes, place)
    width = build.index(product.schedule.block[1])

    def element(number: Any, _: list[Any]) -> Iterator[Any]:
        row = build.add(place.block["m"], arith.divui(number, width))
        column = build.add(place.block["n"], arith.remui(number, width))
        inside = arith.andi(
            build.less(row, sizes["m"].value), build.less(column, sizes["n"].value)
        )
        guard = scf.IfOp(inside)
        with ir.InsertionPoint(guard.then_block):
            memref.store(_start(product, window.at(row, column)), out, [row, column])
            scf.YieldOp([])
        return iter(())

    elements = product.schedule.block[0] * product.schedule.block[1]
    bounds = (thread, build.index(elements), build.index(product.schedule.threads))
    build.for_loop(bounds, [], element)


def _start(product: TiledContraction, window: TileWindow) -> Any:
    """The element that C starts from at the window's first place."""
    kind = product.out.type.element_type
    start = product.accumulator_source
    if start is None:
        return arith.constant(kind, zero_of(product.out.type))
    value = window.load(*start)
    return value if value.type == kind else arith.extf(kind, value)


def _window(
    product: TiledContraction, sizes: dict[str, Size], place: TileOffsets
) -> TileWindow:
    return warp_window(sizes, place, product.schedule.warp, product.schedule.block[:2])


def _accumulators(product: TiledContraction) -> Any:
    """The type of the sums: a warp tile of f32, of i32 for integers."""
    is_integer = isinstance(product.out.type.element_type, ir.IntegerType)
    element = ir.IntegerType.get_signless(32) if is_integer else ir.F32Type.get()
    return ir.VectorType.get(list(product.schedule.warp), element)


def _is_inside(
    product: TiledContraction, sizes: dict[str, Size], place: TileOffsets
) -> Any:
    """Whether all of the block's tile lies within C."""
    inside = arith.constant(ir.IntegerType.get_signless(1), 1)
    for loop, tile in zip("mn", product.schedule.block, strict=False):
        if not sizes[loop].divides(tile):
            room = arith.subi(sizes[loop].value, place.block[loop])
            fits = arith.cmpi(arith.CmpIPredicate.sge, room, build.index(tile))
            inside = arith.andi(inside, fits)
    return inside
