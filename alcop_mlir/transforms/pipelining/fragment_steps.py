"""Flattens carried fragment loops into the body of the loop around them."""

from __future__ import annotations

from typing import Any

from alcop_mlir.analysis.ir import loops, memory
from alcop_mlir.analysis.pipelining.flat_body import FlatBody, flat_body
from alcop_mlir.analysis.pipelining.plans.bound_plan import BoundPlan
from alcop_mlir.analysis.pipelining.plans.stream_plan import FILL, LOOP, READ
from alcop_mlir.bindings import ir
from alcop_mlir.errors import PassError
from alcop_mlir.passes import build


def flattened(bound: BoundPlan) -> FlatBody:
    """The body of a planned loop, with the iterations of its fragment loops in it.

    Constants of both, and the indices of fragment loops, are moved before the loop.
    """
    loop = bound.loop
    inner = [op for _, op in bound.named(LOOP)]
    _hoist(loop, loop)
    return flat_body(
        loop,
        [(op, _indices(op, loop)) for op in inner],
        copies=[op for _, op in bound.named(FILL)],
        reads=[
            op
            for planned, op in bound.named(READ)
            if bound.plan.stream(planned).is_early
        ],
    )


def _indices(inner: ir.Operation, around: Any) -> list[Any]:
    """The index of `inner` in each of its iterations, before the loop `around`."""
    trips = loops.trip_count(inner)
    if trips is None:
        raise PassError(inner, "a carried pipeline needs a constant trip count")
    lower, _, step = (loops.constant(bound) for bound in loops.bounds(inner))
    assert lower is not None
    assert step is not None
    _hoist(inner, around)
    with inner.location, ir.InsertionPoint(around):
        return [build.index(lower + trip * step) for trip in range(trips)]


def _hoist(loop: ir.Operation, before: ir.Operation) -> None:
    """Move constants and shared buffers of the body of `loop` before the op `before`.

    Constants are then built once, not for each stream and step, and the parts of a
    pipeline do not have a buffer each.
    """
    for op in [one.operation for one in loops.body(loop).operations]:
        if op.name == "arith.constant" or _is_buffer(op):
            op.move_before(before)


def _is_buffer(op: ir.Operation) -> bool:
    """Whether `op` allocates shared memory of constant size."""
    is_alloc = op.name == "memref.alloc" and not len(op.operands)
    return is_alloc and memory.is_workgroup(op.results[0].type)
