"""The parts of `scf.for` loops, trip counts, and nesting of ops."""

from __future__ import annotations

from typing import Any

from alcop_mlir.analysis.ir.walk import walk
from alcop_mlir.bindings import ir


def constant(value: ir.Value) -> int | None:
    """The number that `value` is if it is an integer or index constant, or None."""
    owner = value.owner
    if isinstance(owner, ir.Block) or owner.name != "arith.constant":
        return None
    attribute = owner.attributes["value"]
    return attribute.value if isinstance(attribute, ir.IntegerAttr) else None


def is_loop(op: ir.Operation) -> bool:
    """Whether `op` is an `scf.for`."""
    return op.operation.name == "scf.for"


def body(loop: ir.Operation) -> Any:
    """The loop's block; its last op yields."""
    return loop.operation.regions[0].blocks[0]


def bounds(loop: ir.Operation) -> tuple[Any, Any, Any]:
    """Lower bound, upper bound, step."""
    lower, upper, step = list(loop.operation.operands)[:3]
    return lower, upper, step


def init_args(loop: ir.Operation) -> list[Any]:
    """The initial values of the loop-carried values."""
    return list(loop.operation.operands)[3:]


def terminator(loop: ir.Operation) -> Any:
    """The loop's `scf.yield`."""
    return body(loop).operations[-1]


def trip_count(loop: ir.Operation) -> int | None:
    """How often the loop runs, where its bounds are constants; else None."""
    lower, upper, step = (constant(bound) for bound in bounds(loop))
    if lower is None or upper is None or step is None or step <= 0:
        return None
    return max(0, -(-(upper - lower) // step))


def remaining_extents(loop: ir.Operation) -> list[Any]:
    """Values `min(step, upper - induction)` in the loop's own block.

    They are the step itself in every iteration but perhaps the last.
    """
    _, upper, step = bounds(loop)
    induction = body(loop).arguments[0]

    def is_left(value: ir.Value) -> bool:
        owner = defining_op(value)
        if owner is None or owner.operation.name != "arith.subi":
            return False
        whole, gone = owner.operation.operands
        return _is_same(whole, upper) and gone == induction

    found = []
    for op in body(loop).operations:
        if op.operation.name == "arith.minsi":
            one, other = op.operation.operands
            for left, width in ((one, other), (other, one)):
                if is_left(left) and _is_same(width, step):
                    found.append(op.operation.results[0])
    return found


def _is_same(one: Any, other: Any) -> bool:
    """Whether two values are one, or the same constant."""
    number = constant(one)
    return one == other or (number is not None and number == constant(other))


def loops_in(op: ir.Operation) -> list[Any]:
    """All `scf.for` in `op`, outer ones first."""
    return walk(op, "scf.for")


def is_inside(op: ir.Operation, ancestor: ir.Operation) -> bool:
    """Whether `op` is in a region of `ancestor`, at any depth."""
    parent = op.operation.parent
    while parent is not None:
        if parent.operation == ancestor.operation:
            return True
        parent = parent.operation.parent
    return False


def ancestor_in(op: ir.Operation, block: ir.Block) -> ir.Operation | None:
    """The op of `block` that is `op` or has it in a region, or None."""
    current = op.operation
    # The block of an op without a parent must not be asked for: that crashes.
    while current.parent is not None:
        if current.block == block:
            return current
        current = current.parent.operation
    return None


def defining_op(value: ir.Value) -> ir.Operation | None:
    """The op that has `value` as a result; None for a block argument."""
    owner = value.owner
    return None if isinstance(owner, ir.Block) else owner
