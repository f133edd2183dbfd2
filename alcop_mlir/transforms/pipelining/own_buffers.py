"""Gives a loop a buffer of its own in place of one that it shares with other code."""

from __future__ import annotations

from alcop_mlir.analysis.ir import loops, memory
from alcop_mlir.bindings import ir
from alcop_mlir.passes import build, edit


def give_own_buffer(buffer: ir.Value, loop: ir.Operation) -> None:
    """Let `loop` use a new allocation for `buffer`, and views of it for its views."""
    maker = loops.defining_op(buffer)
    point = ir.InsertionPoint.at_block_begin(loops.block_of(buffer))
    with loop.location, ir.InsertionPoint(maker) if maker else point:
        own = build.alloc(buffer.type)
    _rebind(buffer, own, loop)


def _rebind(old: ir.Value, new: ir.Value, loop: ir.Operation) -> None:
    for use in list(old.uses):
        op, number = use.owner.operation, use.operand_number
        if loops.is_inside(op, loop):
            op.operands[number] = new
        elif op.name in memory.DERIVED_VIEWS and _is_used_in(op.results[0], loop):
            with op.location, ir.InsertionPoint.after(op):
                operands = [new, *list(op.operands)[1:]]
                view = edit.like(op, [op.results[0].type], operands)
            _rebind(op.results[0], view.results[0], loop)


def _is_used_in(memref: ir.Value, loop: ir.Operation) -> bool:
    """Whether `loop` uses `memref`, or a view of it."""
    return any(
        loops.is_inside(op, loop)
        or (op.name in memory.DERIVED_VIEWS and _is_used_in(op.results[0], loop))
        for op in (use.owner.operation for use in memref.uses)
    )
