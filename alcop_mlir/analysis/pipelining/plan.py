"""Decides what is pipelined: which loops and copies, with how many stages.

`plan_kernel` looks at one kernel and returns a frozen `KernelPlan`;
alcop-plan-pipelines writes it into the IR. Nothing is changed here.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from alcop_mlir.analysis.ir import loop_memory, memory, uniformity
from alcop_mlir.analysis.ir.loops import (
    ancestor_in,
    body,
    defining_op,
    loops_in,
    terminator,
    trip_count,
)
from alcop_mlir.analysis.ir.slices import is_pure
from alcop_mlir.analysis.ir.walk import walk
from alcop_mlir.analysis.pipelining import copies, stage_model
from alcop_mlir.analysis.pipelining.copies import (
    REGISTER,
    SHARED,
    PipelinedCopy,
    RejectedCopy,
)
from alcop_mlir.analysis.pipelining.copy_forms import ASYNC_OP, copy_form
from alcop_mlir.bindings import ir
from alcop_mlir.resources import align
from alcop_mlir.target import STATIC_SHARED_LIMIT

# A fragment loop longer than this is not flattened into the loop around it: the
# unrolled body would no longer fit the instruction cache.
MAX_CARRIED_STEPS = 16
WRAP_REFUSED = (
    "its tail is predicated: addresses of its copies depend on loop-carried values, "
    "which cannot start again"
)
GROUP_OPS = ("nvgpu.device_async_create_group", "nvgpu.device_async_wait")


@dataclass(frozen=True)
class Limits:
    """The requested stages, and the limits of the target.

    stages:       shared, register; 1 means not pipelined, None lets the model choose
    shared_bytes: shared memory that a block may use
    """

    stages: tuple[int | None, int]
    shared_bytes: int
    noalias_arguments: bool = False
    wrap_tails: bool = False


@dataclass(frozen=True)
class PipelinedLoop:
    """One pipelined loop at one level.

    carried: the pipeline of an inner loop that is filled once, and carried across the
             iterations of the pipelined loop around it
    wraps:   the copies of the tail start again at the first tile, instead of being
             predicated
    """

    loop: Any
    level: str
    stages: int
    copies: tuple[PipelinedCopy, ...]
    carried: bool = False
    wraps: bool = False


@dataclass(frozen=True)
class Clamped:
    """A remark on a loop that gets less than was requested."""

    loop: Any
    message: str


@dataclass(frozen=True)
class KernelPlan:
    """The pipelines of a kernel, and the copies that are not pipelined."""

    pipelines: tuple[PipelinedLoop, ...]
    rejected: tuple[RejectedCopy, ...]
    clamped: tuple[Clamped, ...] = field(default=())


def plan_kernel(scope: ir.Operation, limits: Limits) -> KernelPlan:
    """The plan for the loops in `scope`, a kernel body: they share its memory."""
    shared = _plan_shared(scope, limits)
    register = _plan_register(scope, limits, shared)
    return KernelPlan(
        pipelines=shared.pipelines + register.pipelines,
        rejected=shared.rejected + register.rejected,
        clamped=shared.clamped + register.clamped,
    )


def _plan_shared(scope: ir.Operation, limits: Limits) -> KernelPlan:
    pipelines: list[PipelinedLoop] = []
    rejected: list[RejectedCopy] = []
    clamped: list[Clamped] = []
    for loop in loops_in(scope):
        judged = list(copies.shared_copies(loop, limits.noalias_arguments))
        accepted = [one for one in judged if isinstance(one, PipelinedCopy)]
        rejected += [one for one in judged if isinstance(one, RejectedCopy)]
        if not accepted or limits.stages[0] == 1:
            continue
        refusal = unsynchronisable(loop, accepted, limits.noalias_arguments)
        stages, clamp = _shared_stages(scope, loop, accepted, pipelines, limits)
        refusal = refusal or _too_large(scope, accepted, stages, pipelines, limits)
        if refusal is not None:
            rule, reason, remedy = refusal
            rejected += [
                copies.rejected(c.op, SHARED, rule, reason, remedy) for c in accepted
            ]
            continue
        clamped += clamp
        if stages > 1:
            wraps = limits.wrap_tails and copies.follow_the_index(loop, accepted)
            if limits.wrap_tails and not wraps:
                clamped.append(Clamped(loop, WRAP_REFUSED))
            pipelines.append(
                PipelinedLoop(loop, SHARED, stages, tuple(accepted), wraps=wraps)
            )
    return KernelPlan(tuple(pipelines), tuple(rejected), tuple(clamped))


def unsynchronisable(
    loop: ir.Operation, accepted: list[PipelinedCopy], noalias: bool
) -> tuple[int, str, str] | None:
    """Rule 3: synchronisation in the loop is for the pipelined buffers only.

    The barriers, groups and waits are dropped, and new ones are placed.
    """
    if loop_memory.shared_roots_in(loop) - {copy.buffer for copy in accepted}:
        return (
            3,
            "the loop also uses shared memory that is not pipelined, ordered by the "
            "same barriers",
            "fill all shared buffers of the loop by copies that can be pipelined",
        )
    if _filled_otherwise(loop, accepted):
        return (
            2,
            "another copy into the same buffer cannot be pipelined",
            "fill the buffer by copies only that can be pipelined",
        )
    barriers = walk(loop, "gpu.barrier")
    if any(barrier.block != body(loop) for barrier in barriers):
        return (
            3,
            "the loop has a barrier inside a nested region",
            "keep barriers in the loop's own block",
        )
    copied = {load for copy in accepted for load in copies.loads_of(copy.op)}
    if barriers and loop_memory.exchanges_globally(loop, copied, noalias):
        return (
            3,
            "the loop reads global memory that it writes, perhaps ordered by its "
            "barriers",
            "exchange data between threads in a loop of its own",
        )
    if not barriers and uniformity.may_diverge(loop):
        return (
            3,
            "threads of a block may run the loop differently, and it has no barrier to "
            "show that they do not",
            "make its bounds, and the conditions around it, the same for all threads",
        )
    return _foreign_groups(loop, accepted)


def _filled_otherwise(loop: ir.Operation, accepted: list[PipelinedCopy]) -> bool:
    """Whether a buffer is filled by more than the accepted copies."""
    own = {copy.op for copy in accepted}
    return any(
        access.writes and ancestor_in(access.op, body(loop)) not in own
        for copy in accepted
        for access in memory.accesses(copy.buffer)
    )


def _foreign_groups(
    loop: ir.Operation, accepted: list[PipelinedCopy]
) -> tuple[int, str, str] | None:
    """Groups and waits must belong to the asynchronous copies that are pipelined."""
    planned = {copy.op for copy in accepted}
    found = walk(loop, ASYNC_OP, *GROUP_OPS)
    if any(op.name == ASYNC_OP and op not in planned for op in found):
        return (
            3,
            "the loop has asynchronous copies that are not pipelined",
            "pipeline all asynchronous copies of the loop",
        )
    for op in [op for op in found if op.name != ASYNC_OP]:
        outside = any(
            (maker := defining_op(token)) is None
            or ancestor_in(maker, body(loop)) is None
            for token in op.operands
        )
        if outside or op.block != body(loop) or _leaves(op, loop):
            return (
                3,
                f"a token of '{op.name}' crosses the loop's boundary or a region's",
                "create and await the groups of the copies in the loop's own block",
            )
    return None


def _leaves(op: ir.Operation, loop: ir.Operation) -> bool:
    last = terminator(loop).operation
    return any(use.owner.operation == last for r in op.results for use in r.uses)


def _shared_stages(
    scope: ir.Operation,
    loop: ir.Operation,
    accepted: list[PipelinedCopy],
    planned: list[PipelinedLoop],
    limits: Limits,
) -> tuple[int, list[Clamped]]:
    """The requested stages; else those of the model, as far as memory suffices."""
    trips = trip_count(loop)
    asked = limits.stages[0]
    if asked is not None:
        return _clamp(loop, SHARED, asked, trips)
    stages, _ = _clamp(loop, SHARED, stage_model.shared_stages(loop), trips)
    while stages > 2 and _too_large(scope, accepted, stages, planned, limits):
        stages -= 1
    return _clamp(loop, SHARED, max(2, stages), trips)


def _clamp(
    loop: ir.Operation, level: str, asked: int, trips: int | None
) -> tuple[int, list[Clamped]]:
    if trips is None or trips >= asked:
        return asked, []
    stages = max(1, trips)
    message = f"{stages} {level} stages instead of {asked}: the loop runs {trips} times"
    return stages, [Clamped(loop, message)]


def _too_large(
    scope: ir.Operation,
    accepted: list[PipelinedCopy],
    stages: int,
    planned: list[PipelinedLoop],
    limits: Limits,
) -> tuple[int, str, str] | None:
    """Rule 5, over all shared buffers of the kernel."""
    slots = {c.buffer: p.stages for p in planned for c in p.copies}
    slots |= {copy.buffer: stages for copy in accepted}
    sizes = {
        buffer: memory.size_in_bytes(buffer.type)
        for buffer in loop_memory.shared_roots_in(scope)
    }
    needed = sum(
        align(slots.get(buffer, 1) * size)
        for buffer, size in sizes.items()
        if size is not None
    )
    limit = limits.shared_bytes
    if any(defining_op(buffer) is None for buffer in sizes):
        # What a gpu.func declares is static shared memory, of which there is less.
        limit = min(limit, STATIC_SHARED_LIMIT)
    if needed <= limit:
        return None
    return (
        5,
        f"{stages} slots need {needed} bytes of shared memory, there are {limit}",
        "fewer stages or smaller tiles",
    )


def _plan_register(
    scope: ir.Operation, limits: Limits, shared: KernelPlan
) -> KernelPlan:
    pipelines: list[PipelinedLoop] = []
    rejected: list[RejectedCopy] = []
    clamped: list[Clamped] = []
    outer = {p.loop: p for p in shared.pipelines}
    refused = {no.op.parent.operation for no in shared.rejected}
    for loop in loops_in(scope):
        judged = list(copies.register_reads(loop))
        accepted = [one for one in judged if isinstance(one, PipelinedCopy)]
        asked = limits.stages[1]
        # Where the copies are rejected, their remarks are enough.
        if not judged or asked == 1 or loop in refused:
            continue
        rejected += [one for one in judged if isinstance(one, RejectedCopy)]
        if not accepted:
            continue
        carried = _is_carried(loop, accepted, outer)
        refusal = _not_a_register_loop(loop, accepted, outer, carried)
        if refusal is not None:
            rejected += [copies.rejected(c.op, REGISTER, *refusal) for c in accepted]
            continue
        trips = _steps(loop, outer) if carried else trip_count(loop)
        stages, clamp = _clamp(loop, REGISTER, asked, trips)
        clamped += clamp
        if stages > 1:
            pipelines.append(
                PipelinedLoop(loop, REGISTER, stages, tuple(accepted), carried)
            )
    return KernelPlan(tuple(pipelines), tuple(rejected), tuple(clamped))


def _not_a_register_loop(
    loop: ir.Operation,
    accepted: list[PipelinedCopy],
    outer: dict[Any, PipelinedLoop],
    carried: bool,
) -> tuple[int, str, str] | None:
    """Why reads cannot be pipelined: they would cross a barrier that is kept."""
    if carried:
        return None
    if loop in outer:
        return (
            3,
            "the loop also reads its shared buffers in ways that are not pipelined",
            "read the shared buffers by transfer_read only",
        )
    if walk(loop, "gpu.barrier"):
        return (
            3,
            "the loop has barriers, which the reads would have to cross",
            "pipeline the copies that the barriers order, or move the barriers out",
        )
    return _filled_unpipelined(loop, accepted)


def _filled_unpipelined(
    loop: ir.Operation, accepted: list[PipelinedCopy]
) -> tuple[int, str, str] | None:
    forms = [copy_form(op) for op in body(loop).operations]
    targets = {memory.root(form.target) for form in forms if form is not None}
    if any(memory.root(copy.op.operands[0]) in targets for copy in accepted):
        return (
            6,
            "its source is filled in the same iteration",
            "pipeline that copy too, with 2 shared stages or more",
        )
    return None


def _is_carried(
    loop: ir.Operation, accepted: list[PipelinedCopy], outer: dict[Any, PipelinedLoop]
) -> bool:
    """Whether the reads can be prefetched across iterations of the shared pipeline.

    No other op may read the pipelined buffers: a slot is released after the last of
    these reads.
    """
    if loop in outer:
        return _are_all_reads(accepted, outer[loop])
    parent = loop.parent.operation
    if parent not in outer or not _are_all_reads(accepted, outer[parent]):
        return False
    trips = trip_count(loop)
    if trips is None or not 1 <= trips <= MAX_CARRIED_STEPS:
        return False
    if any(op.operation.regions for op in body(loop).operations):
        return False
    return all(
        op.operation == loop or _is_idle(op.operation) for op in body(parent).operations
    )


def _are_all_reads(accepted: list[PipelinedCopy], pipeline: PipelinedLoop) -> bool:
    known = {copy.op for copy in accepted}
    return all(
        access.op in known
        for copy in pipeline.copies
        for access in memory.accesses(copy.buffer)
        if not access.writes
    )


def _is_idle(op: ir.Operation) -> bool:
    """Whether `op`, next to the inner loop, neither reads shared memory nor writes."""
    if op.name in ("gpu.barrier", "scf.yield", *GROUP_OPS):
        return True
    return is_pure(op) or copies.is_shared_copy(op) or _is_load_of_copy(op)


def _is_load_of_copy(op: ir.Operation) -> bool:
    users = [use.owner for result in op.results for use in result.uses]
    forms = [copy_form(user) for user in users]
    return bool(forms) and all(form and form.load == op for form in forms)


def _steps(loop: ir.Operation, outer: dict[Any, PipelinedLoop]) -> int | None:
    """Fragment steps over the whole outer loop."""
    if loop in outer:
        return trip_count(loop)
    outer_trips, inner_trips = trip_count(loop.parent), trip_count(loop)
    if outer_trips is None or inner_trips is None:
        return None
    return outer_trips * inner_trips
