"""Tile a planned matrix product to thread blocks, warps and K steps.

Before:  linalg.matmul {alcop.contraction = ..., alcop.schedule = ...}
             ins(%A, %B) outs(%C)
After:   gpu.launch blocks(...) threads(...) {
           scf.for %k ... iter_args(%acc) {
             memref.copy %A_tile, %a ; memref.copy %B_tile, %b ; gpu.barrier
             scf.for %kk ... { transfer_read %a ; transfer_read %b ; vector.contract }
             gpu.barrier }
           vector.transfer_write %acc, %C }

The body is tile code: a workgroup buffer belongs to the block, a vector to the warp,
and a copy between memrefs is done once by the whole block. Read as SPMD code in which
each thread does all of it, it computes the same. Accumulators are values, never memory.
`linalg` leaves the order of its iterations open, so the output may not alias an input.

Reads and erases `alcop.contraction`; moves `alcop.schedule` to the `gpu.launch`, where
alcop-plan-pipelines reads the stages. Sizes are static and whole numbers of tiles:
alcop-select-schedule gives no schedule otherwise.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from alcop_mlir.bindings import arith, gpu, ir, memref, vector
from alcop_mlir.dialects import alcop
from alcop_mlir.errors import PassError
from alcop_mlir.schedule import Schedule
from alcop_mlir.target import MMA_F16_SHAPE, WARP_SIZE
from alcop_mlir.transforms import build
from alcop_mlir.transforms.base import Pass


@dataclass(frozen=True)
class TileToBlocks(Pass):
    name = "alcop-tile-to-blocks"
    anchor = "func.func"

    def run(self, op: Any) -> None:
        for product in _scheduled_products(op):
            with product.op.location, ir.InsertionPoint(product.op):
                _launch(product)
            if product.init_copy is not None:
                product.init_copy.operation.erase()
            product.op.operation.erase()


@dataclass(frozen=True)
class _Product:
    """A matrix product to tile: op, operands, their loops, schedule."""

    op: Any
    lhs: Any
    rhs: Any
    out: Any
    lhs_loops: str  # "mk" or "km": which loop indexes each dimension
    rhs_loops: str  # "kn" or "nk"
    init: str  # "zero", "read", or "copy": read from another array
    init_copy: Any  # the memref.copy that holds that array, or None
    schedule: Schedule

    @property
    def sizes(self) -> dict[str, int]:
        """Extent of each loop."""
        return {
            **dict(zip(self.lhs_loops, self.lhs.type.shape, strict=True)),
            **dict(zip(self.rhs_loops, self.rhs.type.shape, strict=True)),
        }

    @property
    def init_source(self) -> Any:
        """The memref that the accumulators start from, or None for zero."""
        if self.init == "zero":
            return None
        return self.out if self.init_copy is None else self.init_copy.operands[0]


@dataclass(frozen=True)
class _Place:
    """Where a block and a warp stand in the output; index values."""

    block: dict[str, Any]  # first row, column of the block's tile
    warp: dict[str, Any]  # first row, column of the warp's part, within the tile


def _scheduled_products(func: Any) -> list[_Product]:
    ops: list[Any] = []

    def visit(op: Any) -> Any:
        if alcop.get(op, alcop.ScheduleAttr) and alcop.get(op, alcop.ContractionAttr):
            ops.append(op)
        return ir.WalkResult.ADVANCE

    func.operation.walk(visit)
    return [_product(op) for op in ops]


def _product(op: Any) -> _Product:
    contraction = alcop.get(op, alcop.ContractionAttr)
    schedule = Schedule.from_dict(alcop.get(op, alcop.ScheduleAttr) or {})
    assert contraction is not None
    lhs, rhs, out = op.operands
    product = _Product(
        op=op,
        lhs=lhs,
        rhs=rhs,
        out=out,
        lhs_loops=contraction["lhs"],
        rhs_loops=contraction["rhs"],
        init=contraction["init"],
        init_copy=_init_copy(op, out) if contraction["init"] == "copy" else None,
        schedule=schedule,
    )
    for loop, tile in zip("mnk", schedule.block, strict=True):
        if product.sizes[loop] % tile:
            raise PassError(
                op,
                f"{loop.upper()} is {product.sizes[loop]}, expected a multiple of the "
                f"schedule's tile of {tile}",
            )
    return product


def _init_copy(op: Any, out: Any) -> Any:
    """The marked copy into `out` that gives the accumulators their start."""
    for use in out.uses:
        owner = use.owner
        role = alcop.get(owner, alcop.ContractionAttr)
        if role is not None and role.get("role") == "init":
            return owner
    raise PassError(op, "init is 'copy', but no copy into the output is marked as init")


def _launch(product: _Product) -> None:
    sizes, schedule = product.sizes, product.schedule
    tile_m, tile_n, _ = schedule.block
    grid = (sizes["n"] // tile_n, sizes["m"] // tile_m, 1)
    launch = gpu.LaunchOp(
        tuple(build.index(blocks) for blocks in grid),
        tuple(build.index(threads) for threads in (schedule.threads, 1, 1)),
    )
    alcop.put(launch, alcop.ScheduleAttr, schedule.to_dict())
    body = launch.regions[0].blocks[0]
    with ir.InsertionPoint(body):
        place = _place(
            schedule, body.arguments[0], body.arguments[1], body.arguments[3]
        )
        accumulators = _k_loop(product, place, _initial(product, place))
        _store(product, place, accumulators)
        gpu.TerminatorOp()


def _place(schedule: Schedule, block_x: Any, block_y: Any, thread: Any) -> _Place:
    """Blocks run along N first; warps of a block along N first too."""
    warp = arith.divui(thread, build.index(WARP_SIZE))
    warps_n = build.index(schedule.warps[1])
    return _Place(
        block={
            "m": build.mul(block_y, build.index(schedule.block[0])),
            "n": build.mul(block_x, build.index(schedule.block[1])),
        },
        warp={
            "m": build.mul(arith.divui(warp, warps_n), build.index(schedule.warp[0])),
            "n": build.mul(arith.remui(warp, warps_n), build.index(schedule.warp[1])),
        },
    )


def _k_loop(product: _Product, place: _Place, initial: Any) -> Any:
    schedule = product.schedule
    step = dict(zip("mnk", schedule.block, strict=True))
    lhs_tile = _workgroup_buffer(product.lhs, [step[i] for i in product.lhs_loops])
    rhs_tile = _workgroup_buffer(product.rhs, [step[i] for i in product.rhs_loops])

    def k_step(k: Any, carried: list[Any]) -> list[Any]:
        first = {**place.block, "k": k}
        for array, loops, tile in (
            (product.lhs, product.lhs_loops, lhs_tile),
            (product.rhs, product.rhs_loops, rhs_tile),
        ):
            memref.copy(_tile(array, [first[i] for i in loops], tile.type.shape), tile)
        gpu.barrier()
        accumulators = _fragment_loop(product, place, lhs_tile, rhs_tile, carried[0])
        gpu.barrier()
        return [accumulators]

    bounds = (build.index(0), build.index(product.sizes["k"]), build.index(step["k"]))
    return build.for_loop(bounds, [initial], k_step).results[0]


def _fragment_loop(
    product: _Product, place: _Place, lhs_tile: Any, rhs_tile: Any, initial: Any
) -> Any:
    schedule = product.schedule
    extent = {"m": schedule.warp[0], "n": schedule.warp[1], "k": MMA_F16_SHAPE[2]}

    def fragment_step(k: Any, carried: list[Any]) -> list[Any]:
        first = {**place.warp, "k": k}
        operands = [
            _read(tile, [first[i] for i in loops], [extent[i] for i in loops])
            for tile, loops in (
                (lhs_tile, product.lhs_loops),
                (rhs_tile, product.rhs_loops),
            )
        ]
        return [_contract(product, operands, carried[0])]

    bounds = (build.index(0), build.index(schedule.block[2]), build.index(extent["k"]))
    return build.for_loop(bounds, [initial], fragment_step).results[0]


def _contract(product: _Product, operands: list[Any], accumulators: Any) -> Any:
    dims = {loop: ir.AffineExpr.get_dim(number) for number, loop in enumerate("mnk")}
    maps = [
        ir.AffineMapAttr.get(ir.AffineMap.get(3, 0, [dims[loop] for loop in loops]))
        for loops in (product.lhs_loops, product.rhs_loops, "mn")
    ]
    kinds = [
        ir.Attribute.parse(f"#vector.iterator_type<{kind}>")
        for kind in ("parallel", "parallel", "reduction")
    ]
    return vector.contract(
        accumulators.type, *operands, accumulators, maps, ir.ArrayAttr.get(kinds)
    )


def _initial(product: _Product, place: _Place) -> Any:
    """The accumulators' start: a warp tile of f32."""
    f32 = ir.F32Type.get()
    source = product.init_source
    if source is None:
        kind = ir.VectorType.get(list(product.schedule.warp), f32)
        zero = ir.FloatAttr.get(f32, 0.0)
        return arith.constant(kind, ir.DenseElementsAttr.get_splat(kind, zero))
    values = _read(source, _output_place(place), list(product.schedule.warp))
    if values.type.element_type == f32:
        return values
    return arith.extf(ir.VectorType.get(list(product.schedule.warp), f32), values)


