"""Plans in the form of TVM's annotations: a stage and an order for each op.

    {alcop.pipeline = #alcop.pipeline<{stage = [0, 0, 2, 2], order = [0, 1, 2, 3]}>}

The numbers are for the ops of the loop's block but the last, in the order of the block:
the op runs `stage` iterations after the first of its iteration, and as number `order`
in the steady state; TVM's `software_pipeline_stage` and `software_pipeline_order`.
Barriers, groups and waits are placed anew where they are needed, whatever their
numbers are. What the ops are to the plan, `list_kinds` says.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from alcop_mlir.analysis.ir.loops import body
from alcop_mlir.analysis.ir.slices import captured
from alcop_mlir.analysis.pipelining.barriers import is_full, needed_synchronisation
from alcop_mlir.analysis.pipelining.plans.bound_plan import BoundPlan
from alcop_mlir.analysis.pipelining.plans.list_kinds import kinds_of
from alcop_mlir.analysis.pipelining.plans.plan_dependences import Dependences, Placed
from alcop_mlir.analysis.pipelining.plans.steady_order import (
    copies_last,
    is_rearranged,
    needs_new_order,
    place_of,
    rings_of,
    steady_order,
)
from alcop_mlir.analysis.pipelining.plans.stream_plan import (
    COMPUTE,
    COPY,
    EFFECT,
    FETCH,
    FILL,
    LOAD,
    PREDICATED,
    READ,
    STORE,
    TAILS,
    Ring,
    Stream,
    StreamOp,
    StreamPlan,
    wrong,
)
from alcop_mlir.bindings import ir
from alcop_mlir.errors import PassError
from alcop_mlir.schedule import MAX_SHARED_STAGES

LISTS = ("stage", "order")
_KNOWN = (*LISTS, "tail")


def from_lists(loop: ir.Operation, parameters: dict[str, Any]) -> BoundPlan:
    """The plan that the lists say; PassError where they say none."""
    for name in parameters:
        if name not in _KNOWN:
            raise wrong(loop, f"has '{name}', expected {', '.join(_KNOWN)}")
    ops = [op.operation for op in body(loop).operations][:-1]
    stages = _numbers(loop, parameters, "stage", len(ops))
    order = _numbers(loop, parameters, "order", len(ops))
    if sorted(order) != list(range(len(ops))):
        raise wrong(loop, f"order is {order}, expected each number once, from 0 on")
    tail = parameters.get("tail", PREDICATED)
    if tail not in TAILS:
        raise wrong(loop, f"tail is {tail}, expected {' or '.join(TAILS)}")
    leads = {op: max(stages) - stage for op, stage in zip(ops, stages, strict=True)}
    places = dict(zip(ops, order, strict=True))
    _check_uses(ops, leads, places)
    found = kinds_of(loop, ops, leads, places)
    named = sorted(found.named, key=lambda op: places[op])
    parts = [(op, *found.named[op], leads[op]) for op in named]
    bound = _bound(loop, parts, found.slots, tail, max(stages))
    for place, op, lead in _kept_barriers(bound):
        parts.insert(place, (op, EFFECT, -1, lead))
    whole = _bound(loop, parts, found.slots, tail, max(stages))
    if needs_new_order(whole) or copies_last(whole):
        return whole
    # The arithmetic is as the loop has it: it needs no name.
    plain = {op for op in found.named if not leads[op]}
    parts = [part for part in parts if part[0] not in plain]
    return _bound(loop, parts, found.slots, tail, max(stages))


def _numbers(
    loop: ir.Operation, parameters: dict[str, Any], name: str, wanted: int
) -> list[int]:
    given = parameters.get(name)
    if not isinstance(given, list) or not all(type(n) is int and n >= 0 for n in given):
        raise wrong(loop, f"{name} is {given}, expected a list of integers from 0 on")
    if len(given) != wanted or not wanted:
        raise wrong(
            loop,
            f"{name} has {len(given)} numbers, expected one for each of the {wanted} "
            "ops of the loop",
        )
    return given


def _check_uses(
    ops: list[ir.Operation], leads: dict[Any, int], places: dict[Any, int]
) -> None:
    """PassError at an op that would run before one whose results it uses."""
    makers = {result: op for op in ops for result in op.results}
    for op in ops:
        for maker in {makers[v] for v in captured(op) if v in makers}:
            early = leads[op] - leads[maker]
            if early > 0 or (early == 0 and places[op] < places[maker]):
                when = f"{early} iterations" if early else "in the order of its stage"
                raise PassError(
                    op, f"uses '{maker.name}', but is planned to run before it, {when}"
                )


def _kept_barriers(bound: BoundPlan) -> list[tuple[int, Any, int]]:
    """Barriers, groups and waits of the loop that stay: where, which, and their leads.

    In their order, each counting those that were put before it.
    """
    if is_rearranged(bound):
        return list(_barriers_between(bound))
    forms, kept = bound.copies(), list[tuple[int, Any, int]]()
    order, copies = steady_order(bound, forms), list(forms.values())
    for op in needed_synchronisation(bound.loop, copies, at_start=True, noalias=True):
        place = place_of(op, order)
        order.insert(place, Placed(op, 0))
        kept.append((place, op, 0))
    return kept


def _barriers_between(bound: BoundPlan) -> Iterator[tuple[int, Any, int]]:
    """Barriers of the loop, put where two ops of an iteration need one."""
    forms = bound.copies()
    order, rings = steady_order(bound, forms), rings_of(bound, forms)
    unused = [op.operation for op in body(bound.loop).operations if is_full(op)]
    while unused:
        broken = Dependences(bound.loop, order, rings, bound.plan.noalias).broken()
        second = next((pair.second for pair in broken if not pair.is_late), None)
        if second is None:
            return
        place = order.index(second)
        barrier = unused.pop(0)
        order.insert(place, Placed(barrier, second.lead))
        yield place, barrier, second.lead


def _bound(
    loop: ir.Operation,
    parts: list[tuple[Any, str, int, int]],
    slots: int,
    tail: str,
    last_stage: int,
) -> BoundPlan:
    """The plan of these ops: of each its kind, ring and lead."""
    streams = {FILL: COPY, STORE: COPY, READ: LOAD, FETCH: FETCH}
    names = {n: f"{streams.get(kind, EFFECT)}{n}" for _, kind, _, n in reversed(parts)}
    names[0] = COMPUTE
    plan = StreamPlan(
        streams=tuple(Stream(names[n], n) for n in sorted(names, reverse=True)),
        ops=tuple(
            StreamOp(number, op.name, names[lead], kind, ring)
            for number, (op, kind, ring, lead) in enumerate(parts)
        ),
        rings=(Ring(min(max(2, slots), MAX_SHARED_STAGES)),) if slots else (),
        tail=tail,
        noalias=True,
    )
    ops = tuple(op for op, *_ in parts)
    return BoundPlan(loop, plan, ops, is_value=False, last_stage=last_stage)
