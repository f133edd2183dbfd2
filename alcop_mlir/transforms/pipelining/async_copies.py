"""Builders of asynchronous copies into shared memory, their groups and waits."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from alcop_mlir.analysis.pipelining.copy_forms import ASYNC, TILE, CopyForm, Move
from alcop_mlir.bindings import ir, nvgpu
from alcop_mlir.dialects import alcop
from alcop_mlir.passes import build
from alcop_mlir.target import CP_ASYNC_BYPASS_L1_BYTES

_GROUP_MARK = "alcop.group"


def create_group(tokens: Sequence[ir.Value] = ()) -> Any:
    """End the commit group of the copies issued so far; its token."""
    group = nvgpu.DeviceAsyncCreateGroupOp(tokens)
    # Upstream prints a group without operands so that the next op's result is read as
    # one; an attribute between them keeps the text readable.
    if not tokens:
        group.operation.attributes[_GROUP_MARK] = ir.UnitAttr.get()
    return group.results[0]


def wait_for(group: ir.Value, younger: int) -> None:
    """Wait until `group` has landed, which so many groups were committed after."""
    count = ir.IntegerAttr.get(build.integer(32), younger)
    nvgpu.device_async_wait(group, num_groups=count)


def issue_copy(form: CopyForm, mapping: dict[ir.Value, ir.Value]) -> None:
    """Issue the copy `form` with its values replaced by `mapping`."""
    for move in form.moves:
        _issue(move, mapping)


def _issue(move: Move, mapping: dict[ir.Value, ir.Value]) -> None:
    """Issue the copy `move` with its values replaced by `mapping`.

    The copy of a tile becomes an `alcop.async_copy`, which alcop-distribute-copies
    distributes to the threads; a thread's own copy an `nvgpu.device_async_copy`. A
    guard or a count becomes the number of elements that are read: cp.async fills the
    rest with zero (PTX ISA, src-size).
    """
    if move.kind == ASYNC:
        build.clone(move.op, mapping)
        return
    source = mapping.get(move.source, move.source)
    target = mapping.get(move.target, move.target)
    if move.kind == TILE:
        copy = alcop.AsyncCopyOp(source, target)
        alcop.set_arbitrary(copy, alcop.arbitrary(move.op))
        return
    bypass = move.bytes == CP_ASYNC_BYPASS_L1_BYTES
    nvgpu.device_async_copy(
        target,
        [mapping.get(v, v) for v in move.target_indices],
        source,
        [mapping.get(v, v) for v in move.source_indices],
        ir.IntegerAttr.get(ir.IndexType.get(), move.elements),
        src_elements=_elements_read(move, mapping),
        bypass_l1=bypass or None,
    )


def _elements_read(move: Move, mapping: dict[Any, Any]) -> Any | None:
    """How many elements are read; None for all of them."""
    if move.guard is None and move.count is None:
        return None
    guard = move.guard
    count = move.elements if move.count is None else move.count
    if not isinstance(count, int):
        count = build.least(build.most(mapping.get(count, count), 0), move.elements)
    if guard is None:
        return build.value(count)
    return build.select(mapping.get(guard, guard), count, 0)
