"""What passes on tensors build: empty tensors, and named ops as `linalg.generic`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from alcop_mlir.analysis.linalg.view import LinalgView
from alcop_mlir.bindings import ir, linalg, tensor
from alcop_mlir.passes import build, edit


def empty_like(value: ir.Value, element: ir.Type) -> Any:
    """A `tensor.empty` of the shape of `value`, with elements of a type of its own."""
    sizes = [size_of(value, number) for number in range(value.type.rank)]
    return tensor.empty(sizes, element)


def size_of(value: ir.Value, number: int) -> Any:
    """The size of a dimension: a number, or a `tensor.dim`."""
    kind = value.type
    if not kind.is_dynamic_dim(number):
        return kind.shape[number]
    return tensor.dim(value, build.index(number))


def generic_on_tensors(
    inputs: Sequence[ir.Value],
    outputs: Sequence[ir.Value],
    maps: Sequence[ir.AffineMap],
    reductions: Sequence[int] = (),
) -> Any:
    """A `linalg.generic` without a body, which has tensors of outputs as results.

    reductions: loops
    """
    kinds = [
        "reduction" if loop in reductions else "parallel"
        for loop in range(maps[0].n_dims)
    ]
    op = linalg.GenericOp(
        [v.type for v in outputs if isinstance(v.type, ir.RankedTensorType)],
        inputs,
        outputs,
        ir.ArrayAttr.get([ir.AffineMapAttr.get(one) for one in maps]),
        ir.ArrayAttr.get(
            [ir.Attribute.parse(f"#linalg.iterator_type<{kind}>") for kind in kinds]
        ),
    )
    return op.operation


def keep_marks(op: ir.Operation, made: ir.Operation) -> None:
    """Give an op that replaces `op` the attributes of this project."""
    for name, attribute in edit.attributes(op).items():
        if name.startswith("alcop."):
            made.attributes[name] = attribute


def generalized(view: LinalgView) -> Any:
    """The op as a `linalg.generic`, which replaces a named one."""
    if view.is_generic:
        return view.op
    op = view.op
    inputs, outputs = (
        [one.value for one in part] for part in (view.inputs, view.outputs)
    )
    with op.location, ir.InsertionPoint(op):
        made = generic_on_tensors(inputs, outputs, view.maps, view.reductions)
    keep_marks(op, made)
    view.block.append_to(made.regions[0])
    for old, new in zip(op.results, made.results, strict=True):
        old.replace_all_uses_with(new)
    op.erase()
    return made
