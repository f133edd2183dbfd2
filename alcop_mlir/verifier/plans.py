"""Checks plans of pipelines by playing them: `check_plans(op)`.

For the IR between alcop-plan-pipelines and alcop-expand-pipelines. A loop that has
`alcop.pipeline` with streams is played for some iterations, as its plan says, on slots
that remember which tile they hold:

- each op that is named is there once, and is what the plan says: `read_plan`
- every read finds the tile of its iteration, in a buffer of enough slots: `plan_slots`
- what is filled under a condition that changes is read under it only
- what the address of an early op is computed from is not made by later ones, see
  `early_ops`, and what it reads is not written in the loop
- of the loop's own barriers those are named, and so left, that order other memory, and
  of its groups and waits those that other copies need
- where other ops run early, or in another order, all memory stays in order: `replay`

It shares no code with the passes that make plans and execute them: how their rules are
put is not known here.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from alcop_mlir.bindings import ir
from alcop_mlir.verifier.accesses import inside
from alcop_mlir.verifier.conditions import unfilled
from alcop_mlir.verifier.dropped_groups import dropped_groups
from alcop_mlir.verifier.early_ops import late_ops
from alcop_mlir.verifier.loop_order import overwritten, unordered
from alcop_mlir.verifier.plan_slots import Event, check_slots, slot_events
from alcop_mlir.verifier.read_plan import (
    IN_PLACE,
    KEPT,
    PLAN,
    Entry,
    Lead,
    Plan,
    dictionary,
    named_ops,
    read_plan,
)
from alcop_mlir.verifier.replay import Step, is_reordered, replayed, with_unnamed
from alcop_mlir.verifier.violations import Violation


def check_plans(op: ir.Operation) -> list[Violation]:
    """What is wrong with the plans of the loops in `op`; nothing is changed."""
    loops = [one for one in (op.operation, *inside(op.operation)) if _is_planned(one)]
    return [wrong for loop in loops for wrong in _check_loop(loop)]


def _is_planned(op: Any) -> bool:
    return op.name == "scf.for" and PLAN in op.attributes


def _check_loop(loop: ir.Operation) -> list[Violation]:
    parameters = dictionary(loop.attributes[PLAN])
    if "streams" not in parameters:
        return []  # a user's short form: multi-buffer writes it out
    try:
        plan = read_plan(loop, parameters)
    except (KeyError, AttributeError, TypeError, IndexError) as error:
        return [Violation(loop, f"its plan cannot be read: {error!r}")]
    wrong, named = named_ops(plan)
    if wrong:
        return wrong
    events = list(slot_events(plan, named))
    late = [Violation(op, why) for op, why in late_ops(plan, named)]
    slots = check_slots(plan, events)
    return [*late, *slots, *_unfilled(loop, events), *_unordered(plan, named, events)]


def _unfilled(loop: ir.Operation, events: list[Event]) -> list[Violation]:
    """Reads of what an iteration may not have filled."""
    fills, reads = (
        [(event.op, event.buffer) for event in events if event.fills == kind]
        for kind in (True, False)
    )
    return list(unfilled(loop, fills, reads))


def _unordered(
    plan: Plan, named: dict[Any, Entry], events: list[Event]
) -> Iterator[Violation]:
    """What the plan does in another order than the loop to memory that is no ring's."""
    rings = {event.buffer for event in events}
    in_place = {
        op
        for op, entry in named.items()
        if entry.kind in IN_PLACE and entry.lead != Lead()
    }
    early = {op for op, entry in named.items() if entry.lead != Lead()} - in_place
    yield from overwritten(plan.loop, early, rings)
    own = [
        Step(op, entry.lead.whole + entry.lead.part)
        for op, entry in sorted(named.items(), key=lambda pair: pair[1].place)
        if op.parent.operation == plan.loop
    ]
    if in_place or is_reordered(own):
        slots = {event.buffer: plan.slots[event.ring] for event in events}
        yield from replayed(plan.loop, with_unnamed(plan.loop, own), slots)
        return
    if not rings:
        return  # all barriers stay
    kept = {op for op, entry in named.items() if entry.kind == KEPT}
    fills = {op for op, entry in named.items() if entry.ring >= 0}
    yield from dropped_groups(plan.loop, fills, kept)
    at_start = not any(entry.lead.part for entry in named.values())
    yield from unordered(plan.loop, early, rings, kept, at_start)
