"""Whether a shared buffer may have slots that ordinary stores of its loop fill.

    store %v, %b[%t] ; barrier ; %x = load %b[%u]    // in each iteration

It may if an iteration finds in the buffer only what it has stored itself: all writes
come before all reads, in the loop, and fill the same elements each time. Nothing is
changed here.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from alcop_mlir.analysis.ir import memory
from alcop_mlir.analysis.ir.loops import ancestor_in, body, is_inside
from alcop_mlir.analysis.ir.memref_layouts import is_contiguous
from alcop_mlir.analysis.ir.walk import around
from alcop_mlir.analysis.pipelining.copies import target_moves
from alcop_mlir.analysis.pipelining.copy_forms import copy_form
from alcop_mlir.analysis.pipelining.footprints import from_outside, may_change
from alcop_mlir.bindings import ir

# What an op stores, or copies from, is its first operand, or its last.
_STORED_LAST = ("vector.maskedstore",)


def stored_buffers(op: ir.Operation) -> list[Any]:
    """The shared allocations that `op` and its regions write, each once."""
    roots = [root for _, root in memory.written_roots(op) if root is not None]
    return [root for root in dict.fromkeys(roots) if memory.is_workgroup(root.type)]


def no_slots(loop: ir.Operation, buffer: ir.Value) -> str | None:
    """Why `buffer` cannot have slots in `loop`; None where it can."""
    if not memory.is_own_allocation(buffer):
        return "is no allocation of its own"
    if not buffer.type.has_static_shape or not is_contiguous(buffer.type):
        return f"has the type {buffer.type}, expected static sizes without gaps"
    accesses = memory.accesses(buffer)
    if not isinstance(accesses, list):
        return f"is used by '{accesses.name}', in no known way"
    placed = list[tuple[memory.Access, Any]]()
    for access in accesses:
        ancestor = ancestor_in(access.op, body(loop))
        if ancestor is None:
            return f"is used by '{access.op.name}' outside of the loop"
        placed.append((access, ancestor))
    writers = list(dict.fromkeys(op for access, op in placed if access.writes))
    for access, reader in placed:
        if access.reads and not all(one.is_before_in_block(reader) for one in writers):
            return (
                f"is read by '{access.op.name}' before all of it is stored in the "
                "iteration"
            )
    if any(_may_move(loop, writer, buffer) for writer in writers):
        return "is not filled in the same elements by each iteration"
    return None


def _may_move(loop: ir.Operation, writer: ir.Operation, buffer: ir.Value) -> bool:
    form = copy_form(writer)
    if form is not None:
        return target_moves(loop, form) is not None
    decides = list(_decides(writer, buffer))
    return may_change(from_outside(decides, writer), loop, [buffer])


def _decides(writer: ir.Operation, buffer: ir.Value) -> Iterator[Any]:
    """The values that decide which elements of `buffer` the op fills."""
    for access in memory.accesses(buffer):
        if not access.writes or not _is_in(access.op, writer):
            continue
        operands = list(access.op.operands)
        yield from operands[:-1] if access.op.name in _STORED_LAST else operands[1:]
        for holder in around(access.op):
            if _is_in(holder, writer):
                yield from holder.operands


def _is_in(op: ir.Operation, outer: ir.Operation) -> bool:
    return op == outer or is_inside(op, outer)
