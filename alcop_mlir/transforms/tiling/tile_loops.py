"""Builders of the loops of tile code: tiles to shared memory, fragments, arithmetic.

The K loop copies a tile of A and one of B to workgroup buffers in each K step; the loop
inside it reads fragments of them and multiplies. A reduced batch is a loop around both.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from alcop_mlir.analysis.linalg.operand_transforms import OperandTransform
from alcop_mlir.bindings import gpu, ir, memref, vector
from alcop_mlir.dialects import alcop
from alcop_mlir.passes import build
from alcop_mlir.transforms.linalg.matrices import Size, matrix, view
from alcop_mlir.transforms.tiling.tile_access import read_tile
from alcop_mlir.transforms.tiling.tile_operands import (
    Others,
    check_fill,
    load_others,
    transformed,
)
from alcop_mlir.transforms.tiling.tiled_contractions import (
    TiledContraction,
    TileOffsets,
)


@dataclass(frozen=True)
class _Source:
    """A matrix that the K loop copies tiles of, and the buffer that it copies to.

    transform: the operand transform of its elements
    """

    matrix: Any
    loops: str
    buffer: Any
    transform: OperandTransform


def contract_tiles(
    contraction: TiledContraction,
    sizes: dict[str, Size],
    offsets: TileOffsets,
    initial: ir.Value,
) -> Any:
    """The accumulators after the whole contraction."""
    step = dict(zip("mnk", contraction.schedule.block, strict=True))
    lhs, rhs = (
        _workgroup_buffer(operand, [step[i] for i in loops.replace("b", "")])
        for operand, loops in (
            (contraction.lhs, contraction.lhs_loops),
            (contraction.rhs, contraction.rhs_loops),
        )
    )
    remaining = {
        loop: _remaining_extent(sizes[loop], offsets.block[loop], step[loop])
        for loop in "mn"
        if not sizes[loop].divides(step[loop])
    }

    def over_k(batch: ir.Value, carried: ir.Value) -> Any:
        sources = [
            _Source(
                matrix(operand, loops, sizes, batch),
                loops.replace("b", ""),
                buffer,
                transform,
            )
            for operand, loops, buffer, transform in (
                (
                    contraction.lhs,
                    contraction.lhs_loops,
                    lhs,
                    contraction.transforms[0],
                ),
                (
                    contraction.rhs,
                    contraction.rhs_loops,
                    rhs,
                    contraction.transforms[1],
                ),
            )
        ]
        return _k_loop(contraction, sizes["k"], offsets, sources, remaining, carried)

    if not contraction.accumulates_batches:
        return over_k(offsets.batch, initial)
    batches = (build.index(0), sizes["b"].value, build.index(1))
    loop = build.for_loop(
        batches, [initial], lambda batch, carried: [over_k(batch, carried[0])]
    )
    return loop.results[0]


def _k_loop(
    contraction: TiledContraction,
    size: Size,
    offsets: TileOffsets,
    sources: list[_Source],
    remaining: dict[str, ir.Value],
    initial: ir.Value,
) -> Any:
    step = dict(zip("mnk", contraction.schedule.block, strict=True))
    upper, width = size.value, build.index(step["k"])
    if not size.divides(step["k"]):
        check_fill(contraction)
    others = load_others(contraction, offsets, remaining)

    def k_step(k: ir.Value, carried: list[ir.Value]) -> list[Any]:
        first = {**offsets.block, "k": k}
        extents = dict(remaining)
        if not size.divides(step["k"]):
            extents["k"] = build.least(build.sub(upper, k), width)
        for source in sources:
            _copy_tile(source, first, {**step, **extents})
        gpu.barrier()
        accumulators = _fragment_loop(contraction, offsets, sources, others, carried[0])
        gpu.barrier()
        return [accumulators]

    bounds = (build.index(0), upper, width)
    return build.for_loop(bounds, [initial], k_step).results[0]


def _remaining_extent(size: Size, first: ir.Value, tile: int) -> Any:
    """Remaining extent: rows or columns of the block's tile that exist."""
    return build.least(build.sub(size.value, first), tile)


def _copy_tile(
    source: _Source, first: dict[str, ir.Value], extent: Mapping[str, ir.Value | int]
) -> None:
    extents = [extent[loop] for loop in source.loops]
    offsets = [first[loop] for loop in source.loops]
    tile = view(source.matrix, offsets, extents)
    if all(isinstance(size, int) for size in extents):
        memref.copy(tile, source.buffer)
    else:
        # Rows and columns beyond the edge of C may hold anything: nothing reads them.
        free = [n for n, loop in enumerate(source.loops) if loop != "k"]
        alcop.set_arbitrary(alcop.CopyOp(tile, source.buffer), free)


def _fragment_loop(
    contraction: TiledContraction,
    offsets: TileOffsets,
    sources: list[_Source],
    others: Others,
    initial: ir.Value,
) -> Any:
    extent = contraction.fragment_extents

    def operand(source: _Source, first: dict[str, ir.Value]) -> Any:
        indices = [first[loop] for loop in source.loops]
        shape = [extent[loop] for loop in source.loops]
        elements = read_tile(source.buffer, indices, shape)
        return transformed(contraction, source.transform, elements, others)

    def fragment_step(k: ir.Value, carried: list[ir.Value]) -> list[Any]:
        first = {**offsets.warp, "k": k}
        operands = [operand(source, first) for source in sources]
        return [_contract(contraction, operands, carried[0])]

    step = contraction.schedule.block[2]
    bounds = (build.index(0), build.index(step), build.index(extent["k"]))
    return build.for_loop(bounds, [initial], fragment_step).results[0]


def _contract(
    contraction: TiledContraction, operands: list[ir.Value], accumulators: ir.Value
) -> Any:
    maps = [
        build.loop_map(3, map("mnk".index, loops))
        for loops in (
            contraction.lhs_loops.replace("b", ""),
            contraction.rhs_loops.replace("b", ""),
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


def _workgroup_buffer(operand: ir.Value, shape: list[int]) -> Any:
    kind = ir.MemRefType.get(
        shape,
        operand.type.element_type,
        memory_space=ir.Attribute.parse(build.WORKGROUP),
    )
    return build.alloc(kind)
