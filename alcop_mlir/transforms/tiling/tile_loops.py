"""Builders of the loops of tile code: tiles to shared memory, fragments, arithmetic.

The K loop copies a tile of A and one of B to workgroup buffers in each K step; the loop
inside it reads fragments of them and multiplies. A reduced batch is a loop around both.
What an operand transform reads by groups along K is copied like a tile of B, with a row
for each group of a step; of a group that is longer than a step, each step copies the
row. Tiles of nibbles are tiles of bytes, of half the extent along K.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from alcop_mlir.analysis.ir.gathered_rows import named_matrices
from alcop_mlir.bindings import arith, gpu, ir, memref, vector
from alcop_mlir.dialects import alcop
from alcop_mlir.errors import PassError
from alcop_mlir.frozen import frozen
from alcop_mlir.passes import build
from alcop_mlir.transforms.linalg.matrices import matrix, view
from alcop_mlir.transforms.tiling.gathered_tiles import TileRows, tile_rows
from alcop_mlir.transforms.tiling.k_steps import k_steps
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
    TiledGroups,
    TiledOperand,
)
from alcop_mlir.transforms.tiling.vector_code import rounded


@frozen
class _Source:
    """A matrix that the K loop copies tiles of, and the buffer that it copies to.

    matrix: a memref, or `TileRows`, which are gathered
    """

    matrix: Any
    buffer: Any
    operand: TiledOperand

    @property
    def loops(self) -> str:
        """The loops that index the matrix."""
        return self.operand.matrix_loops


@frozen
class _Groups:
    """What a transform reads by groups along K, and the buffer of those of a step."""

    of: TiledGroups
    buffer: Any

    @staticmethod
    def made(contraction: TiledContraction, of: TiledGroups) -> _Groups:
        """With a new buffer. PassError where steps do not fit the groups."""
        _, columns, step = contraction.schedule.block
        if step % of.length and of.length % step:
            raise PassError(
                contraction.op,
                f"has a K step of {step} and groups of {of.length} along K, expected "
                "one to divide the other",
            )
        shape = [max(1, step // of.length), columns]
        kind = build.workgroup_memref(shape, of.value.type.element_type)
        return _Groups(of, build.alloc(kind))

    def read(
        self, source: _Source, first: Mapping[str, Any], extent: Mapping[str, int]
    ) -> Any:
        """The values of a fragment of B, the same along k."""
        kind = self.buffer.type.element_type
        row = build.index(0)
        if self.buffer.type.shape[0] > 1:
            row = build.div(first["k"], self.of.length)
        return vector.transfer_read(
            ir.VectorType.get([extent[loop] for loop in source.loops], kind),
            self.buffer,
            [row, first["n"]],
            build.loop_map(2, [None if loop == "k" else 1 for loop in source.loops]),
            build.zero(kind),
            [True, True],
        )


def contract_tiles(tile: BlockTile, initial: ir.Value) -> Any:
    """The accumulators after the whole contraction."""
    contraction, sizes = tile.contraction, tile.sizes
    step = _steps(contraction)
    kinds = [
        build.workgroup_memref(one.in_memory(step), one.value.type.element_type)
        for one in contraction.operands
    ]
    buffers = [build.alloc(kind) for kind in kinds]
    groups = [_Groups.made(contraction, one) for one in contraction.groups]
    # Remaining extents: rows or columns of the block's tile that exist.
    remaining = {
        loop: build.least(build.sub(sizes[loop].value, tile.block[loop]), step[loop])
        for loop in "mn"
        if not sizes[loop].divides(step[loop])
    }

    def over_k(batch: Mapping[str, ir.Value], carried: ir.Value) -> Any:
        sources = [
            _Source(
                tile_rows(tile, one, batch) or _matrix(tile, one, batch),
                buffer,
                one,
            )
            for one, buffer in zip(contraction.operands, buffers, strict=True)
        ]
        return _k_loop(tile, sources, groups, remaining, carried)

    reduced = contraction.reduced_batch
    if not reduced:
        return over_k(tile.batch, initial)
    loop = build.for_loop(
        (0, sizes[reduced].value, 1),
        [initial],
        lambda number, carried: [over_k({**tile.batch, reduced: number}, *carried)],
    )
    return loop.results[0]


def _matrix(
    tile: BlockTile, operand: TiledOperand, batch: Mapping[str, ir.Value]
) -> Any:
    """The matrix of a batch; where indices name them, the one that its index names."""
    named = named_matrices(operand.value)
    if named is None:
        return matrix(operand.value, operand.loops, tile.sizes, batch)
    table, indices = named.operands
    loop = operand.loops[0]
    number = memref.load(indices, [batch[loop]])
    if not isinstance(number.type, ir.IndexType):
        number = arith.index_cast(ir.IndexType.get(), number)
    return matrix(table, operand.loops, tile.sizes, {**batch, loop: number})


def _steps(contraction: TiledContraction) -> dict[str, int]:
    """Extents of the block's tile, and of a K step."""
    return dict(zip("mnk", contraction.schedule.block, strict=True))


