"""Builders of what tile code does with C: the start of the sums, and their store."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from alcop_mlir.bindings import arith, ir, memref, scf, vector
from alcop_mlir.transforms import build
from alcop_mlir.transforms.matrices import Size, matrix
from alcop_mlir.transforms.tile_access import identity_map, read_tile, zero_of
from alcop_mlir.transforms.tiled_products import Place, Product


def initial_sums(product: Product, sizes: dict[str, Size], place: Place) -> Any:
    """The accumulators' start: a warp tile of f32, or i32."""
    kind = _accumulators(product)
    source = product.init_source
    if source is None:
        return arith.constant(kind, ir.DenseElementsAttr.get_splat(kind, zero_of(kind)))
    source = matrix(source, product.out_loops, sizes, place.batch)
    values = read_tile(
        source,
        _output_place(place),
        list(product.schedule.warp),
        _in_bounds(product, sizes),
    )
    return values if values.type == kind else arith.extf(kind, values)


def _accumulators(product: Product) -> Any:
    """The type of the sums: a warp tile of f32, of i32 for integers."""
    is_integer = isinstance(product.out.type.element_type, ir.IntegerType)
    element = ir.IntegerType.get_signless(32) if is_integer else ir.F32Type.get()
    return ir.VectorType.get(list(product.schedule.warp), element)


def store_sums(
    product: Product, sizes: dict[str, Size], place: Place, accumulators: Any
) -> None:
    """C, rounded once, written by each warp; only edge blocks look at its bounds."""
    element = product.out.type.element_type
    if element != accumulators.type.element_type:
        kind = ir.VectorType.get(list(product.schedule.warp), element)
        accumulators = arith.truncf(kind, accumulators)
    out = matrix(product.out, product.out_loops, sizes, place.batch)
    in_bounds = _in_bounds(product, sizes)

    def write(in_bounds: list[bool]) -> None:
        vector.transfer_write(
            None, accumulators, out, _output_place(place), identity_map(2), in_bounds
        )

    if all(in_bounds):
        write(in_bounds)
        return
    # Most blocks lie inside, and need no condition at each store.
    choice = scf.IfOp(_is_inside(product, sizes, place), has_else=True)
    for block, known in (
        (choice.then_block, [True, True]),
        (choice.else_block, in_bounds),
    ):
        with ir.InsertionPoint(block):
            write(known)
            scf.YieldOp([])


def _is_inside(product: Product, sizes: dict[str, Size], place: Place) -> Any:
    """Whether all of the block's tile lies within C."""
    inside = arith.constant(ir.IntegerType.get_signless(1), 1)
    for loop, tile in zip("mn", product.schedule.block, strict=False):
        if not sizes[loop].divides(tile):
            room = arith.subi(sizes[loop].value, place.block[loop])
            fits = arith.cmpi(arith.CmpIPredicate.sge, room, build.index(tile))
            inside = arith.andi(inside, fits)
    return inside


def _in_bounds(product: Product, sizes: dict[str, Size]) -> list[bool]:
    tiles = zip("mn", product.schedule.block, strict=False)
    return [sizes[loop].divides(tile) for loop, tile in tiles]


def store_start(
    product: Product, sizes: dict[str, Size], place: Place, thread: Any
) -> None:
    """What C starts from, element by element: there is nothing to add to it."""
    out = matrix(product.out, product.out_loops, sizes, place.batch)
    start = product.init_source
    if start is not None:
        start = matrix(start, product.out_loops, sizes, place.batch)
    width = build.index(product.schedule.block[1])

    def element(number: Any, _: list[Any]) -> Iterator[Any]:
        row = build.add(place.block["m"], arith.divui(number, width))
        column = build.add(place.block["n"], arith.remui(number, width))
        inside = arith.andi(
            build.less(row, sizes["m"].value), build.less(column, sizes["n"].value)
        )
        guard = scf.IfOp(inside)
        with ir.InsertionPoint(guard.then_block):
            if start is None:
                value = arith.constant(out.type.element_type, zero_of(out.type))
            else:
                value = memref.load(start, [row, column])
            memref.store(value, out, [row, column])
            scf.YieldOp([])
        return iter(())

    elements = product.schedule.block[0] * product.schedule.block[1]
    bounds = (thread, build.index(elements), build.index(product.schedule.threads))
    build.for_loop(bounds, [], element)


def _output_place(place: Place) -> list[Any]:
    return [build.add(place.block[i], place.warp[i]) for i in "mn"]
