"""Whether the buffer of a copy can have slots: rules 2, 4 and 5.

It must be an allocation of its own, filled by the copies of one loop alone, and all
that reads it must follow these in the same iteration. Nothing is changed here.
"""

from __future__ import annotations

from typing import Any

from alcop_mlir.analysis.ir import memory
from alcop_mlir.analysis.ir.loops import ancestor_in, body
from alcop_mlir.analysis.ir.memref_layouts import is_contiguous
from alcop_mlir.analysis.pipelining.copy_forms import Forms
from alcop_mlir.analysis.pipelining.verdicts import Refusal
from alcop_mlir.bindings import ir


def not_one_buffer(buffer: ir.Value) -> Refusal | None:
    if not memory.is_own_allocation(buffer):
        return Refusal(
            4,
            "its buffer is not an allocation of its own, so other views of it cannot "
            "be seen",
            "allocate it with memref.alloc or as a workgroup attribution",
        )
    if not buffer.type.has_static_shape or not is_contiguous(buffer.type):
        return Refusal(
            5,
            f"its buffer has the type {buffer.type}",
            "allocate it with static sizes and without gaps",
        )
    return None


def used_elsewhere(
    loop: ir.Operation, forms: Forms, buffer: ir.Value
) -> Refusal | None:
    """Rules 2 and 4: copies alone fill it; all reads follow in the same iteration."""
    accesses = memory.accesses(buffer)
    if not isinstance(accesses, list) and accesses.name in memory.VIEW_OPS:
        return Refusal(
            4,
            f"its buffer is used through '{accesses.name}', which cannot view one slot "
            "of several",
            "allocate the buffer with the type that it is used with, as "
            "alcop-separate-views does with views at constant offsets",
        )
    if not isinstance(accesses, list):
        return Refusal(
            4,
            f"its buffer is used by '{accesses.name}', whose effect is not known",
            "use it through copies, loads, transfer_read or ldmatrix only",
        )
    placed = [(a, ancestor_in(a.op, body(loop))) for a in accesses]
    writing = {ancestor for access, ancestor in placed if access.writes}
    fills = {op for op in writing if op in forms}
    return (
        _read_before(placed, fills)
        or _written_otherwise(placed, fills)
        or _read_outside(placed)
    )


# Accesses of a buffer, each with the op of the loop's block that it is in, or None.
_Placed = list[tuple[memory.Access, Any | None]]


def _written_otherwise(accesses: _Placed, fills: set[Any]) -> Refusal | None:
    for access, ancestor in accesses:
        if access.writes and ancestor not in fills:
            where = "" if ancestor is not None else " outside of the loop"
            return Refusal(
                2,
                f"its buffer is also written by '{access.op.name}'{where}",
                "fill the buffer by copies in the loop only",
            )
    return None


def _read_outside(accesses: _Placed) -> Refusal | None:
    for access, ancestor in accesses:
        if access.reads and ancestor is None:
            return Refusal(
                4,
                f"its buffer is read by '{access.op.name}' outside of the loop",
                "read it in the iteration that fills it",
            )
    return None


def _read_before(accesses: _Placed, fills: set[Any]) -> Refusal | None:
    for access, ancestor in accesses:
        if access.writes or ancestor is None:
            continue
        if not all(fill.is_before_in_block(ancestor) for fill in fills):
            return Refusal(
                4,
                f"its buffer is read by '{access.op.name}' before the copy",
                "copy before use in each iteration",
            )
    return None
