"""Keep images with channels last from convolution to convolution.

Before:  %y = linalg.conv_2d_nchw_fchw ins(%x, %w : tensor<2x64x16x16xf16>,
             tensor<32x64x3x3xf16>) outs(%f : tensor<2x32x14x14xf32>)
         %z = linalg.generic {indexing_maps = [(n, c, h, w) -> (n, c, h, w), ..]}
             ins(%y : tensor<2x32x14x14xf32>) outs(%e : tensor<2x32x14x14xf16>)
After:   %xt = linalg.transpose ins(%x) outs(..) permutation = [0, 2, 3, 1]
         %wt = linalg.transpose ins(%w) outs(..) permutation = [0, 2, 3, 1]
         %yt = linalg.generic ins(%xt, %wt : tensor<2x16x16x64xf16>,
             tensor<32x3x3x64xf16>) outs(%ft : tensor<2x14x14x32xf32>)
         %zt = linalg.generic {indexing_maps = [(n, h, w, c) -> (n, h, w, c), ..]}
             ins(%yt : tensor<2x14x14x32xf32>) outs(%et : tensor<2x14x14x32xf16>)
         %z = linalg.transpose ins(%zt) outs(..) permutation = [0, 3, 1, 2]

Which tensors are kept so is decided for all at once (`analysis/tensors/layouts.py`):
images and outputs of convolutions, whatever their groups and number of axes, and what
linalg ops, `tensor.pad` and `tensor.concat` make of them or they of it. Transposes
stand at the edges only: at arguments, results, reshapes, ops inside of other ops.
Upstream's canonicalize cancels one that meets its inverse, as of programs that permute
by themselves. Filters of several taps become rows of taps and channels, in the order
that alcop-raise-convolutions would copy them to.

Bodies are left unchanged, and so is the order in which reductions go through elements:
results have the same bits. Memrefs are left unchanged: others may see their order.

Runs before bufferization, after alcop-drop-unit-dimensions. Reads and writes no `alcop`
attributes.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from alcop_mlir.analysis.ir.loops import made_by
from alcop_mlir.analysis.ir.walk import walk
from alcop_mlir.analysis.linalg.view import LinalgView
from alcop_mlir.analysis.tensors.layouts import (
    Order,
    find_orders,
    is_free,
    moves_freely,
    moving_view,
    tensors_of,
)
from alcop_mlir.bindings import ir, linalg, tensor
from alcop_mlir.frozen import frozen
from alcop_mlir.passes import build, edit
from alcop_mlir.passes.base import Pass
from alcop_mlir.transforms.tensors.generic_ops import generic_on_tensors, size_of

_DYNAMIC = ir.ShapedType.get_dynamic_size()


@frozen
class PropagateLayouts(Pass):
    name = "alcop-propagate-layouts"
    anchor = "func.func"

    def run(self, op: ir.Operation) -> None:
        for block in op.regions[0].blocks:
            orders = find_orders(block)
            if orders:
                _Block(orders).rewrite(block)


@dataclass
class _Block:
    """A block of which the tensors in `orders` get these; `moved` has those that do."""

    orders: Mapping[Any, Order]
    moved: dict[Any, Any] = field(default_factory=dict)

    def rewrite(self, block: ir.Block) -> None:
        ops = [op.operation for op in block.operations]
        replaced = [op for op in ops if self._replace(op)]
        for op in reversed(replaced):
            for result in op.results:
                self._move_back(result)
            op.erase()

    def _replace(self, op: Any) -> bool:
        """Build an op on what is moved that does what `op` does, if any is."""
        if not any(one in self.orders for one in tensors_of(op)):
            return False
        view = moving_view(op)
        if view is None and not moves_freely(op):
            return False
        with op.location, ir.InsertionPoint(op):
            made = self._other(op) if view is None else self._generic(view)
        for old, new in zip(op.results, made.results, strict=True):
            if old in self.orders:
                self.moved[old] = new
            else:
                old.replace_all_uses_with(new)
        return True

    def _generic(self, view: LinalgView) -> Any:
        """A `linalg.generic` whose loops go along its first output in order."""
        outs = [self._order(result) for result in view.op.results]
        inputs = [self._in_order(one.value) for one in view.inputs]
        inits = [
            self._in_order(one.value, order)
            for one, order in zip(view.outputs, outs, strict=True)
        ]
        orders = [*(self._order(one.value) for one in view.inputs), *outs]
        indices = [
            [operand.map.results[number] for number in order]
            for operand, order in zip(view.operands, orders, strict=True)
        ]
        loops = _loops(view, outs[0])
        maps = [_renumbered(one, loops) for one in indices]
        reductions = [loops.index(loop) for loop in view.reductions]
        made = generic_on_tensors(inputs, inits, maps, reductions)
        view.block.append_to(made.regions[0])
        for index in walk(made, "linalg.index"):
            _set_number(index, loops.index(index.attributes["dim"].value))
        return made

    def _other(self, op: Any) -> Any:
        """A `tensor.pad` or `tensor.concat` of what is moved."""
        order = self._order(op.results[0])
        kind = _kind(op.results[0], order)
        if op.name == "tensor.pad":
            return _padded(op, kind, self._in_order(op.operands[0], order), order)
        made = edit.like(op, [kind], [self._in_order(n, order) for n in op.operands])
        _set_number(made, order.index(op.attributes["dim"].value))
        return made

    def _order(self, value: ir.Value) -> Order:
        """The order that a tensor gets; of a scalar none."""
        return self.orders.get(value, _own(value))

    def _in_order(self, value: ir.Value, order: Order | None = None) -> Any:
        """`value` in an order, by default in the one that it gets."""
        planned = self._order(value)
        order = planned if order is None else order
        if order == _own(value):
            return value
        if is_free(value):
            return _made_again(value, order)
        if order != planned:
            return _transposed(value, order)
        if value not in self.moved:
            with edit.after(value):
                self.moved[value] = _transposed(value, order)
        return self.moved[value]

    def _move_back(self, result: ir.Value) -> None:
        """Let what is left of the readers of `result` read it in its old order."""
        if not any(True for _ in result.uses):
            return
        moved, order = self.moved[result], self.orders[result]
        with edit.after(moved):
            back = _transposed(moved, _inverse(order))
        result.replace_all_uses_with(back)


def _own(value: ir.Value) -> Order:
    return tuple(range(getattr(value.type, "rank", 0)))


def _inverse(order: Order) -> Order:
    return tuple(map(order.index, range(len(order))))


def _loops(view: LinalgView, order: Order) -> list[int]:
    """The loops: those along the first output, in its order, then the others."""
    along = [view.outputs[0].loops[number] for number in order]
    first = list(dict.fromkeys(loop for loop in along if loop is not None))
    return [*first, *(loop for loop in range(view.rank) if loop not in first)]


def _renumbered(indices: Sequence[Any], loops: Sequence[int]) -> Any:
    """The map to indices of loops that get the order `loops`."""
    rank = len(loops)
    numbers = [ir.AffineExpr.get_dim(loops.index(loop)) for loop in range(rank)]
    change = ir.AffineMap.get(rank, 0, numbers)
    return ir.AffineMap.get(rank, 0, [one.compose(change) for one in indices])


def _set_number(op: Any, number: int) -> None:
    """The attribute `dim` of an op: of a loop, or of a dimension."""
    op.attributes["dim"] = ir.IntegerAttr.get(build.integer(64), number)


def _kind(value: ir.Value, order: Order) -> Any:
    """The type of `value` in this order."""
    shape = [value.type.shape[number] for number in order]
    return ir.RankedTensorType.get(shape, value.type.element_type)


def _empty(value: ir.Value, order: Order) -> Any:
    sizes = [size_of(value, number) for number in order]
    return tensor.empty(sizes, value.type.element_type)


def _transposed(value: ir.Value, order: Order) -> Any:
    outs = [_empty(value, order)]
    made = linalg.transpose(value, outs=outs, permutation=list(order))
    return made.operation.results[0]


def _made_again(value: ir.Value, order: Order) -> Any:
    """A fill, `tensor.empty` or constant of equal elements in this order."""
    fill, constant = made_by(value, "linalg.fill"), made_by(value, "arith.constant")
    if constant is not None:
        element = constant.attributes["value"].get_splat_value()
        return build.splat(_kind(value, order), element)
    if fill is not None:
        return linalg.fill(fill.operands[0], outs=[_empty(value, order)])
    return _empty(value, order)


def _padded(op: Any, kind: Any, source: Any, order: Order) -> Any:
    """A `tensor.pad` of another source, with the numbers of `op` in this order."""
    ends = []
    sizes = iter(list(op.operands)[1:])
    for name in ("static_low", "static_high"):
        known = list(op.attributes[name])
        every = [next(sizes) if one == _DYNAMIC else None for one in known]
        values = [every[number] for number in order if every[number] is not None]
        ends.append((values, [known[number] for number in order]))
    (low, static_low), (high, static_high) = ends
    made = tensor.PadOp(kind, source, low, high, static_low, static_high).operation
    op.regions[0].blocks[0].append_to(made.regions[0])
    return made
