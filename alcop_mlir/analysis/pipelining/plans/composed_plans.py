"""Composes the plan of a loop of what is decided about copies, reads and loads."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import field
from typing import Any

from alcop_mlir.analysis.ir import memory
from alcop_mlir.analysis.ir.loops import body, trip_count
from alcop_mlir.analysis.pipelining.barriers import needed_synchronisation
from alcop_mlir.analysis.pipelining.copy_forms import CopyForm
from alcop_mlir.analysis.pipelining.fetches import Fetch
from alcop_mlir.analysis.pipelining.plans.stream_plan import (
    COMPUTE,
    COPY,
    EFFECT,
    FETCH,
    FILL,
    LOAD,
    LOOP,
    PREDICATED,
    READ,
    Ring,
    Stream,
    StreamOp,
    StreamPlan,
)
from alcop_mlir.bindings import ir
from alcop_mlir.errors import PassError
from alcop_mlir.frozen import frozen


@frozen
class Decided:
    """What is decided about a loop.

    slots:   of the buffers that `fills` fill; 0 where there are none
    fills:   ops that are planned as copies, with their forms: None for what is none
    stages:  of `reads`, from a read to its use in fragment steps, one more
    inner:   the loop whose iterations are fragment steps
    for_copies, for_arithmetic: loads that run before the copies, as their addresses
             need them, and before the arithmetic
    noalias: whether arguments of the kernel never overlap
    noalias_in_loop: whether those that the loop writes overlap no other
    """

    slots: int = 0
    fills: Mapping[Any, CopyForm | None] = field(default_factory=dict)
    stages: int = 1
    reads: Sequence[Any] = ()
    inner: Sequence[Any] = ()
    tail: str = PREDICATED
    for_copies: Sequence[Fetch] = ()
    for_arithmetic: Sequence[Fetch] = ()
    noalias: bool = False
    noalias_in_loop: bool = False


def composed(
    loop: ir.Operation, decided: Decided
) -> tuple[StreamPlan, tuple[Any, ...]]:
    """The plan, and the op that each of its ops names."""
    lookahead = decided.stages - 1 if decided.reads else 0
    load = Stream(LOAD, *divmod(lookahead, _steps(decided.inner)))
    streams = [load] if decided.reads else []
    copy = Stream(COPY, load.tiles + decided.slots - 1)
    if decided.slots:
        streams.insert(0, copy)
    fetches = [*((f.op, copy.lead + f.lead) for f in decided.for_copies)]
    fetches += [(fetch.op, fetch.lead) for fetch in decided.for_arithmetic]
    leads = sorted({lead for _, lead in fetches}, reverse=True)
    streams[:0] = [Stream(_fetch_stream(lead), lead) for lead in leads]
    copies = [form for form in decided.fills.values() if form is not None]
    filled = {buffer for form in copies for buffer in form.buffers}
    at_start = load.steps == 0
    apart = decided.noalias or decided.noalias_in_loop
    kept = needed_synchronisation(loop, copies, at_start, apart)
    rest = dict.fromkeys(decided.inner, LOOP) | dict.fromkeys(kept, EFFECT)
    named = [
        *((op, _fetch_stream(lead), FETCH, -1) for op, lead in fetches),
        *((op, COPY, FILL, 0) for op in decided.fills),
        *((op, LOAD, READ, _ring_of(op, filled)) for op in decided.reads),
        *((op, COMPUTE, rest[op], -1) for op in _ops(loop) if op in rest),
    ]
    plan = StreamPlan(
        streams=(*streams, Stream(COMPUTE)),
        ops=tuple(
            StreamOp(number, op.name, stream, kind, ring)
            for number, (op, stream, kind, ring) in enumerate(named)
        ),
        rings=(Ring(decided.slots),) if decided.slots else (),
        tail=decided.tail,
        noalias=decided.noalias,
    )
    return plan, tuple(op for op, *_ in named)


def _fetch_stream(lead: int) -> str:
    return f"{FETCH}{lead}"


def _ops(loop: ir.Operation) -> list[Any]:
    return [op.operation for op in body(loop).operations]


def _steps(inner: Iterable[ir.Operation]) -> int:
    for loop in inner:
        trips = trip_count(loop)
        if not trips:
            raise PassError(loop, "a carried pipeline needs a constant trip count")
        return trips
    return 1


def _ring_of(read: ir.Operation, filled: set[Any]) -> int:
    operands = read.operands
    is_filled = len(operands) and memory.root(operands[0]) in filled
    return 0 if is_filled else -1
