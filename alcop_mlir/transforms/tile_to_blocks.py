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

Where a tile may reach beyond the arrays (a size that is not known, or no multiple of
it), the copy is an `alcop.copy` of the part that there is, which fills the rest with
zero: `min(tile, M - m0)` rows, `min(step, K - k)` columns. C is then read and written
`in_bounds = [false, ...]`. A batch is block z, a batch that is summed over a loop
around the K loop, a vector a matrix of one row. Of arrays with a promise
(`alcop.row_alignment`) rows are as long as promised, so that all below can see it.
No product of nothing is launched; one over no K at all is a copy or a fill.

Operands marked `precision = "tf32"` are rounded by `arith.truncf` to that type.

Reads and erases `alcop.contraction`; moves `alcop.schedule` to the `gpu.launch`, where
alcop-plan-pipelines reads the stages.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from alcop_mlir.analysis.alignment import element_bytes
from alcop_mlir.bindings import arith, gpu, ir, memref, scf, vector
from alcop_mlir.dialects import alcop
from alcop_mlir.errors import PassError
from alcop_mlir.schedule import Schedule
from alcop_mlir.target import WARP_SIZE, mma_shape
from alcop_mlir.transforms import build
from alcop_mlir.transforms.base import Pass
from alcop_mlir.transforms.matrices import Size, loop_sizes, matrix, view


@dataclass(frozen=True)
class TileToBlocks(Pass):
    name = "alcop-tile-to-blocks"
    anchor = "func.func"

    def run(self, op: Any) -> None:
        for product in _scheduled_products(op):
            with product.op.location, ir.InsertionPoint(product.op):
                _launch(product, loop_sizes(product.arrays))
            if product.init_copy is not None:
                product.init_copy.operation.erase()
            product.op.operation.erase()


@dataclass(frozen=True)
class _Product:
    """A matrix product to tile: op, operands, their loops, schedule.

    The loops are those of the operands as matrices, with "b" where they have a batch.
    """

    op: Any
    lhs: Any
    rhs: Any
    out: Any
    lhs_loops: str  # "mk", "bmk": which loop indexes each dimension
    rhs_loops: str  # "kn" or "nk"
    out_loops: str  # "mn"
    init: str  # "zero", "read", or "copy": read from another array
    init_copy: Any  # the memref.copy that holds that array, or None
    schedule: Schedule
    precision: str | None  # "tf32", or None: the operands' own

    @property
    def arrays(self) -> list[tuple[Any, str]]:
        """The operands, each with the loops of the dimensions that it has."""
        return [
            (array, _own_loops(array, loops))
            for array, loops in (
                (self.lhs, self.lhs_loops),
                (self.rhs, self.rhs_loops),
                (self.out, self.out_loops),
            )
        ]

    @property
    def sums_batches(self) -> bool:
        """Whether the batch is summed over, too."""
        return "b" in self.lhs_loops + self.rhs_loops and "b" not in self.out_loops

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
    batch: Any  # number of the matrix


@dataclass(frozen=True)
class _Source:
    """A matrix that the K loop takes tiles of, and the buffer that they go to."""

    array: Any
    loops: str
    buffer: Any


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
    if contraction.get("swapped"):
        lhs, rhs = rhs, lhs
    return _Product(
        op=op,
        lhs=lhs,
        rhs=rhs,
        out=out,
        lhs_loops=_matrix_loops(contraction["lhs"]),
        rhs_loops=contraction["rhs"],
        out_loops=_matrix_loops(contraction.get("out", "mn")),
        init=contraction["init"],
        init_copy=_init_copy(op, out) if contraction["init"] == "copy" else None,
        schedule=schedule,
        precision=contraction.get("precision"),
    )


def _matrix_loops(loops: str) -> str:
    """With the one row that a vector is a matrix of."""
    return loops if "m" in loops else f"{loops[:-1]}m{loops[-1]}"


def _own_loops(array: Any, loops: str) -> str:
    """Without the row that a vector has not."""
    return loops if len(loops) == array.type.rank else loops.replace("m", "")


def _init_copy(op: Any, out: Any) -> Any:
    """The marked copy into `out` that gives the accumulators their start."""
    for use in out.uses:
        owner = use.owner
        role = alcop.get(owner, alcop.ContractionAttr)
        if role is not None and role.get("role") == "init":
            return owner
    raise PassError(op, "init is 'copy', but no copy into the output is marked as init")


