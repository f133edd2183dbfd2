"""What expansion can execute of a plan: all streams in every thread, one ring.

A legal plan may say more: roles of warps, rings of mbarriers, streams at any lead. It
is refused then, and the error says why.
"""

from __future__ import annotations

from itertools import pairwise
from typing import Any

from alcop_mlir.analysis.pipelining.early_addresses import fetches_for
from alcop_mlir.analysis.pipelining.in_place import works_in_place
from alcop_mlir.analysis.pipelining.pipeline_shape import Shape
from alcop_mlir.analysis.pipelining.plans.bound_plans import BoundPlan
from alcop_mlir.analysis.pipelining.plans.stream_plan import (
    FETCH,
    FILL,
    MBARRIER,
    READ,
    WRAP,
    StreamOp,
)
from alcop_mlir.errors import PassError
from alcop_mlir.schedule import MAX_REGISTER_STAGES

# The order of an iteration: copies, reads, then the arithmetic as the body has it; or
# the copies after all.
_ORDER = (FILL, READ)


def shape_of(bound: BoundPlan, is_ragged: bool) -> Shape:
    """The shape of the expanded pipeline; PassError where expansion cannot make it.

    is_ragged: whether the last iteration of the loop may be smaller
    """
    _check_target(bound)
    _check_streams(bound)
    _check_order(bound)
    plan = bound.plan
    steps = bound.steps()
    slots = plan.rings[0].slots if plan.rings else 0
    shape = Shape(
        slots=slots,
        load_lookahead=bound.register_stages(steps) - 1,
        steps=steps,
        wraps=plan.tail == WRAP,
        ragged=bool(bound.named(FILL)) and is_ragged,
        fetched=max((plan.stream(p).tiles for p, _ in bound.named(FETCH)), default=0),
        copies_last=_copies_last(bound),
    )
    if shape.load_lookahead >= MAX_REGISTER_STAGES * steps:
        raise _refused(bound, f"reads {shape.load_lookahead} fragment steps early")
    _check_lead(bound, shape)
    return shape


def fetch_leads(bound: BoundPlan) -> list[tuple[Any, int]]:
    """The fetches, and how many iterations before the ops that need it each runs."""
    plan = bound.plan
    named = bound.named(FETCH)
    if not named:
        return []
    fills = bound.named(FILL)
    needed = fetches_for(bound.loop, bound.copies().values())
    copied = max((plan.stream(planned).tiles for planned, _ in fills), default=0)
    return [
        (op, plan.stream(planned).tiles - (copied if op in needed else 0))
        for planned, op in named
    ]


def _check_target(bound: BoundPlan) -> None:
    """Expansion is for sm_80: every thread runs all streams, groups order them."""
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
        copies = bound.copies().values()
        if fetches_for(bound.loop, copies):
            raise _refused(bound, "starts loads again at the end of the loop")
        if works_in_place(bound.loop, copies, noalias_arguments=True):
            raise _refused(bound, "starts again with what the loop writes")
    if any(ring.sync == MBARRIER for ring in bound.plan.rings):
        raise _refused(bound, "has a ring of mbarriers: these need sm_90")
    if len(bound.plan.rings) > 1:
        raise _refused(bound, f"has {len(bound.plan.rings)} rings, expected one")


def _check_streams(bound: BoundPlan) -> None:
    """Only copies, and reads of shared memory, run early: each at one lead."""
    plan = bound.plan
    for kind in _ORDER:
        streams = {plan.stream(planned) for planned, _ in bound.named(kind)}
        leads = sorted({(s.lead, s.steps) for s in streams})
        if len(leads) > 1:
            texts = " and ".join(_lead(*lead) for lead in leads)
            raise _refused(
                bound, f"has ops of the kind '{kind}' at leads of {texts}, expected one"
            )
    for planned, op in zip(plan.ops, bound.ops, strict=True):
        if planned.kind not in (*_ORDER, FETCH) and plan.stream(planned).is_early:
            lead = _lead(plan.stream(planned).lead, plan.stream(planned).steps)
            raise PassError(
                op,
                f"has a lead of {lead}, but only copies into shared memory, reads of "
                "it and loads of global memory can be expanded to run early",
            )


def _check_order(bound: BoundPlan) -> None:
    """Copies first or last, reads before the arithmetic, that as the body has it."""
    # Fetches come first in an iteration, whatever their number.
    pairs = [
        (_rank(bound, planned), op)
        for planned, op in zip(bound.plan.ops, bound.ops, strict=True)
        if planned.kind != FETCH
    ]
    if _copies_last(bound):
        pairs = [pair for pair in pairs if pair[0] != _ORDER.index(FILL)]
    for (one, _), (other, op) in pairwise(pairs):
        if one > other:
            raise PassError(
                op,
                "comes too late in the order of its plan: an expanded iteration issues "
                "all copies first, or all last, and reads before it computes",
            )
    rest = [op for rank, op in pairs if rank == len(_ORDER)]
    for one, other in pairwise(rest):
        same = one.block == other.block
        if same and not one.is_before_in_block(other):
            raise PassError(
                other,
                f"comes after '{one.name}' in the order of its plan, expected the "
                "order of the loop: expansion does not reorder the arithmetic",
            )


def _copies_last(bound: BoundPlan) -> bool:
    """Whether all copies come after all else in the order of the plan."""
    ranks = [_rank(bound, p) for p in bound.plan.ops if p.kind != FETCH]
    copies = ranks.count(_ORDER.index(FILL))
    return 0 < copies < len(ranks) and set(ranks[-copies:]) == {_ORDER.index(FILL)}


def _rank(bound: BoundPlan, planned: StreamOp) -> int:
    """The number of an op's kind in an iteration; the arithmetic comes last."""
    is_early = planned.kind in _ORDER and bound.plan.stream(planned).is_early
    return _ORDER.index(planned.kind) if is_early else len(_ORDER)


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
