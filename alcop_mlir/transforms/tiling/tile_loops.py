"""Builders of the loops of tile code: tiles to shared memory, fragments, arithmetic.

The K loop copies a tile of A and one of B to workgroup buffers in each K step; the loop
inside it reads fragments of them and multiplies. A reduced batch is a loop around both.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from alcop_mlir.bindings import gpu, ir, memref, vector
from alcop_mlir.dialects import alcop
from alcop_mlir.passes import build
from alcop_mlir.transforms.linalg.matrices import matrix, view
from alcop_mlir.transforms.tiling.tile_access import read_tile
from alcop_mlir.transforms.tiling.tile_operands import (
    Others,
    check_fill,
    load_others,
    transformed,
)
from alcop_mlir.transforms.tiling.tiled_contractions import (
    BlockTile,
    TiledContraction,
    TiledOperand,
)


@dataclass(frozen=True)
class _Source:
    """A matrix that the K loop copies tiles of, and the buffer that it copies to."""

    matrix: Any
    buffer: Any
    operand: TiledOperand

    @property
    def loops(self) -> str:
        """The loops that index the matrix."""
        return self.operand.matrix_loops


def contract_tiles(tile: BlockTile, initial: ir.Value) -> Any:
    """The accumulators after the whole contraction."""
    contraction, sizes = tile.contraction, tile.sizes
    step = _steps(contraction)
    kinds = [
        build.workgroup_memref(
            [step[i] for i in one.matrix_loops], one.value.type.element_type
        )
        for one in contraction.operands
    ]
    buffers = [build.alloc(kind) for kind in kinds]
    # Remaining extents: rows or columns of the block's tile that exist.
    remaining = {
        loop: build.least(build.sub(sizes[loop].value, tile.block[loop]), step[loop])
        for loop in "mn"
        if not sizes[loop].divides(step[loop])
    }

    def over_k(batch: ir.Value, carried: ir.Value) -> Any:
        sources = [
            _Source(matrix(one.value, one.loops, sizes, batch), buffer, one)
            for one, buffer in zip(contraction.operands, buffers, strict=True)
        ]
        return _k_loop(tile, sources, remaining, carried)

    if not contraction.accumulates_batches:
        return over_k(tile.batch, initial)
    batches = (0, sizes["b"].value, 1)
    loop = build.for_loop(
        batches, [initial], lambda batch, carried: [over_k(batch, carried[0])]
    )
    return loop.results[0]


def _steps(contraction: TiledContraction) -> dict[str, int]:
    """Extents of the block's tile, and of a K step."""
    return dict(zip("mnk", contraction.schedule.block, strict=True))


def _k_loop(
    tile: BlockTile,
    sources: list[_Source],
    remaining: dict[str, ir.Value],
    initial: ir.Value,
) -> Any:
    step, size = _steps(tile.contraction), tile.sizes["k"]
    upper, width = size.value, build.index(step["k"])
    if not size.divides(step["k"]):
        check_fill(tile.contraction)
    others = load_others(tile, remaining)

    def k_step(k: ir.Value, carried: list[ir.Value]) -> list[Any]:
        first = {**tile.block, "k": k}
        extents = dict(remaining)
        if not size.divides(step["k"]):
            extents["k"] = build.least(build.sub(upper, k), width)
        for source in sources:
            _copy_tile(source, first, {**step, **extents})
        gpu.barrier()
        accumulators = _fragment_loop(tile, sources, others, carried[0])
        gpu.barrier()
        return [accumulators]

    return build.for_loop((0, upper, width), [initial], k_step).results[0]


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
    tile: BlockTile, sources: list[_Source], others: Others, initial: ir.Value
) -> Any:
    contraction = tile.contraction
    extent = contraction.fragment_extents

    def operand(source: _Source, first: dict[str, ir.Value]) -> Any:
        indices = [first[loop] for loop in source.loops]
        shape = [extent[loop] for loop in source.loops]
        elements = read_tile(source.buffer, indices, shape)
        return transformed(contraction, source.operand, elements, others)

    def fragment_step(k: ir.Value, carried: list[ir.Value]) -> list[Any]:
        first = {**tile.warp, "k": k}
        operands = [operand(source, first) for source in sources]
        return [_contract(contraction, operands, carried[0])]

    bounds = (0, contraction.schedule.block[2], extent["k"])
    return build.for_loop(bounds, [initial], fragment_step).results[0]


def _contract(
    contraction: TiledContraction, operands: list[ir.Value], accumulators: ir.Value
) -> Any:
    maps = [
        build.loop_map(3, map("mnk".index, loops))
        for loops in (*(one.matrix_loops for one in contraction.operands), "mn")
    ]
    kinds = [
        ir.Attribute.parse(f"#vector.iterator_type<{kind}>")
        for kind in ("parallel", "parallel", "reduction")
    ]
    return vector.contract(
        accumulators.type, *operands, accumulators, maps, ir.ArrayAttr.get(kinds)
    )
