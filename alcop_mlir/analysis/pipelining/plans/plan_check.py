"""Whether a plan is legal for its loop: `check`, for whoever executes it.

- each op is what its plan takes it for: a copy, a read of shared memory, a fetch
- who fills and reads the buffers of rings fits their slots: `ring_check`
- what early ops need is there when they run: `needs_check`
- what the loop does to other memory stays in order: `order_check`

Every op of the body is in one stream: in that which names it, else, if it has an
effect, in the last; an op without effects is computed by each stream that needs it.
The verifier has rules of its own, see `alcop_mlir.verifier.plans`.
"""

from __future__ import annotations

from itertools import combinations
from typing import Any

from alcop_mlir.analysis.ir.loops import body, is_loop
from alcop_mlir.analysis.ir.slices import is_pure
from alcop_mlir.analysis.ir.synchronisation import SYNCHRONISATION
from alcop_mlir.analysis.pipelining.copies import shared_copies
from alcop_mlir.analysis.pipelining.copy_forms import CopyForm, copies_in
from alcop_mlir.analysis.pipelining.fetches import is_fetch
from alcop_mlir.analysis.pipelining.plans.bound_plan import BoundPlan
from alcop_mlir.analysis.pipelining.plans.needs_check import check_needs
from alcop_mlir.analysis.pipelining.plans.order_check import check_order
from alcop_mlir.analysis.pipelining.plans.plan_facts import PlanFacts
from alcop_mlir.analysis.pipelining.plans.plan_slots import no_slots, stored_buffers
from alcop_mlir.analysis.pipelining.plans.ring_check import check_rings
from alcop_mlir.analysis.pipelining.plans.shared_plan import (
    unsynchronisable,
    without_neighbours,
)
from alcop_mlir.analysis.pipelining.plans.steady_order import runs_in_place
from alcop_mlir.analysis.pipelining.plans.stream_plan import (
    ACQUIRE,
    COMMIT,
    FETCH,
    FILL,
    LOOP,
    READ,
    RELEASE,
    STORE,
    WAIT,
)
from alcop_mlir.analysis.pipelining.register_reads import is_shared_read, register_reads
from alcop_mlir.analysis.pipelining.verdicts import SHARED, PipelinedCopy, RejectedCopy
from alcop_mlir.errors import PassError

# Of one ring and iteration: the first kind comes before the second.
_IN_ORDER = (
    (ACQUIRE, FILL),
    (ACQUIRE, COMMIT),
    (WAIT, READ),
    (READ, RELEASE),
    (WAIT, RELEASE),
)


def check(bound: BoundPlan) -> PlanFacts:
    """PassError at the op or loop at which the plan is wrong; what was looked up."""
    facts = PlanFacts(bound)
    _check_kinds(bound, facts.forms)
    if bound.plan.has_roles:
        _check_all_named(bound, facts.forms)
    check_rings(facts)
    check_needs(facts)
    check_order(facts)
    _check_synchronisation(bound)
    return facts


def check_stored(bound: BoundPlan) -> None:
    """PassError at a store whose buffers cannot have slots; asked before they do."""
    for _, op in bound.named(STORE):
        for buffer in stored_buffers(op):
            why = no_slots(bound.loop, buffer)
            if why is not None:
                raise PassError(op, f"is planned to fill slots, but its buffer {why}")


def check_as_planned(bound: BoundPlan) -> None:
    """PassError where a rule for pipelined copies forbids the plan, for a user's plan.

    It promises that arguments do not alias. To be asked before buffers get slots.
    """
    _check_kinds(bound, bound.copies())
    loops = [bound.loop, *(op for _, op in bound.named(LOOP))]
    judged = {
        one.op: one
        for loop in loops
        for forms in [copies_in(loop)]
        for one in (*shared_copies(loop, forms, True), *register_reads(loop, forms))
    }
    accepted = []
    for planned, op in bound.named(FILL, READ):
        if not bound.plan.stream(planned).is_early:
            continue
        verdict = _not_rejected(judged.get(op))
        if planned.kind == FILL and verdict is not None:
            accepted.append(verdict)
    for verdict in without_neighbours(bound.loop, accepted):
        _not_rejected(verdict)
    refusal = unsynchronisable(bound.loop) if accepted else None
    if refusal is not None:
        no = RejectedCopy(bound.loop, SHARED, *refusal)
        raise PassError(bound.loop, f"is planned, but {no}")
    facts = PlanFacts(bound)
    if facts.is_rearranged:
        check_needs(facts)
        check_order(facts)


def _not_rejected(verdict: PipelinedCopy | RejectedCopy | None) -> Any:
    if isinstance(verdict, RejectedCopy):
        raise PassError(verdict.op, f"is planned, but {verdict}")
    return verdict


def _check_kinds(bound: BoundPlan, forms: dict[Any, CopyForm]) -> None:
    for planned, op in zip(bound.plan.ops, bound.ops, strict=True):
        is_own = op.block == body(bound.loop)
        is_stored = planned.kind != STORE or bool(stored_buffers(op))
        lead = bound.plan.stream(planned).tiles
        if planned.kind == FETCH and not (is_fetch(op) and is_own):
            expected = "a load of global memory in the loop's own block"
        elif planned.kind == FILL and op not in forms:
            expected = "a copy"
        elif planned.kind == FILL and not is_own:
            expected = "a copy in the loop's own block"
        elif planned.kind == LOOP and not is_loop(op):
            expected = "an inner loop"
        elif planned.kind == STORE and not (is_own and is_stored):
            expected = "a store to shared memory in the loop's own block"
        elif runs_in_place(planned.kind, lead) and not is_own:
            expected = "an op of the loop's own block"
        elif planned.kind == READ and not is_shared_read(op):
            raise PassError(
                op,
                f"'{op.name}' is planned at the register level, expected a read of "
                "shared memory",
            )
        else:
            continue
        raise PassError(op, f"'{op.name}' is planned, expected {expected}")


def _check_synchronisation(bound: BoundPlan) -> None:
    for (place, one), (_, other) in combinations(enumerate(bound.plan.ops), 2):
        same = (one.ring, one.stream) == (other.ring, other.stream)
        if same and (other.kind, one.kind) in _IN_ORDER:
            raise PassError(
                bound.ops[place],
                f"comes before the '{other.kind}' of its ring in the order of the plan",
            )


def _check_all_named(bound: BoundPlan, forms: dict[Any, CopyForm]) -> None:
    loads = {load for form in forms.values() for load in form.moved}
    for op in list(body(bound.loop).operations)[:-1]:
        op = op.operation
        is_load = any(result in loads for result in op.results)
        if is_pure(op) or op in bound.ops or is_load or op.name in SYNCHRONISATION:
            continue
        raise PassError(
            op,
            f"'{op.name}' is in no stream: where streams are roles of warps, the plan "
            "names every op that has an effect",
        )
