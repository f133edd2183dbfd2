"""Builder of the asynchronous form of a copy into shared memory."""

from __future__ import annotations

from typing import Any

from alcop_mlir.analysis.pipelining.copy_forms import ASYNC, TILE, CopyForm
from alcop_mlir.bindings import ir, nvgpu
from alcop_mlir.dialects import alcop
from alcop_mlir.passes import build
from alcop_mlir.target import CP_ASYNC_BYPASS_L1_BYTES


def issue_copy(form: CopyForm, mapping: dict[ir.Value, ir.Value]) -> None:
    """Issue the copy `form` with its values replaced by `mapping`.

    The copy of a tile becomes an `alcop.async_copy`, which alcop-distribute-copies
    distributes to the threads; a thread's own copy an `nvgpu.device_async_copy`. A
    guard or a count becomes the number of elements that are read: cp.async fills the
    rest with zero (PTX ISA, src-size).
    """
    if form.kind == ASYNC:
        build.clone(form.op, mapping)
        return
    source = mapping.get(form.source, form.source)
    target = mapping.get(form.target, form.target)
    if form.kind == TILE:
        copy = alcop.AsyncCopyOp(source, target)
        alcop.set_arbitrary(copy, alcop.arbitrary(form.op))
        return
    bypass = form.bytes == CP_ASYNC_BYPASS_L1_BYTES
    nvgpu.device_async_copy(
        target,
        [mapping.get(v, v) for v in form.target_indices],
        source,
        [mapping.get(v, v) for v in form.source_indices],
        ir.IntegerAttr.get(ir.IndexType.get(), form.elements),
        src_elements=_elements_read(form, mapping),
        bypass_l1=bypass or None,
    )


def _elements_read(form: CopyForm, mapping: dict[Any, Any]) -> Any | None:
    """How many elements are read; None for all of them."""
    if form.guard is None and form.count is None:
        return None
    guard = form.guard
    count = form.elements if form.count is None else form.count
    if not isinstance(count, int):
        count = build.least(build.most(mapping.get(count, count), 0), form.elements)
    if guard is None:
        return build.value(count)
    return build.select(mapping.get(guard, guard), count, 0)
