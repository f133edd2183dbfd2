"""Make one contraction of several that multiply one tensor by weights of their own.

Before:  %q = linalg.matmul ins(%x, %wq : tensor<64x32xf16>, tensor<32x48xf16>) ..
         %k = linalg.matmul ins(%x, %wk : tensor<64x32xf16>, tensor<32x16xf16>) ..
After:   %w = // %wq and %wk side by side: tensor<32x64xf16>
         %y = linalg.matmul ins(%x, %w) .. -> tensor<64x64xf32>
         %q = tensor.extract_slice %y[0, 0] [64, 48] [1, 1]
         %k = tensor.extract_slice %y[0, 48] [64, 16] [1, 1]

The tensor is read once, and one kernel has the blocks of all. Weights are arguments
with `alcop.weight`, so that alcop-prepare-weights moves their copies to where they are
made once. Element-wise ops behind the contractions that compute alike, as casts and
biases that are weights, are joined with them. Parts of the result are views with
strides. So a contraction stays apart, with a remark, if an element-wise op reads its
part, which can be its epilogue; if the function returns the part, reshaped or not, as
that is a memref of its own; if it is reshaped to fewer dimensions, or is no whole 16
bytes. The others are joined without it. All stay apart if one's operand is no weight.

Where one element-wise op combines the results, read by nothing else, their columns are
interleaved in groups of 16, so that this op can be the epilogue of the one contraction
and nothing else is stored. It computes what element-wise ops lie between:

After:   %w = // groups of rows of %wq and %wk in turn: tensor<96x32xf16>
         %y = linalg.matmul ins(%x, %w) .. -> tensor<64x96xf32>
         %r = linalg.generic ins(%y, %y) outs(.. : tensor<64x48xf16>) { .. }
             // maps (m, n) -> (m, n floordiv 16 * 32 + n mod 16), and + 16

Contractions that an op combines stay apart if these are not 2 or 4, or if they do not
have one number of columns, a multiple of 16.

Runs before bufferization, after alcop-sink-reshapes, and before alcop-prepare-weights.
Reads `alcop.weight`; writes no `alcop` attributes.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from alcop_mlir import diagnostics
from alcop_mlir.analysis.ir.loops import made_by
from alcop_mlir.analysis.ir.rejected import Rejected
from alcop_mlir.analysis.linalg.view import LinalgView
from alcop_mlir.analysis.tensors.side_by_side import (
    Interleaving,
    Join,
    Level,
    find_joins,
)
from alcop_mlir.bindings import ir, linalg, tensor
from alcop_mlir.frozen import frozen
from alcop_mlir.passes import edit
from alcop_mlir.passes.base import Pass
from alcop_mlir.transforms.tensors.interleaved_contractions import interleave


@frozen
class JoinContractions(Pass):
    name = "alcop-join-contractions"
    anchor = "func.func"

    def run(self, op: ir.Operation) -> None:
        if not len(op.regions[0].blocks):
            return
        for found in list(find_joins(op)):
            if isinstance(found, Rejected):
                what = "contractions of one input are not made one"
                diagnostics.remark(found.op, f"{what}: {found.reason}")
            elif isinstance(found, Interleaving):
                interleave(found)
            else:
                _join(found)


def _join(join: Join) -> None:
    """Replace the ops by joined ones, where the first of them is."""
    first = join.levels[0].views[0].op
    result: Any = None
    with first.location, ir.InsertionPoint(first):
        for level in join.levels:
            result = _joined_op(level, result)
        parts = [
            _part(result, sum(join.columns[:number]), columns)
            for number, columns in enumerate(join.columns)
        ]
    for view, part in zip(join.levels[-1].views, parts, strict=True):
        view.op.results[0].replace_all_uses_with(part)
    views = [view for level in reversed(join.levels) for view in level.views]
    inits = [made for view in views for made in _made_for(view.outputs[0].value)]
    for view in views:
        view.op.erase()
    edit.erase_unused(dict.fromkeys(inits))


def _made_for(init: ir.Value) -> list[Any]:
    """The ops that make what an op starts from, the last one first."""
    fill = made_by(init, "linalg.fill")
    empty = made_by(init if fill is None else fill.operands[1], "tensor.empty")
    return [op for op in (fill, empty) if op is not None]


def _joined_op(level: Level, result: ir.Value) -> Any:
    """One op for those of a level; `result` is that of the level before."""
    view = level.views[0]
    operands = list(view.op.operands)
    for number, dimension in level.joined.items():
        values = [one.inputs[number].value for one in level.views]
        is_weight = isinstance(values[0].owner, ir.Block)
        operands[number] = _side_by_side(values, dimension) if is_weight else result
    columns = sum(one.op.results[0].type.shape[-1] for one in level.views)
    operands[-1] = _init(view, columns)
    op = view.op.clone()
    for number, value in enumerate(operands):
        op.operands[number] = value
    op.results[0].set_type(operands[-1].type)
    return op.results[0]


def _init(view: LinalgView, columns: int) -> Any:
    """What an op starts from, with so many columns: zeros, or nothing."""
    value = view.outputs[0].value
    shape, kind = [*value.type.shape[:-1], columns], value.type.element_type
    empty = tensor.empty(shape, kind)
    if value.owner.name == "tensor.empty":
        return empty
    return linalg.fill(value.owner.operands[0], outs=[empty])


def _side_by_side(values: Sequence[ir.Value], dimension: int) -> Any:
    """Tensors as parts of one along a dimension."""
    kind = values[0].type
    shape = list(kind.shape)
    shape[dimension] = sum(one.type.shape[dimension] for one in values)
    made, start = tensor.empty(shape, kind.element_type), 0
    for one in values:
        offsets = [0] * len(shape)
        offsets[dimension] = start
        steps = [1] * len(shape)
        sizes = list(one.type.shape)
        made = tensor.insert_slice(one, made, [], [], [], offsets, sizes, steps)
        start += one.type.shape[dimension]
    return made


def _part(value: ir.Value, start: int, columns: int) -> Any:
    """So many columns of a tensor."""
    rows = list(value.type.shape)[:-1]
    kind = ir.RankedTensorType.get([*rows, columns], value.type.element_type)
    offsets, steps = [*[0] * len(rows), start], [1] * (len(rows) + 1)
    return tensor.extract_slice(
        kind, value, [], [], [], offsets, [*rows, columns], steps
    )
