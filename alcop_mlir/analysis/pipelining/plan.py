"""Decides what is pipelined: which loops and copies, with how many stages.

`plan_kernel` looks at one kernel and returns a `KernelPlan`;
alcop-plan-pipelines writes it into the IR. Nothing is changed here.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from alcop_mlir.analysis.ir import memory, promises, uniformity
from alcop_mlir.analysis.ir.loops import (
    ancestor_in,
    body,
    loops_in,
    trip_count,
)
from alcop_mlir.analysis.ir.slices import backward_slice, is_pure
from alcop_mlir.analysis.ir.walk import around, walk
from alcop_mlir.analysis.pipelining import copies, stage_model
from alcop_mlir.analysis.pipelining.barriers import BARRIER, SYNCHRONISATION, meets
from alcop_mlir.analysis.pipelining.copies import (
    REGISTER,
    SHARED,
    PipelinedCopy,
    Refusal,
    RejectedCopy,
)
from alcop_mlir.analysis.pipelining.copy_forms import (
    CopyForm,
    copies_in,
    is_part_of_copy,
)
from alcop_mlir.analysis.pipelining.fetches import PROMISE, Fetch, is_fetch
from alcop_mlir.analysis.pipelining.foreign_groups import GROUP, WAIT
from alcop_mlir.analysis.pipelining.loop_fetches import keeps_loads, loop_fetches
from alcop_mlir.analysis.pipelining.moves import ASYNC_OP, STORES
from alcop_mlir.analysis.pipelining.other_loops import unreached
from alcop_mlir.analysis.pipelining.shared_size import shared_bytes, shared_limit
from alcop_mlir.bindings import ir

# A fragment loop longer than this is not flattened into the loop around it: the
# unrolled body would no longer fit the instruction cache.
MAX_CARRIED_STEPS = 16
WRAP_REFUSED = (
    "its tail is predicated: addresses of its copies depend on loop-carried or loaded "
    "values, which cannot start again"
)


@dataclass(frozen=True)
class Limits:
    """The requested stages, and the limits of the target.

    stages:       shared, register; 1 means not pipelined, None lets the model choose
    shared_bytes: shared memory that a block may use
    fetch_stages: register stages of loads from global memory; 1 means not fetched early
    fetch_all:    also where the assembler runs them early by itself
    """

    stages: tuple[int | None, int]
    shared_bytes: int
    noalias_arguments: bool = False
    wrap_tails: bool = False
    fetch_stages: int = 1
    fetch_all: bool = False

    def noalias_in(self, loop: ir.Operation) -> bool:
        """Whether arguments do not alias in `loop`."""
        return self.noalias_arguments or promises.noalias(loop) is True


# The copies of each loop's own block.
LoopForms = Mapping[Any, copies.Forms]


@dataclass(frozen=True)
class PipelinedLoop:
    """One pipelined loop at one level.

    fetches: loads that run before the copies, which need them for their addresses
    carried: the pipeline of an inner loop that is filled once, and carried across the
             iterations of the pipelined loop around it
    wraps:   the copies of the tail start again at the first tile, instead of being
             predicated
    """

    loop: Any
    level: str
    stages: int
    copies: tuple[PipelinedCopy, ...]
    fetches: tuple[Fetch, ...] = ()
    carried: bool = False
    wraps: bool = False

    @property
    def ops(self) -> list[Any]:
        """The copies, as ops."""
        return [copy.op for copy in self.copies]

    @property
    def forms(self) -> dict[Any, CopyForm]:
        """The forms of its copies; none at the register level."""
        return {copy.op: copy.form for copy in self.copies if copy.form is not None}


@dataclass
class KernelPlan:
    """The pipelines of a kernel, and the copies that are not pipelined.

    clamped: loops that get less than was requested, each with a remark
    given:   loops that had a plan before, and the slots of the buffers in it
    fetched: the loads of loops that run before the arithmetic
    staged:  of the copies that are not pipelined those whose loads are: what is loaded
             waits in registers
    """

    given: Mapping[Any, Mapping[Any, int]] = field(default_factory=dict)
    pipelines: list[PipelinedLoop] = field(default_factory=list)
    rejected: list[RejectedCopy] = field(default_factory=list)
    clamped: list[tuple[Any, str]] = field(default_factory=list)
    fetched: list[tuple[Any, tuple[Fetch, ...]]] = field(default_factory=list)
    staged: list[RejectedCopy] = field(default_factory=list)

    def accept(
        self, judged: Iterable[PipelinedCopy | RejectedCopy]
    ) -> list[PipelinedCopy]:
        """Those that can be pipelined; the others are added to the rejected ones."""
        every = list(judged)
        self.rejected += [one for one in every if isinstance(one, RejectedCopy)]
        return [one for one in every if isinstance(one, PipelinedCopy)]

    def refuse(self, refused: list[PipelinedCopy], level: str, why: Refusal) -> None:
        """Reject copies that could be pipelined, but for the others of their loop."""
        self.rejected += [RejectedCopy(copy.op, level, *why) for copy in refused]

    def clamp(self, loop: ir.Operation, level: str, asked: int, trips: Any) -> int:
        """The stages that `trips` iterations can use, None for any; with a remark."""
        stages = _at_most(asked, trips)
        if stages < asked:
            message = f"{stages} {level} stages instead of {asked}"
            self.clamped.append((loop, f"{message}: the loop runs {trips} times"))
        return stages


def plan_kernel(
    scope: ir.Operation, limits: Limits, given: Mapping[Any, Mapping[Any, int]]
) -> KernelPlan:
    """The plan for the loops in `scope`, a kernel body: they share its memory.

    given: see `KernelPlan`; these loops, and those in them, are not planned
    """
    plan = KernelPlan(given)
    plan.rejected += unreached(scope, reads=limits.stages[1] > 1)
    forms = {loop: copies_in(loop) for loop in _free_loops(scope, plan)}
    _plan_shared(scope, forms, limits, plan)
    _plan_register(forms, limits, plan)
    _plan_fetches(scope, limits, plan)
    # The other version of such a loop is pipelined: its author need do nothing.
    plan.rejected = [no for no in plan.rejected if promises.noalias(no.op) is not False]
    plan.staged = [no for no in plan.staged if promises.noalias(no.op) is not False]
    return plan


def _free_loops(scope: ir.Operation, plan: KernelPlan) -> list[Any]:
    """The loops in `scope` for which nobody made a plan."""
    given = plan.given.keys()
    loops = loops_in(scope)
    if not given:
        return loops
    return [one for one in loops if given.isdisjoint([one, *around(one)])]


def _plan_shared(
    scope: ir.Operation, forms: LoopForms, limits: Limits, plan: KernelPlan
) -> None:
    for loop, own in forms.items():
        if is_part_of_copy(loop):
            continue
        noalias = limits.noalias_in(loop)
        accepted = plan.accept(copies.shared_copies(loop, own, noalias))
        if limits.stages[0] == 1:
            continue
        accepted = plan.accept(without_neighbours(loop, accepted))
        if not accepted:
            continue
        trips = trip_count(loop)
        asked = _asked_stages(scope, loop, accepted, plan, limits)
        refusal = unsynchronisable(loop) or _too_large(
            scope, accepted, _at_most(asked, trips), plan, limits
        )
        if refusal is not None:
            plan.refuse(accepted, SHARED, refusal)
            continue
        stages = plan.clamp(loop, SHARED, asked, trips)
        if stages > 1:
            copied = [own[copy.op] for copy in accepted]
            wraps = limits.wrap_tails and copies.follow_the_index(loop, copied)
            if limits.wrap_tails and not wraps:
                plan.clamped.append((loop, WRAP_REFUSED))
            fetches = copies.fetches_for(loop, copied)
            early = tuple(Fetch(op, lead) for op, lead in fetches.items())
            plan.pipelines.append(
                PipelinedLoop(loop, SHARED, stages, tuple(accepted), early, wraps=wraps)
            )


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
    for copy, refusal in judged.items():
        why = refusal or _filled_otherwise(loop, copy, own)
        yield copy if why is None else RejectedCopy(copy.op, SHARED, *why)


def _filled_otherwise(
    loop: ir.Operation, copy: PipelinedCopy, own: Collection[Any]
) -> Refusal | None:
    """Whether its buffers are filled by others than the copies `own`."""
    if all(
        not access.writes or ancestor_in(access.op, body(loop)) in own
        for buffer in copy.buffers
        for access in memory.accesses(buffer)
    ):
        return None
    return Refusal(
        2,
        "another copy into the same buffer cannot be pipelined",
        "fill the buffer by copies only that can be pipelined",
    )


def _buffers(accepted: Iterable[PipelinedCopy]) -> set[Any]:
    """What these copies fill."""
    return {buffer for copy in accepted for buffer in copy.buffers}


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
    stages = _at_most(stage_model.shared_stages(loop), trip_count(loop))
    while stages > 2 and _too_large(scope, accepted, stages, plan, limits):
        stages -= 1
    return max(2, stages)


def _at_most(asked: int, trips: int | None) -> int:
    return asked if trips is None else min(asked, max(1, trips))


def _too_large(
    scope: ir.Operation,
    accepted: list[PipelinedCopy],
    stages: int,
    plan: KernelPlan,
    limits: Limits,
) -> Refusal | None:
    """Rule 5, over all shared buffers of the kernel."""
    slots = {b: p.stages for p in plan.pipelines for b in _buffers(p.copies)}
    slots |= {b: number for rings in plan.given.values() for b, number in rings.items()}
    slots |= dict.fromkeys(_buffers(accepted), stages)
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


def _plan_register(forms: LoopForms, limits: Limits, plan: KernelPlan) -> None:
    outer = {p.loop: p for p in plan.pipelines}
    refused = {no.op.parent.operation for no in plan.rejected}
    for loop, own in forms.items():
        asked = limits.stages[1]
        # Where the copies are rejected, their remarks are enough.
        if asked == 1 or (loop in refused and loop not in outer):
            continue
        accepted = plan.accept(copies.register_reads(loop, own))
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
        if stages > 1:
            plan.pipelines.append(
                PipelinedLoop(loop, REGISTER, stages, tuple(accepted), carried=carried)
            )


def _of_slots(
    accepted: list[PipelinedCopy], pipeline: PipelinedLoop
) -> Iterator[PipelinedCopy | RejectedCopy]:
    """Reads of what the pipeline copies; others may not cross barriers that stay."""
    buffers = _buffers(pipeline.copies)
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


def _plan_fetches(scope: ir.Operation, limits: Limits, plan: KernelPlan) -> None:
    if limits.fetch_stages == 1:
        return
    taken = {p.loop for p in plan.pipelines if p.carried}
    taken |= {op for p in plan.pipelines for op in p.ops}
    refused: list[tuple[Any, RejectedCopy]] = []
    for loop in loops_in(scope):
        is_taken = not taken.isdisjoint([loop, *around(loop)])
        if is_taken or not (limits.fetch_all or keeps_loads(loop)):
            continue
        copied = _loaded_by_copies(p for p in plan.pipelines if p.loop == loop)
        found = loop_fetches(loop, limits.fetch_stages, limits.noalias_in(loop), copied)
        if found.refused:
            refused.append((loop, min(found.refused, key=_is_hard_to_mend)))
        if found.shortened is not None:
            plan.clamped.append((loop, found.shortened))
        if found.fetches:
            plan.fetched.append((loop, found.fetches))
            _stage_copies(loop, {fetch.op for fetch in found.fetches}, plan)
    plan.rejected += [no for loop, no in refused if _nothing_said(loop, plan)]


def _is_hard_to_mend(no: RejectedCopy) -> bool:
    """Whether a promise does not suffice; one remark of a loop's loads is enough."""
    return no.remedy != PROMISE


