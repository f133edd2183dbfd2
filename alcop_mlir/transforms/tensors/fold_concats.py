"""Let one op compute what is concatenated, choosing the part for each element.

Before:  %a = linalg.generic .. { arith.subf }    // tensor<2x32x8xf32>
         %b = linalg.generic .. { arith.addf }    // tensor<2x32x8xf32>
         %y = tensor.concat dim(2) %a, %b         // tensor<2x32x16xf32>
         %h = linalg.generic ins(%y) { arith.truncf }
After:   %c = linalg.generic ins(%a, %b) {        // loops b, m, part, n
           arith.select ((linalg.index 2) == 0), %a, %b }
         %h = linalg.generic ins(%c : tensor<2x32x2x8xf32>) { arith.truncf }
         %y = tensor.collapse_shape %h [[0], [1], [2, 3]]

The ops that make the parts are merged with the one that chooses, so that rotary
embeddings, two halves of each vector that are rotated and put together, are one kernel,
and not two, copies and casts. Element-wise ops behind the concatenation go over parts
too, and those that compute their other operands: `x * cos + cat(-x2, x1) * sin` is one
op. The parts have equal, known sizes, and are at most 4. Each is made by an
element-wise op without functions as `exp`, and read by nothing else, or a slice of what
there is. Where that is not so and element-wise ops make parts, a remark says why. One
value as all parts, as a table for both halves, is broadcast. Parts may be stacked, each
with a dimension of its own, as pairs of neighbouring columns are.

Runs before bufferization, and before alcop-sink-transposes, which brings slices in
front of transposes where element-wise ops read them. Reads and writes no `alcop`
attributes.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from alcop_mlir import diagnostics
from alcop_mlir.analysis.ir.extents import groups_of
from alcop_mlir.analysis.ir.loops import made_by
from alcop_mlir.analysis.ir.walk import walk
from alcop_mlir.analysis.linalg.view import LinalgView, view_of
from alcop_mlir.analysis.tensors.concats import (
    are_computed,
    as_computing,
    computing_readers,
    dimension_of,
    is_repeated,
    is_stack,
    parts_of,
    why_not_one,
)
from alcop_mlir.bindings import arith, ir, linalg, tensor
from alcop_mlir.frozen import frozen
from alcop_mlir.passes import build, edit
from alcop_mlir.passes.base import Pass
from alcop_mlir.transforms.tensors.generic_ops import generic_on_tensors
from alcop_mlir.transforms.tensors.inlining import with_single_uses

_VIEWS = ("tensor.collapse_shape", "tensor.empty")


@frozen
class FoldConcats(Pass):
    name = "alcop-fold-concats"
    anchor = "func.func"

    def run(self, op: ir.Operation) -> None:
        for concat in walk(op, "tensor.concat"):
            why_not = why_not_one(concat)
            if why_not is None:
                _fold(concat)
            elif are_computed(concat):
                what = "parts are computed, and then put together"
                diagnostics.remark(concat, f"{what}: {why_not}")


def _fold(concat: ir.Operation) -> None:
    """Replace the op, and split the loop of those that read its result."""
    parts, stacks = parts_of(concat), is_stack(concat)
    dimension = concat.attributes["dim"].value
    views = [part.owner for part in concat.operands] if stacks else []
    with concat.location, ir.InsertionPoint(concat):
        chooses = _repeated if is_repeated(concat) else _chosen
        made = chooses(parts, dimension)
        whole = made.results[0]
        result = whole if stacks else _joined(whole, dimension)
    concat.results[0].replace_all_uses_with(result)
    concat.erase()
    edit.erase_unused(dict.fromkeys(views))
    if chooses is _chosen:  # of one value, each part would compute it again
        made = with_single_uses(made)
    whole = made.results[0]
    for view in _joins(whole, dimension - 1) if stacks else [result]:
        _read_by_parts(whole, view, dimension - stacks)


def _joins(apart: ir.Value, dimension: int) -> list[ir.Value]:
    """Views that have a dimension and the next one as one."""
    users = [use.owner.operation for use in apart.uses]
    return [
        one.results[0]
        for one in users
        if one.name == "tensor.collapse_shape"
        and groups_of(one) == _groups(apart.type.rank - 1, dimension)
    ]


def _read_by_parts(apart: ir.Value, joined: ir.Value, dimension: int) -> None:
    """Let those who read `joined` go over its parts, as `apart` has them."""
    sizes = apart.type.shape[dimension], apart.type.shape[dimension + 1]
    _take_apart(apart, joined)
    if any(True for _ in joined.uses):
        _split_readers(joined, dimension, sizes)
    else:
        _merge_into_readers(joined.owner)


def _take_apart(apart: ir.Value, joined: ir.Value) -> None:
    """Let those who take `joined` apart again, as ops split before, read `apart`."""
    for user in [use.owner.operation for use in joined.uses]:
        if user.name == "tensor.expand_shape" and user.results[0].type == apart.type:
            user.results[0].replace_all_uses_with(apart)
            user.erase()


def _merge_into_readers(joined: Any) -> None:
    """Erase a reshape that nothing reads; let one reader of its source compute that."""
    apart = joined.operation.operands[0]
    joined.operation.erase()
    for user in dict.fromkeys(use.owner.operation for use in apart.uses):
        if user.name == "linalg.generic":
            with_single_uses(user)


def _split_readers(value: ir.Value, dimension: int, parts: tuple[int, int]) -> None:
    """Let the element-wise ops that read `value`, and theirs, go over parts."""
    pending = [(value, dimension)]
    while pending:
        joined, dimension = pending.pop()
        for reader in computing_readers(joined):
            loop = _loop_of(reader, joined, dimension)
            if loop is not None and _dimensions(reader, loop) is not None:
                pending.append((_split(reader.op, loop, parts), loop))


def _chosen(parts: list[Any], dimension: int) -> Any:
    """The parts along a dimension of their own, in front of the one they are of."""

    def element(elements: list[Any]) -> Any:
        part = linalg.IndexOp(dimension).result
        found = elements[-1]
        for number in reversed(range(len(parts) - 1)):
            is_it = arith.cmpi(arith.CmpIPredicate.eq, part, build.index(number))
            found = arith.select(is_it, elements[number], found)
        return found

    return _over_parts(parts, len(parts), dimension, element)


def _repeated(parts: list[Any], dimension: int) -> Any:
    """One value as all parts, along a dimension of their own."""
    return _over_parts(parts[:1], len(parts), dimension, lambda elements: elements[0])


def _over_parts(
    values: list[Any], parts: int, dimension: int, element: Callable[[list[Any]], Any]
) -> Any:
    """An op with a dimension for parts, which makes an element of those of values."""
    kind = values[0].type
    rank = kind.rank + 1
    shape = [*kind.shape[:dimension], parts, *kind.shape[dimension:]]
    loops = [loop for loop in range(rank) if loop != dimension]
    one = ir.AffineMap.get(rank, 0, [ir.AffineExpr.get_dim(loop) for loop in loops])
    maps = [one] * len(values) + [ir.AffineMap.get_identity(rank)]
    made = generic_on_tensors(values, [tensor.empty(shape, kind.element_type)], maps)
    kinds = [kind.element_type] * len(maps)
    here = ir.Location.current
    block = made.regions[0].blocks.append(*kinds, arg_locs=[here] * len(kinds))
    with ir.InsertionPoint(block):
        linalg.YieldOp([element(list(block.arguments)[:-1])])
    return made


def _joined(value: ir.Value, dimension: int) -> Any:
    """A dimension and the next one as one."""
    shape = list(value.type.shape)
    shape[dimension : dimension + 2] = [shape[dimension] * shape[dimension + 1]]
    kind = ir.RankedTensorType.get(shape, value.type.element_type)
    return tensor.collapse_shape(kind, value, _groups(len(shape), dimension))


def _groups(rank: int, dimension: int) -> list[list[int]]:
    """The reassociation of `rank` dimensions, of which one is two."""
    return [
        [number + (number > dimension)] if number != dimension else [number, number + 1]
        for number in range(rank)
    ]


def _loop_of(view: LinalgView, value: ir.Value, dimension: int) -> int | None:
    """The loop along a dimension of an operand; None if it has several, or none."""
    found = {one.loops[dimension] for one in view.inputs if one.value == value}
    return found.pop() if len(found) == 1 else None


def _dimensions(view: LinalgView, loop: int) -> list[int] | None:
    """The dimension of each operand along a loop, -1 for none; None if one computes."""
    found = [dimension_of(one, loop) for one in view.operands]
    known = [one for one in found if one is not None]
    return known if len(known) == len(found) else None


def _split(op: ir.Operation, loop: int, parts: tuple[int, int]) -> Any:
    """Let an op go over parts and along a part, and those that compute for it alone.

    parts: the extents of both loops, the outer one first

    Returns its result, with both loops as one dimension again.
    """
    for number in range(len(view_of(op).inputs)):
        view = view_of(op)
        dimension = (_dimensions(view, loop) or [])[number]
        maker = _made_for(op, view.inputs[number].value)
        if dimension >= 0 and maker is not None and _dimensions(maker, dimension):
            _split(maker.op, dimension, parts)
    view = view_of(op)
    with op.location, ir.InsertionPoint(op):
        split = _with_parts(view, loop, parts)
        after = _joined(split.results[0], loop)
    op.results[0].replace_all_uses_with(after)
    sources = [made_by(one.value, *_VIEWS) for one in view.operands]
    op.erase()
    edit.erase_unused(dict.fromkeys(filter(None, sources)))
    with_single_uses(split)
    return after


def _with_parts(view: LinalgView, loop: int, parts: tuple[int, int]) -> Any:
    """The op with a loop over parts, and one along a part, for one over both."""
    rank = view.rank + 1
    change = ir.AffineMap.get(
        rank, 0, [ir.AffineExpr.get_dim(n + (n > loop)) for n in range(view.rank)]
    )
    values, maps = [], []
    for operand, dimension in zip(
        view.operands, _dimensions(view, loop) or [], strict=True
    ):
        results = [one.compose(change) for one in operand.map.results]
        value = operand.value
        if dimension >= 0:
            inner = ir.AffineExpr.get_dim(loop + 1)
            results[dimension : dimension + 1] = [ir.AffineExpr.get_dim(loop), inner]
            value = _parted(value, dimension, parts)
        values.append(value)
        maps.append(ir.AffineMap.get(rank, 0, results))
    made = generic_on_tensors(values[:-1], values[-1:], maps)
    view.block.append_to(made.regions[0])
    return made


def _parted(value: ir.Value, dimension: int, parts: tuple[int, int]) -> Any:
    """A value with a dimension for parts."""
    shape = list(value.type.shape)
    shape[dimension : dimension + 1] = parts
    if made_by(value, "tensor.empty") is not None:
        return tensor.empty(shape, value.type.element_type)
    groups = _groups(value.type.rank, dimension)
    joined = made_by(value, "tensor.collapse_shape")
    if joined is not None and groups_of(joined) == groups:
        apart = joined.operands[0]
        if list(apart.type.shape) == shape:
            return apart
    kind = ir.RankedTensorType.get(shape, value.type.element_type)
    return tensor.expand_shape(kind, value, groups, [], shape)


def _made_for(reader: ir.Operation, value: ir.Value) -> LinalgView | None:
    """The element-wise op that makes a value for this reader alone."""
    op = made_by(value, "linalg.generic")
    alone = all(use.owner.operation == reader for use in value.uses)
    return as_computing(op) if op is not None and alone else None
