"""The plan of a loop whose copies are the role of warps of their own (sm_90a).

The streams of the loop become roles: one warpgroup copies, by TMA, into a ring whose
slots mbarriers order, and the others multiply, by wgmma, and leave groups of it in
flight. Where the loop is not such a one, `role_plan` says why. Nothing is changed here.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from alcop_mlir.analysis.ir import memory
from alcop_mlir.analysis.ir.alignment import element_bytes
from alcop_mlir.analysis.ir.clusters import cluster_size, is_of_cluster, made_of
from alcop_mlir.analysis.ir.kernels import enclosing
from alcop_mlir.analysis.ir.loops import (
    body,
    bounds,
    is_inside,
    is_loop,
    trip_count,
)
from alcop_mlir.analysis.ir.rejected import Rejected
from alcop_mlir.analysis.ir.slices import is_repeatable
from alcop_mlir.analysis.ir.synchronisation import BARRIER
from alcop_mlir.analysis.ir.walk import walk
from alcop_mlir.analysis.layout.fragments import CONTRACT, multiplied
from alcop_mlir.analysis.layout.tensor_boxes import TensorBoxes, tensor_boxes
from alcop_mlir.analysis.layout.warpgroups import (
    is_cast_of_operand,
    reads_memory,
    tile_reads,
    warpgroup_product,
)
from alcop_mlir.analysis.pipelining.plans.bound_plan import BoundPlan
from alcop_mlir.analysis.pipelining.plans.kernel_plan import (
    KernelPlan,
    Limits,
    PipelinedLoop,
)
from alcop_mlir.analysis.pipelining.plans.stream_plan import (
    COMPUTE,
    COPY,
    FILL,
    LOOP,
    MBARRIER,
    READ,
    Ring,
    Stream,
    StreamOp,
    StreamPlan,
)
from alcop_mlir.analysis.pipelining.verdicts import SHARED
from alcop_mlir.bindings import ir
from alcop_mlir.target import WARP_SIZE, WARPGROUP

_TRANSFER = "vector.transfer_read"
_UNPLANNED = (BARRIER, "scf.for", "scf.yield")


def plan_roles(limits: Limits, plan: KernelPlan) -> None:
    """Give roles to the pipelined loops of `plan`, where that is asked for.

    Those that cannot have them are unchanged, with a remark that says why.
    """
    if limits.roles is None:
        return
    for pipelined in plan.pipelines:
        if pipelined.level != SHARED:
            continue
        turns, no_turns = limits.turns, _unfit_turns(pipelined.loop)
        if turns > 1 and no_turns is not None:
            turns = 1
            plan.clamped.append((pipelined.loop, f"no tiles in turn: {no_turns}"))
        found = role_plan(pipelined, limits.roles, limits.noalias_arguments, turns)
        if isinstance(found, Rejected):
            why = f"'{found.op.name}' {found.reason}"
            text = f"no roles of warps, and mma.sync instead of wgmma: {why}"
            plan.clamped.append((found.op, text))
            continue
        plan.roles[pipelined.loop] = found
        left = found.plan.streams[-1].in_flight
        if left == pipelined.stages - 2 < limits.roles:
            plan.clamped.append((pipelined.loop, _fewer(left, limits.roles)))


def _fewer(left: int, asked: int) -> str:
    """A remark where a ring has fewer slots than the groups of wgmma need."""
    return (
        f"{left + 1} register stages instead of {asked + 1}: {asked} groups of wgmma "
        f"in flight need a ring of {asked + 2} slots, it has {left + 2}"
    )


def role_plan(
    pipelined: PipelinedLoop, asked: int, noalias: bool, turns: int = 1
) -> BoundPlan | Rejected:
    """The plan by roles of a loop whose copies have slots, or why there is none.

    asked: groups of wgmma in flight
    turns: groups of warps that take tiles in turn
    """
    loop, slots = pipelined.loop, pipelined.stages
    products = walk(loop, CONTRACT)
    no = (
        _unfit_kernel(loop)
        or _unfit_copies(pipelined)
        or _unfit_products(loop, products)
        or _unfit_held(products)
        or _unfit_reads(pipelined, products)
    )
    if no is not None:
        return no
    # A slot that groups in flight read is filled again once these have ended.
    in_flight = min(asked, slots - 2)
    if holds_operands(products):
        # The next iteration has the same registers, and waits step by step for them.
        has_steps = products[0].parent.operation != loop
        in_flight = min(in_flight, 1 if has_steps else 0)
    copy = Stream(COPY, lead=slots - 1 - in_flight, warps=WARPGROUP)
    compute = Stream(COMPUTE, in_flight=in_flight, turns=turns)
    inner = [op for op in _ops(loop) if op.name == "scf.for"]
    reads = [op for op in walk(loop, _TRANSFER) if _is_of(op, pipelined)]
    named = [
        *((op, COPY, FILL, 0) for op in pipelined.ops),
        *((op, COMPUTE, LOOP, -1) for op in inner),
        *((op, COMPUTE, READ, 0) for op in reads),
    ]
    plan = StreamPlan(
        streams=(copy, compute),
        ops=tuple(
            StreamOp(number, op.name, stream, kind, ring)
            for number, (op, stream, kind, ring) in enumerate(named)
        ),
        rings=(Ring(slots, MBARRIER),),
        noalias=noalias,
    )
    return BoundPlan(loop, plan, tuple(op for op, *_ in named))


def _unfit_kernel(loop: ir.Operation) -> Rejected | None:
    block = enclosing(loop)
    assert block is not None, loop
    if block.op.name != "gpu.launch" or not _is_outermost(loop, block.op):
        return Rejected(loop, "is not in a gpu.launch's own block or loop over tiles")
    if block.threads is None or block.threads % (WARPGROUP * WARP_SIZE):
        return Rejected(loop, f"runs in {block} threads, expected warpgroups along x")
    for op in walk(block.op, BARRIER):
        if op.parent.operation != loop:
            return Rejected(op, "is a barrier of all warps outside of the loop")
    if cluster_size(block.op) > 1 and not _runs_alike(loop, block.op):
        return Rejected(
            loop, "may run more often in one block than in others of its cluster"
        )
    return None


def _unfit_turns(loop: ir.Operation) -> str | None:
    """Why groups of warps cannot take tiles in turn; None where they can.

    Who begins with a tile has to know how many slots the others go through before.
    """
    if not is_loop(loop.parent.operation):
        return "each block computes one tile"
    if not trip_count(loop):
        return "how often the loop runs is not known, or never"
    return None


def _runs_alike(loop: ir.Operation, launch: ir.Operation) -> bool:
    """Whether all blocks of a cluster run the loop equally often.

    They wait for each other, and fill each other's slots.
    """
    holder = loop.parent.operation
    around = [] if holder == launch else [holder]
    return is_of_cluster([one for op in (loop, *around) for one in bounds(op)], launch)


def _is_outermost(loop: ir.Operation, launch: ir.Operation) -> bool:
    """Whether it is in the launch itself, or in a loop of it that carries nothing."""
    holder = loop.parent.operation
    if holder == launch:
        return True
    return is_loop(holder) and not holder.results and holder.parent.operation == launch


def _unfit_copies(pipelined: PipelinedLoop) -> Rejected | None:
    if pipelined.fetches:
        return Rejected(pipelined.fetches[0].op, "is loaded for the address of a copy")
    for op in pipelined.ops:
        boxes = tensor_boxes(op)
        if isinstance(boxes, str):
            return Rejected(op, f"cannot be a copy by TMA: {boxes}")
        maker = _impure_maker(boxes, pipelined.loop)
        if maker is not None:
            return Rejected(
                op, f"needs '{maker.name}' for its address, which one role does"
            )
    planned = set(pipelined.ops)
    for op in _ops(pipelined.loop):
        if op in planned or op.name in _UNPLANNED:
            continue
        if not memory.touches(op):
            continue
        if op.name != _TRANSFER or not _is_of(op, pipelined):
            return Rejected(
                op, "is in the loop, expected copies and contractions alone"
            )
    return None


def _impure_maker(boxes: TensorBoxes, loop: ir.Operation) -> Any | None:
    """An op of the kernel that an address needs, and that not both roles may do."""
    block = enclosing(loop)
    assert block is not None, loop
    offsets = [one for parts in boxes.offsets for one in parts]
    for value in made_of(offsets, block.op):
        owner = value.owner
        if isinstance(owner, ir.Block) or not is_inside(owner.operation, block.op):
            continue
        if not is_repeatable(owner):
            return owner.operation
    return None


def _unfit_products(loop: ir.Operation, products: list[Any]) -> Rejected | None:
    if not products:
        return Rejected(loop, "has no contraction")
    for op in products:
        found = warpgroup_product(op)
        if isinstance(found, str):
            return Rejected(op, f"is not computed by wgmma: {found}")
    return None


def holds_operands(products: Sequence[Any]) -> bool:
    """Whether A of a contraction by wgmma is in registers."""
    return any(not reads_memory(one, 0) for one in products)


def _unfit_held(products: list[Any]) -> Rejected | None:
    """A in registers is made step by step, of one contraction."""
    if not holds_operands(products):
        return None
    if len(products) > 1:
        return Rejected(products[1], "computes A, expected one contraction in the loop")
    return None


def _unfit_boxes(pipelined: PipelinedLoop, buffer: Any) -> Rejected | None:
    """Threads read rows of one box, whose swizzle is one of their columns."""
    for copy in pipelined.ops:
        boxes = tensor_boxes(copy)
        if isinstance(boxes, str) or memory.root(copy.operands[1]) != buffer:
            continue
        if boxes.count > 1:
            row = boxes.columns * boxes.count * element_bytes(buffer.type)
            return Rejected(
                copy,
                f"copies rows of {row} bytes that A is computed of, expected "
                f"{boxes.swizzle} at most",
            )
    return None


def _unfit_reads(pipelined: PipelinedLoop, products: list[Any]) -> Rejected | None:
    """Only wgmma, and reads of fragments of A, know how TMA leaves tiles in memory."""
    known = set(products)
    held = {
        read
        for one in products
        if not reads_memory(one, 0)
        for read in tile_reads(multiplied(one)[0]) or ()
    }
    for buffer in {b for copy in pipelined.copies for b in copy.buffers}:
        accesses = memory.accesses(buffer)
        if not isinstance(accesses, list):
            return Rejected(accesses, "uses a buffer of the copies in no known way")
        for access in accesses:
            if access.op in pipelined.ops:
                continue
            if access.op in held:
                no = _unfit_boxes(pipelined, buffer)
                if no is not None:
                    return no
                continue
            users = [user for r in access.op.results for user in _users(r)]
            if access.writes or not users or not known.issuperset(users):
                return Rejected(access.op, "uses a tile otherwise than by wgmma")
    return None


def _users(value: ir.Value) -> list[Any]:
    """Those of a value, or of what it is cast to."""
    found = []
    for op in (use.owner.operation for use in value.uses):
        found += _users(op.results[0]) if is_cast_of_operand(op) else [op]
    return found


def _is_of(read: ir.Operation, pipelined: PipelinedLoop) -> bool:
    buffers = {b for copy in pipelined.copies for b in copy.buffers}
    return memory.root(read.operands[0]) in buffers


def _ops(loop: ir.Operation) -> list[Any]:
    return [op.operation for op in body(loop).operations]
