"""Vectors with an element per row of a gathered tile: what a thread computes of them.

A gather is given such vectors, which belong to the block. A thread needs the elements
of the rows that it copies, and computes them alone: by the same ops on numbers. This is
known of

    vector.step                            the row's number
    vector.broadcast of a number           that number
    arith.constant of equal elements       that constant
    ops of arith                           the same of the row's elements
    vector.transfer_read of a row          a load

where these are in the kernel; constants and broadcasts may be outside. Nothing is
changed here.
"""

from __future__ import annotations

from typing import Any

from alcop_mlir.analysis.ir.kernels import enclosing
from alcop_mlir.analysis.ir.loops import defining_op, is_inside
from alcop_mlir.analysis.ir.rejected import Rejected
from alcop_mlir.bindings import ir

STEP, BROADCAST, CONSTANT = "vector.step", "vector.broadcast", "arith.constant"
READ = "vector.transfer_read"
_FIRST_VECTOR = 2  # of a gather's operands, after source and target


def not_by_rows(gather: ir.Operation) -> Rejected | None:
    """The first op found whose elements a thread cannot compute; None where it can."""
    block = enclosing(gather)
    pending, seen = list(gather.operation.operands)[_FIRST_VECTOR:], set[Any]()
    while pending:
        value = pending.pop()
        if value in seen or not isinstance(value.type, ir.VectorType):
            continue
        seen.add(value)
        op = defining_op(value)
        if op is None:
            holder = value.owner.owner.operation
            return Rejected(holder, "expected numbers to be carried")
        if not _is_known(op):
            return Rejected(
                op,
                "expected vector.step, vector.broadcast of a number, a constant of "
                "equal elements, arith, or vector.transfer_read of a row",
            )
        if op.name in (STEP, BROADCAST, CONSTANT):
            continue
        if block is not None and not is_inside(op, block.op):
            return Rejected(op, "expected it in the kernel")
        pending += op.operands
    return None


def _is_known(op: Any) -> bool:
    """Whether an element of the result is computed of the elements of its row."""
    if op.name == BROADCAST:
        return not isinstance(op.operands[0].type, ir.VectorType)
    if op.name == CONSTANT:
        return op.attributes["value"].is_splat
    if op.name == READ:
        return _reads_a_row(op)
    return op.name == STEP or op.name.startswith("arith.")


def _reads_a_row(read: Any) -> bool:
    """Whether a vector.transfer_read reads neighbours of one row, without a mask."""
    found = read.attributes["permutation_map"].value
    if [str(one) for one in found.results] != [f"d{found.n_dims - 1}"]:
        return False
    return not list(read.attributes["operandSegmentSizes"])[-1]
