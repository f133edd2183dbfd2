"""The order in which an iteration of a planned loop runs its ops.

A plan is *rearranged* where an op runs early that is neither a copy nor a load alone,
or the arithmetic comes in another order than in the loop:

    scf.for { store(k + 1) ; barrier ; load(k) }    // stages 0 and 1

Memory then has to be looked at op by op (`plan_dependences`). In other plans copies and
loads run ahead of the arithmetic as it is.
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import pairwise
from typing import Any

from alcop_mlir.analysis.ir.loops import body
from alcop_mlir.analysis.ir.memory import ALLOCATIONS
from alcop_mlir.analysis.ir.slices import is_pure
from alcop_mlir.analysis.ir.synchronisation import SYNCHRONISATION
from alcop_mlir.analysis.pipelining.copy_forms import Forms
from alcop_mlir.analysis.pipelining.plans.bound_plan import BoundPlan
from alcop_mlir.analysis.pipelining.plans.plan_dependences import Placed
from alcop_mlir.analysis.pipelining.plans.plan_slots import stored_buffers
from alcop_mlir.analysis.pipelining.plans.stream_plan import (
    EFFECT,
    FETCH,
    FILL,
    LOOP,
    READ,
    STORE,
    StreamOp,
)
from alcop_mlir.bindings import ir

# The order of an iteration that is not rearranged: copies, reads, then the arithmetic
# as the body has it; or the copies after all.
_EARLY = (FILL, READ)
_IN_PLACE = (EFFECT, STORE)  # kinds of ops that run early as they are


def runs_in_place(kind: str, lead: int) -> bool:
    """Whether an op of that kind runs early as it is, with what it touches."""
    return kind in _IN_PLACE and lead > 0


def is_rearranged(bound: BoundPlan) -> bool:
    """Whether ops of the arithmetic run early, or in another order than the loop's."""
    tiles = [(planned, bound.plan.stream(planned).tiles) for planned in bound.plan.ops]
    if any(runs_in_place(planned.kind, lead) for planned, lead in tiles):
        return True
    pairs = zip(tiles, bound.ops, strict=True)
    kinds = (EFFECT, STORE, READ, LOOP)
    return not in_order(op for (p, n), op in pairs if p.kind in kinds and not n)


def needs_new_order(bound: BoundPlan) -> bool:
    """Whether the loop is rearranged before its copies are expanded.

    Else an iteration issues all copies first, or all last, reads before it computes,
    and computes in the order of the loop.
    """
    if is_rearranged(bound):
        return True
    ranks = [_rank(bound, p) for p in bound.plan.ops if p.kind != FETCH]
    if copies_last(bound):
        ranks = [rank for rank in ranks if rank != _EARLY.index(FILL)]
    return any(one > other for one, other in pairwise(ranks))


def copies_last(bound: BoundPlan) -> bool:
    """Whether all copies come after all else in the order of the plan."""
    ranks = [_rank(bound, p) for p in bound.plan.ops if p.kind != FETCH]
    copies = ranks.count(_EARLY.index(FILL))
    return 0 < copies < len(ranks) and set(ranks[-copies:]) == {_EARLY.index(FILL)}


def _rank(bound: BoundPlan, planned: StreamOp) -> int:
    """The number of an op's kind in an iteration; the arithmetic comes last."""
    is_early = planned.kind in _EARLY and bound.plan.stream(planned).is_early
    return _EARLY.index(planned.kind) if is_early else len(_EARLY)


def in_order(ops: Iterable[Any]) -> bool:
    """Whether those of one block come as that has them."""
    return all(
        one.block != other.block or one.is_before_in_block(other)
        for one, other in pairwise(ops)
    )


def steady_order(bound: BoundPlan, forms: Forms) -> list[Placed]:
    """The ops with effects of the loop's block, in the order of an iteration.

    What the plan does not name comes where the loop has it, among the arithmetic;
    barriers, groups and waits that it does not name are dropped.

    forms: of the planned copies
    """
    parts = {form.producer: op for op, form in forms.items()}
    order = [
        Placed(
            op,
            bound.plan.stream(planned).tiles,
            (forms[op].producer,) if op in forms and forms[op].producer else (),
        )
        for planned, op in zip(bound.plan.ops, bound.ops, strict=True)
        if op.block == body(bound.loop)
    ]
    named = {placed.op for placed in order}
    for one in list(body(bound.loop).operations)[:-1]:
        op = one.operation
        if op in named or op in parts or not has_effect(op):
            continue
        order.insert(place_of(op, order), Placed(op, 0))
    return order


def has_effect(op: ir.Operation) -> bool:
    """Whether `op` has one that is not the pipeline's to make anew."""
    return not is_pure(op) and op.name not in (*ALLOCATIONS, *SYNCHRONISATION)


def place_of(op: ir.Operation, order: list[Placed]) -> int:
    """Where `op` comes among the arithmetic: as the loop has it."""
    for place, other in enumerate(order):
        if other.lead == 0 and op.is_before_in_block(other.op):
            return place
    return len(order)


def rings_of(bound: BoundPlan, forms: Forms) -> dict[Any, int]:
    """The buffers that have slots, and how many; `forms` of the planned copies."""
    return {
        buffer: bound.plan.rings[planned.ring].slots
        for planned, op in bound.named(FILL, STORE)
        for buffer in (forms[op].buffers if op in forms else stored_buffers(op))
    }