def _launch(product: _Product, sizes: dict[str, Size]) -> None:
    schedule = product.schedule
    if any(sizes[loop].known == 0 for loop in product.out_loops):
        return
    nothing_summed = sizes["k"].known == 0 or sizes["b"].known == 0
    if nothing_summed and product.init == "read":
        return
    tile_m, tile_n, _ = schedule.block
    batches = build.index(1) if product.sums_batches else sizes["b"].given
    launch = gpu.LaunchOp(
        (sizes["n"].blocks(tile_n), sizes["m"].blocks(tile_m), batches),
        tuple(build.index(threads) for threads in (schedule.threads, 1, 1)),
    )
    alcop.put(launch, alcop.ScheduleAttr, schedule.to_dict())
    arguments = list(launch.regions[0].blocks[0].arguments)
    with ir.InsertionPoint(launch.regions[0].blocks[0]):
        place = _place(schedule, sizes, arguments[:3], arguments[3])
        if nothing_summed:
            _start_only(product, sizes, place, arguments[3])
        else:
            initial = _initial(product, sizes, place)
            _store(product, sizes, place, _sum(product, sizes, place, initial))
        gpu.TerminatorOp()


def _place(
    schedule: Schedule, sizes: dict[str, Size], blocks: list[Any], thread: Any
) -> _Place:
    """Blocks run along N first; warps of a block along N first too."""
    warp = arith.divui(thread, build.index(WARP_SIZE))
    warps_n = build.index(schedule.warps[1])
    tile_m, tile_n, _ = schedule.block
    return _Place(
        block={
            "m": _first(sizes["m"], blocks[1], tile_m),
            "n": _first(sizes["n"], blocks[0], tile_n),
        },
        warp={
            "m": build.mul(arith.divui(warp, warps_n), build.index(schedule.warp[0])),
            "n": build.mul(arith.remui(warp, warps_n), build.index(schedule.warp[1])),
        },
        batch=blocks[2],
    )


def _first(size: Size, block: Any, tile: int) -> Any:
    """First row or column of a block; 0 where there is one block only."""
    if size.known is not None and size.known < tile:
        return build.index(0)
    return build.mul(block, build.index(tile))


def _sum(product: _Product, sizes: dict[str, Size], place: _Place, initial: Any) -> Any:
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
            _Source(matrix(array, loops, sizes, batch), loops.replace("b", ""), buffer)
            for array, loops, buffer in (
                (product.lhs, product.lhs_loops, lhs),
                (product.rhs, product.rhs_loops, rhs),
            )
        ]
        return _k_loop(product, sizes["k"], place, sources, ragged, carried)

    if not product.sums_batches:
        return over_k(place.batch, initial)
    batches = (build.index(0), sizes["b"].value, build.index(1))
    loop = build.for_loop(
        batches, [initial], lambda batch, carried: [over_k(batch, carried[0])]
    )
    return loop.results[0]


def _k_loop(
    product: _Product,
    size: Size,
    place: _Place,
    sources: list[_Source],
    ragged: dict[str, Any],
    initial: Any,
) -> Any:
    step = dict(zip("mnk", product.schedule.block, strict=True))
    upper, width = size.value, build.index(step["k"])

    def k_step(k: Any, carried: list[Any]) -> list[Any]:
        first = {**place.block, "k": k}
        extents = dict(ragged)
        if not size.divides(step["k"]):
            extents["k"] = arith.minsi(arith.subi(upper, k), width)
        for source in sources:
            _copy_tile(source, first, {**step, **extents})
        gpu.barrier()
        lhs, rhs = (source.buffer for source in sources)
        accumulators = _fragment_loop(product, place, lhs, rhs, carried[0])
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
    product: _Product, place: _Place, lhs_tile: Any, rhs_tile: Any, initial: Any
) -> Any:
    schedule = product.schedule
    k_extent = mma_shape(element_bytes(lhs_tile.type))[2]
    extent = {"m": schedule.warp[0], "n": schedule.warp[1], "k": k_extent}

    def fragment_step(k: Any, carried: list[Any]) -> list[Any]:
        first = {**place.warp, "k": k}
        operands = [
            _read(tile, [first[i] for i in loops], [extent[i] for i in loops])
            for tile, loops in (
                (lhs_tile, product.lhs_loops.replace("b", "")),
                (rhs_tile, product.rhs_loops.replace("b", "")),
            )
        ]
        return [_contract(product, _rounded(product, operands), carried[0])]

    bounds = (build.index(0), build.index(schedule.block[2]), build.index(extent["k"]))
    return build.for_loop(bounds, [initial], fragment_step).results[0]


