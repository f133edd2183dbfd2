"""Writes plans into the IR, and erases them."""

from __future__ import annotations

from alcop_mlir.analysis.pipelining.plans.bound_plan import BoundPlan
from alcop_mlir.analysis.pipelining.plans.stream_plan import to_parameters
from alcop_mlir.dialects import alcop

UNROLL = "alcop.unroll"


def write_plan(bound: BoundPlan) -> None:
    """Give the loop its plan as a value, and the ops that it names their numbers."""
    for mark in bound.marks:
        alcop.drop(mark, alcop.PipelineAttr)
    for planned, op in zip(bound.plan.ops, bound.ops, strict=True):
        alcop.put_key(op, planned.op)
    alcop.put(bound.loop, alcop.PipelineAttr, to_parameters(bound.plan))


def erase_plan(bound: BoundPlan) -> None:
    """Erase what says that plan, in whichever form."""
    for op in (bound.loop, *bound.marks):
        alcop.drop(op, alcop.PipelineAttr)
    for op in bound.ops:
        alcop.drop_key(op)
