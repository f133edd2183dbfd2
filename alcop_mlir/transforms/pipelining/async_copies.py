"""Builders of asynchronous copies into shared memory, their groups and waits."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from alcop_mlir.analysis.pipelining.copy_forms import CopyForm, copy_form
from alcop_mlir.analysis.pipelining.moves import ASYNC, TILE, Move
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
    """Issue the copy `form` with its values replaced by `mapping`.

    A region is copied with all that is in it, and its copies become asynchronous there.
    """
    if form.is_region:
        _make_asynchronous(build.clone(form.op, mapping))
        return
    for move in form.moves:
        _issue(move, mapping)


def _make_asynchronous(region: ir.Operation) -> None:
    """Replace the copies in `region` by asynchronous ones, each where it is."""
    form = copy_form(region)
    assert form is not None, region
    replaced: dict[Any, None] = {}
    for move in form.moves:
        # The scf.if of a guard stores what is not copied, which cp.async does as well.
        is_guarded = move.guard is not None and move.branch is None
        op = move.op.parent.operation if is_guarded else move.op
        with move.op.location, ir.InsertionPoint(op):
            _issue(move, {})
        replaced[op] = None
    for op in replaced:
        op.erase()
    build.erase_unused(m.producer for m in form.moves if _is_left(m))


def _is_left(move: Move) -> bool:
    """Whether what makes the stored value is still there."""
    return move.producer is not None and (move.guard is None or move.branch is not None)


def _issue(move: Move, mapping: dict[ir.Value, ir.Value]) -> None:
    """Issue the copy `move` with its values replaced by `mapping`.

    The copy of a tile becomes an `alcop.async_copy`, which alcop-distribute-copies
    distributes to the threads; a thread's own copy an `nvgpu.device_async_copy`. A
    guard or a count becomes the number of elements that are read: cp.async fills the
    rest with zero (PTX ISA, src-size). What else a guard fills with is stored.
    """
    if move.kind == ASYNC:
        build.clone(move.op, mapping)
    elif move.kind == TILE:
        source = mapping.get(move.source, move.source)
        target = mapping.get(move.target, move.target)
        copy = alcop.AsyncCopyOp(source, target)
        alcop.set_arbitrary(copy, alcop.arbitrary(move.op))
    elif move.fill is None:
        _issue_thread(move, mapping, _elements_read(move, mapping))
    else:
        stored: Any = move.op.operands[0]
        otherwise: dict[Any, Any] = {stored: mapping.get(move.fill, move.fill)}
        guard: Any = mapping.get(move.guard, move.guard)
        build.branch(
            guard,
            lambda: _issue_thread(move, mapping, _count(move, mapping)),
            lambda: _store(move, {**mapping, **otherwise}),
        )


def _store(move: Move, mapping: dict[ir.Value, ir.Value]) -> None:
    build.clone(move.op, mapping)


def _issue_thread(move: Move, mapping: dict[ir.Value, ir.Value], count: Any) -> None:
    """Issue a thread's copy of which `count` elements are read, None for all."""
    bypass = move.bytes == CP_ASYNC_BYPASS_L1_BYTES
    nvgpu.device_async_copy(
        mapping.get(move.target, move.target),
        [mapping.get(v, v) for v in move.target_indices],
        mapping.get(move.source, move.source),
        [mapping.get(v, v) for v in move.source_indices],
        ir.IntegerAttr.get(ir.IndexType.get(), move.elements),
        src_elements=count,
        bypass_l1=bypass or None,
    )


def _elements_read(move: Move, mapping: dict[Any, Any]) -> Any | None:
    """How many elements are read; None for all of them."""
    count = _count(move, mapping)
    if move.guard is None:
        return count
    guard = mapping.get(move.guard, move.guard)
    return build.select(guard, move.elements if count is None else count, 0)


def _count(move: Move, mapping: dict[Any, Any]) -> Any | None:
    """How many elements a mask leaves; None for all of them."""
    if move.count is None:
        return None
    if isinstance(move.count, int):
        return build.value(move.count)
    count = mapping.get(move.count, move.count)
    return build.least(build.most(count, 0), move.elements)
