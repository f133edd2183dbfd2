"""Decides which reads of shared memory are pipelined through registers."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

from alcop_mlir.analysis.ir import memory
from alcop_mlir.analysis.ir.loops import body, trip_count
from alcop_mlir.analysis.ir.slices import is_pure
from alcop_mlir.analysis.ir.synchronisation import BARRIER, SYNCHRONISATION
from alcop_mlir.analysis.ir.walk import walk
from alcop_mlir.analysis.layout.live_registers import is_of_warps, live_registers
from alcop_mlir.analysis.pipelining.copy_forms import Forms
from alcop_mlir.analysis.pipelining.plans.kernel_plan import (
    KernelPlan,
    Limits,
    LoopForms,
    PipelinedLoop,
    buffers_of,
)
from alcop_mlir.analysis.pipelining.register_reads import register_reads
from alcop_mlir.analysis.pipelining.verdicts import (
    REGISTER,
    PipelinedCopy,
    Refusal,
    RejectedCopy,
)
from alcop_mlir.bindings import ir

# A fragment loop longer than this is not flattened into the loop around it: the
# unrolled body would no longer fit the instruction cache.
MAX_CARRIED_STEPS = 16


def plan_register(forms: LoopForms, limits: Limits, plan: KernelPlan) -> None:
    """Add to `plan` the pipelines of reads in these loops, and those refused."""
    outer = {p.loop: p for p in plan.pipelines}
    refused = {no.op.parent.operation for no in plan.rejected}
    for loop, own in forms.items():
        asked = limits.stages[1]
        # Where the copies are rejected, their remarks are enough.
        if asked == 1 or (loop in refused and loop not in outer):
            continue
        accepted = plan.accept(register_reads(loop, own))
        if loop in outer:
            accepted = plan.accept(_of_slots(accepted, outer[loop]))
        if not accepted:
            continue
        carried = _is_carried(loop, accepted, outer, forms)
        refusal = None if carried else _not_a_register_loop(loop, own, accepted, outer)
        if refusal is not None:
            plan.refuse(accepted, REGISTER, refusal)
            continue
        trips = _steps(loop, outer) if carried else trip_count(loop)
        stages = plan.clamp(loop, REGISTER, asked, trips)
        if stages > 1 and loop in outer and limits.vector_registers is not None:
            stages = _held_stages(loop, accepted, stages, limits, plan)
        if stages > 1:
            plan.pipelines.append(
                PipelinedLoop(loop, REGISTER, stages, tuple(accepted), carried=carried)
            )


def _held_stages(
    loop: ir.Operation,
    accepted: list[PipelinedCopy],
    asked: int,
    limits: Limits,
    plan: KernelPlan,
) -> int:
    """The stages for which a thread has registers; with a remark where those are fewer.

    Without a loop over fragments, a stage is all fragments of an iteration.
    """
    if not is_of_warps(loop):
        return asked
    limit = limits.vector_registers
    assert limit is not None
    one = live_registers(loop, [copy.op for copy in accepted])
    ahead = one - live_registers(loop)
    stages = asked
    while stages > 1 and one + (stages - 2) * ahead > limit:
        stages -= 1
    if stages < asked:
        needed = one + (asked - 2) * ahead
        message = (
            f"{stages} {REGISTER} stages instead of {asked}: vectors would take about "
            f"{needed} registers per thread, expected at most {limit}"
        )
        plan.clamped.append((loop, message))
    return stages


def _of_slots(
    accepted: list[PipelinedCopy], pipeline: PipelinedLoop
) -> Iterator[PipelinedCopy | RejectedCopy]:
    """Reads of what the pipeline copies; others may not cross barriers that stay."""
    buffers = buffers_of(pipeline.copies)
    for read in accepted:
        if memory.root(read.op.operands[0]) in buffers:
            yield read
            continue
        yield RejectedCopy(
            read.op,
            REGISTER,
            3,
            "its buffer is not filled by copies that are pipelined, so that barriers "
            "of the loop may order it",
            "read it before the loop, or fill it by copies that can be pipelined",
        )


def _not_a_register_loop(
    loop: ir.Operation,
    forms: Forms,
    accepted: list[PipelinedCopy],
    outer: dict[Any, PipelinedLoop],
) -> Refusal | None:
    """Why reads cannot be pipelined: they would cross a barrier that is kept."""
    if loop in outer:
        return Refusal(
            3,
            "the loop also reads its shared buffers in ways that are not pipelined",
            "read the shared buffers by transfer_read only",
        )
    if walk(loop, BARRIER):
        return Refusal(
            3,
            "the loop has barriers, which the reads would have to cross",
            "pipeline the copies that the barriers order, or move the barriers out",
        )
    targets = {buffer for form in forms.values() for buffer in form.buffers}
    if any(memory.root(copy.op.operands[0]) in targets for copy in accepted):
        return Refusal(
            6,
            "its source is filled in the same iteration",
            "pipeline that copy too, with 2 shared stages or more",
        )
    return None


def _is_carried(
    loop: ir.Operation,
    accepted: list[PipelinedCopy],
    outer: dict[Any, PipelinedLoop],
    forms: LoopForms,
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
    if any(isinstance(one, RejectedCopy) for one in _of_slots(accepted, outer[parent])):
        return False
    if walk(loop, *SYNCHRONISATION):
        return False
    trips = trip_count(loop)
    if trips is None or not 1 <= trips <= MAX_CARRIED_STEPS:
        return False
    if any(op.operation.regions for op in body(loop).operations):
        return False
    return all(
        op.operation == loop or _is_idle(op.operation, forms[parent])
        for op in body(parent).operations
    )


def _are_all_reads(accepted: list[PipelinedCopy], pipeline: PipelinedLoop) -> bool:
    known = {copy.op for copy in accepted}
    return all(
        access.op in known
        for buffer in buffers_of(pipeline.copies)
        for access in memory.accesses(buffer)
        if not access.writes
    )


def _is_idle(op: ir.Operation, forms: Forms) -> bool:
    """Whether `op`, next to the inner loop, neither reads shared memory nor writes.

    forms: the copies of their block
    """
    if op.name in ("scf.yield", *SYNCHRONISATION) or is_pure(op) or op in forms:
        return True
    users = [use.owner.operation for result in op.results for use in result.uses]
    return bool(users) and all(u in forms and forms[u].producer == op for u in users)


def _steps(loop: ir.Operation, outer: dict[Any, PipelinedLoop]) -> int | None:
    """Fragment steps over the whole outer loop."""
    nest = [loop] if loop in outer else [loop, loop.parent]
    trips = [trip_count(one) for one in nest]
    known = [number for number in trips if number is not None]
    return math.prod(known) if known == trips else None
