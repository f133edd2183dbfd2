"""Whether a plan leaves in order what its loop does to memory besides its rings.

Of a plan that leaves the arithmetic as it is, the barriers, groups and waits must be
named that order other memory. Of one that is rearranged, each pair of ops is looked at
that touch the same memory (`plan_dependences`).
"""

from __future__ import annotations

from alcop_mlir.analysis.ir import memory
from alcop_mlir.analysis.ir.walk import walk
from alcop_mlir.analysis.pipelining.foreign_groups import needed_groups
from alcop_mlir.analysis.pipelining.moves import ASYNC_OP
from alcop_mlir.analysis.pipelining.plans.plan_dependences import Broken, Dependences
from alcop_mlir.analysis.pipelining.plans.plan_facts import PlanFacts
from alcop_mlir.analysis.pipelining.plans.plan_slots import no_slots
from alcop_mlir.analysis.pipelining.plans.shared_plan import unsynchronisable
from alcop_mlir.analysis.pipelining.plans.steady_order import steady_order
from alcop_mlir.analysis.pipelining.plans.stream_plan import EFFECT
from alcop_mlir.errors import PassError


def check_order(facts: PlanFacts) -> None:
    """PassError at an op or barrier whose order with others is lost."""
    if facts.is_rearranged:
        _check_rearranged(facts)
    elif facts.forms:
        _check_dropped(facts)


def _check_dropped(facts: PlanFacts) -> None:
    """Barriers, groups and waits that no stream has are for the rings only."""
    bound = facts.bound
    kept = {op for _, op in bound.named(EFFECT)}
    for missing in facts.others.missing(kept, bound.meets_at_start, noalias=True):
        raise PassError(
            missing.barrier,
            f"is not in the plan of its loop, but orders '{missing.first.name}' "
            f"and '{missing.second.name}', which no other barrier does",
        )
    for op in needed_groups(bound.loop, list(facts.forms)):
        if op not in kept:
            raise PassError(
                op,
                "is not in the plan of its loop, but is needed for asynchronous "
                "copies that are not either",
            )


def _check_rearranged(facts: PlanFacts) -> None:
    bound, loop, copies = facts.bound, facts.bound.loop, list(facts.forms)
    for op in walk(loop, ASYNC_OP):
        if op not in copies:
            raise PassError(
                op, "is asynchronous, in a loop whose plan changes the order around it"
            )
    for op in needed_groups(loop, copies):
        raise PassError(op, "is needed, but the plan of its loop changes the order")
    dependences = Dependences(
        loop, steady_order(bound, facts.forms), facts.rings, bound.plan.noalias
    )
    for broken in dependences.broken():
        raise PassError(broken.second.op, _why(facts, broken))
    refusal = unsynchronisable(loop) if dependences.meets else None
    if refusal is not None:
        raise PassError(loop, f"is planned, but {refusal.reason}; {refusal.remedy}")


def _why(facts: PlanFacts, broken: Broken) -> str:
    """What is wrong, with how early the ops run in the words of the plan."""
    bound = facts.bound
    first, second, distance = broken.first, broken.second, broken.distance
    before = {0: "", 1: " of the iteration before"}
    when = before.get(distance, f" of {distance} iterations before")
    touched = "memory" if broken.memref is None else str(broken.memref.type)
    both = (
        f"'{second.op.name}', with {bound.time(second.lead)}, and '{first.op.name}'"
        f"{when}, with {bound.time(first.lead)}, touch the same {touched}"
    )
    if not broken.is_late:
        return f"{both}: expected a gpu.barrier between them in the order of the plan"
    legal = "a later place in the order"
    if second.lead != distance + first.lead:
        legal = f"{bound.time(distance + first.lead)} or later"
    no = _no_slots(facts, broken)
    return f"{both}, and would run in the other order: expected {legal}{no}"


def _no_slots(facts: PlanFacts, broken: Broken) -> str:
    """Why the two touch the same memory, though it is shared: it has no slots."""
    root = None if broken.memref is None else memory.root(broken.memref)
    if root is None or not memory.is_workgroup(root.type) or root in facts.rings:
        return ""
    why = no_slots(facts.bound.loop, root)
    return "" if why is None else f"; it gets no slots, as it {why}"
