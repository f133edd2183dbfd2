"""Builds the asynchronous form of a copy into shared memory."""

from __future__ import annotations

from typing import Any

from alcop_mlir.analysis.copy_forms import ASYNC, TILE, CopyForm
from alcop_mlir.bindings import arith, ir, nvgpu
from alcop_mlir.dialects import alcop
from alcop_mlir.target import CP_ASYNC_BYPASS_L1_BYTES
from alcop_mlir.transforms import build


def issue_copy(form: CopyForm, mapping: dict[Any, Any]) -> None:
    """Issue the copy `form` with its values replaced by `mapping`.

    A tile becomes an `alcop.async_copy`, which alcop-distribute-copies spreads over the
    threads; a thread's own move an `nvgpu.device_async_copy`. A guard becomes the
    number of elements that are read: cp.async fills the rest with zero (PTX ISA,
    src-size).
    """
    if form.kind == ASYNC:
        copy = build.clone(form.op, mapping)
        alcop.drop(copy, alcop.PipelineAttr)
        return
    source = mapping.get(form.source, form.source)
    target = mapping.get(form.target, form.target)
    if form.kind == TILE:
        copy = alcop.AsyncCopyOp(source, target)
        alcop.set_arbitrary(copy, alcop.arbitrary(form.op))
        return
    guard = None
    if form.guard is not None:
        condition = mapping.get(form.guard, form.guard)
        guard = arith.select(condition, build.index(form.elements), build.index(0))
    bypass = form.bytes == CP_ASYNC_BYPASS_L1_BYTES
    nvgpu.device_async_copy(
        target,
        [mapping.get(v, v) for v in form.target_indices],
        source,
        [mapping.get(v, v) for v in form.source_indices],
        ir.IntegerAttr.get(ir.IndexType.get(), form.elements),
        src_elements=guard,
        bypass_l1=bypass or None,
    )
