"""Finds ring counters: loop-carried values that number the slots of a ring."""

from __future__ import annotations

from alcop_mlir.analysis.ir.loops import body, constant, made_by, yielded
from alcop_mlir.bindings import arith, ir


def period(loop: ir.Operation, number: int) -> int | None:
    """The period P if a loop-carried value becomes `x + 1 == P ? 0 : x + 1`.

    None for any other value. `number` is that of the carried value.
    """
    choice = made_by(yielded(loop, number), "arith.select")
    if choice is None:
        return None
    condition, wrapped, following = choice.operands
    add, compare = made_by(following, "arith.addi"), made_by(condition, "arith.cmpi")
    if add is None or compare is None or constant(wrapped) != 0:
        return None
    counter, one = add.operands
    left, right = compare.operands
    is_counter = counter == body(loop).arguments[number + 1] and constant(one) == 1
    is_equal = compare.attributes["predicate"].value == arith.CmpIPredicate.eq
    return constant(right) if is_counter and is_equal and left == following else None
