"""Split convolutions of images with zeros between pixels into dense convolutions.

Before:  %p is filled with zero, and %x copied into it in steps of 2
         linalg.conv_2d_nhwc_hwcf ins(%p, %w : memref<1x15x15x32xf16>,
             memref<3x3x32x16xf16>) outs(%y : memref<1x13x13x16xf32>)
After:   four times, for the outputs with even and odd rows and columns:
         %w1 = memref.subview %w[1, 0, 0, 0] [1, 2, 32, 16] [2, 2, 1, 1]
         %y1 = memref.subview %y[0, 1, 0, 0] [1, 7, 6, 16] [1, 2, 2, 1]
         linalg.generic ins(%x, %w1) outs(%y1)      // windows of 1 x 2, moved by one

So is the gradient of a strided convolution with respect to its image, or a transposed
convolution. Only taps that meet pixels are left in a phase, and no zero between pixels
is multiplied, or stored. Also an op that adds to windows of its output, with an index
`h * 2 + r`, which no other pass could make use of. Phases read the image itself where
that is enough, else a copy with zeros around it, of which alcop-raise-convolutions
reads the image. What fills the output before becomes a fill of each phase: a phase of
which no tap meets a pixel, of windows smaller than their steps, consists of that alone.

A NaN or an infinity of the filter reaches only the outputs for which it meets a pixel,
or a zero around the image, where the op multiplies it with the zeros between pixels.

Numbers and sizes of images may be known at run time only: of H pixels with steps of 2
each phase has H outputs, or a known number more or less, and the host asserts that
these are all. An output that windows are added to may have more, which a fill of all of
it reaches. Sizes of the filter must be known, and a stride of the convolution itself
needs known sizes: the number of outputs were a division. Convolutions that
alcop-raise-convolutions does not know are left unchanged.

Runs before alcop-raise-convolutions, which makes contractions of the phases. Writes
`alcop.reason` on unsupported ops.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from alcop_mlir import diagnostics
from alcop_mlir.analysis.ir.code_motion import writes
from alcop_mlir.analysis.linalg.contractions import structured_ops
from alcop_mlir.analysis.linalg.elementwise import filled_with, find_fill
from alcop_mlir.analysis.linalg.padding import Padding
from alcop_mlir.analysis.linalg.phases import (
    AxisPhase,
    Part,
    SparseConvolution,
    find_sparse_convolution,
)
from alcop_mlir.analysis.linalg.view import Operand
from alcop_mlir.bindings import ir, linalg, memref
from alcop_mlir.frozen import frozen
from alcop_mlir.passes import build, sizes
from alcop_mlir.passes.base import NOALIAS, Pass, option
from alcop_mlir.passes.sizes import Number
from alcop_mlir.transforms.linalg.convolution_code import erase_paddings, with_body_of

_Margins = Sequence[tuple[int, int]]


@frozen
class SplitPhases(Pass):
    name = "alcop-split-phases"
    anchor = "func.func"

    assume_noalias_args: bool = option(False, NOALIAS)

    def run(self, op: ir.Operation) -> None:
        replaced: list[Padding] = []
        for candidate in structured_ops(op):
            found = find_sparse_convolution(candidate, self.assume_noalias_args)
            if isinstance(found, str):
                diagnostics.remark(candidate, f"is not split into phases: {found}")
            if not isinstance(found, SparseConvolution):
                continue
            with candidate.location, ir.InsertionPoint(candidate):
                self._split(found)
            replaced += [found.padding] if found.padding else []
        erase_paddings(replaced)

    def _split(self, found: SparseConvolution) -> None:
        """Replace the convolution by its phases."""
        noalias, output = self.assume_noalias_args, found.output.value
        _assert_sizes(found)
        fill = find_fill(found.view.op, output, noalias)
        is_overwritten = writes(found.view.op, found.source, noalias)
        margins = found.margins()
        image = found.source
        if is_overwritten or any(low or high for low, high in margins):
            image = _padded(found, margins)
        for phase in found.phases():
            part = _part(found, found.output, phase)
            if fill is not None:
                linalg.fill(filled_with(fill), outs=[part])
            if all(axis.taps.count for axis in phase):
                _dense(found, phase, image, margins, part)
        found.view.op.erase()
        if fill is not None and not found.is_part:
            fill.op.erase()


def _assert_sizes(found: SparseConvolution) -> None:
    """Assert, of sizes known at run time, that phases are all outputs, or a part."""
    output, source = found.output.value, found.source
    loops = [index.loops for index in found.output.indices]
    for axis in found.axes:
        number = next(n for n, own in enumerate(loops) if axis.place in own)
        computed = (
            sizes.plus(
                sizes.times(sizes.size_of(source, axis.dimension), axis.step),
                axis.places,
            )
            if axis.pixels is None
            else axis.places
        )
        outputs = sizes.size_of(output, number)
        if found.is_part:
            build.assert_at_most(computed, outputs)
        elif sizes.is_open(computed) or sizes.is_open(outputs):
            build.assert_equal(computed, outputs)


def _padded(found: SparseConvolution, margins: _Margins) -> Any:
    """A copy of the image with zeros around it."""
    source, kind = found.source, found.source.type
    low, extents = [0] * kind.rank, sizes.sizes_of(source)
    shape = [*extents]
    for axis, (before, after) in zip(found.axes, margins, strict=True):
        low[axis.dimension] = before
        shape[axis.dimension] = sizes.plus(shape[axis.dimension], before + after)
    buffer = sizes.alloc(kind.element_type, shape)
    linalg.fill(build.zero(kind.element_type), outs=[buffer])
    memref.copy(source, sizes.part(buffer, low, extents))
    return buffer


def _dense(
    found: SparseConvolution,
    phase: Sequence[AxisPhase],
    image: ir.Value,
    margins: _Margins,
    output: ir.Value,
) -> None:
    """The convolution of a phase, of which `output` is the part that it writes."""
    values = [image, _part(found, found.filter, phase), output]
    maps = [
        _image_map(found, phase, margins),
        ir.AffineMapAttr.get(found.filter.map),
        _output_map(found),
    ]
    operands = [found.image, found.filter, found.output]
    with_body_of(found.view, operands, values, maps)


def _part(
    found: SparseConvolution, operand: Operand, phase: Sequence[AxisPhase]
) -> Any:
    """What a phase has of the filter or the output."""
    shape = operand.value.type.shape
    parts = [found.part(operand, number, phase) for number in range(len(shape))]
    extents = [
        _count(found, part, operand.value, number) for number, part in enumerate(parts)
    ]
    if extents == shape or not any(parts):
        return operand.value
    offsets = [part.first if part else 0 for part in parts]
    steps = [
        part.step if part and (part.count > 1 or part.than is not None) else 1
        for part in parts
    ]
    return sizes.part(operand.value, offsets, extents, steps)


def _count(
    found: SparseConvolution, part: Part | None, operand: ir.Value, number: int
) -> Number:
    """How many elements a part, or else an operand, has along a dimension."""
    if part is None:
        return sizes.size_of(operand, number)
    if part.than is None:
        return part.count
    return sizes.plus(sizes.size_of(found.source, part.than), part.count)


def _image_map(
    found: SparseConvolution, phase: Sequence[AxisPhase], margins: _Margins
) -> Any:
    """How the loops index the image, behind its margins."""
    results = [index.expression for index in found.image.indices]
    for axis, one, (low, _) in zip(found.axes, phase, margins, strict=True):
        index = ir.AffineExpr.get_dim(axis.place) * one.stride + one.offset + low
        if axis.tap is not None:
            index += ir.AffineExpr.get_dim(axis.tap) * one.dilation
        results[axis.dimension] = index
    return ir.AffineMapAttr.get(ir.AffineMap.get(found.view.rank, 0, results))


def _output_map(found: SparseConvolution) -> Any:
    """How the loops index the output of a phase: each dimension by one loop."""
    results = []
    places = {axis.place for axis in found.axes}
    for index in found.output.indices:
        own = [loop for loop in index.loops if loop in places]
        results.append(ir.AffineExpr.get_dim(own[0]) if own else index.expression)
    return ir.AffineMapAttr.get(ir.AffineMap.get(found.view.rank, 0, results))
