"""Flattens a carried fragment loop into the loop around it, step by step."""

from __future__ import annotations

from typing import Any

from alcop_mlir.analysis.copies import SHARED
from alcop_mlir.analysis.loops import body, bounds, constant, inits, trip_count
from alcop_mlir.bindings import ir
from alcop_mlir.dialects import alcop
from alcop_mlir.errors import PassError
from alcop_mlir.transforms import build


def is_carried(plan: dict[str, Any]) -> bool:
    """Whether the loop planned so is expanded with the pipelined loop around it."""
    return plan.get("carried", False) and SHARED not in plan


def flattened_steps(loop: Any) -> list[list[Any]]:
    """The ops of the body by step; a loop carried inside is unrolled into it."""
    before: list[Any] = []
    steps: list[list[Any]] = []
    for op in [op.operation for op in body(loop).operations][:-1]:
        plan = alcop.get(op, alcop.PipelineAttr)
        if op.name == "scf.for" and plan is not None and is_carried(plan):
            steps = _unrolled(op)
            op.erase()
        else:
            (steps[-1] if steps else before).append(op)
    if not steps:
        return [before]
    return [before + steps[0], *steps[1:]]


def _unrolled(loop: Any) -> list[list[Any]]:
    """Copies of the body of `loop`, one for each of its iterations, in its place."""
    trips = trip_count(loop)
    if trips is None:
        raise PassError(loop, "a carried pipeline needs a constant trip count")
    lower, _, step = (constant(bound) for bound in bounds(loop))
    assert lower is not None
    assert step is not None
    values = inits(loop)
    steps = []
    with loop.location, ir.InsertionPoint(loop):
        for trip in range(trips):
            arguments = [build.index(lower + trip * step), *values]
            mapping = dict(zip(body(loop).arguments, arguments, strict=True))
            ops = [op.operation for op in body(loop).operations]
            steps.append([build.clone(op, mapping) for op in ops[:-1]])
            values = [mapping.get(v, v) for v in ops[-1].operands]
    for result, value in zip(loop.results, values, strict=True):
        result.replace_all_uses_with(value)
    return steps
