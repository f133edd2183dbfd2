"""Separates the body of a pipelined loop into its streams.

The *copy* stream fills shared slots, the *load* stream reads fragments out of them, the
*compute* stream is the rest. Each needs some of the loop's carried values (its slot, a
running address); a stream that runs ahead has to carry its own copy of them.

A body has one or more *steps*: the iterations of a fragment loop that was flattened
into it. The reads of a step are what its arithmetic uses.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from alcop_mlir.analysis.copies import REGISTER, SHARED
from alcop_mlir.analysis.copy_forms import ASYNC, CopyForm, copy_form
from alcop_mlir.analysis.loops import body, terminator
from alcop_mlir.analysis.slices import backward_slice, captured, is_pure
from alcop_mlir.dialects import alcop
from alcop_mlir.errors import PassError

SYNCHRONISATION = (
    "gpu.barrier",
    "nvgpu.device_async_create_group",
    "nvgpu.device_async_wait",
)


@dataclass(frozen=True)
class Streams:
    """The parts of a pipelined loop's body; ops in the order of the body.

    copies:  the planned copies into shared memory
    reads:   per step, the planned reads into registers
    compute: per step, the other ops that do or feed something
    """

    loop: Any
    copies: tuple[CopyForm, ...]
    reads: tuple[tuple[Any, ...], ...]
    compute: tuple[tuple[Any, ...], ...]
    copy_arguments: tuple[int, ...]  # numbers of the carried values each stream needs
    load_arguments: tuple[int, ...]
    compute_arguments: tuple[int, ...]


def separate(loop: Any, steps: list[list[Any]]) -> Streams:
    """The streams of `loop`, whose body's ops are grouped into `steps`."""
    copies = [_form(op) for step in steps for op in step if _is_planned(op, SHARED)]
    reads = [[op for op in step if _is_planned(op, REGISTER)] for step in steps]
    dropped = _replaced(copies, [op for step in steps for op in step])
    dropped |= {op for step in reads for op in step}
    known = {result for step in reads for op in step for result in op.results}
    needed, arguments = _compute_slice(loop, steps, dropped, known)
    return Streams(
        loop=loop,
        copies=tuple(copies),
        reads=tuple(tuple(step) for step in reads),
        compute=tuple(
            tuple(op for op in step if op in needed and op not in dropped)
            for step in steps
        ),
        copy_arguments=_closure(loop, [v for form in copies for v in addresses(form)]),
        load_arguments=_closure(
            loop, [v for step in reads for op in step for v in op.operands]
        ),
        compute_arguments=arguments,
    )


def addresses(form: CopyForm) -> list[Any]:
    """The values that a copy is made of: memrefs, indices, guard."""
    if form.kind == ASYNC:
        return list(form.op.operands)
    guard = [] if form.guard is None else [form.guard]
    return [
        form.source,
        *form.source_indices,
        form.target,
        *form.target_indices,
        *guard,
    ]


def _form(op: Any) -> CopyForm:
    form = copy_form(op)
    if form is None:
        raise PassError(op, f"'{op.operation.name}' is planned, expected a copy")
    return form


def _replaced(copies: list[CopyForm], ops: list[Any]) -> set[Any]:
    """Ops that the copies of the expanded loop stand for.

    The copies and their loads; and, where shared memory is pipelined, barriers, groups
    and waits, which are placed anew.
    """
    if not copies:
        return set()
    own = {form.op for form in copies}
    loads = {form.load for form in copies if form.load is not None}
    return own | loads | {op for op in ops if op.name in SYNCHRONISATION}


def yielded(loop: Any, number: int) -> Any:
    """What the loop yields for its carried value of that number."""
    return terminator(loop).operation.operands[number]


def argument(loop: Any, number: int) -> Any:
    """The block argument of the carried value of that number."""
    return body(loop).arguments[number + 1]


def _is_planned(op: Any, level: str) -> bool:
    plan = alcop.get(op, alcop.PipelineAttr)
    return plan is not None and level in plan and op.operation.name != "scf.for"


def _compute_slice(
    loop: Any, steps: list[list[Any]], dropped: set[Any], known: set[Any]
) -> tuple[set[Any], tuple[int, ...]]:
    """Ops and carried values that the compute stream needs."""
    effects = [
        op for step in steps for op in step if op not in dropped and not is_pure(op)
    ]
    wanted = [value for op in effects for value in captured(op)]
    results = [
        number
        for number, result in enumerate(loop.results)
        if any(True for _ in result.uses)
    ]
    arguments = _closure(loop, wanted, known, results)
    wanted += [yielded(loop, number) for number in arguments]
    ops, _ = backward_slice(wanted, body(loop), known)
    return {*ops, *effects}, arguments


def _closure(
    loop: Any,
    values: Iterable[Any],
    known: Iterable[Any] = (),
    also: Iterable[int] = (),
) -> tuple[int, ...]:
    """Numbers of the carried values behind `values`, now and in later iterations."""
    block, leaves = body(loop), set(known)
    numbers = {value: number - 1 for number, value in enumerate(block.arguments)}
    needed: set[int] = set()
    pending = set(also)
    wanted = list(values)
    while wanted or pending:
        _, arguments = backward_slice(wanted, block, leaves)
        pending |= {numbers[a] for a in arguments if numbers[a] >= 0}
        fresh = pending - needed
        needed |= fresh
        wanted = [yielded(loop, number) for number in fresh]
        pending = set()
    return tuple(sorted(needed))
