"""Reads the plans of loops, each with the ops that it names.

A plan comes from alcop-plan-pipelines, or from a user, in one of three forms:

    {alcop.pipeline = #alcop.pipeline<{streams = [...], ops = [...], ...}>}
        the whole value, see `stream_plan`; the ops have `alcop.op`
    {alcop.pipeline = #alcop.pipeline<{stage = [0, 0, 2, 2], order = [0, 1, 2, 3]}>}
        TVM's form, a number for each op of the body, see `stage_lists`
    {alcop.pipeline = #alcop.pipeline<{shared = 3}>}
        marks, on the loop and on its copies and reads, see `plan_marks`

Nothing is changed here.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from alcop_mlir.analysis.ir.loops import body, is_loop, loops_in
from alcop_mlir.analysis.ir.walk import walk
from alcop_mlir.analysis.pipelining.copy_forms import copy_form
from alcop_mlir.analysis.pipelining.early_addresses import fetches_for
from alcop_mlir.analysis.pipelining.plans.bound_plan import BoundPlan
from alcop_mlir.analysis.pipelining.plans.composed_plans import Decided, composed
from alcop_mlir.analysis.pipelining.plans.kernel_plan import KernelPlan, Limits
from alcop_mlir.analysis.pipelining.plans.plan_marks import from_marks
from alcop_mlir.analysis.pipelining.plans.stage_lists import LISTS, from_lists
from alcop_mlir.analysis.pipelining.plans.stream_plan import (
    FETCH,
    FILL,
    LOOP,
    PREDICATED,
    READ,
    WRAP,
    StreamOp,
    StreamPlan,
    from_parameters,
)
from alcop_mlir.analysis.pipelining.verdicts import REGISTER, SHARED
from alcop_mlir.bindings import ir
from alcop_mlir.dialects import alcop
from alcop_mlir.errors import PassError


def bound_plans(root: ir.Operation) -> list[BoundPlan]:
    """The plans of all loops in `root`, outer loops first.

    PassError at an op that is marked or numbered for a plan that there is not.
    """
    marked = _marked(root)
    plans = [plan for op in marked if is_loop(op) and (plan := bound_plan(op))]
    claimed = {op for plan in plans for op in (plan.loop, *plan.ops, *plan.marks)}
    for op in marked:
        if op not in claimed:
            raise PassError(op, _unclaimed(op))
    return plans


def _marked(root: ir.Operation) -> list[Any]:
    return [
        op
        for op in walk(root)
        if alcop.PIPELINE in (found := op.attributes) or alcop.OP_KEY in found
    ]


def _unclaimed(op: ir.Operation) -> str:
    number = alcop.key(op)
    if number is not None:
        return (
            f"has alcop.op = {number}, but no plan of a loop around it names that op: "
            "expected alcop-plan-pipelines after passes that change loops"
        )
    return f"'{op.name}' is planned, but the loop around it is not"


def bound_plan(loop: ir.Operation) -> BoundPlan | None:
    """The plan of `loop`, in whichever form; None where it has none of its own."""
    parameters = alcop.get(loop, alcop.PipelineAttr)
    if parameters is None:
        return None
    if "streams" in parameters:
        return _bound(loop, from_parameters(loop, parameters))
    if any(name in parameters for name in LISTS):
        return from_lists(loop, parameters)
    marked = from_marks(loop, parameters)
    return None if marked is None else BoundPlan(loop, *marked, is_value=False)


# -- the value -----------------------------------------------------------------------


def _bound(loop: ir.Operation, plan: StreamPlan) -> BoundPlan:
    found = _numbered(body(loop).operations, {})
    for planned in plan.ops:
        inner = found.get(planned.op)
        if planned.kind == LOOP and inner is not None and is_loop(inner):
            _numbered(body(inner).operations, found)
    ops = tuple(_named(loop, planned, found) for planned in plan.ops)
    for number in found.keys() - {planned.op for planned in plan.ops}:
        raise PassError(
            found[number],
            f"has alcop.op = {number}, which the plan of its loop does not name",
        )
    return BoundPlan(loop, plan, ops)


def _numbered(ops: Iterable[ir.Operation], found: dict[int, Any]) -> dict[int, Any]:
    """The ops that have a number, added to `found`."""
    for op in ops:
        number = alcop.key(op)
        if number is None:
            continue
        if number in found:
            raise PassError(op, f"has alcop.op = {number}, as another op of the loop")
        found[number] = op.operation
    return found


def _named(loop: ir.Operation, planned: StreamOp, found: dict[int, Any]) -> Any:
    op = found.get(planned.op)
    if op is None:
        raise PassError(
            loop,
            f"alcop.pipeline names op {planned.op}, a '{planned.name}', which the loop "
            "does not have: expected alcop-plan-pipelines after passes that change it",
        )
    if op.name != planned.name:
        raise PassError(
            op,
            f"is op {planned.op} of its loop's plan, which expects '{planned.name}'",
        )
    return op


# -- what alcop-plan-pipelines decides -----------------------------------------------


def plans_of(kernel: KernelPlan, limits: Limits) -> list[BoundPlan]:
    """The decisions about a kernel as a plan per loop."""
    shared = {p.loop: p for p in kernel.pipelines if p.level == SHARED}
    register = {p.loop: p for p in kernel.pipelines if p.level == REGISTER}
    alone = [p.loop for p in register.values() if not p.carried]
    plans = [*kernel.roles.values()]
    fetched = dict(kernel.fetched)
    for loop in dict.fromkeys((*shared, *alone, *fetched)):
        if loop in kernel.roles:
            continue
        copied = shared.get(loop)
        inner = [
            p
            for p in register.values()
            if p.loop not in shared and p.carried and p.loop.parent.operation == loop
        ]
        read = register.get(loop, inner[0] if inner else None)
        decided = Decided(
            *((copied.stages, copied.forms) if copied else (0, {})),
            *((read.stages, read.ops) if read else (1, ())),
            [p.loop for p in inner],
            WRAP if copied and copied.wraps else PREDICATED,
            copied.fetches if copied else (),
            fetched.get(loop, ()),
            limits.noalias_arguments,
            limits.noalias_in(loop),
        )
        plans.append(BoundPlan(loop, *composed(loop, decided)))
    return plans


# -- for those who list what is pipelined --------------------------------------------


def given_plans(scope: ir.Operation) -> dict[Any, dict[Any, int]]:
    """The loops in `scope` that have a plan, and the slots of the buffers in it."""
    return {
        bound.loop: {
            buffer: bound.plan.rings[planned.ring].slots
            for planned, op in bound.named(FILL)
            if (form := copy_form(op)) is not None
            for buffer in form.buffers
        }
        for loop in loops_in(scope)
        if (bound := bound_plan(loop)) is not None
    }


def pipelined_ops(scope: ir.Operation) -> Iterator[tuple[Any, str, int]]:
    """The pipelined copies and reads in `scope`, their levels and numbers of stages.

    Loop by loop, outer ones first; in a loop as the program has them.
    """
    for plan in bound_plans(scope):
        for planned, op in plan.named(FILL):
            yield op, SHARED, plan.plan.rings[planned.ring].slots
        for planned, op in plan.named(READ):
            stream = plan.plan.stream(planned)
            if stream.is_early:
                yield op, REGISTER, plan.register_stages(plan.steps())
            elif stream.in_flight:  # of groups of wgmma, which read by themselves
                yield op, REGISTER, stream.in_flight + 1
        needed = fetches_for(plan.loop, plan.copies().values())
        for planned, op in plan.named(FETCH):
            if op not in needed:
                yield op, REGISTER, plan.plan.stream(planned).tiles + 1