def _nothing_said(loop: ir.Operation, plan: KernelPlan) -> bool:
    """Whether nothing in `loop` or in loops around it is pipelined, or remarked on."""
    planned = {p.loop for p in plan.pipelines} | {*plan.given}
    planned |= {one for one, _ in (*plan.fetched, *plan.clamped)}
    known = planned | {no.op for no in (*plan.rejected, *plan.staged)}
    holders = {holder for one in known for holder in (one, *around(one))}
    return loop not in holders and planned.isdisjoint(around(loop))


def _loaded_by_copies(pipelines: Iterable[PipelinedLoop]) -> set[Any]:
    """The loads that are a part of pipelined copies, or of their addresses."""
    loads: set[Any] = set()
    for pipeline in pipelines:
        loads.update(form.producer for form in pipeline.forms.values())
        loads.update(fetch.op for fetch in pipeline.fetches)
    return loads


def _stage_copies(loop: ir.Operation, fetched: set[Any], plan: KernelPlan) -> None:
    """Copies that are not pipelined, but what they store is fetched."""
    for no in plan.rejected:
        if no.level != SHARED or no.op.block != body(loop) or no.op.name not in STORES:
            continue
        ops, _ = backward_slice([no.op.operands[0]], body(loop))
        loads = [op for op in ops if is_fetch(op)]
        if loads and fetched.issuperset(loads):
            plan.staged.append(no)
    plan.rejected = [no for no in plan.rejected if no not in plan.staged]


def _not_a_register_loop(
    loop: ir.Operation,
    forms: copies.Forms,
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
        for buffer in _buffers(pipeline.copies)
        for access in memory.accesses(buffer)
        if not access.writes
    )


def _is_idle(op: ir.Operation, forms: copies.Forms) -> bool:
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
