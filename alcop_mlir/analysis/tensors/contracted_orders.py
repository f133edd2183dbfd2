"""Whether the order of some elements of tensors counts, or a sum goes over them.

    %q = .. : tensor<4x64x64x2xf16> ; %k = .. : tensor<2x64x64x2xf16>
    linalg.batch_matmul of %q and %k, whose last two dimensions are one, and reduced

If both have these elements in another order, the same for both, each sum has the terms
that it had. They may be some of those that are reduced, put together with others.
`are_contracted` follows values through views, transposes and element-wise ops to the
contractions of two of them. Changes nothing.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from alcop_mlir.analysis.ir.extents import groups_of
from alcop_mlir.analysis.ir.loops import defining_op
from alcop_mlir.analysis.ir.walk import walk
from alcop_mlir.analysis.linalg.view import LinalgView, linalg_view
from alcop_mlir.analysis.tensors.concats import is_element_wise
from alcop_mlir.bindings import ir
from alcop_mlir.frozen import frozen

Dimensions = tuple[int, ...]


@frozen
class _Moved:
    """Elements of a value that change places: the dimensions, outer ones first.

    begin: where they begin in these, of what is put together with others
    """

    dimensions: Dimensions
    begin: int | None = None


def are_contracted(values: Mapping[ir.Value, Dimensions]) -> bool:
    """Whether all that is computed of the values reduces these dimensions of two.

    values: with the dimensions, outer ones first, whose elements change places
    """
    pending = [(value, _Moved(dimensions)) for value, dimensions in values.items()]
    seen: dict[ir.Value, _Moved] = {}
    reduced: dict[Any, dict[int, int | None]] = {}
    while pending:
        value, moved = pending.pop()
        if seen.setdefault(value, moved) != moved:
            return False
        for use in value.uses:
            op, number = use.owner.operation, use.operand_number
            if _reduces(op, number, moved.dimensions):
                reduced.setdefault(op, {})[number] = moved.begin
                continue
            after = _after(op, number, moved)
            if after is None:
                return False
            pending.append((op.results[0], after))
    ops = {user.owner.operation for value in seen for user in value.uses}
    return all(_are_equal(reduced[op]) for op in ops if op in reduced) and all(
        _moves_all(op, seen) for op in ops if op not in reduced
    )


def _are_equal(begins: Mapping[int, int | None]) -> bool:
    """Whether both operands of a contraction are moved, and alike."""
    return begins.keys() == {0, 1} and begins[0] == begins[1]


def _reduces(op: ir.Operation, number: int, dimensions: Dimensions) -> bool:
    """Whether it multiplies two tensors, and goes over the one dimension of both."""
    view = linalg_view(op)
    if view is None or len(view.inputs) != 2 or len(dimensions) != 1 or number > 1:
        return False
    loop = view.inputs[number].loops[dimensions[0]]
    return loop is not None and view.reductions == (loop,) and _adds(view)


def _adds(view: LinalgView) -> bool:
    """Whether each iteration adds what does not depend on the order of iterations."""
    if view.block is None or len(view.outputs) != 1 or walk(view.op, "linalg.index"):
        return False
    total = view.outputs[0].argument
    uses = [use.owner.operation for use in total.uses]
    (yielded,) = view.block.operations[-1].operands
    added = defining_op(yielded)
    is_sum = added is not None and added.name in ("arith.addf", "arith.addi")
    return is_sum and uses == [added]


def _after(op: ir.Operation, number: int, moved: _Moved) -> _Moved | None:
    """What is moved of that which an op makes; None if it needs the order."""
    if op.name == "tensor.concat":
        return _put_together(op, number, moved)
    dimensions = _dimensions_after(op, number, moved.dimensions)
    return None if dimensions is None else replace(moved, dimensions=dimensions)


def _put_together(op: ir.Operation, number: int, moved: _Moved) -> _Moved | None:
    """Where elements of a part are in the whole, if that is along their dimension."""
    along = op.attributes["dim"].value
    sizes = [one.type.shape[along] for one in op.operands]
    is_known = all(one.type.has_static_shape for one in op.operands)
    alone = sum(1 for one in op.operands if one == op.operands[number]) == 1
    if moved != _Moved((along,)) or not is_known or not alone:
        return None
    return _Moved((along,), sum(sizes[:number]))


def _dimensions_after(
    op: ir.Operation, number: int, dimensions: Dimensions
) -> Dimensions | None:
    """The dimensions in what an op makes; None if it needs their order."""
    if op.name == "tensor.collapse_shape":
        return _collapsed(groups_of(op), dimensions)
    if op.name == "tensor.expand_shape":
        groups = [groups_of(op)[one] for one in dimensions]
        return tuple(one[0] for one in groups) if _are_single(groups) else None
    view = linalg_view(op)
    if view is None or number >= len(view.inputs) or len(op.results) != 1:
        return None
    loops = [view.inputs[number].loops[one] for one in dimensions]
    if None in loops or view.block is None or not is_element_wise(view):
        return None
    indices = walk(op, "linalg.index")
    if any(one.attributes["dim"].value in loops for one in indices):
        return None
    return tuple(view.outputs[0].loops.index(loop) for loop in loops)


def _are_single(groups: Sequence[Sequence[int]]) -> bool:
    return all(len(one) == 1 for one in groups)


def _collapsed(
    groups: Sequence[Sequence[int]], dimensions: Dimensions
) -> Dimensions | None:
    if list(dimensions) in [list(one) for one in groups]:
        return (groups.index(list(dimensions)),)
    found = [
        n for one in dimensions for n, group in enumerate(groups) if group == [one]
    ]
    return tuple(found) if len(found) == len(dimensions) else None


def _moves_all(op: ir.Operation, seen: Mapping[ir.Value, _Moved]) -> bool:
    """Whether all that an element-wise op reads along these dimensions is such."""
    view = linalg_view(op)
    if view is None:
        return True
    moved = {one.value: seen[one.value] for one in view.inputs if one.value in seen}
    loops = {
        one.loops[dimension]
        for one in view.inputs
        if one.value in moved
        for dimension in moved[one.value].dimensions
    }
    begins = {one.begin for one in moved.values()}
    return len(begins) < 2 and all(
        one.value in seen
        or not loops & {n for index in one.indices for n in index.loops}
        for one in view.inputs
    )
