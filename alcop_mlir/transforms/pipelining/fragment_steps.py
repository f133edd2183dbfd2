"""Flattens a carried fragment loop into the loop around it, step by step."""

from __future__ import annotations

from typing import Any

from alcop_mlir.analysis.ir.loops import (
    body,
    bounds,
    constant,
    init_args,
    terminator,
    trip_count,
)
from alcop_mlir.analysis.pipelining.copies import REGISTER, SHARED
from alcop_mlir.analysis.pipelining.streams import FragmentStep
from alcop_mlir.bindings import ir
from alcop_mlir.dialects import alcop
from alcop_mlir.errors import PassError
from alcop_mlir.passes import build


def is_carried(plan: dict[str, Any]) -> bool:
    """Whether the loop planned so is expanded with the pipelined loop around it."""
    return plan.get("carried", False) and SHARED not in plan


def flattened_steps(loop: Any) -> tuple[list[FragmentStep], int]:
    """The steps of the body, and the register stages that its reads ask for.

    A carried loop inside is unrolled into the body. Erases the plans of all ops in it:
    their copies must not have them.
    """
    steps = [FragmentStep()]
    stages = 1
    for op in _without_constants(loop, loop):
        plan = alcop.take(op, alcop.PipelineAttr) or {}
        if op.name == "scf.for" and is_carried(plan):
            stages = plan.get(REGISTER, 1)
            first, *others = _unrolled(op, loop)
            steps[-1].append(first)
            steps += others
            op.erase()
        else:
            stages = plan.get(REGISTER, stages)
            steps[-1].append(_step_of(op, plan))
    return steps, stages


def _without_constants(loop: Any, before: Any) -> list[Any]:
    """The ops of the body but the last; constants are moved before the op `before`.

    So they are built once, not for each stream and step.
    """
    ops = [op.operation for op in body(loop).operations][:-1]
    for op in ops:
        if op.name == "arith.constant":
            op.move_before(before)
    return [op for op in ops if op.name != "arith.constant"]


def _step_of(op: Any, plan: dict[str, Any]) -> FragmentStep:
    return FragmentStep(
        [op],
        copies=[op] if SHARED in plan else [],
        reads=[op] if REGISTER in plan else [],
    )


def _unrolled(loop: Any, around: Any) -> list[FragmentStep]:
    """Copies of the body of `loop`, one for each of its iterations, before it.

    Constants come before the loop `around`.
    """
    trips = trip_count(loop)
    if trips is None:
        raise PassError(loop, "a carried pipeline needs a constant trip count")
    lower, _, step = (constant(bound) for bound in bounds(loop))
    assert lower is not None
    assert step is not None
    ops = _without_constants(loop, around)
    templates = [build.Template(op) for op in ops]
    # Plans are erased before ops are copied: to erase them of each copy costs more.
    plans = [alcop.take(op, alcop.PipelineAttr) or {} for op in ops]
    reads = [number for number, plan in enumerate(plans) if REGISTER in plan]
    yielded = terminator(loop).operands
    values = init_args(loop)
    steps = []
    with loop.location, ir.InsertionPoint(around):
        indices = [build.index(lower + trip * step) for trip in range(trips)]
    with loop.location, ir.InsertionPoint(loop):
        for index in indices:
            arguments = [index, *values]
            mapping = dict(zip(body(loop).arguments, arguments, strict=True))
            copies = [op.copy(mapping) for op in templates]
            steps.append(
                FragmentStep(copies, reads=[copies[number] for number in reads])
            )
            values = [mapping.get(v, v) for v in yielded]
    for result, value in zip(loop.results, values, strict=True):
        result.replace_all_uses_with(value)
    return steps
