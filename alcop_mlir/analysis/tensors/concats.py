"""Which concatenations of tensors one element-wise op could compute.

`find_parts` looks at a `tensor.concat`. Changes nothing.
"""

from __future__ import annotations

from typing import Any

from alcop_mlir.analysis.ir.loops import made_by
from alcop_mlir.analysis.ir.walk import walk
from alcop_mlir.analysis.linalg.view import LinalgView, Operand, view_of
from alcop_mlir.bindings import ir

_MOST_PARTS = 4  # each element is chosen of so many, which are all computed


def why_not_one(concat: ir.Operation) -> str | None:
    """Why no one op can compute all parts and choose; None if one can."""
    parts = list(concat.operands)
    kinds = {part.type for part in parts}
    if len(kinds) != 1 or not parts[0].type.has_static_shape:
        return "its parts have sizes that differ, or are known at run time only"
    if not 2 <= len(parts) <= _MOST_PARTS:
        return f"it has {len(parts)} parts, expected 2 to {_MOST_PARTS}"
    for part in parts:
        op = made_by(part, "linalg.generic")
        if op is None or not is_element_wise(view_of(op)):
            return "no element-wise op makes each part"
        if any(use.owner.operation != concat.operation for use in part.uses):
            return "other ops read a part"
        if any(inner.name.startswith("math.") for inner in walk(op)):
            return "its parts take long to compute, and all would be for each element"
    return None


def is_element_wise(view: LinalgView) -> bool:
    """Whether it makes a new tensor, an element in each iteration, of known sizes."""
    if len(view.outputs) != 1 or not len(view.op.results):
        return False
    output = view.outputs[0]
    is_new = made_by(output.value, "tensor.empty") is not None
    is_static = all(_is_static(one.value.type) for one in view.operands)
    is_plain = output.loops == tuple(range(view.rank)) and not output.is_read
    return is_new and is_static and is_plain and not view.reductions


def computing_reader(value: ir.Value) -> LinalgView | None:
    """The op that alone reads `value`, if it is element-wise, and more than a copy."""
    users = [use.owner.operation for use in value.uses]
    if len(users) != 1 or users[0].name != "linalg.generic":
        return None
    view = view_of(users[0])
    computes = len(view.block.operations) > 1 and not walk(view.op, "linalg.index")
    return view if computes and is_element_wise(view) else None


def dimension_of(operand: Operand, loop: int) -> int | None:
    """The dimension that a loop indexes; -1 for none; None if not as a loop alone."""
    for number, index in enumerate(operand.indices):
        if index.loop == loop:
            return number
        if loop in index.loops:
            return None
    return -1


def _is_static(kind: Any) -> bool:
    return not isinstance(kind, ir.RankedTensorType) or kind.has_static_shape
