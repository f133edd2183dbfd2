"""What expansion can execute of a plan: all streams in every thread, one ring.

A legal plan may say more: roles of warps, rings of mbarriers, streams at any lead. It
is refused then, and the error says why.
"""

from __future__ import annotations

from typing import Any

from alcop_mlir.analysis.ir.loops import body
from alcop_mlir.analysis.ir.memory import ALLOCATIONS
from alcop_mlir.analysis.ir.synchronisation import BARRIER
from alcop_mlir.analysis.ir.walk import walk
from alcop_mlir.analysis.pipelining.barriers import meets
from alcop_mlir.analysis.pipelining.early_addresses import fetches_for
from alcop_mlir.analysis.pipelining.fetches import use_ends
from alcop_mlir.analysis.pipelining.in_place import works_in_place
from alcop_mlir.analysis.pipelining.pipeline_shape import Shape
from alcop_mlir.analysis.pipelining.plans.bound_plan import BoundPlan
from alcop_mlir.analysis.pipelining.plans.plan_facts import PlanFacts
from alcop_mlir.analysis.pipelining.plans.steady_order import copies_last
from alcop_mlir.analysis.pipelining.plans.stream_plan import (
    FETCH,
    FILL,
    LOOP,
    MBARRIER,
    READ,
    WRAP,
)
from alcop_mlir.dialects import alcop
from alcop_mlir.errors import PassError
from alcop_mlir.schedule import MAX_REGISTER_STAGES

_EARLY = (FILL, READ)  # kinds of ops that have streams of their own


def shape_of(facts: PlanFacts, is_ragged: bool) -> Shape:
    """The shape of the expanded pipeline; PassError where expansion cannot make it.

    To be asked of a loop before loops in it are expanded.

    is_ragged: whether the last iteration of the loop may be smaller
    """
    _check_target(facts)
    _check_streams(facts.bound)
    _check_order(facts)
    bound, plan, is_new = facts.bound, facts.bound.plan, facts.has_new_order
    steps = bound.steps()
    slots = plan.rings[0].slots if plan.rings else 0
    early = [plan.stream(p).tiles for p in plan.ops if p.kind not in (FILL, READ)]
    shape = Shape(
        slots=slots if bound.named(FILL) else 0,
        load_lookahead=bound.register_stages(steps) - 1,
        steps=steps,
        wraps=plan.tail == WRAP,
        ragged=is_ragged and bool(bound.named(FILL) or bound.named(FETCH)),
        fetched=max(early, default=0),
        stored=slots,
        reuses=_reuses_registers(bound),
        copies_last=copies_last(bound) and not is_new,
        in_place=is_new,
    )
    if shape.load_lookahead >= MAX_REGISTER_STAGES * steps:
        raise _refused(bound, f"reads {shape.load_lookahead} fragment steps early")
    _check_lead(bound, shape)
    return shape


def _reuses_registers(bound: BoundPlan) -> bool:
    """Whether all that is fetched is used before later fetches are issued."""
    fetched = [result for _, op in bound.named(FETCH) for result in op.results]
    return bool(fetched) and use_ends(bound.loop, fetched) is not None


def fetch_leads(facts: PlanFacts) -> list[tuple[Any, int]]:
    """The fetches, and how many iterations before the ops that need it each runs."""
    bound, plan = facts.bound, facts.bound.plan
    named = bound.named(FETCH)
    if not named or facts.has_new_order:
        return []
    fills = bound.named(FILL)
    needed = fetches_for(bound.loop, facts.forms.values())
    copied = max((plan.stream(planned).tiles for planned, _ in fills), default=0)
    return [
        (op, plan.stream(planned).tiles - (copied if op in needed else 0))
        for planned, op in named
    ]


