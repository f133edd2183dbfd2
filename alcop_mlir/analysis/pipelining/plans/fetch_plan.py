"""Decides which loads of global memory run early for the arithmetic of their loop."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from alcop_mlir.analysis.ir.loops import body
from alcop_mlir.analysis.ir.slices import backward_slice
from alcop_mlir.analysis.ir.walk import around
from alcop_mlir.analysis.pipelining.fetches import PROMISE, is_fetch
from alcop_mlir.analysis.pipelining.loop_fetches import keeps_loads, loop_fetches
from alcop_mlir.analysis.pipelining.moves import STORES
from alcop_mlir.analysis.pipelining.plans.kernel_plan import (
    KernelPlan,
    Limits,
    PipelinedLoop,
)
from alcop_mlir.analysis.pipelining.verdicts import SHARED, RejectedCopy
from alcop_mlir.bindings import ir


def plan_fetches(loops: Iterable[Any], limits: Limits, plan: KernelPlan) -> None:
    """Add to `plan` the fetches of these loops; once it has the pipelines."""
    if limits.fetch_stages == 1:
        return
    taken = {p.loop for p in plan.pipelines if p.carried}
    taken |= {op for p in plan.pipelines for op in p.ops}
    refused: list[tuple[Any, RejectedCopy]] = []
    for loop in loops:
        is_taken = not taken.isdisjoint([loop, *around(loop)])
        if is_taken or not (limits.fetch_all or keeps_loads(loop)):
            continue
        copied = _loaded_by_copies(p for p in plan.pipelines if p.loop == loop)
        found = loop_fetches(loop, limits.fetch_stages, limits.noalias_in(loop), copied)
        if found.refused:
            refused.append((loop, min(found.refused, key=_is_hard_to_mend)))
        if found.shortened is not None:
            plan.clamped.append((loop, found.shortened))
        if found.fetches:
            plan.fetched.append((loop, found.fetches))
            _stage_copies(loop, {fetch.op for fetch in found.fetches}, plan)
    plan.rejected += [no for loop, no in refused if _nothing_said(loop, plan)]


def _is_hard_to_mend(no: RejectedCopy) -> bool:
    """Whether a promise does not suffice; one remark of a loop's loads is enough."""
    return no.remedy != PROMISE


def _nothing_said(loop: ir.Operation, plan: KernelPlan) -> bool:
    """Whether nothing in `loop` or in loops around it is pipelined, or remarked on."""
    planned = {p.loop for p in plan.pipelines} | {*plan.given}
    planned |= {one for one, _ in (*plan.fetched, *plan.clamped)}
    known = planned | {no.op for no in (*plan.rejected, *plan.staged)}
    holders = {holder for one in known for holder in (one, *around(one))}
    return loop not in holders and planned.isdisjoint(around(loop))


def _loaded_by_copies(pipelines: Iterable[PipelinedLoop]) -> set[Any]:
    """The loads that are a part of pipelined copies, or of their addresses."""
    loads: set[Any] = set()
    for pipeline in pipelines:
        loads.update(form.producer for form in pipeline.forms.values())
        loads.update(fetch.op for fetch in pipeline.fetches)
    return loads


def _stage_copies(loop: ir.Operation, fetched: set[Any], plan: KernelPlan) -> None:
    """Copies that are not pipelined, but what they store is fetched."""
    for no in plan.rejected:
        if no.level != SHARED or no.op.block != body(loop) or no.op.name not in STORES:
            continue
        ops, _ = backward_slice([no.op.operands[0]], body(loop))
        loads = [op for op in ops if is_fetch(op)]
        if loads and fetched.issuperset(loads):
            plan.staged.append(no)
    plan.rejected = [no for no in plan.rejected if no not in plan.staged]
