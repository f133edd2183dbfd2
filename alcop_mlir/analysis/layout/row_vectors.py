"""Vectors with an element per row of a gathered tile: what a thread computes of them.

A gather is given such vectors, which belong to the block. A thread needs the elements
of the rows that it copies, and computes them alone: by the same ops on numbers. This is
known of

    vector.step                            the row's number
    vector.broadcast of a number           that number
    arith.constant of equal elements       that constant
    ops of arith                           the same of the row's elements
    vector.transfer_read, vector.load      a load, from a row of a table
    what scf.for carries, scf.if yields    the same, carried and yielded by row
    ub.poison                              poison

where these are in the kernel; constants and broadcasts may be outside. Nothing is
changed here.
"""

from __future__ import annotations

from typing import Any

from alcop_mlir.analysis.ir.kernels import enclosing
from alcop_mlir.analysis.ir.loops import (
    branch_values,
    defining_op,
    init_args,
    is_inside,
    yielded,
)
from alcop_mlir.analysis.ir.rejected import Rejected
from alcop_mlir.bindings import ir

STEP, BROADCAST, CONSTANT = "vector.step", "vector.broadcast", "arith.constant"
READ, LOAD, POISON = "vector.transfer_read", "vector.load", "ub.poison"
LOOP, CHOICE = "scf.for", "scf.if"
# Of these a thread needs no elements of other vectors.
FIRST = (STEP, BROADCAST, CONSTANT, POISON)
_ROWS = slice(2, 4)  # of a gather's operands: the vectors of rows and of valid ones


def row_vectors(gather: ir.Operation) -> list[Any]:
    """The vectors of a gather's rows, and of which are valid."""
    return list(gather.operation.operands)[_ROWS]


def is_vector(value: ir.Value) -> bool:
    """Whether `value` has elements; also of types other than those of rows."""
    return isinstance(value.type, ir.VectorType)


def carrier(value: ir.Value) -> tuple[Any, int] | None:
    """The loop that carries `value`, or the choice that yields it, and its number."""
    op = defining_op(value)
    if op is not None:
        return (op, value.result_number) if op.name in (LOOP, CHOICE) else None
    holder = value.owner.owner.operation
    is_carried = holder.name == LOOP and value.arg_number > 0
    return (holder, value.arg_number - 1) if is_carried else None


def carried_from(holder: ir.Operation, number: int) -> list[Any]:
    """What a value that `holder` carries or yields is, in one case and the other."""
    if holder.name == CHOICE:
        return branch_values(holder, number)
    return [init_args(holder)[number], yielded(holder, number)]


def vectors_behind(value: ir.Value) -> list[Any]:
    """The vectors that `value` is computed from, element by element."""
    found = carrier(value)
    if found is not None:
        return carried_from(*found)
    op = defining_op(value)
    if op is None or op.name in FIRST:
        return []
    return [operand for operand in op.operands if is_vector(operand)]


def not_by_rows(gather: ir.Operation) -> Rejected | None:
    """The first op found whose elements a thread cannot compute; None where it can."""
    block = enclosing(gather)
    pending, seen = row_vectors(gather), set[Any]()
    while pending:
        value = pending.pop()
        if value in seen:
            continue
        seen.add(value)
        holder = carrier(value)
        maker = defining_op(value) if holder is None else holder[0]
        if maker is None:
            function = value.owner.owner.operation
            return Rejected(function, "expected vectors that are computed in it")
        if holder is None and not _is_known(maker):
            return Rejected(
                maker,
                "expected vector.step, vector.broadcast of a number, a constant of "
                "equal elements, arith, or a vector read from a row",
            )
        is_placed = block is None or is_inside(maker, block.op)
        if maker.name not in FIRST and not is_placed:
            return Rejected(maker, "expected it in the kernel")
        pending += vectors_behind(value)
    return None


def _is_known(op: Any) -> bool:
    """Whether an element of the result is computed of the elements of its row."""
    if op.name == BROADCAST:
        return not is_vector(op.operands[0])
    if op.name == CONSTANT:
        return op.attributes["value"].is_splat
    if op.name == READ:
        return _reads_a_row(op)
    return op.name in (STEP, LOAD, POISON) or op.name.startswith("arith.")


def _reads_a_row(read: Any) -> bool:
    """Whether a vector.transfer_read reads neighbours of one row, without a mask."""
    found = read.attributes["permutation_map"].value
    if [str(one) for one in found.results] != [f"d{found.n_dims - 1}"]:
        return False
    return not list(read.attributes["operandSegmentSizes"])[-1]
