"""What makes a value; the parts of `scf.for` loops, trip counts, nesting of ops."""

from __future__ import annotations

from itertools import permutations
from typing import Any

from alcop_mlir.analysis.ir.walk import around, walk
from alcop_mlir.bindings import ir


def defining_op(value: ir.Value) -> Any | None:
    """The op that has `value` as a result; None for a block argument."""
    owner = value.owner
    return None if isinstance(owner, ir.Block) else owner.operation


def made_by(value: ir.Value, *names: str) -> Any | None:
    """The op of one of these names that has `value` as a result; else None."""
    op = defining_op(value)
    return op if op is not None and op.name in names else None


def block_of(value: ir.Value) -> Any:
    """The block that has `value` as an argument, or the op that makes it."""
    owner = value.owner
    return owner if isinstance(owner, ir.Block) else owner.operation.block


def without(value: ir.Value, *names: str) -> Any:
    """What `value` was before ops of these names, which keep their first operand."""
    while (op := made_by(value, *names)) is not None:
        value = op.operands[0]
    return value


def constant(value: ir.Value) -> int | None:
    """The number that `value` is if it is an integer or index constant, or None."""
    op = made_by(value, "arith.constant")
    attribute = None if op is None else op.attributes["value"]
    return attribute.value if isinstance(attribute, ir.IntegerAttr) else None


def number(value: ir.Value) -> int | None:
    """As `constant`, or what each element of a vector is; None for other values."""
    attribute = _each_element(value)
    return attribute.value if isinstance(attribute, ir.IntegerAttr) else None


def _each_element(value: ir.Value) -> Any | None:
    """The attribute that a constant is, or each of its elements; None for others."""
    op = made_by(value, "arith.constant")
    attribute = None if op is None else op.attributes["value"]
    if isinstance(attribute, ir.DenseElementsAttr) and attribute.is_splat:
        return attribute.get_splat_value()
    return attribute


def splat(value: ir.Value) -> float | None:
    """The number that a constant, or each element of one, is; None for other values."""
    attribute = _each_element(value)
    if isinstance(attribute, ir.BoolAttr):
        return float(bool(attribute.value))
    is_number = isinstance(attribute, ir.FloatAttr | ir.IntegerAttr)
    return float(attribute.value) if is_number else None


def filled(tensor: ir.Value) -> float | None:
    """The number that all elements of a tensor are, by a fill or as a constant."""
    fill = made_by(tensor, "linalg.fill")
    return splat(tensor if fill is None else fill.operands[0])


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
    return body(loop).operations[-1].operation


def yielded(loop: ir.Operation, number: int) -> Any:
    """What an iteration makes of the carried value of that number."""
    return terminator(loop).operands[number]


def carries(loop: ir.Operation, op: ir.Operation) -> bool:
    """Whether a result of `op` is carried to the next iteration."""
    return any(value in op.results for value in terminator(loop).operands)


def branch_values(branch: ir.Operation, number: int) -> list[Any]:
    """What each region of an `scf.if` yields for its result of that number."""
    ends = [region.blocks[0].operations[-1] for region in branch.regions]
    return [end.operands[number] for end in ends]


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
        op = made_by(value, "arith.subi")
        if op is None:
            return False
        return _is_same(op.operands[0], upper) and op.operands[1] == induction

    return [
        op.operation.results[0]
        for op in body(loop).operations
        if op.operation.name == "arith.minsi"
        and any(
            is_left(left) and _is_same(width, step)
            for left, width in permutations(op.operation.operands)
        )
    ]


def _is_same(one: Any, other: Any) -> bool:
    """Whether two values are one, or the same constant."""
    number = constant(one)
    return one == other or (number is not None and number == constant(other))


def loops_in(op: ir.Operation) -> list[Any]:
    """All `scf.for` in `op`, outer ones first."""
    return walk(op, "scf.for")


def is_inside(op: ir.Operation, ancestor: ir.Operation) -> bool:
    """Whether `op` is in a region of `ancestor`, at any depth."""
    return ancestor.operation in around(op)


def ancestor_in(op: ir.Operation, block: ir.Block) -> ir.Operation | None:
    """The op of `block` that is `op` or has it in a region, or None."""
    current = op.operation
    # The block of an op without a parent must not be asked for: that crashes.
    while current.parent is not None:
        if current.block == block:
            return current
        current = current.parent.operation
    return None
