"""Finds ring counters: loop-carried values that number the slots of a ring."""

from __future__ import annotations

from alcop_mlir.analysis.ir.loops import body, constant, defining_op, terminator
from alcop_mlir.bindings import arith, ir


def period(loop: ir.Operation, number: int) -> int | None:
    """The period P if a loop-carried value becomes `x + 1 == P ? 0 : x + 1`.

    None for any other value. `number` is that of the carried value.
    """
    counter = body(loop).arguments[number + 1]
    choice = defining_op(terminator(loop).operation.operands[number])
    if choice is None or choice.operation.name != "arith.select":
        return None
    condition, wrapped, following = choice.operation.operands
    if constant(wrapped) != 0 or not _is_successor(following, counter):
        return None
    compare = defining_op(condition)
    if compare is None or compare.operation.name != "arith.cmpi":
        return None
    if compare.operation.attributes["predicate"].value != arith.CmpIPredicate.eq:
        return None
    left, right = compare.operation.operands
    return constant(right) if left == following else None


def _is_successor(value: ir.Value, counter: ir.Operation) -> bool:
    add = defining_op(value)
    if add is None or add.operation.name != "arith.addi":
        return False
    left, right = add.operation.operands
    return left == counter and constant(right) == 1
