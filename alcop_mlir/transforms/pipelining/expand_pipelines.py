"""Expand planned loops to pipelines: prologue, steady state, tail.

Before:  scf.for %k { copy(%k) ; barrier ; scf.for %kk { f = read ; use(f) } ; barrier }
After:   copies of the first S-1 tiles ; wait ; first R-1 reads          // prologue
         scf.for %k { use ; [release, wait, acquire, copies, commit]
                      read of a later step ; use } {alcop.unroll = S}    // steady state
         scf.for %k { the same, copies predicated }                      // tail

The plan is checked first: that its streams respect what ops need of each other, that
slots suffice for the leads, that each op is what the plan takes it for. What is legal
and cannot be expanded, such as roles of warps, is an error too.

The body is separated into streams. Each has its own copy of the loop's index and of the
carried values that it needs (slots, addresses). With E fragment steps per iteration and
R register stages, the load stream runs with a lookahead of D = R-1 steps, across tiles
too: an inner pipeline is filled once and carried by the outer loop. Where the load
stream starts tile t it waits for t, and the copy stream then fills the slot of t-1 with
tile t+S-1. One wait and one barrier per tile; at most S-2 younger groups are in flight
at the wait.

Loads that addresses of copies need run before these, in values that the loop carries,
see `rotation`. Where the next value of a carried one is loaded, as in a chain of
pointers, it is so where the copies of its iteration are issued: no load runs that the
original loop does not run.

Where the plan has ops early that are neither copies nor loads, or another order than
the loop, that is rewritten first in that order, see `rearranging`.

Of the barriers, groups and waits of the loop's own block those stay that the plan names
as effects: they order other memory. Where one that is dropped ordered the loop and what
follows, a barrier comes after it; where one ordered what runs early and what was before
the loop, one comes before.

The steady state runs a multiple of the slot period S, and only iterations in which no
stream has reached the end, so that it needs no predicate. Where copies compute the
remaining extent of a step, `min(step, upper - %k)`, one more iteration is left to the
tail, so that all steps of the steady state are whole. The tail commits empty groups,
so that wait counts stay the same; its loads stay at the last tile. Any trip count is
supported, 0 included.

With `tail = "wrap"` in the plan no iteration has a predicate: at its end a stream
starts again at the loop's first tile, and what it copies there is never used (ALCOP's
own form). The loop is then followed by a wait for these copies, and guarded against an
empty trip count.

Runs after alcop-multi-buffer, whose slots it fills, and before alcop-place-waits. Reads
and erases `alcop.pipeline` and `alcop.op`. Writes `alcop.unroll` on loops that
alcop-unroll-steady-state may unroll by that number without a remainder.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from alcop_mlir.analysis.ir.loops import body, remaining_extents
from alcop_mlir.analysis.ir.slices import is_pure
from alcop_mlir.analysis.ir.synchronisation import BARRIER, GROUP, SYNCHRONISATION
from alcop_mlir.analysis.ir.walk import walk
from alcop_mlir.analysis.pipelining.copy_forms import CopyForm
from alcop_mlir.analysis.pipelining.moves import branch_address_ops
from alcop_mlir.analysis.pipelining.pipeline_shape import Shape
from alcop_mlir.analysis.pipelining.plans.bound_plan import BoundPlan
from alcop_mlir.analysis.pipelining.plans.bound_plans import bound_plans
from alcop_mlir.analysis.pipelining.plans.plan_check import check
from alcop_mlir.analysis.pipelining.plans.plan_dependences import Placed
from alcop_mlir.analysis.pipelining.plans.plan_facts import PlanFacts
from alcop_mlir.analysis.pipelining.plans.steady_order import steady_order
from alcop_mlir.analysis.pipelining.plans.stream_plan import EFFECT, FILL
from alcop_mlir.analysis.pipelining.ring_counters import period
from alcop_mlir.analysis.pipelining.streams import Streams, separate
from alcop_mlir.bindings import gpu, ir
from alcop_mlir.errors import PassError
from alcop_mlir.frozen import frozen
from alcop_mlir.passes.base import Pass
from alcop_mlir.transforms.pipelining.async_copies import create_group
from alcop_mlir.transforms.pipelining.executable import (
    fetch_leads,
    shape_of,
)
from alcop_mlir.transforms.pipelining.expansion import Expansion
from alcop_mlir.transforms.pipelining.fragment_steps import flattened
from alcop_mlir.transforms.pipelining.plan_attributes import erase_plan
from alcop_mlir.transforms.pipelining.rearranging import rearrange
from alcop_mlir.transforms.pipelining.rotation import rotate


@frozen
class ExpandPipelines(Pass):
    name = "alcop-expand-pipelines"
    anchor = "any"

    def run(self, op: ir.Operation) -> None:
        checked = [check(bound) for bound in bound_plans(op)]
        # Of the loops as they are: expansion of an inner one erases it.
        asked = [_asked(facts) for facts in checked]
        # Inner loops first: an outer loop is expanded with its inner loops.
        for loop in reversed(asked):
            _expand(loop)


@frozen
class _Asked:
    """What is known of a planned loop before any is expanded.

    shape, leads: see `executable`
    replaced: barriers, groups and waits that new ones are placed for
    extents:  see `loops.remaining_extents`
    meets_before, meets_after: whether a barrier is needed before, and after it
    """

    bound: BoundPlan
    shape: Shape
    leads: list[tuple[Any, int]]
    replaced: list[Any]
    extents: list[Any]
    meets_before: bool
    meets_after: bool


def _asked(facts: PlanFacts) -> _Asked:
    extents = remaining_extents(facts.bound.loop)
    return _Asked(
        facts.bound,
        shape_of(facts, is_ragged=bool(extents)),
        fetch_leads(facts),
        _replaced(facts.bound),
        extents,
        *_meets_around(facts),
    )


def _replaced(bound: BoundPlan) -> list[Any]:
    """Barriers, groups and waits of the loop that the plan does not name.

    New ones are placed for them, where shared memory is pipelined.
    """
    if not bound.named(FILL):
        return []
    kept = [op for _, op in bound.named(EFFECT)]
    ops = [op.operation for op in body(bound.loop).operations]
    return [op for op in ops if op.name in SYNCHRONISATION and op not in kept]


def _expand(asked: _Asked) -> None:
    bound, shape = asked.bound, asked.shape
    replaced, extents = asked.replaced, asked.extents
    order = _new_order(bound) if shape.in_place else None
    erase_plan(bound)
    if asked.meets_before:
        with bound.loop.location, ir.InsertionPoint(bound.loop):
            gpu.barrier()
    exists = list[Any]()
    if order is not None:
        bound, exists = rearrange(bound, *order)
        replaced, extents = [], remaining_extents(bound.loop)
    for _, op in bound.named(EFFECT):
        _drop_tokens(op, bound)
    for form in bound.copies().values():
        _hoist_address(form)
    rotated = rotate(bound.loop, asked.leads, extents)
    loop = rotated.loop
    flat = flattened(replace(bound, loop=loop))
    streams = separate(
        flat,
        replaced,
        extents,
        rotated.loads,
        rotated.guarded,
        [*rotated.exists, *exists],
        rotated.extents,
    )
    _check_slots(streams, shape.slots)
    with loop.location, ir.InsertionPoint(loop):
        results = Expansion(streams, shape).build()
        if asked.meets_after:
            gpu.barrier()
    for number, value in results.items():
        loop.results[number].replace_all_uses_with(value)
    loop.erase()


def _new_order(bound: BoundPlan) -> tuple[list[Placed], bool]:
    """The order of an iteration, copies among its arithmetic.

    Also whether the iteration begins with a barrier.
    """
    copies = bound.copies()
    order = steady_order(bound, copies)
    order = [replace(p, lead=0) if p.op in copies else p for p in order]
    return order, bool(walk(bound.loop, BARRIER))


def _meets_around(facts: PlanFacts) -> tuple[bool, bool]:
    """Whether barriers of the loop order it and what is before, and after it.

    Those before copies, which run early, and those that are dropped, order it no more.
    """
    if not facts.forms and not facts.is_rearranged:
        return False, False  # all barriers stay
    noalias, others = facts.bound.plan.noalias, facts.others
    kept = [] if facts.is_rearranged else [op for _, op in facts.bound.named(EFFECT)]
    is_before = bool(facts.forms) and others.orders_copies(noalias)
    return is_before, others.orders_what_follows(kept, noalias)


def _drop_tokens(op: ir.Operation, bound: BoundPlan) -> None:
    """Make a group that stays one without the copies that are planned."""
    if op.name != GROUP:
        return
    planned = {token for _, copy in bound.named(FILL) for token in copy.results}
    tokens = [token for token in op.operands if token not in planned]
    if len(tokens) == len(op.operands):
        return
    with op.location, ir.InsertionPoint(op):
        group = create_group(tokens)
    op.results[0].replace_all_uses_with(group)
    op.erase()


def _hoist_address(form: CopyForm) -> None:
    """Compute what a guarded copy reads from before its scf.if, which is erased.

    PassError where the branch loads it: outside of the branch it may be out of bounds.
    """
    for move in form.moves:
        for op in branch_address_ops(move):
            if not is_pure(op):
                raise PassError(
                    form.op,
                    f"its address depends on '{op.name}', which its guard guards",
                )
            op.move_before(move.load.parent.operation)


def _check_slots(streams: Streams, slots: int) -> None:
    """PassError where the copies do not fill one slot after the other."""
    loop = streams.body.loop
    counted = {period(loop, number) for number in streams.copy_arguments}
    if slots and slots not in counted:
        raise PassError(
            loop,
            f"its buffers have no {slots} slots, expected alcop-multi-buffer before "
            "this pass",
        )
