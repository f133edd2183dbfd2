"""Gives each use of a vector of numbers an op of its own.

Before:  %n = vector.step : vector<64xindex>     // of rows and of columns, after CSE
         %r = arith.addi %n, %row ; %c = arith.addi %n, %column
After:   %n = vector.step ; %m = vector.step
         %r = arith.addi %n, %row ; %c = arith.addi %m, %column

Rows and columns of accumulators are distributed differently. Whatever is computed of
such a vector alone costs nothing to compute again, and CSE merges fragments that turn
out to be equal.
"""

from __future__ import annotations

from typing import Any

from alcop_mlir.analysis.ir.loops import defining_op
from alcop_mlir.analysis.ir.walk import walk
from alcop_mlir.analysis.layout.fragments import STEP, is_elementwise, is_uniform
from alcop_mlir.analysis.layout.reshapes import CAST
from alcop_mlir.bindings import ir


def separate_numbers(body: ir.Block) -> None:
    """Give each use in a kernel of what is computed of a vector.step its own op."""
    ops = [one for op in body.operations for one in walk(op)]
    numbering = {op for op in ops if _numbers(op)}
    # Users first: the copies of these use what they are computed from once more.
    for op in reversed(ops):
        if op in numbering:
            _separate(op)


def _numbers(op: ir.Operation) -> bool:
    """Whether the op numbers rows or columns: by a vector.step and uniform vectors."""
    pending, found = [op], False
    while pending:
        one = pending.pop()
        if one is None or not (one.name in (STEP, CAST) or is_elementwise(one)):
            return False
        if not _is_line(one):
            return False
        found |= one.name == STEP
        vectors = (v for v in one.operands if isinstance(v.type, ir.VectorType))
        pending += [defining_op(value) for value in vectors if not is_uniform(value)]
    return found


def _is_line(op: ir.Operation) -> bool:
    """Whether at most one dimension of the result has more than one element."""
    return sum(extent > 1 for extent in op.results[0].type.shape) <= 1


def _separate(op: ir.Operation) -> None:
    uses = [(use.owner.operation, use.operand_number) for use in op.results[0].uses]
    for user, number in uses[1:]:
        with ir.InsertionPoint(op):
            copy: Any = op.clone()
        user.operands[number] = copy.results[0]
