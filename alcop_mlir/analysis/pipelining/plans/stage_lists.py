"""Plans in the form of TVM's annotations: a stage and an order for each op.

    {alcop.pipeline = #alcop.pipeline<{stage = [0, 0, 2, 2], order = [0, 1, 2, 3]}>}

The numbers are for the ops of the loop's block but the last, in the order of the block:
the op runs `stage` iterations after the first of its iteration, and as number `order`
in the steady state; TVM's `software_pipeline_stage` and `software_pipeline_order`. A
copy and the load that it is made of are in one stage. Barriers, groups and waits of
the copies are placed anew, and those of others stay where they are, whatever their
numbers are.
"""

from __future__ import annotations

from typing import Any

from alcop_mlir.analysis.ir import memory
from alcop_mlir.analysis.ir.loops import body
from alcop_mlir.analysis.ir.slices import captured, is_pure
from alcop_mlir.analysis.pipelining.barriers import (
    SYNCHRONISATION,
    needed_synchronisation,
)
from alcop_mlir.analysis.pipelining.copy_forms import copy_form
from alcop_mlir.analysis.pipelining.fetches import is_fetch
from alcop_mlir.analysis.pipelining.plans.stream_plan import (
    COMPUTE,
    COPY,
    EFFECT,
    FETCH,
    FILL,
    LOAD,
    PREDICATED,
    READ,
    TAILS,
    Ring,
    Stream,
    StreamOp,
    StreamPlan,
    wrong,
)
from alcop_mlir.analysis.pipelining.register_reads import is_shared_read
from alcop_mlir.bindings import ir
from alcop_mlir.errors import PassError
from alcop_mlir.schedule import MAX_SHARED_STAGES

LISTS = ("stage", "order")
_KNOWN = (*LISTS, "tail")


def from_lists(
    loop: ir.Operation, parameters: dict[str, Any]
) -> tuple[StreamPlan, tuple[Any, ...]]:
    """The plan that the lists say, and its ops; PassError where they say none."""
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
    kinds = _kinds(ops, leads)
    named = sorted(kinds, key=lambda op: places[op])
    early = [op for op in named if kinds[op][0] == FILL]
    copies = [form for op in early if (form := copy_form(op)) is not None]
    for op in needed_synchronisation(loop, copies, at_start=True, noalias=True):
        named.insert(_place_of(op, named, leads), op)
        kinds[op], leads[op] = (EFFECT, -1), 0
    return _plan(named, kinds, leads, tail), tuple(named)


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


def _kinds(
    ops: list[ir.Operation], leads: dict[Any, int]
) -> dict[Any, tuple[str, int]]:
    """The kinds and rings of the ops that the plan names: those that have effects."""
    forms = {op: form for op in ops if (form := copy_form(op)) is not None}
    early = {op: form for op, form in forms.items() if leads[op]}
    loads = {form.producer: op for op, form in early.items()}
    filled = {buffer for form in early.values() for buffer in form.buffers}
    kinds: dict[Any, tuple[str, int]] = {}
    for op in ops:
        if op in early:
            kinds[op] = FILL, 0
        elif is_shared_read(op):
            kinds[op] = READ, 0 if memory.root(op.operands[0]) in filled else -1
        elif op in loads and leads[op] == leads[loads[op]]:
            continue  # a part of the copy
        elif leads[op] and is_fetch(op) and op not in loads:
            kinds[op] = FETCH, -1
        elif not is_pure(op) and op.name not in SYNCHRONISATION:
            kinds[op] = EFFECT, -1
    return kinds


def _place_of(op: ir.Operation, named: list[Any], leads: dict[Any, int]) -> int:
    """Where to insert what is kept: among the arithmetic, as the loop has it."""
    for place, other in enumerate(named):
        if leads[other] == 0 and op.is_before_in_block(other):
            return place
    return len(named)


def _plan(
    named: list[Any],
    kinds: dict[Any, tuple[str, int]],
    leads: dict[Any, int],
    tail: str,
) -> StreamPlan:
    parts = [(op, *kinds[op], leads[op]) for op in named]
    streams = {FILL: COPY, READ: LOAD, FETCH: FETCH}
    names = {n: f"{streams.get(kind, EFFECT)}{n}" for _, kind, _, n in reversed(parts)}
    names[0] = COMPUTE
    return StreamPlan(
        streams=tuple(Stream(names[n], n) for n in sorted(names, reverse=True)),
        ops=tuple(
            StreamOp(number, op.name, names[lead], kind, ring)
            for number, (op, kind, ring, lead) in enumerate(parts)
        ),
        rings=_rings(parts),
        tail=tail,
        noalias=True,
    )


def _rings(parts: list[tuple[Any, str, int, int]]) -> tuple[Ring, ...]:
    """One ring, whose slots are as many as the leads of copies and reads need."""
    filled = [lead for _, kind, _, lead in parts if kind == FILL]
    if not filled:
        return ()
    read = [lead for _, kind, ring, lead in parts if kind == READ and ring == 0]
    slots = max(filled) - min(read, default=0) + 1
    return (Ring(min(max(2, slots), MAX_SHARED_STAGES)),)
