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
too. The parts have equal, known sizes, are at most 4, made by element-wise ops without
functions as `exp`, and read by nothing else. Where that is not so and element-wise ops
make the parts, a remark says why.

Runs before bufferization, and before alcop-fold-transposes. Reads and writes no `alcop`
attributes.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from alcop_mlir import diagnostics
from alcop_mlir.analysis.ir.loops import made_by
from alcop_mlir.analysis.ir.walk import walk
from alcop_mlir.analysis.linalg.view import LinalgView, Operand
from alcop_mlir.analysis.tensors.concats import (
    computing_reader,
    dimension_of,
    why_not_one,
)
from alcop_mlir.bindings import arith, ir, linalg, tensor
from alcop_mlir.passes import build
from alcop_mlir.passes.base import Pass
from alcop_mlir.transforms.tensors.generic_ops import generic_on_tensors
from alcop_mlir.transforms.tensors.inlining import with_single_uses


@dataclass(frozen=True)
class FoldConcats(Pass):
    name = "alcop-fold-concats"
    anchor = "func.func"

    def run(self, op: ir.Operation) -> None:
        for concat in walk(op, "tensor.concat"):
            why_not = why_not_one(concat)
            if why_not is None:
                _fold(concat)
            elif all(made_by(part, "linalg.generic") for part in concat.operands):
                what = "parts are computed, and then put together"
                diagnostics.remark(concat, f"{what}: {why_not}")


def _fold(concat: ir.Operation) -> None:
    """Replace the op, and split the loop of those that read its result."""
    parts = list(concat.operands)
    dimension = concat.attributes["dim"].value
    with concat.location, ir.InsertionPoint(concat):
        made = with_single_uses(_chosen(parts, dimension))
    with concat.location, ir.InsertionPoint(concat):
        result = _joined(made.results[0], dimension)
    concat.results[0].replace_all_uses_with(result)
    concat.erase()
    while (reader := computing_reader(result)) is not None:
        loop = _loop_of(reader, result, dimension)
        if loop is None or _dimensions(reader, loop) is None:
            return
        with reader.op.location, ir.InsertionPoint(reader.op):
            split = _split(reader, loop, result, len(parts))
            after = _joined(split.results[0], loop)
        reader.op.results[0].replace_all_uses_with(after)
        reader.op.erase()
        build.erase_unused([result.owner])
        with_single_uses(split)
        result, dimension = after, loop


def _chosen(parts: list[Any], dimension: int) -> Any:
    """The parts along a dimension of their own, in front of the one they are of."""
    kind = parts[0].type
    rank = kind.rank + 1
    shape = [*kind.shape[:dimension], len(parts), *kind.shape[dimension:]]
    loops = [loop for loop in range(rank) if loop != dimension]
    one = ir.AffineMap.get(rank, 0, [ir.AffineExpr.get_dim(loop) for loop in loops])
    maps = [one] * len(parts) + [ir.AffineMap.get_identity(rank)]
    made = generic_on_tensors(parts, [tensor.empty(shape, kind.element_type)], maps)
    kinds = [kind.element_type] * len(maps)
    here = ir.Location.current
    block = made.regions[0].blocks.append(*kinds, arg_locs=[here] * len(kinds))
    with ir.InsertionPoint(block):
        part = linalg.IndexOp(dimension).result
        element: Any = block.arguments[len(parts) - 1]
        for number in reversed(range(len(parts) - 1)):
            is_it = arith.cmpi(arith.CmpIPredicate.eq, part, build.index(number))
            element = arith.select(is_it, block.arguments[number], element)
        linalg.YieldOp([element])
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


def _split(view: LinalgView, loop: int, joined: ir.Value, parts: int) -> Any:
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
            value = _parted(operand, dimension, joined, parts)
        values.append(value)
        maps.append(ir.AffineMap.get(rank, 0, results))
    made = generic_on_tensors(values[:-1], values[-1:], maps)
    view.block.append_to(made.regions[0])
    return made


def _parted(operand: Operand, dimension: int, joined: ir.Value, parts: int) -> Any:
    """The operand with a dimension for parts."""
    value = operand.value
    if value == joined:
        return value.owner.operands[0]
    shape = list(value.type.shape)
    shape[dimension : dimension + 1] = [parts, shape[dimension] // parts]
    if made_by(value, "tensor.empty") is not None:
        return tensor.empty(shape, value.type.element_type)
    kind = ir.RankedTensorType.get(shape, value.type.element_type)
    groups = _groups(value.type.rank, dimension)
    return tensor.expand_shape(kind, value, groups, [], shape)
