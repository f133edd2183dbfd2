"""Transpose what reshapes, slices and ops on rows make, instead of what they read.

Before:  %t = linalg.transpose ins(%x : tensor<2x128x64xf16>) .. permutation = [1, 0, 2]
         %a = tensor.collapse_shape %t [[0, 1], [2]] : .. into tensor<256x64xf16>
         %y = linalg.matmul ins(%a, %w) ..             // rows: 128 of 2
         %e = tensor.expand_shape %y [[0, 1], [2]] : .. into tensor<128x2x32xf16>
         %z = linalg.transpose ins(%e) .. permutation = [1, 0, 2]
After:   %a = tensor.collapse_shape %x [[0, 1], [2]] : .. into tensor<256x64xf16>
         %y = linalg.matmul ins(%a, %w) ..             // rows: 2 of 128
         %z = tensor.expand_shape %y [[0, 1], [2]] : .. into tensor<2x128x32xf16>

Frameworks that have the batch second transpose around each contraction. An op keeps the
order in which rows lie only where each of its results is taken apart and transposed
anyway (`analysis/tensors/row_orders.py`), through any number of ops that go over rows
one by one, so that no transpose is made that was not there. Reshapes and slices cost
nothing in either place: nearer to the ops that read them, transposes become one, or a
part of indexing maps (alcop-fold-transposes). A slice is taken first only where readers
do that, or are contractions of batches: else each would copy its own. Sizes have to be
known.

Runs before bufferization, before alcop-fold-transposes. Reads and writes no `alcop`
attributes.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate, pairwise
from typing import Any

from alcop_mlir.analysis.ir.extents import groups_of
from alcop_mlir.analysis.ir.loops import made_by
from alcop_mlir.analysis.ir.walk import walk
from alcop_mlir.analysis.linalg.view import LinalgView, linalg_view
from alcop_mlir.analysis.tensors.row_orders import (
    COLLAPSE,
    EXPAND,
    SLICE,
    TRANSPOSE,
    Reordered,
    find_reordered,
    lying_groups,
    order_of,
    reads_transposed,
    transposed_source,
)
from alcop_mlir.bindings import ir, linalg, tensor
from alcop_mlir.frozen import frozen
from alcop_mlir.passes import edit
from alcop_mlir.passes.base import Pass

_PLACES = ("offsets", "sizes", "strides")  # of a slice


@frozen
class SinkTransposes(Pass):
    name = "alcop-sink-transposes"
    anchor = "func.func"

    def run(self, op: ir.Operation) -> None:
        for block in op.regions[0].blocks:
            # In order: what is moved below one op is in front of the next.
            for one in [inner.operation for inner in block.operations]:
                with one.location, ir.InsertionPoint(one):
                    _RULES.get(one.name, _sink_all)(one)
        unused = walk(op, COLLAPSE, EXPAND, TRANSPOSE, SLICE)
        edit.erase_unused(one for one in reversed(unused) if len(one.results))


def _sink_all(op: ir.Operation) -> None:
    """Each dimension of each input that may keep the order in which it lies."""
    while (view := linalg_view(op)) is not None:
        found = find_reordered(view)
        if found is None:
            return
        _sink(view, found)


def _sink(view: LinalgView, found: Reordered) -> None:
    """Read rows as they lie, and bring those of results into the old order."""
    number = view.inputs.index(found.operand)
    view.op.operands[number] = _as_it_lies(found)
    for result, output in zip(view.op.results, view.outputs, strict=True):
        dimension = output.loops.index(found.loop)
        back = None
        for use in list(result.uses):
            user = use.owner.operation
            if user.name == EXPAND:
                with user.location, ir.InsertionPoint(user):
                    apart = _taken_apart(user, dimension, found)
                user.results[0].replace_all_uses_with(apart)
                continue
            if back is None:
                with ir.InsertionPoint.after(view.op):
                    back = _brought_back(result, dimension, found)
            user.operands[use.operand_number] = back


def _as_it_lies(found: Reordered) -> Any:
    """The operand with the parts of one dimension in the order of the source."""
    parts = transposed_source(found.operand.value)
    assert parts is not None, "as find_reordered has seen"
    collapse, transpose = parts
    groups, old = groups_of(collapse), order_of(transpose)
    group = groups[found.dimension]
    order = list(range(len(old)))
    for place, part in zip(group, found.order, strict=True):
        order[place] = group[part]
    lying = _transposed(transpose.operands[0], [old[number] for number in order])
    return tensor.collapse_shape(found.operand.value.type, lying, groups)


def _brought_back(value: ir.Value, dimension: int, found: Reordered) -> Any:
    """A result, whose rows are as they lie, with them in the operand's order."""
    parts = len(found.order)
    groups = [
        list(range(n, n + parts))
        if n == dimension
        else [n + (parts - 1) * (n > dimension)]
        for n in range(value.type.rank)
    ]
    shape = list(value.type.shape)
    shape[dimension : dimension + 1] = [found.sizes[part] for part in found.order]
    order = list(range(len(shape)))
    for place, part in enumerate(found.order):
        order[dimension + part] = dimension + place
    apart = _transposed(_expanded(value, groups, shape), order)
    return tensor.collapse_shape(value.type, apart, groups)