def _store(product: _Product, place: _Place, accumulators: Any) -> None:
    element = product.out.type.element_type
    if element != accumulators.type.element_type:
        kind = ir.VectorType.get(list(product.schedule.warp), element)
        accumulators = arith.truncf(kind, accumulators)
    vector.transfer_write(
        None,
        accumulators,
        product.out,
        _output_place(place),
        _identity_map(2),
        [True, True],
    )


def _output_place(place: _Place) -> list[Any]:
    return [build.add(place.block[i], place.warp[i]) for i in "mn"]


def _workgroup_buffer(array: Any, shape: list[int]) -> Any:
    kind = ir.MemRefType.get(
        shape,
        array.type.element_type,
        memory_space=ir.Attribute.parse(build.WORKGROUP),
    )
    return memref.alloc(kind, [], [])


def _tile(array: Any, offsets: list[Any], shape: list[int]) -> Any:
    return memref.subview(array, offsets, list(shape), [1] * len(offsets))


def _read(source: Any, offsets: list[Any], shape: list[int]) -> Any:
    element = source.type.element_type
    padding = arith.constant(element, 0.0)
    kind = ir.VectorType.get(shape, element)
    in_bounds = [True] * len(shape)
    return vector.transfer_read(
        kind, source, offsets, _identity_map(len(shape)), padding, in_bounds
    )


def _identity_map(rank: int) -> Any:
    return ir.AffineMapAttr.get(ir.AffineMap.get_identity(rank))
