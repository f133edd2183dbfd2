"""Decides which copies into shared memory are pipelined, with how many slots.

A copy that `copies` allows may still be refused here: for what else is in its loop, for
threads that run the loop differently, or for the memory that its slots need.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from typing import Any

from alcop_mlir.analysis.ir import memory, uniformity
from alcop_mlir.analysis.ir.loops import ancestor_in, body, trip_count
from alcop_mlir.analysis.ir.synchronisation import GROUP, WAIT
from alcop_mlir.analysis.pipelining import stage_model
from alcop_mlir.analysis.pipelining.barriers import meets
from alcop_mlir.analysis.pipelining.copies import shared_copies
from alcop_mlir.analysis.pipelining.copy_forms import CopyForm, is_part_of_copy
from alcop_mlir.analysis.pipelining.early_addresses import fetches_for, follow_the_index
from alcop_mlir.analysis.pipelining.fetches import Fetch
from alcop_mlir.analysis.pipelining.in_place import works_in_place
from alcop_mlir.analysis.pipelining.moves import ASYNC_OP
from alcop_mlir.analysis.pipelining.plans.kernel_plan import (
    KernelPlan,
    Limits,
    LoopForms,
    PipelinedLoop,
    at_most,
    buffers_of,
)
from alcop_mlir.analysis.pipelining.shared_size import shared_bytes, shared_limit
from alcop_mlir.analysis.pipelining.verdicts import (
    SHARED,
    PipelinedCopy,
    Refusal,
    RejectedCopy,
)
from alcop_mlir.bindings import ir

_FILLED_BY_OTHERS = Refusal(
    2,
    "another copy into the same buffer cannot be pipelined",
    "fill the buffer by copies only that can be pipelined",
)


def plan_shared(
    scope: ir.Operation, forms: LoopForms, limits: Limits, plan: KernelPlan
) -> None:
    """Add to `plan` the pipelines of the copies `forms`, and those that are refused."""
    for loop, own in forms.items():
        if is_part_of_copy(loop):
            continue
        noalias = limits.noalias_in(loop)
        accepted = plan.accept(shared_copies(loop, own, noalias))
        if limits.stages[0] == 1:
            continue
        accepted = plan.accept(without_neighbours(loop, accepted))
        if not accepted:
            continue
        trips = trip_count(loop)
        asked = _asked_stages(scope, loop, accepted, plan, limits)
        refusal = unsynchronisable(loop) or _too_large(
            scope, accepted, at_most(asked, trips), plan, limits
        )
        if refusal is not None:
            plan.refuse(accepted, SHARED, refusal)
            continue
        stages = plan.clamp(loop, SHARED, asked, trips)
        if stages > 1:
            copied = [own[copy.op] for copy in accepted]
            why = _not_wrapping(loop, copied, noalias) if limits.wrap_tails else None
            if why is not None:
                plan.clamped.append((loop, f"its tail is predicated: {why}"))
            wraps = limits.wrap_tails and why is None
            fetches = fetches_for(loop, copied)
            early = tuple(Fetch(op, lead) for op, lead in fetches.items())
            plan.pipelines.append(
                PipelinedLoop(loop, SHARED, stages, tuple(accepted), early, wraps=wraps)
            )


def _not_wrapping(
    loop: ir.Operation, copied: list[CopyForm], noalias: bool
) -> str | None:
    """Why copies of the tail cannot start again at the first tile; None if they can."""
    if not follow_the_index(loop, copied):
        return (
            "addresses of its copies depend on loop-carried or loaded values, which "
            "cannot start again"
        )
    if works_in_place(loop, copied, noalias):
        return "it writes to what its copies would start again with"
    return None


def unsynchronisable(loop: ir.Operation) -> Refusal | None:
    """Rule 3: threads must run the loop alike, as they are to meet in barriers."""
    if any(map(meets, body(loop).operations)) or not uniformity.may_diverge(loop):
        return None
    return Refusal(
        3,
        "threads of a block may run the loop differently, and it has no barrier to "
        "show that they do not",
        "make its bounds, and the conditions around it, the same for all threads",
    )


def without_neighbours(
    loop: ir.Operation, accepted: list[PipelinedCopy]
) -> Iterator[PipelinedCopy | RejectedCopy]:
    """Copies of a loop that could be pipelined, but for what else there is in it."""
    judged = {copy: _token_escapes(loop, copy) for copy in accepted}
    own = {copy.op for copy, refusal in judged.items() if refusal is None}
    others = {b for b in buffers_of(accepted) if _is_filled_by_others(loop, b, own)}
    for copy, refusal in judged.items():
        no = None if others.isdisjoint(copy.buffers) else _FILLED_BY_OTHERS
        why = refusal or no
        yield copy if why is None else RejectedCopy(copy.op, SHARED, *why)


def _is_filled_by_others(
    loop: ir.Operation, buffer: ir.Value, own: Collection[Any]
) -> bool:
    """Whether others than the copies `own` fill a buffer."""
    return any(
        access.writes and ancestor_in(access.op, body(loop)) not in own
        for access in memory.accesses(buffer)
    )


def _token_escapes(loop: ir.Operation, copy: PipelinedCopy) -> Refusal | None:
    """Whether an asynchronous copy is waited for in another iteration, or elsewhere."""
    if copy.op.name != ASYNC_OP:
        return None
    users = [use.owner.operation for use in copy.op.results[0].uses]
    for user in users:
        if user.name != GROUP or user.block != body(loop):
            return Refusal(
                3,
                f"its token is used by '{user.name}'",
                "create the group of the copy in the iteration that makes it",
            )
    awaited = [
        op.operands[0] for op in body(loop).operations if op.operation.name == WAIT
    ]
    if any(token.owner == body(loop) for token in awaited):
        return Refusal(
            3,
            "the loop waits for a group of the iteration before: it is pipelined by "
            "hand",
            "wait for the copies in the iteration that makes them",
        )
    return None


def _asked_stages(
    scope: ir.Operation,
    loop: ir.Operation,
    accepted: list[PipelinedCopy],
    plan: KernelPlan,
    limits: Limits,
) -> int:
    """The requested stages; else those of the model, as far as memory suffices."""
    if limits.stages[0] is not None:
        return limits.stages[0]
    stages = at_most(stage_model.shared_stages(loop), trip_count(loop))
    while stages > 2 and _too_large(scope, accepted, stages, plan, limits):
        stages -= 1
    return max(2, stages)


def _too_large(
    scope: ir.Operation,
    accepted: list[PipelinedCopy],
    stages: int,
    plan: KernelPlan,
    limits: Limits,
) -> Refusal | None:
    """Rule 5, over all shared buffers of the kernel."""
    slots = {b: p.stages for p in plan.pipelines for b in buffers_of(p.copies)}
    slots |= {b: number for rings in plan.given.values() for b, number in rings.items()}
    slots |= dict.fromkeys(buffers_of(accepted), stages)
    buffers = memory.shared_roots_in(scope)
    needed = shared_bytes(buffers, slots)
    limit = shared_limit(scope, buffers, limits.shared_bytes)
    if needed <= limit:
        return None
    return Refusal(
        5,
        f"{stages} slots need {needed} bytes of shared memory, there are {limit}",
        "fewer stages or smaller tiles",
    )
