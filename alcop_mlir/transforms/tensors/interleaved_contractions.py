"""Builds one contraction of several whose results an element-wise op combines."""

from __future__ import annotations

from typing import Any

from alcop_mlir.analysis.linalg.interleaved_columns import GROUP, interleaved_column
from alcop_mlir.analysis.linalg.view import LinalgView, Operand, view_of
from alcop_mlir.analysis.tensors.side_by_side import Interleaving
from alcop_mlir.bindings import ir, linalg, tensor
from alcop_mlir.passes import edit
from alcop_mlir.transforms.tensors.generic_ops import generalized
from alcop_mlir.transforms.tensors.inlining import with_ops


def interleave(found: Interleaving) -> None:
    """Replace the contractions by one, and all that computes what they meet in."""
    first, parts = found.views[0], len(found.views)
    with first.op.location, ir.InsertionPoint(first.op):
        weights = [one.inputs[found.weight].value for one in found.views]
        operands = list(first.op.operands)
        operands[found.weight] = _in_turn(weights, found.dimension)
        operands[-1] = _zeros(first, parts)
        joined = first.op.clone()
        for number, value in enumerate(operands):
            joined.operands[number] = value
        joined.results[0].set_type(operands[-1].type)
    between = {generalized(view_of(one)) for one in found.meeting.between}
    meeting = with_ops(generalized(view_of(found.meeting.op)), between)
    part_of = {one.op.results[0]: number for number, one in enumerate(found.views)}
    _read_in_turn(view_of(meeting), part_of, joined.results[0])
    fills = [one.outputs[0].value.owner for one in found.views]
    empties = [one.operands[1].owner for one in fills]
    contractions = [one.op for one in found.views]
    edit.erase_unused(dict.fromkeys([*contractions, *fills, *empties]))


def _in_turn(weights: list[ir.Value], dimension: int) -> Any:
    """Weights as one, with groups of columns of each in turn."""
    kind, parts = weights[0].type, len(weights)
    shape = list(kind.shape)
    before, after = shape[:dimension], shape[dimension + 1 :]
    groups = shape[dimension] // GROUP
    # Rows, say, of [N, K] are [N / 16, parts, 16, K].
    split = [*before, groups, GROUP, *after]
    dims = _grouped(len(shape), dimension, 2)
    made = tensor.empty([*before, groups, parts, GROUP, *after], kind.element_type)
    rank = len(split) + 1
    for number, weight in enumerate(weights):
        apart = ir.RankedTensorType.get(split, kind.element_type)
        view = tensor.expand_shape(apart, weight, dims, [], split)
        offsets = [number if n == dimension + 1 else 0 for n in range(rank)]
        sizes = [*before, groups, 1, GROUP, *after]
        made = tensor.insert_slice(view, made, [], [], [], offsets, sizes, [1] * rank)
    shape[dimension] *= parts
    whole = ir.RankedTensorType.get(shape, kind.element_type)
    return tensor.collapse_shape(whole, made, _grouped(len(shape), dimension, 3))


def _grouped(rank: int, dimension: int, count: int) -> list[list[int]]:
    """Which dimensions each is of, where one is so many."""
    counts = [count if n == dimension else 1 for n in range(rank)]
    starts = [sum(counts[:n]) for n in range(rank)]
    return [
        list(range(start, start + n)) for start, n in zip(starts, counts, strict=True)
    ]


def _zeros(view: LinalgView, parts: int) -> Any:
    """What the contraction starts from, with the columns of all."""
    value = view.outputs[0].value
    *rows, columns = value.type.shape
    empty = tensor.empty([*rows, columns * parts], value.type.element_type)
    return linalg.fill(value.owner.operands[0], outs=[empty])


def _read_in_turn(view: LinalgView, part_of: dict[Any, int], whole: ir.Value) -> None:
    """Let an op read columns of `whole` instead of the results of contractions."""
    maps = []
    for number, operand in enumerate(view.operands):
        one = operand.map
        if operand.value in part_of:
            one = _column_map(operand, len(part_of), part_of[operand.value])
            view.op.operands[number] = whole
        maps.append(ir.AffineMapAttr.get(one))
    view.op.attributes["indexing_maps"] = ir.ArrayAttr.get(maps)


def _column_map(operand: Operand, parts: int, part: int) -> Any:
    *rows, column = operand.map.results
    turned = interleaved_column(column, parts, part)
    return ir.AffineMap.get(operand.map.n_dims, 0, [*rows, turned])
