"""Plans in the form of marks on a loop, its copies and its reads, as users write them.

    scf.for { memref.copy %tile, %a {alcop.pipeline = #alcop.pipeline<{shared = 3}>} }
        {alcop.pipeline = #alcop.pipeline<{shared = 3}>}

`register = 2` is on the reads and on the loop that has them, with `carried = true`
where that is an inner one.
"""

from __future__ import annotations

from typing import Any

from alcop_mlir.analysis.ir.loops import body, is_loop
from alcop_mlir.analysis.pipelining.copy_forms import copy_form
from alcop_mlir.analysis.pipelining.early_addresses import fetches_for
from alcop_mlir.analysis.pipelining.fetches import Fetch
from alcop_mlir.analysis.pipelining.plans.composed_plans import Decided, composed
from alcop_mlir.analysis.pipelining.plans.stage_lists import LISTS
from alcop_mlir.analysis.pipelining.plans.stream_plan import (
    PREDICATED,
    TAILS,
    StreamPlan,
)
from alcop_mlir.analysis.pipelining.verdicts import REGISTER, SHARED
from alcop_mlir.bindings import ir
from alcop_mlir.dialects import alcop
from alcop_mlir.errors import PassError
from alcop_mlir.schedule import MAX_REGISTER_STAGES, MAX_SHARED_STAGES

# Parameters of a mark, and their types.
_MARKS = {SHARED: int, REGISTER: int, "carried": bool, "tail": str}
_MARK_TEXT = {bool: "true or false", str: "a string"}
_MOST_STAGES = {SHARED: MAX_SHARED_STAGES, REGISTER: MAX_REGISTER_STAGES}


def from_marks(
    loop: ir.Operation, parameters: dict[str, Any]
) -> tuple[StreamPlan, tuple[Any, ...], tuple[Any, ...]] | None:
    """The plan, its ops, and all ops with marks of it; None for a carried loop.

    PassError where the marks on `loop` and on its ops say none.
    """
    _check_mark(loop, parameters)
    if _is_carried(parameters):
        return None
    marks = _marks(loop)
    inner = [op for op, mark in marks if is_loop(op) and _is_carried(mark)]
    for carried in inner:
        marks += _marks(carried)
    slots = parameters.get(SHARED, 0)
    stages = max((mark.get(REGISTER, 1) for _, mark in marks), default=1)
    marks = [(op, mark) for op, mark in marks if not is_loop(op)]
    for op, mark in marks:
        _check_stages(op, mark, SHARED, slots)
        _check_stages(op, mark, REGISTER, stages)
    fills = {op: copy_form(op) for op, mark in marks if SHARED in mark}
    reads = [op for op, mark in marks if REGISTER in mark]
    tail = parameters.get("tail", PREDICATED)
    forms = [form for form in fills.values() if form is not None]
    fetches = [Fetch(op, lead) for op, lead in fetches_for(loop, forms).items()]
    decided = Decided(slots, fills, stages, reads, inner, tail, fetches, noalias=True)
    plan, ops = composed(loop, decided)
    if not ops:
        raise PassError(
            loop, "is planned, but no op in it is: expected copies or reads"
        )
    return plan, ops, (*(op for op, _ in marks), *inner)


def _is_carried(mark: dict[str, Any]) -> bool:
    """Whether a loop with this mark is expanded with the loop around it."""
    return mark.get("carried", False) and SHARED not in mark


def _marks(loop: ir.Operation) -> list[tuple[Any, dict[str, Any]]]:
    """The marked ops of the loop's block, less inner loops with plans of their own."""
    found = []
    for op in body(loop).operations:
        mark = alcop.get(op, alcop.PipelineAttr)
        if mark is None:
            continue
        _check_mark(op, mark)
        if not is_loop(op) or _is_carried(mark):
            found.append((op.operation, mark))
    return found


def _check_stages(
    op: ir.Operation, mark: dict[str, Any], level: str, stages: int
) -> None:
    if mark.get(level, stages) != stages:
        raise PassError(
            op, f"is planned with {mark[level]} stages, its loop with {stages}"
        )


def _check_mark(op: ir.Operation, mark: dict[str, Any]) -> None:
    for name, value in mark.items():
        expected = _MARKS.get(name)
        if expected is None:
            known = ", ".join((*_MARKS, *LISTS, "streams"))
            raise PassError(op, f"alcop.pipeline has '{name}', expected {known}")
        most = _MOST_STAGES.get(name, 0)
        if type(value) is not expected or (most and not 2 <= value <= most):
            wanted = f"an integer from 2 to {most}" if most else _MARK_TEXT[expected]
            raise PassError(op, f"alcop.pipeline: {name} is {value}, expected {wanted}")
        if name == "tail" and value not in TAILS:
            wanted = " or ".join(TAILS)
            raise PassError(op, f"alcop.pipeline: tail is {value}, expected {wanted}")
