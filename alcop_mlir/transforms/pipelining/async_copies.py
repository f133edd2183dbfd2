"""Builders of asynchronous copies into shared memory, their groups and waits."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from alcop_mlir.analysis.pipelining.copy_forms import CopyForm, copy_form
from alcop_mlir.analysis.pipelining.moves import ASYNC, TILE, Move
from alcop_mlir.bindings import ir, nvgpu
from alcop_mlir.dialects import alcop
from alcop_mlir.passes import build, edit
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
        _make_asynchronous(edit.clone(form.op, mapping))
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
    edit.erase_unused(m.producer for m in form.moves if _is_left(m))


def _is_left(move: Move) -> bool:
    """Whether what makes the stored value is still there."""
    return move.producer is not None and (move.guard is None or move.branch is not None)


def _issue(move: Move, mapping: dict[ir.Value, ir.Value]) -> None:
    """Issue the copy `move` with its values replaced by `mapping`.

    The copy of a tile becomes an `alcop.async_copy` or an `alcop.async_gather`, which
    alcop-distribute-copies distributes to the threads; a thread's own copy an
    `nvgpu.device_async_copy`. A guard or a count becomes the number of elements that
    are read: cp.async fills the rest with zero (PTX ISA, src-size). What else a guard
    fills with is stored.
    """
    if move.kind == ASYNC:
        edit.clone(move.op, mapping)
    elif move.kind == TILE:
        source = mapping.get(move.source, move.source)
        target = mapping.get(move.target, move.target)
        if move.rows:
            rows, valid, *width = (mapping.get(value, value) for value in move.rows)
            alcop.AsyncGatherOp(
                source, target, rows, valid, width=width[0] if width else None
            )
            return
        copy = alcop.AsyncCopyOp(source, target)
        alcop.set_arbitrary(copy, alcop.arbitrary(move.op))
    elif move.fill is None:
        _issue_thread(move, mapping, _value(move.guard, mapping))
    else:
        stored: Any = move.op.operands[0]
        otherwise: dict[Any, Any] = {stored: mapping.get(move.fill, move.fill)}
        guard: Any = mapping.get(move.guard, move.guard)
        build.branch(
            guard,
            lambda: _issue_thread(move, mapping, None),
            lambda: _store(move, {**mapping, **otherwise}),
        )


def _store(move: Move, mapping: dict[ir.Value, ir.Value]) -> None:
    edit.clone(move.op, mapping)


def _issue_thread(move: Move, mapping: dict[Any, Any], guard: Any | None) -> None:
    """Issue a thread's copy, by several where it is wide; zero where `guard` is false.

    guard: None where there is none
    """
    size = move.elements * move.width // move.bytes
    bypass = move.width == CP_ASYNC_BYPASS_L1_BYTES
    for first in range(0, move.elements, size):
        count = _elements_read(_value(move.count, mapping), guard, first, size)
        nvgpu.device_async_copy(
            _value(move.target, mapping),
            _moved_on(move.target_indices, first, mapping),
            _value(move.source, mapping),
            _moved_on(move.source_indices, first, mapping),
            ir.IntegerAttr.get(ir.IndexType.get(), size),
            src_elements=count,
            bypass_l1=bypass or None,
        )


def _value(value: Any, mapping: dict[Any, Any]) -> Any:
    """A value, a number or None, by `mapping` where that has it."""
    return mapping.get(value, value)


def _moved_on(
    indices: Sequence[Any], elements: int, mapping: dict[Any, Any]
) -> list[Any]:
    """The indices, so many elements further on along the last dimension."""
    moved = [_value(index, mapping) for index in indices]
    if elements:
        moved[-1] = build.add(moved[-1], elements)
    return moved


def _elements_read(
    count: Any | None, guard: Any | None, first: int, size: int
) -> Any | None:
    """Of `size` elements from the `first` how many are read; None for all of them.

    count: how many are read from the first of the load, None for all
    """
    if isinstance(count, int):
        count = build.value(max(0, min(count - first, size)))
    elif count is not None:
        left = build.sub(count, first) if first else count
        count = build.least(build.most(left, 0), size)
    if guard is None:
        return count
    return build.select(guard, size if count is None else count, 0)
