"""Fill up few channels of weights with zeros, once, and those of images alike.

Before:  %y = linalg.generic {(n, h, w, f, i, j, c) -> (n, 2 h + i, 2 w + j, c), ..}
             ins(%x, %w : tensor<1x69x69x3xf16>, tensor<64x7x7x3xf16>) outs(%init)
After:   %z = tensor.pad %x high[0, 0, 0, 1] { 0 } : .. to tensor<1x69x69x4xf16>
         %v = tensor.pad %w high[0, 0, 0, 1] { 0 } : .. to tensor<64x7x7x4xf16>
         %y = linalg.generic .. ins(%z, %v : ..) outs(%init)

alcop-raise-convolutions joins the taps of a row where there are few channels, and for
that copies image and filter into zeros (`analysis/linalg/few_channels.py`). The image's
copy stays one: zeros around it, and here behind its channels, are of one `tensor.pad`.
The filter's is made when weights are prepared. So it is done only where the filter
depends on weights alone, and taps will be joined.

Runs before alcop-prepare-weights, after alcop-propagate-layouts has brought channels to
the end. Reads `alcop.weight` of arguments; writes no attributes.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from alcop_mlir.analysis.ir.loops import made_by, splat
from alcop_mlir.analysis.ir.walk import walk
from alcop_mlir.analysis.linalg.convolutions import find_convolution
from alcop_mlir.analysis.linalg.few_channels import (
    has_few_channels,
    joined_channels,
    why_not_joined,
)
from alcop_mlir.analysis.linalg.moving_windows import Convolution
from alcop_mlir.analysis.tensors.weights import values_of_weights, weights_of
from alcop_mlir.bindings import ir, tensor
from alcop_mlir.frozen import frozen
from alcop_mlir.passes import build
from alcop_mlir.passes.base import Pass

_DYNAMIC = ir.ShapedType.get_dynamic_size()


@frozen
class FillChannels(Pass):
    name = "alcop-fill-channels"
    anchor = "func.func"

    def run(self, op: ir.Operation) -> None:
        if len(list(op.regions[0].blocks)) != 1 or not weights_of(op):
            return
        known = values_of_weights(op)
        for one in walk(op, "linalg.generic"):
            found = find_convolution(one) if len(one.results) else None
            if not isinstance(found, Convolution) or found.filter.value not in known:
                continue
            if _is_filled_up(found):
                with one.location, ir.InsertionPoint(one):
                    _fill(found)


def _is_filled_up(found: Convolution) -> bool:
    """Whether taps of a row will be joined, with more channels than there are.

    Not where something else than zeros is around the image, in a tensor of its own.
    """
    if not has_few_channels(found) or why_not_joined(found) is not None:
        return False
    pad = made_by(found.image.value, "tensor.pad")
    if pad is not None and not _pads_with_zeros(pad):
        return False
    return joined_channels(found) > (found.size(found.loops("channel")) or 0)


def _fill(found: Convolution) -> None:
    (loop,) = found.loops("channel")
    more = joined_channels(found) - (found.size([loop]) or 0)
    for operand in (found.image, found.filter):
        number = list(found.view.op.operands).index(operand.value)
        wider = _wider(operand.value, operand.loops.index(loop), more)
        found.view.op.operands[number] = wider


def _wider(value: ir.Value, dimension: int, more: int) -> Any:
    """The tensor with more elements along a dimension, which are zero."""
    low, high = [0] * value.type.rank, [0] * value.type.rank
    pad = made_by(value, "tensor.pad")
    if pad is not None and _pads_with_zeros(pad):
        value = pad.operands[0]
        low, high = (list(pad.attributes[f"static_{one}"]) for one in ("low", "high"))
    high[dimension] += more
    return _padded(value, low, high)


def _pads_with_zeros(pad: ir.Operation) -> bool:
    (block,) = pad.regions[0].blocks
    sizes = [*pad.attributes["static_low"], *pad.attributes["static_high"]]
    around = splat(block.operations[-1].operands[0])
    is_zero = around == 0 and math.copysign(1, around) > 0
    return is_zero and _DYNAMIC not in sizes


def _padded(value: ir.Value, low: Sequence[int], high: Sequence[int]) -> Any:
    """The tensor with zeros before and after it in each dimension."""
    kind = value.type
    shape = [
        _DYNAMIC if kind.is_dynamic_dim(n) else kind.shape[n] + low[n] + high[n]
        for n in range(kind.rank)
    ]
    result = ir.RankedTensorType.get(shape, kind.element_type)
    op = tensor.PadOp(result, value, [], [], low, high)
    index, here = ir.IndexType.get(), ir.Location.current
    block = op.regions[0].blocks.append(
        *[index] * kind.rank, arg_locs=[here] * kind.rank
    )
    with ir.InsertionPoint(block):
        tensor.YieldOp(build.zero(kind.element_type))
    return op.result