def _k_loop(
    tile: BlockTile,
    sources: list[_Source],
    groups: list[_Groups],
    remaining: dict[str, ir.Value],
    initial: ir.Value,
) -> Any:
    steps = k_steps(tile)
    if steps.exceed:
        check_fill(tile.contraction)
    others = load_others(tile, remaining)
    extents = {**_steps(tile.contraction), **remaining}

    def k_step(k: ir.Value, carried: list[ir.Value]) -> list[Any]:
        accumulators, *state = carried
        step = steps.at(k, state)
        first = {**tile.block, "k": step.first}
        for source in sources:
            if isinstance(source.matrix, TileRows):
                source.matrix.copy(step, source.buffer)
            else:
                offsets = source.operand.in_memory(first)
                extent = source.operand.in_memory({**extents, "k": step.extent})
                _copy_tile(source.matrix, source.buffer, source.loops, offsets, extent)
        for one in groups:
            offsets = [build.div(first["k"], one.of.length), first["n"]]
            extent = [one.buffer.type.shape[0], extents["n"]]
            _copy_tile(one.of.value, one.buffer, "kn", offsets, extent)
        gpu.barrier()
        accumulators = _fragment_loop(tile, sources, groups, others, accumulators)
        gpu.barrier()
        return [accumulators, *steps.following(k, state)]

    carried = [initial, *steps.start]
    return build.for_loop(steps.bounds, carried, k_step).results[0]


def _copy_tile(
    matrix: ir.Value,
    buffer: ir.Value,
    loops: str,
    offsets: list[ir.Value],
    extents: list[ir.Value | int],
) -> None:
    tile = view(matrix, offsets, extents)
    if extents == buffer.type.shape:
        memref.copy(tile, buffer)
    else:
        # Rows and columns beyond the edge of C may hold anything: nothing reads them.
        free = [n for n, loop in enumerate(loops) if loop != "k"]
        alcop.set_arbitrary(alcop.CopyOp(tile, buffer), free)


def _fragment_loop(
    tile: BlockTile,
    sources: list[_Source],
    groups: list[_Groups],
    others: Others,
    initial: ir.Value,
) -> Any:
    contraction = tile.contraction
    extent = contraction.fragment_extents

    def operand(source: _Source, first: dict[str, ir.Value]) -> Any:
        indices = source.operand.in_memory(first)
        elements = read_tile(source.buffer, indices, source.operand.in_memory(extent))
        if source.operand.per_element == 1:
            return transformed(contraction, source.operand, elements, others)
        (body,) = contraction.op.regions[0].blocks
        by_group = {
            body.arguments[one.of.number]: one.read(source, first, extent)
            for one in groups
        }
        return transformed(contraction, source.operand, elements, others | by_group)

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
    kinds_of_operands = {operand.type.element_type for operand in operands}
    if len(kinds_of_operands) > 1:
        # vector.contract takes one type; alcop-lower-mma multiplies what is widened.
        f32 = ir.F32Type.get()
        operands = [rounded(operand, f32) for operand in operands]
    return vector.contract(
        accumulators.type, *operands, accumulators, maps, ir.ArrayAttr.get(kinds)
    )
