"""Which concatenations of tensors one element-wise op could compute.

`why_not_one` looks at a `tensor.concat`: element-wise ops make its parts, or some, and
others are slices of what there is, as in `cat(-x2, x1)`; or all are one value. Changes
nothing.
"""

from __future__ import annotations

from typing import Any

from alcop_mlir.analysis.ir.extents import groups_of
from alcop_mlir.analysis.ir.loops import made_by
from alcop_mlir.analysis.ir.walk import walk
from alcop_mlir.analysis.linalg.view import LinalgView, Operand, view_of
from alcop_mlir.bindings import ir

_MOST_PARTS = 4  # each element is chosen of so many, which are all computed
_NEITHER = "a part is neither made by an element-wise op nor a slice"
_MOVES = ("tensor.expand_shape", "tensor.collapse_shape", "linalg.transpose")


def why_not_one(concat: ir.Operation) -> str | None:
    """Why no one op can compute all parts and choose; None if one can."""
    parts = parts_of(concat)
    kinds = {part.type for part in parts}
    if len(kinds) != 1 or not parts[0].type.has_static_shape:
        return "its parts have sizes that differ, or are known at run time only"
    if not 2 <= len(parts) <= _MOST_PARTS:
        return f"it has {len(parts)} parts, expected 2 to {_MOST_PARTS}"
    if is_repeated(concat):
        return None
    if not are_computed(concat):
        return "no element-wise op makes a part"
    return next(filter(None, (_why_not_part(part, concat) for part in parts)), None)


def are_computed(concat: ir.Operation) -> bool:
    """Whether some part is made by an op that may be element-wise."""
    return any(made_by(part, "linalg.generic") for part in parts_of(concat))


def is_repeated(concat: ir.Operation) -> bool:
    """Whether all parts are one value."""
    return len({*parts_of(concat)}) == 1


def parts_of(concat: ir.Operation) -> list[ir.Value]:
    """What is put together; of a stack, without the dimension that is added to each."""
    sources = [_stacked(part, concat) for part in concat.operands]
    known = [one for one in sources if one is not None]
    return known if len(known) == len(sources) else list(concat.operands)


def is_stack(concat: ir.Operation) -> bool:
    """Whether its parts have a dimension, of one element, for it alone."""
    return parts_of(concat) != list(concat.operands)


def _stacked(part: ir.Value, concat: ir.Operation) -> ir.Value | None:
    """The value that has been given the dimension of a concatenation, of extent 1."""
    expand = made_by(part, "tensor.expand_shape")
    dimension = concat.attributes["dim"].value
    if (
        expand is None
        or not dimension
        # Integers are codes of bytes that are taken apart (`unpacking.py`).
        or not isinstance(part.type.element_type, ir.FloatType)
        or part.type.rank != 1 + (expand.operands[0].type.rank)
    ):
        return None
    is_last = [dimension - 1, dimension] in groups_of(expand)
    is_one = not part.type.is_dynamic_dim(dimension) and part.type.shape[dimension] == 1
    return expand.operands[0] if is_last and is_one else None


def _why_not_part(part: ir.Value, concat: ir.Operation) -> str | None:
    """Why an op that chooses should not read a part, or compute it."""
    op = made_by(part, "linalg.generic")
    if op is None:
        return None if _is_slice(part) else _NEITHER
    if not is_element_wise(view_of(op)):
        return _NEITHER
    if any(not _is_for(use.owner.operation, concat) for use in part.uses):
        return "other ops read a part"
    if any(inner.name.startswith("math.") for inner in walk(op)):
        return "its parts take long to compute, and all would be for each element"
    return None


def _is_for(user: ir.Operation, concat: ir.Operation) -> bool:
    """Whether it is the concatenation, or a view that this alone reads."""
    views = user.results if user.name == "tensor.expand_shape" else []
    readers = {use.owner.operation for view in views for use in view.uses}
    return user == concat.operation or readers == {concat.operation}


def _is_slice(value: ir.Value) -> bool:
    """Whether it is a part of another tensor, which is there anyway."""
    while (view := made_by(value, *_MOVES)) is not None:
        value = view.operands[0]
    return made_by(value, "tensor.extract_slice") is not None


def is_element_wise(view: LinalgView) -> bool:
    """Whether it makes a new tensor, an element in each iteration, of known sizes."""
    if len(view.outputs) != 1 or not len(view.op.results):
        return False
    output = view.outputs[0]
    is_new = made_by(output.value, "tensor.empty") is not None
    is_static = all(_is_static(one.value.type) for one in view.operands)
    is_plain = output.loops == tuple(range(view.rank)) and not output.is_read
    return is_new and is_static and is_plain and not view.reductions


def computing_readers(value: ir.Value) -> list[LinalgView]:
    """The ops that read `value`, if all are element-wise, and more than copies."""
    users = dict.fromkeys(use.owner.operation for use in value.uses)
    found = [as_computing(one) for one in users]
    known = [one for one in found if one is not None]
    return known if len(known) == len(found) else []


def as_computing(op: ir.Operation) -> LinalgView | None:
    """The op if it is element-wise, and more than a copy; None for all others."""
    if op.name != "linalg.generic":
        return None
    view = view_of(op)
    computes = len(view.block.operations) > 1 and not walk(op, "linalg.index")
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