def _check_target(facts: PlanFacts) -> None:
    """Expansion is for sm_80: every thread runs all streams, groups order them."""
    bound = facts.bound
    for stream in bound.plan.streams:
        if stream.warps:
            raise _refused(
                bound,
                f"has the role '{stream.name}' for {stream.warps} warps: warp roles "
                "need sm_90",
            )
        if stream.in_flight:
            raise _refused(
                bound,
                f"leaves matrix multiplications of '{stream.name}' in flight: wgmma "
                "needs sm_90",
            )
    if bound.plan.tail == WRAP:
        copies = facts.forms.values()
        if fetches_for(bound.loop, copies):
            raise _refused(bound, "starts loads again at the end of the loop")
        if works_in_place(bound.loop, copies, noalias_arguments=True):
            raise _refused(bound, "starts again with what the loop writes")
    if any(ring.sync == MBARRIER for ring in bound.plan.rings):
        raise _refused(bound, "has a ring of mbarriers: these need sm_90")
    if len(bound.plan.rings) > 1:
        raise _refused(bound, f"has {len(bound.plan.rings)} rings, expected one")


def _check_streams(bound: BoundPlan) -> None:
    """Copies run early at one lead, and reads of what they fill at one."""
    plan = bound.plan
    for kind in _EARLY:
        streams = {plan.stream(planned) for planned, _ in bound.named(kind)}
        leads = sorted({(s.lead, s.steps) for s in streams})
        if len(leads) > 1:
            texts = " and ".join(_lead(*lead) for lead in leads)
            raise _refused(
                bound, f"has ops of the kind '{kind}' at leads of {texts}, expected one"
            )


def _check_order(facts: PlanFacts) -> None:
    """What is rearranged has one fragment step, and reads nothing early for copies."""
    bound = facts.bound
    for planned, op in zip(bound.plan.ops, bound.ops, strict=True):
        inner = walk(op, "scf.for") if planned.kind != LOOP else []
        if any(alcop.PIPELINE in one.attributes for one in inner):
            raise PassError(
                op,
                "holds a loop with a plan of its own, which has no place in the order "
                "of another: expected all copies first, and the order of the loop",
            )
    if not facts.has_new_order:
        return
    plan = bound.plan
    if plan.tail == WRAP:
        raise _refused(bound, "starts again at the end of the loop, in another order")
    for planned, op in zip(plan.ops, bound.ops, strict=True):
        is_read = planned.kind == READ and plan.stream(planned).is_early
        if planned.kind == LOOP or is_read:
            raise PassError(
                op,
                "is planned as a stream of its own, in a loop whose plan has another "
                "order: expected copies first or last, and reads before the arithmetic",
            )
    for barrier in walk(bound.loop, BARRIER):
        if not meets(barrier):
            raise PassError(
                barrier,
                "is of a warp, in a loop whose plan has another order: expected "
                "barriers of the whole block, as an iteration then begins with",
            )
    for op in (one.operation for one in body(bound.loop).operations):
        if op.name in ALLOCATIONS and len(op.operands):
            raise PassError(
                op,
                "allocates as much as an iteration says, in a loop whose plan has "
                "another order: expected a constant size",
            )
    for op in fetches_for(bound.loop, facts.forms.values()):
        raise PassError(
            op,
            "is loaded for the address of a copy, in a loop whose plan has another "
            "order: expected copies first or last, and the order of the loop",
        )


def _check_lead(bound: BoundPlan, shape: Shape) -> None:
    """Expansion fills all slots that there are."""
    plan = bound.plan
    for planned, op in bound.named(FILL):
        lead = plan.stream(planned).tiles
        if lead != shape.copies_prefetched:
            raise PassError(
                op,
                f"has a lead of {lead} iterations: expansion fills all {shape.slots} "
                f"slots, a lead of {shape.copies_prefetched}",
            )


def _lead(iterations: int, steps: int) -> str:
    return f"{iterations} iterations and {steps} steps" if steps else f"{iterations}"


def _refused(bound: BoundPlan, why: str) -> PassError:
    return PassError(bound.loop, f"the plan {why}; it cannot be expanded for sm_80")
