"""Give the streams of a loop to warps of their own: one warpgroup copies by TMA.

Before:  gpu.launch ... threads(%t) in (256) {
           %a = memref.alloc() : memref<4x128x64xf16, 3>
           %r = scf.for %k ... iter_args(%acc, %slot) {
             memref.copy %A[%m, %k], %a[%slot] ; gpu.barrier
             vector.contract %a[%slot], ... ; gpu.barrier
           } {alcop.pipeline = ...warps = 4 ... sync = "mbarrier" ... in_flight = 1...}
           vector.transfer_write %r, %C }
After:   %map = nvgpu.tma.create.descriptor %A box[128, 64]
         gpu.launch ... threads(%t) in (384) {
           %full, %empty = nvgpu.mbarrier.create (one per slot) ; gpu.barrier
           scf.if %t >= 256 {
             nvvm.setmaxregister decrease 40
             scf.if %elected { scf.for %k ... iter_args(%slot, %phase = true) {
               nvgpu.mbarrier.try_wait.parity %empty[%slot], %phase
               nvgpu.mbarrier.arrive.expect_tx %full[%slot], 32768
               nvgpu.tma.async.load %map[%k, %m], %full[%slot] to %a[%slot] } }
           } else {
             nvvm.setmaxregister increase 232
             ... the first iteration, then scf.for %k ... {
               nvgpu.mbarrier.try_wait.parity %full[%slot], %phase
               vector.contract %a[%slot], ... {alcop.wgmma}
               nvvm.wgmma.wait.group.sync.aligned 1
               scf.if %lane == 0 { nvgpu.mbarrier.arrive %empty[%old] } }
             vector.transfer_write %r, %C } }

The plan of alcop-plan-pipelines, executed by roles instead of shifted iterations: no
prologue, no tail, no predicate. A slot is filled when the role that computes has
released it, in each of its warps; it is read when its bytes have landed. With groups of
wgmma in flight (`in_flight`), a slot is released so many iterations after it was read.
The first iteration of the role that computes stands apart, so that wgmma can begin
without a sum: accumulators that are set by moves in front of a loop that leaves groups
in flight make ptxas wait after each one (its advisory C7515).

What the loop computes, and what comes behind it, is done by the warps that were there;
the warps that copy have the numbers behind these. Both evaluate what comes before the
loop, as far as that has no effect. Barriers of the loop are dropped: each had ordered
copies only. A loop in a loop over tiles, as alcop-make-persistent makes it, becomes one
in each role: slots and phases go on from tile to tile.

With `turns = 2` in the plan, the warps that compute are two groups, each as many as
were there, which take the tiles of the loop over tiles in turn (pingpong): one stores
its tile while the other multiplies. An mbarrier for each group says that it is its
turn, which ends when the last wgmma of its tile is issued; its slots go on behind those
of the other.

In a launch with clusters, a tile that all blocks of a cluster have is copied by each in
part, and for all of them (multicast); a slot is then free when all of them have read
it. The blocks wait for each other before the first copy, and at the end.

Where A is computed of what its tile holds, fragments of it are in registers, and each
fragment step is a group of wgmma: before a step computes them, it waits until the same
step of the iteration before has read those.

A tile lies in its buffer as TMA leaves it: boxes as wide as a swizzle's pattern, one
after the other, each swizzled, which `alcop.boxes` says on the allocation. Contractions
that read it are marked `alcop.wgmma`: alcop-lower-mma gives wgmma the descriptors of
that layout, and nothing else reads it but those who compute A, see
alcop-swizzle-shared.

Runs after alcop-multi-buffer, and before alcop-expand-pipelines, which executes the
plans without roles. Reads and erases `alcop.pipeline` and `alcop.op`. Writes
`alcop.boxes` and `alcop.wgmma`, which alcop-lower-mma reads and erases.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from alcop_mlir import resources
from alcop_mlir.analysis.ir import memory
from alcop_mlir.analysis.ir.clusters import cluster_size, is_of_cluster
from alcop_mlir.analysis.ir.kernels import enclosing
from alcop_mlir.analysis.ir.loops import body
from alcop_mlir.analysis.ir.slices import backward_slice, captured, is_repeatable
from alcop_mlir.analysis.ir.walk import walk
from alcop_mlir.analysis.layout.fragments import CONTRACT
from alcop_mlir.analysis.layout.tensor_boxes import TensorBoxes, tensor_boxes
from alcop_mlir.analysis.pipelining.plans.bound_plan import BoundPlan
from alcop_mlir.analysis.pipelining.plans.bound_plans import bound_plans
from alcop_mlir.analysis.pipelining.plans.plan_check import check
from alcop_mlir.analysis.pipelining.plans.role_plan import holds_operands
from alcop_mlir.analysis.pipelining.plans.stream_plan import FILL, LOOP
from alcop_mlir.analysis.pipelining.ring_counters import period
from alcop_mlir.bindings import arith, gpu, ir, nvvm
from alcop_mlir.dialects import alcop
from alcop_mlir.errors import PassError
from alcop_mlir.frozen import frozen
from alcop_mlir.passes import build
from alcop_mlir.passes.base import Pass
from alcop_mlir.target import WARP_SIZE, WARPGROUP
from alcop_mlir.transforms.pipelining.plan_attributes import erase_plan
from alcop_mlir.transforms.roles.role_rings import Ring, Signal, Turns, to_word
from alcop_mlir.transforms.roles.tensor_loads import (
    Barriers,
    Cluster,
    TensorLoad,
    make_map,
)
from alcop_mlir.transforms.roles.warp_roles import (
    ComputingRole,
    CopyingRole,
    Frame,
)

_THREADS_X = 3  # operand of a gpu.launch: blocks along x, y, z come first
_THREAD = 3  # argument of its body: the number of the thread along x
_BLOCK_X = 9  # argument: threads along x


@frozen
class SpecializeWarps(Pass):
    name = "alcop-specialize-warps"
    anchor = "any"

    def run(self, op: ir.Operation) -> None:
        for bound in bound_plans(op):
            if bound.plan.has_roles:
                check(bound)
                _specialize(bound)


def _specialize(bound: BoundPlan) -> None:
    loop = bound.loop
    block = enclosing(loop)
    if block is None or block.op.name != "gpu.launch" or block.threads is None:
        raise PassError(loop, "has roles, expected a loop of a gpu.launch along x")
    size = cluster_size(block.op)
    copies = [op for _, op in bound.named(FILL)]
    slot = _slot(bound, copies)
    loads = [_load(op, block.op, size) for op in copies]
    for load in loads:
        _mark_buffer(load)
    products = walk(loop, CONTRACT)
    for op in products:
        op.attributes[alcop.WGMMA] = ir.UnitAttr.get()
    held = holds_operands(products)
    inner = [op for _, op in bound.named(LOOP)]
    erase_plan(bound)
    frame = _frame(loop, block.op)
    stream = bound.plan.streams[-1]
    with loop.location, ir.InsertionPoint(frame.outermost):
        thread = _add_warps(block.op, block.threads, stream.turns)
        of_tile = block.threads // WARP_SIZE
        warps = of_tile * stream.turns
        ring = _make_ring(bound, slot, of_tile * size)
        order = Barriers.create(Turns.COUNT) if stream.turns > 1 else None
        _initialise(ring, order, thread, of_tile, size)
        warp = build.warp_number(thread)
        is_copying = arith.cmpi(arith.CmpIPredicate.uge, warp, build.i32(warps))
        registers = resources.role_registers(warps * WARP_SIZE)

        def copy() -> None:
            _set_registers("decrease", registers and registers[0])
            role = CopyingRole(ring, frame, loads, _cluster(size))
            build.branch(_is(warp, warps), lambda: _elected(role.build))

        def compute() -> None:
            _set_registers("increase", registers and registers[1])
            lane = build.rem(thread, WARP_SIZE)
            signal = _signal(ring, lane, size)
            turns = None
            if order is not None:
                late = arith.cmpi(arith.CmpIPredicate.uge, warp, build.i32(of_tile))
                turns = Turns(late, order, _is(lane, 0))
            ComputingRole(
                ring, frame, copies, inner, stream.in_flight, signal, turns, held
            ).build()

        build.branch(is_copying, copy, compute)
        _meet(size)
    frame.erase()


def _cluster(size: int) -> Cluster | None:
    """The cluster of the block, where it has other ones."""
    if size == 1:
        return None
    return Cluster(size, gpu.cluster_block_id(gpu.Dimension.x))


def _signal(ring: Ring, lane: ir.Value, size: int) -> Signal:
    """By a lane of each warp, to each block of the cluster: they fill it together."""
    if size == 1:
        return Signal(_is(lane, 0), ring.empty)
    block = to_word(build.rem(lane, size))
    speaks = arith.cmpi(arith.CmpIPredicate.ult, to_word(lane), build.i32(size))
    return Signal(speaks, ring.empty.of_block(block))


def _meet(size: int) -> None:
    """Let the blocks of a cluster wait for each other; none where they are alone.

    Behind the roles: an mbarrier of a block that has ended must not be arrived at (PTX
    ISA, "Distributed shared memory").
    """
    if size > 1:
        nvvm.ClusterArriveOp()
        nvvm.ClusterWaitOp()


def _load(copy: ir.Operation, launch: ir.Operation, size: int) -> TensorLoad:
    boxes = tensor_boxes(copy)
    if isinstance(boxes, str):
        raise PassError(copy, f"is planned as a copy by TMA: {boxes}")
    part = _part(boxes, launch, size)
    made = make_map(part or boxes, launch)
    return TensorLoad(boxes, made, copy.operands[1], part)


def _part(boxes: TensorBoxes, launch: ir.Operation, size: int) -> TensorBoxes | None:
    """What a block loads of a tile that all of its cluster have; None where it is its
    own.
    """
    offsets = [one for parts in boxes.offsets for one in parts]
    if size == 1 or not is_of_cluster(offsets, launch):
        return None
    return boxes.in_parts(size)


def _slot(bound: BoundPlan, copies: list[Any]) -> int:
    """Which carried value of the loop counts the slots."""
    loop, slots = bound.loop, bound.plan.rings[0].slots
    _, arguments = backward_slice([op.operands[1] for op in copies], body(loop))
    numbers = [argument.arg_number - 1 for argument in arguments]
    found = [n for n in numbers if n >= 0 and period(loop, n) == slots]
    if not found:
        raise PassError(
            loop,
            f"its buffers have no {slots} slots, expected alcop-multi-buffer before "
            "this pass",
        )
    return found[0]


def _mark_buffer(load: TensorLoad) -> None:
    alloc = load.buffer.owner
    alignment = ir.IntegerAttr.get(build.integer(64), load.alignment)
    alloc.attributes["alignment"] = alignment
    alcop.put_boxes(alloc, load.boxes.columns, load.boxes.swizzle)


def _frame(loop: ir.Operation, launch: ir.Operation) -> Frame:
    """What is around the loop, and what of it only the warps that compute may do."""
    holder = loop.parent.operation
    tiles = None if holder == launch else holder
    ops = [one.operation for one in loop.operation.block.operations]
    place = ops.index(loop.operation)
    before, behind = ops[:place], ops[place + 1 : -1]
    late: dict[Any, None] = {}
    for op in before:
        values = [value for value in captured(op) if not _is_argument(value)]
        depends = any(value.owner.operation in late for value in values)
        is_free = is_repeatable(op) or op.name in memory.ALLOCATIONS
        if depends or not is_free:
            late[op] = None
    own = before if tiles is not None else list(late)
    return Frame(loop.operation, tiles, own, behind)


def _is_argument(value: ir.Value) -> bool:
    return isinstance(value.owner, ir.Block)


def _add_warps(launch: ir.Operation, threads: int, turns: int) -> Any:
    """Give the launch the warps of all groups, and a warpgroup that copies; the number
    of a thread. What numbered the threads numbers those of a group now.
    """
    arguments = list(launch.regions[0].blocks[0].arguments)
    arguments[_BLOCK_X].replace_all_uses_with(build.index(threads))
    every = threads * turns + WARPGROUP * WARP_SIZE
    with ir.InsertionPoint(launch):
        launch.operands[_THREADS_X] = build.index(every)
    thread = arguments[_THREAD]
    if turns > 1:
        with ir.InsertionPoint.at_block_begin(launch.regions[0].blocks[0]):
            own = build.rem(thread, threads)
        thread.replace_all_uses_except(own, own.owner.operation)
    return thread


def _make_ring(bound: BoundPlan, slot: int, readers: int) -> Ring:
    """The ring of the loop, whose slots are read by so many warps."""
    slots = bound.plan.rings[0].slots
    return Ring(Barriers.create(slots), Barriers.create(slots), slots, slot, readers)


def _initialise(
    ring: Ring, order: Barriers | None, thread: ir.Value, warps: int, size: int
) -> None:
    """Initialise the mbarriers by a thread, before all see them.

    A slot is free when all warps that compute its tile have read it, of each block that
    it is filled for, and which fill it.
    """

    def initialise() -> None:
        for number in range(ring.slots):
            ring.full.initialise(number, 1)
            ring.empty.initialise(number, ring.readers)
        if order is not None:
            for number in range(Turns.COUNT):
                order.initialise(number, warps)
        nvvm.FenceMbarrierInitOp()

    build.branch(_is(thread, 0), initialise)
    if size == 1:
        gpu.barrier()
    _meet(size)


def _is(value: ir.Value, number: int) -> Any:
    other = arith.constant(value.type, number)
    return arith.cmpi(arith.CmpIPredicate.eq, value, other)


def _elected(make: Callable[[], None]) -> None:
    """By one lane of the warp: PTX ISA, elect.sync, which ptxas knows to be one."""
    build.branch(nvvm.elect_sync(), make)


def _set_registers(action: str, count: int | None) -> None:
    """Let the warps of a role give registers back, or take more; None where alike."""
    if count is not None:
        nvvm.setmaxregister(count, ir.Attribute.parse(f"#nvvm<action {action}>"))
