"""Let ops read what was expanded before it is, and expand their results instead.

Before:  %y = linalg.matmul .. -> tensor<64x128xf32>
         %z = tensor.expand_shape %y [[0, 1], [2]] : .. into tensor<2x32x128xf32>
         %r = linalg.generic ins(%z, %x : .., tensor<2x32x128xf32>) { arith.addf }
After:   %y = linalg.matmul .. -> tensor<64x128xf32>
         %c = tensor.collapse_shape %x [[0, 1], [2]] : .. into tensor<64x128xf32>
         %s = linalg.generic ins(%y, %c : .., tensor<64x128xf32>) { arith.addf }
         %r = tensor.expand_shape %s [[0, 1], [2]] : .. into tensor<2x32x128xf32>

Element-wise ops, and reductions, behind a reshape then go over the loops of the op in
front of it, so that they can be its epilogue, or of one row group with it. A reshape is
a view, and costs nothing where it ends up. Loops become one only if each operand has
all of them, next to each other and in order, or none; those of one iteration it may
lack. A loop of one iteration that a computed matrix lacks is one with a neighbour, as a
batch of one. Others stay apart; where an element-wise op does so, a remark says why.
Sizes have to be known.

Runs before bufferization, and before alcop-prepare-weights, which moves reshapes of
weights. Reads and writes no `alcop` attributes.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from alcop_mlir import diagnostics
from alcop_mlir.analysis.ir.loops import made_by
from alcop_mlir.analysis.ir.walk import walk
from alcop_mlir.analysis.linalg.view import LinalgView, Operand, view_of
from alcop_mlir.analysis.tensors.expanded_loops import (
    EXPAND,
    CollapsedOp,
    Parts,
    find_collapsed,
    parts_of,
)
from alcop_mlir.bindings import ir, linalg, tensor
from alcop_mlir.frozen import frozen
from alcop_mlir.passes import build, edit
from alcop_mlir.passes.base import Pass
from alcop_mlir.transforms.tensors.generic_ops import generic_on_tensors, keep_marks


@frozen
class SinkReshapes(Pass):
    name = "alcop-sink-reshapes"
    anchor = "func.func"

    def run(self, op: ir.Operation) -> None:
        for generic in walk(op, "linalg.generic"):
            view = view_of(generic)
            found = find_collapsed(view)
            if found.refused and not view.reductions and len(view.inputs) > 1:
                diagnostics.remark(
                    generic, f"reads what was reshaped as it is: {found.refused[0]}"
                )
            if len(found.groups) < view.rank:
                with generic.location, ir.InsertionPoint(generic):
                    _replace(view, found)
        reshapes = walk(op, EXPAND, "tensor.collapse_shape")
        edit.erase_unused(reversed(reshapes))


def _replace(view: LinalgView, found: CollapsedOp) -> None:
    """Replace the op by one of fewer loops, and by what expands its results."""
    inputs = len(view.inputs)
    pairs = list(zip(view.operands, found.parts, strict=True))
    values = [_collapsed(one.value, parts) for one, parts in pairs[:inputs]]
    inits = [_init(one.value, parts) for one, parts in pairs[inputs:]]
    number_of = {loop: n for n, group in enumerate(found.groups) for loop in group}
    maps = [_map(one, parts, found.groups, number_of, view) for one, parts in pairs]
    reductions = sorted({number_of[loop] for loop in view.reductions})
    made = generic_on_tensors(values, inits, maps, reductions)
    keep_marks(view.op, made)
    for index in walk(view.op, "linalg.index"):
        number = number_of[index.attributes["dim"].value]
        index.attributes["dim"] = ir.IntegerAttr.get(build.integer(64), number)
    view.block.append_to(made.regions[0])
    outputs = zip(view.op.results, made.results, found.parts[inputs:], strict=True)
    for old, new, parts in outputs:
        old.replace_all_uses_with(_expanded(new, old.type, parts))
    view.op.erase()


def _map(
    operand: Operand,
    parts: Parts,
    groups: Parts,
    number_of: dict[int, int],
    view: LinalgView,
) -> ir.AffineMap:
    """The map of an operand by the new loops."""
    rank = len(groups)
    change = ir.AffineMap.get(
        rank, 0, [ir.AffineExpr.get_dim(number_of[n]) for n in range(view.rank)]
    )
    results: list[ir.AffineExpr] = []
    for part in parts:
        loops = [operand.loops[number] for number in part]
        group = None if loops[0] is None else groups[number_of[loops[0]]]
        long = [n for n in group or () if view.static_size(n) != 1]
        if long and not {*loops} & {*long}:
            results.append(ir.AffineExpr.get_constant(0))
        else:
            results.append(operand.map.results[part[0]].compose(change))
    return ir.AffineMap.get(rank, 0, results)


def _collapsed(value: ir.Value, parts: Parts) -> Any:
    """A view of a tensor in which the dimensions of each part are one."""
    if all(len(part) == 1 for part in parts):
        return value
    expand = made_by(value, EXPAND)
    if expand is not None and parts_of(expand) == parts:
        return expand.operands[0]
    return tensor.collapse_shape(_narrow(value.type, parts), value, _lists(parts))


def _init(value: ir.Value, parts: Parts) -> Any:
    """What an output starts from, collapsed."""
    if all(len(part) == 1 for part in parts):
        return value
    if made_by(value, "tensor.empty") is not None:
        kind = _narrow(value.type, parts)
        return tensor.empty(list(kind.shape), kind.element_type)
    fill = made_by(value, "linalg.fill")
    if fill is not None:
        return linalg.fill(fill.operands[0], outs=[_init(fill.operands[1], parts)])
    return _collapsed(value, parts)


def _expanded(value: ir.Value, kind: ir.RankedTensorType, parts: Parts) -> Any:
    """The value with all its dimensions again."""
    if value.type == kind:
        return value
    return tensor.expand_shape(kind, value, _lists(parts), [], list(kind.shape))


def _narrow(kind: ir.RankedTensorType, parts: Parts) -> Any:
    shape: list[int] = []
    for part in parts:
        shape.append(1)
        for number in part:
            shape[-1] *= kind.shape[number]
    return ir.RankedTensorType.get(shape, kind.element_type)


def _lists(parts: Sequence[Sequence[int]]) -> list[list[int]]:
    return [list(part) for part in parts]
