"""Read what a tensor has side by side where its parts were put together again.

Before:  %l = tensor.extract_slice %x[0, 0] [64, 32] [1, 1]    // of tensor<64x96xf16>
         %r = tensor.extract_slice %x[0, 32] [64, 48] [1, 1]
         %y = tensor.concat dim(1) %l, %r
After:   %y = tensor.extract_slice %x[0, 0] [64, 80] [1, 1]

Parts may be views and transposes of the tensor, as the columns of each head that rotary
embeddings rotate and those that they leave, once one op makes both: `%y` then is one of
the whole. Where parts are no neighbours, or of tensors that differ, nothing changes.

Runs before bufferization, after alcop-pair-columns, which makes one tensor of what is
rotated and of what is not. Reads and writes no `alcop` attributes.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from alcop_mlir.analysis.ir.walk import walk
from alcop_mlir.analysis.tensors.joined_parts import Digit, Joined, joined
from alcop_mlir.analysis.tensors.unit_dimensions import unit_groups
from alcop_mlir.bindings import ir, tensor
from alcop_mlir.frozen import frozen
from alcop_mlir.passes.base import Pass
from alcop_mlir.transforms.tensors.static_views import (
    cut,
    shaped,
    taken_apart,
    transposed,
)


@frozen
class JoinSlices(Pass):
    name = "alcop-join-slices"
    anchor = "func.func"

    def run(self, op: ir.Operation) -> None:
        for concat in walk(op, "tensor.concat"):
            found = joined(concat)
            if found is not None:
                with concat.location, ir.InsertionPoint(concat):
                    view = _view(found, list(concat.results[0].type.shape))
                concat.results[0].replace_all_uses_with(view)
                concat.erase()


def _view(found: Joined, shape: Sequence[int]) -> Any:
    """The source, cut, taken apart, and in the order of the view's dimensions."""
    value = cut(found.source, [_range(digits) for digits in found.digits])
    # Dimensions of one element, of which there are as many as are wanted at the end.
    known = [number for number, digits in enumerate(found.digits) if digits]
    if len(known) < len(found.digits):
        groups = unit_groups(known, len(found.digits))
        kind = shaped(value, [value.type.shape[number] for number in known])
        value = tensor.collapse_shape(kind, value, groups)
    outer = [(digits[0], digits[1:]) for digits in found.digits if digits]
    parts = [[one.extent, *(part.size for part in rest)] for one, rest in outer]
    value = taken_apart(value, parts)
    inner = [
        place
        for one, rest in outer
        for place in ((0, one.extent), *((part.begin, part.extent) for part in rest))
    ]
    value = cut(value, inner)
    loops = [one.loop for digits in found.digits for one in digits]
    value = transposed(value, sorted(range(len(loops)), key=loops.__getitem__))
    if len(loops) == len(shape):
        return value
    groups = unit_groups(sorted(loops), len(shape))
    return tensor.expand_shape(shaped(value, shape), value, groups, [], shape)


def _range(digits: Sequence[Digit]) -> tuple[int, int]:
    """What outer digits leave of a dimension: where that begins, and its size."""
    step = math.prod(one.size for one in digits[1:])
    return (digits[0].begin * step, digits[0].extent * step) if digits else (0, 1)
