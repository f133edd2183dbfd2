"""Builders of the loops of tile code: tiles to shared memory, fragments, arithmetic.

The K loop copies a tile of A and one of B to workgroup buffers in each step; the loop
inside takes fragments of them and multiplies. A batch that is summed is a loop around.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from alcop_mlir.analysis.linalg.operand_transforms import OperandTransform
from alcop_mlir.bindings import arith, gpu, ir, memref, vector
from alcop_mlir.dialects import alcop
from alcop_mlir.passes import build
from alcop_mlir.transforms.linalg.matrices import Size, matrix, view
from alcop_mlir.transforms.tiling.tile_access import read_tile
from alcop_mlir.transforms.tiling.tile_operands import (
    Others,
    check_fill,
    load_others,
    multiplied,
)
from alcop_mlir.transforms.tiling.tiled_contractions import (
    TiledContraction,
    TileOffsets,
)


@dataclass(frozen=True)
class _Source:
    """A matrix that the K loop takes tiles of, and the buffer that they go to.

    factor: what is multiplied of it
    """

    array: Any
    loops: str
    buffer: Any
    factor: OperandTransform


def contract_tiles(
    product: TiledContraction, sizes: dict[str, Size], place: TileOffsets, initial: Any
) -> Any:
    """The accumulators after all products."""
    step = dict(zip("mnk", product.schedule.block, strict=True))
    lhs, rhs = (
        _workgroup_buffer(array, [step[i] for i in loops.replace("b", "")])
        for array, loops in (
            (product.lhs, product.lhs_loops),
            (product.rhs, product.rhs_loops),
        )
    )
    ragged = {
        loop: _rest(sizes[loop], place.block[loop], step[loop])
        for loop in "mn"
        if not sizes[loop].divides(step[loop])
    }

    def over_k(batch: Any, carried: Any) -> Any:
        sources = [
            _Source(
                matrix(array, loops, sizes, batch),
                loops.replace("b", ""),
                buffer,
                factor,
            )
            for array, loops, buffer, factor in (
                (product.lhs, product.lhs_loops, lhs, product.factors[0]),
                (product.rhs, product.rhs_loops, rhs, product.factors[1]),
            )
        ]
        return _k_loop(product, sizes["k"], place, sources, ragged, carried)

    if not product.accumulates_batches:
        return over_k(place.batch, initial)
    batches = (build.index(0), sizes["b"].value, build.index(1))
    loop = build.for_loop(
        batches, [initial], lambda batch, carried: [over_k(batch, carried[0])]
    )
    return loop.results[0]


def _k_loop(
    product: TiledContraction,
    size: Size,
    place: TileOffsets,
    sources: list[_Source],
    ragged: dict[str, Any],
    initial: Any,
) -> Any:
    step = dict(zip("mnk", product.schedule.block, strict=True))
    upper, width = size.value, build.index(step["k"])
    if not size.divides(step["k"]):
        check_fill(product)
    others = load_others(product, place, ragged)

    def k_step(k: Any, carried: list[Any]) -> list[Any]:
        first = {**place.block, "k": k}
        extents = dict(ragged)
        if not size.divides(step["k"]):
            extents["k"] = arith.minsi(arith.subi(upper, k), width)
        for source in sources:
            _copy_tile(source, first, {**step, **extents})
        gpu.barrier()
        accumulators = _fragment_loop(product, place, sources, others, carried[0])
        gpu.barrier()
        return [accumulators]

    bounds = (build.index(0), upper, width)
    return build.for_loop(bounds, [initial], k_step).results[0]


def _rest(size: Size, first: Any, tile: int) -> Any:
    """Rows or columns of a block that there are."""
    return arith.minsi(arith.subi(size.value, first), build.index(tile))


def _copy_tile(source: _Source, first: dict[str, Any], extent: dict[str, Any]) -> None:
    extents = [extent[loop] for loop in source.loops]
    offsets = [first[loop] for loop in source.loops]
    tile = view(source.array, offsets, extents)
    if all(isinstance(size, int) for size in extents):
        memref.copy(tile, source.buffer)
    else:
        # What is copied of rows and columns of C that there are not is used nowhere.
        free = [n for n, loop in enumerate(source.loops) if loop != "k"]
        alcop.set_arbitrary(alcop.CopyOp(tile, source.buffer), free)


def _fragment_loop(
    product: TiledContraction,
    place: TileOffsets,
    sources: list[_Source],
    others: Others,
    initial: Any,
) -> Any:
    extent = product.fragment_extents

    def operand(source: _Source, first: dict[str, Any]) -> Any:
        offsets = [first[loop] for loop in source.loops]
        shape = [extent[loop] for loop in source.loops]
        elements = read_tile(source.buffer, offsets, shape)
        return multiplied(product, source.factor, elements, others)

    def fragment_step(k: Any, carried: list[Any]) -> list[Any]:
        first = {**place.warp, "k": k}
        operands = [operand(source, first) for source in sources]
        return [_contract(product, operands, carried[0])]

    step = product.schedule.block[2]
    bounds = (build.index(0), build.index(step), build.index(extent["k"]))
    return build.for_loop(bounds, [initial], fragment_step).results[0]


def _contract(product: TiledContraction, operands: list[Any], accumulators: Any) -> Any:
    dims = {loop: ir.AffineExpr.get_dim(number) for number, loop in enumerate("mnk")}
    maps = [
        ir.AffineMapAttr.get(ir.AffineMap.get(3, 0, [dims[loop] for loop in loops]))
        for loops in (
            product.lhs_loops.replace("b", ""),
            product.rhs_loops.replace("b", ""),
            "mn",
        )
    ]
    kinds = [
        ir.Attribute.parse(f"#vector.iterator_type<{kind}>")
        for kind in ("parallel", "parallel", "reduction")
    ]
    return vector.contract(
        accumulators.type, *operands, accumulators, maps, ir.ArrayAttr.get(kinds)
    )


def _workgroup_buffer(array: Any, shape: list[int]) -> Any:
    kind = ir.MemRefType.get(
        shape,
        array.type.element_type,
        memory_space=ir.Attribute.parse(build.WORKGROUP),
    )
    return memref.alloc(kind, [], [])