def _rounded(product: _Product, operands: list[Any]) -> list[Any]:
    """The operands as tf32 where the product was marked so."""
    if product.precision != "tf32":
        return operands
    kinds = [ir.VectorType.get(v.type.shape, ir.FloatTF32Type.get()) for v in operands]
    pairs = zip(kinds, operands, strict=True)
    return [arith.truncf(kind, value) for kind, value in pairs]


def _contract(product: _Product, operands: list[Any], accumulators: Any) -> Any:
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


def _initial(product: _Product, sizes: dict[str, Size], place: _Place) -> Any:
    """The accumulators' start: a warp tile of f32, or i32."""
    kind = _accumulators(product)
    source = product.init_source
    if source is None:
        return arith.constant(kind, ir.DenseElementsAttr.get_splat(kind, _zero(kind)))
    source = matrix(source, product.out_loops, sizes, place.batch)
    values = _read(
        source,
        _output_place(place),
        list(product.schedule.warp),
        _in_bounds(product, sizes),
    )
    return values if values.type == kind else arith.extf(kind, values)


def _accumulators(product: _Product) -> Any:
    """Their type: a warp tile of f32, of i32 for integers."""
    is_integer = isinstance(product.out.type.element_type, ir.IntegerType)
    element = ir.IntegerType.get_signless(32) if is_integer else ir.F32Type.get()
    return ir.VectorType.get(list(product.schedule.warp), element)


def _zero(kind: Any) -> Any:
    """The attribute of an element of a vector or memref type."""
    element = kind.element_type
    if isinstance(element, ir.IntegerType):
        return ir.IntegerAttr.get(element, 0)
    return ir.FloatAttr.get(element, 0.0)


def _store(
    product: _Product, sizes: dict[str, Size], place: _Place, accumulators: Any
) -> None:
    element = product.out.type.element_type
    if element != accumulators.type.element_type:
        kind = ir.VectorType.get(list(product.schedule.warp), element)
        accumulators = arith.truncf(kind, accumulators)
    out = matrix(product.out, product.out_loops, sizes, place.batch)
    in_bounds = _in_bounds(product, sizes)

    def write(in_bounds: list[bool]) -> None:
        vector.transfer_write(
            None, accumulators, out, _output_place(place), _identity_map(2), in_bounds
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


def _is_inside(product: _Product, sizes: dict[str, Size], place: _Place) -> Any:
    """Whether all of the block's tile lies within C."""
    inside = arith.constant(ir.IntegerType.get_signless(1), 1)
    for loop, tile in zip("mn", product.schedule.block, strict=False):
        if not sizes[loop].divides(tile):
            room = arith.subi(sizes[loop].value, place.block[loop])
            fits = arith.cmpi(arith.CmpIPredicate.sge, room, build.index(tile))
            inside = arith.andi(inside, fits)
    return inside


def _in_bounds(product: _Product, sizes: dict[str, Size]) -> list[bool]:
    tiles = zip("mn", product.schedule.block, strict=False)
    return [sizes[loop].divides(tile) for loop, tile in tiles]


def _start_only(
    product: _Product, sizes: dict[str, Size], place: _Place, thread: Any
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
                value = arith.constant(out.type.element_type, _zero(out.type))
            else:
                value = memref.load(start, [row, column])
            memref.store(value, out, [row, column])
            scf.YieldOp([])
        return iter(())

    elements = product.schedule.block[0] * product.schedule.block[1]
    bounds = (thread, build.index(elements), build.index(product.schedule.threads))
    build.for_loop(bounds, [], element)


def _output_place(place: _Place) -> list[Any]:
    return [build.add(place.block[i], place.warp[i]) for i in "mn"]


def _workgroup_buffer(array: Any, shape: list[int]) -> Any:
    kind = ir.MemRefType.get(
        shape,
        array.type.element_type,
        memory_space=ir.Attribute.parse(build.WORKGROUP),
    )
    return memref.alloc(kind, [], [])


def _read(
    source: Any,
    offsets: list[Any],
    shape: list[int],
    in_bounds: Sequence[bool] = (True, True),
) -> Any:
    element = source.type.element_type
    padding = arith.constant(element, _zero(source.type))
    kind = ir.VectorType.get(shape, element)
    return vector.transfer_read(
        kind, source, offsets, _identity_map(len(shape)), padding, list(in_bounds)
    )


def _identity_map(rank: int) -> Any:
    return ir.AffineMapAttr.get(ir.AffineMap.get_identity(rank))
