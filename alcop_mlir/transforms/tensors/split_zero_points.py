"""Split quantised matmuls and convolutions on tensors, which multiply bytes then.

Before:  %y = linalg.conv_2d_nhwc_hwcf_q ins(%x, %w, %zx, %zw) outs(%i)
             // adds up (x - zx) * (w - zw)
After:   %c = linalg.conv_2d_nhwc_hwcf ins(%x, %w) outs(%i)
         %f = linalg.generic ins(%w, %zw)     // adds up w - zw, for each filter
         %p = linalg.generic ins(%x)          // adds up x, for each window
         %y = linalg.generic ins(%c, %f, %p, %zx, %zw)   // %c - %f * %zx - %p * %zw

Tensor cores multiply bytes, and a difference of bytes is none. Integers of 32 bits wrap
around, so that results are the same to the last bit. Zero points of 0 are left out.
What they make is subtracted in the epilogue; %f depends on weights alone. %f and %p run
as SIMT fallbacks, and the pass writes why. Left unchanged are depthwise convolutions,
groups of too few channels for tensor cores, ops on memrefs, and other types.

Runs before alcop-propagate-layouts and alcop-prepare-weights. Writes `alcop.reason`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from alcop_mlir.analysis.ir.loops import number
from alcop_mlir.analysis.ir.walk import walk
from alcop_mlir.analysis.linalg.convolutions import FEWEST_CHANNELS
from alcop_mlir.analysis.linalg.view import LinalgView, Operand, view_of
from alcop_mlir.bindings import arith, ir, linalg, tensor
from alcop_mlir.dialects import alcop
from alcop_mlir.frozen import frozen
from alcop_mlir.passes import build
from alcop_mlir.passes.base import Pass
from alcop_mlir.transforms.tensors.generic_ops import (
    empty_like,
    generic_on_tensors,
    keep_marks,
    size_of,
)

_QUANTISED = {
    "linalg.quantized_matmul": "matmul",
    "linalg.quantized_batch_matmul": "batch_matmul",
    **{
        f"linalg.{name}_q": name
        for name in (
            "conv_2d_nhwc_hwcf conv_2d_nhwc_fhwc conv_2d_nchw_fchw "
            "conv_2d_ngchw_gfchw conv_2d_nhwgc_gfhwc conv_3d_ndhwc_dhwcf"
        ).split()
    },
}
_STEPS = ("strides", "dilations")


@frozen
class SplitZeroPoints(Pass):
    name = "alcop-split-zero-points"
    anchor = "func.func"

    def run(self, op: ir.Operation) -> None:
        for quantised in walk(op, *_QUANTISED):
            view = view_of(quantised)
            if _is_for_tensor_cores(view):
                with quantised.location, ir.InsertionPoint(quantised):
                    made = _split(view)
                quantised.results[0].replace_all_uses_with(made)
                quantised.erase()


def _is_for_tensor_cores(view: LinalgView) -> bool:
    image, kernel, *_ = view.inputs
    (out,) = view.outputs
    types = [str(one.value.type.element_type) for one in (image, kernel, out)]
    if not out.is_tensor or types != ["i8", "i8", "i32"]:
        return False
    shared = {*image.loops} & {*kernel.loops} - {None}
    channels = 1
    for loop in shared.difference(out.loops):
        channels *= view.static_size(loop or 0) or FEWEST_CHANNELS
    return shared.isdisjoint(out.loops) or channels >= FEWEST_CHANNELS


def _split(view: LinalgView) -> Any:
    """The result, built at the op."""
    image, kernel, *points = view.inputs
    of_image, of_kernel = (point.value for point in points)
    parts: list[tuple[Any, list[int], ir.Value]] = []
    if number(of_image) != 0:
        parts.append((*_added_up(view, kernel, of_kernel), of_image))
    if number(of_kernel) != 0:
        parts.append((*_added_up(view, image), of_kernel))
    (out,) = view.outputs
    plain = _plain(view.op)
    if not parts:
        return plain
    rank = out.value.type.rank
    order = {loop: place for place, loop in enumerate(out.loops)}
    each = ir.AffineMap.get_identity(rank)
    values, maps = [plain], [each]
    for value, loops, point in parts:
        values += [value, point]
        maps += [_map(rank, [order[loop] for loop in loops]), _map(rank, [])]
    total = plain.type.element_type
    op = generic_on_tensors(values, [empty_like(plain, total)], [*maps, each])
    keep_marks(view.op, op)
    with ir.InsertionPoint(_body(op)):
        left, *others, _ = _body(op).arguments
        for value, point in zip(others[::2], others[1::2], strict=True):
            left = arith.subi(left, arith.muli(value, point))
        linalg.YieldOp([left])
    return op.results[0]


def _plain(op: ir.Operation) -> Any:
    """The op without zero points."""
    given = [name for name in _STEPS if name in op.attributes]
    steps = {name: list(op.attributes[name]) for name in given}
    image, kernel, *_, out = op.operands
    return getattr(linalg, _QUANTISED[op.name])(image, kernel, outs=[out], **steps)


def _added_up(
    view: LinalgView, operand: Operand, point: ir.Value | None = None
) -> tuple[Any, list[int]]:
    """The elements, less a zero point, added up by loops of the output; these."""
    (out,) = view.outputs
    used = {loop for index in operand.indices for loop in index.loops}
    kept = [loop for loop in out.loops if loop in used]
    taps = sorted(used.difference(out.loops, operand.loops))
    order = [*kept, *sorted(used.difference(kept))]
    places = {loop: place for place, loop in enumerate(order)}
    total = out.value.type.element_type
    sizes = [size_of(out.value, out.loops.index(loop)) for loop in kept]
    start = linalg.fill(build.zero(total), outs=[tensor.empty(sizes, total)])
    inputs, maps = [operand.value], [_renumbered(operand, places)]
    if taps:  # their sizes
        window = tensor.empty([size_of(*view.sizes[tap]) for tap in taps], total)
        inputs.append(window)
        maps.append(_map(len(order), [places[tap] for tap in taps]))
    if point is not None:
        inputs.append(point)
        maps.append(_map(len(order), []))
    maps.append(_map(len(order), range(len(kept))))
    op = generic_on_tensors(inputs, [start], maps, range(len(kept), len(order)))
    alcop.give_reason(op, "adds up what a zero point of the other input multiplies")
    with ir.InsertionPoint(_body(op)):
        first, *others, before = _body(op).arguments
        element: Any = arith.extsi(total, first)
        if point is not None:
            element = arith.subi(element, others[-1])
        linalg.YieldOp([arith.addi(before, element)])
    return op.results[0], kept


def _body(op: ir.Operation) -> ir.Block:
    """The block of a generic op, which is made with the first use."""
    region = op.regions[0]
    if not len(region.blocks):
        types = [getattr(v.type, "element_type", v.type) for v in op.operands]
        region.blocks.append(*types, arg_locs=[op.location] * len(types))
    return region.blocks[0]


def _map(rank: int, loops: Sequence[int]) -> ir.AffineMap:
    return build.loop_map(rank, loops).value


def _renumbered(operand: Operand, places: dict[int, int]) -> ir.AffineMap:
    """The map of an operand, of loops with other numbers."""
    results = []
    for index in operand.indices:
        steps = zip(index.loops, index.coefficients or (), strict=True)
        expression = ir.AffineExpr.get_constant(index.offset)
        for loop, step in steps:
            expression = ir.AffineExpr.get_dim(places[loop]) * step + expression
        results.append(expression)
    return ir.AffineMap.get(len(places), 0, results)