def _taken_apart(expand: ir.Operation, dimension: int, found: Reordered) -> Any:
    """What `expand` made of a result, whose rows are now as they lie."""
    groups, shape = groups_of(expand), list(expand.results[0].type.shape)
    group = groups[dimension]
    long = [number for number in group if shape[number] != 1]
    parts = [part for part, size in enumerate(found.sizes) if size != 1]
    lying = [long[parts.index(part)] for part in found.order if part in parts]
    # Where each dimension of what is made lies; parts of one row come first.
    places = list(range(len(shape)))
    places[group[0] : group[-1] + 1] = [n for n in group if n not in long] + lying
    apart = _expanded(expand.operands[0], groups, [shape[n] for n in places])
    return _transposed(apart, [places.index(n) for n in range(len(shape))])


def _merge(transpose: ir.Operation) -> None:
    """Make one transpose of two."""
    first = made_by(transpose.operands[0], TRANSPOSE) if transpose.results else None
    if first is not None:
        order = [order_of(first)[number] for number in order_of(transpose)]
        merged = _transposed(first.operands[0], order)
        transpose.results[0].replace_all_uses_with(merged)


def _expand_first(expand: ir.Operation) -> None:
    """Transpose what is expanded, with all parts of a dimension, instead."""
    transpose = _read_by(expand)
    if transpose is None:
        return
    order, groups = order_of(transpose), groups_of(expand)
    shape = expand.results[0].type.shape
    # The dimensions of the result, as they lie in the source.
    lying = [groups[order.index(number)] for number in range(len(order))]
    flat = [number for group in lying for number in group]
    ends = list(accumulate((len(group) for group in lying), initial=0))
    of_source = [list(range(start, end)) for start, end in pairwise(ends)]
    sizes = [shape[number] for number in flat]
    apart = _expanded(transpose.operands[0], of_source, sizes)
    turned = _transposed(apart, [flat.index(number) for number in range(len(flat))])
    expand.results[0].replace_all_uses_with(turned)


def _collapse_first(collapse: ir.Operation) -> None:
    """Transpose what is collapsed instead, where parts of a dimension lie in order."""
    transpose = _read_by(collapse)
    found = None if transpose is None else lying_groups(collapse, transpose)
    if transpose is None or found is None:
        return
    kind, source = collapse.results[0].type, transpose.operands[0]
    order = [number for number, _ in found]
    short = ir.RankedTensorType.get([kind.shape[n] for n in order], kind.element_type)
    put = tensor.collapse_shape(short, source, [group for _, group in found])
    turned = _transposed(put, [order.index(number) for number in range(kind.rank)])
    collapse.results[0].replace_all_uses_with(turned)


def _read_by(reshape: ir.Operation) -> Any | None:
    """The transpose that a reshape reads, if all sizes are known."""
    kinds = (reshape.operands[0].type, reshape.results[0].type)
    is_static = all(
        isinstance(kind, ir.RankedTensorType) and kind.has_static_shape
        for kind in kinds
    )
    return made_by(reshape.operands[0], TRANSPOSE) if is_static else None


def _slice_first(part: ir.Operation) -> None:
    """Transpose a slice instead of slicing a transpose, where its readers fold that."""
    transpose = made_by(part.operands[0], TRANSPOSE)
    result = part.results[0]
    if transpose is None or len(part.operands) > 1 or not reads_transposed(result):
        return
    source, order = transpose.operands[0], order_of(transpose)
    if result.type.rank != len(order):
        return
    of_result = [list(part.attributes[f"static_{one}"]) for one in _PLACES]
    of_source = [[0] * len(order) for _ in _PLACES]
    for number, dimension in enumerate(order):
        for before, after in zip(of_result, of_source, strict=True):
            after[dimension] = before[number]
    kind = ir.RankedTensorType.get(of_source[1], result.type.element_type)
    taken = tensor.extract_slice(kind, source, [], [], [], *of_source)
    result.replace_all_uses_with(_transposed(taken, order))


def _expanded(
    value: ir.Value, groups: Sequence[Sequence[int]], shape: Sequence[int]
) -> Any:
    kind = ir.RankedTensorType.get(shape, value.type.element_type)
    return tensor.expand_shape(kind, value, groups, [], shape)


def _transposed(value: ir.Value, order: Sequence[int]) -> Any:
    """`linalg.transpose` of a value; itself if the order of dimensions is its own."""
    if list(order) == sorted(order):
        return value
    shape = [value.type.shape[number] for number in order]
    init = tensor.empty(shape, value.type.element_type)
    return linalg.transpose(value, outs=[init], permutation=order).results[0]


_RULES = {
    TRANSPOSE: _merge,
    EXPAND: _expand_first,
    COLLAPSE: _collapse_first,
    SLICE: _slice_first,
}
