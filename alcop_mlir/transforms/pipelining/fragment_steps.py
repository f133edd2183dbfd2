"""Flattens a carried fragment loop into the loop around it, step by step."""

from __future__ import annotations

from typing import Any

from alcop_mlir.analysis.ir import loops, memory
from alcop_mlir.analysis.pipelining.plans.bound_plans import BoundPlan
from alcop_mlir.analysis.pipelining.plans.stream_plan import FILL, LOOP, READ
from alcop_mlir.analysis.pipelining.streams import FragmentStep
from alcop_mlir.bindings import ir
from alcop_mlir.errors import PassError
from alcop_mlir.passes import build


def flattened_steps(bound: BoundPlan) -> list[FragmentStep]:
    """The fragment steps of the body, with the copies and early reads of each.

    An inner loop of the plan is unrolled into the body. Plans were erased from all ops
    before: copies of these must not have them.
    """
    copies = [op for _, op in bound.named(FILL)]
    reads = [
        op for planned, op in bound.named(READ) if bound.plan.stream(planned).is_early
    ]
    inner = [op for _, op in bound.named(LOOP)]
    loop = bound.loop
    steps = [FragmentStep()]
    for op in _without_hoisted(loop, loop):
        if op in inner:
            first, *others = _unrolled(op, loop, reads)
            steps[-1].append(first)
            steps += others
            op.erase()
        else:
            planned = ([op] if op in one else [] for one in (copies, reads))
            steps[-1].append(FragmentStep([op], *planned))
    return steps


def _without_hoisted(loop: ir.Operation, before: ir.Operation) -> list[Any]:
    """The ops of the body but the last, less what is moved before the op `before`.

    Constants, so that they are built once, not for each stream and step, and shared
    buffers, so that the parts of a pipeline do not have one each.
    """
    ops = [op.operation for op in loops.body(loop).operations][:-1]
    hoisted = [op for op in ops if op.name == "arith.constant" or _is_buffer(op)]
    for op in hoisted:
        op.move_before(before)
    return [op for op in ops if op not in hoisted]


def _is_buffer(op: ir.Operation) -> bool:
    """Whether `op` allocates shared memory of constant size."""
    is_alloc = op.name == "memref.alloc" and not len(op.operands)
    return is_alloc and memory.is_workgroup(op.results[0].type)


def _unrolled(
    loop: ir.Operation, around: Any, planned: list[Any]
) -> list[FragmentStep]:
    """Copies of the body of `loop`, one for each of its iterations, before it.

    Constants come before the loop `around`. planned: reads that run early
    """
    trips = loops.trip_count(loop)
    if trips is None:
        raise PassError(loop, "a carried pipeline needs a constant trip count")
    lower, _, step = (loops.constant(bound) for bound in loops.bounds(loop))
    assert lower is not None
    assert step is not None
    ops = _without_hoisted(loop, around)
    templates = [build.Template(op) for op in ops]
    reads = [number for number, op in enumerate(ops) if op in planned]
    yielded = loops.terminator(loop).operands
    values = loops.init_args(loop)
    steps = []
    with loop.location, ir.InsertionPoint(around):
        indices = [build.index(lower + trip * step) for trip in range(trips)]
    with loop.location, ir.InsertionPoint(loop):
        for index in indices:
            arguments = [index, *values]
            mapping = dict(zip(loops.body(loop).arguments, arguments, strict=True))
            copies = [op.copy(mapping) for op in templates]
            steps.append(
                FragmentStep(copies, reads=[copies[number] for number in reads])
            )
            values = [mapping.get(v, v) for v in yielded]
    for result, value in zip(loop.results, values, strict=True):
        result.replace_all_uses_with(value)
    return steps
