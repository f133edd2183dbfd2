"""Make each supported convolution a contraction of windows that are never made.

Before:  linalg.conv_2d_nhwc_hwcf ins(%x, %w : memref<2x16x16x64xf16>,
             memref<3x3x64x48xf16>) outs(%y : memref<2x14x14x48xf32>)
After:   %A = "alcop.im2col"(%x) {alcop.window = #alcop.window<{size = [3, 3],
             strides = [1, 1], dilations = [1, 1], low = [0, 0], high = [0, 0],
             groups = 1}>} : (memref<2x16x16x64xf16>) -> memref<392x576xf16>
         %B = memref.collapse_shape %w [[0, 1, 2], [3]]
         %C = memref.collapse_shape %y [[0, 1, 2], [3]]
         linalg.generic ins(%A, %B) outs(%C)       // loops m, n, k

A row of %A is a window, tap by tap, channels innermost; alcop-tile-to-blocks gathers
its tiles from the image. Windows of one element, moved by one, are a view of the image
instead. The body is the convolution's.

Where %x is a buffer that is filled with zero, and into which an image was copied, as
`tensor.pad` becomes, the image is read instead, and `low` and `high` say how many zeros
are around it; buffer, fill and copy are erased where nothing else needs them. Padding
with other values is computed, with a remark. Sizes may be known at run time only: the
host asserts that there are as many windows as fit.

Images need the batch first and the channels last, filters and outputs dimensions that
can be collapsed to those of matrices. Where an operand has another order, as in
`conv_2d_nchw_fchw`, a transposed copy of it is made, with a remark; not of a filter or
output if roles of rows and columns exchanged do as well, and of none where windows are
pixels. Where the rows of an output have gaps between them, but are in order,
`alcop.rows` views it as a matrix.

Fewer than 16 channels are joined with the taps along the last dimension, which are
neighbours (`join_taps.py`): small kernels copy the image, with channels filled up to
whole chunks and zeros around it, and the filter, with a remark. Groups of so few
channels, windows of one dimension, dilated rows of taps, and a number of filters that
is known at run time only are not supported.

Only what alcop-raise-contractions then takes is changed: all other convolutions
are left unchanged, with an `alcop.reason`.

Runs before alcop-raise-contractions, which says why an op is left unchanged. Writes
`alcop.window`, and `alcop.reason` on unsupported ops.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import takewhile
from typing import Any

from alcop_mlir import diagnostics
from alcop_mlir.analysis.ir.code_motion import ops_before
from alcop_mlir.analysis.ir.constant_arrays import is_global
from alcop_mlir.analysis.ir.rejected import Rejected
from alcop_mlir.analysis.linalg.contractions import classify, structured_ops
from alcop_mlir.analysis.linalg.convolutions import find_convolution
from alcop_mlir.analysis.linalg.elementwise import (
    Elementwise,
    filled_with,
    find_fill,
)
from alcop_mlir.analysis.linalg.few_channels import has_few_channels, why_not_joined
from alcop_mlir.analysis.linalg.moving_windows import (
    AxisWindow,
    Convolution,
    loops_of,
)
from alcop_mlir.analysis.linalg.padding import Padding
from alcop_mlir.analysis.linalg.window_matrices import (
    WindowMatrices,
    pixel_matrices,
    window_matrices,
)
from alcop_mlir.bindings import ir, linalg, memref
from alcop_mlir.dialects import alcop
from alcop_mlir.frozen import frozen
from alcop_mlir.passes import build, sizes
from alcop_mlir.passes.base import NOALIAS, Pass, option
from alcop_mlir.transforms.linalg.collapsed_views import collapsed
from alcop_mlir.transforms.linalg.convolution_code import erase_paddings, with_body_of
from alcop_mlir.transforms.linalg.join_taps import join_taps, say_what_is_joined
from alcop_mlir.transforms.linalg.transposed_copies import (
    allocated,
    transpose_back,
    transposed,
)


@frozen
class RaiseConvolutions(Pass):
    name = "alcop-raise-convolutions"
    anchor = "func.func"

    allow_tf32: bool = option(False, "contractions of f32, with inputs rounded to tf32")
    assume_noalias_args: bool = option(False, NOALIAS)

    def run(self, op: ir.Operation) -> None:
        folded: list[Padding] = []
        for candidate in structured_ops(op):
            found = find_convolution(candidate, self.assume_noalias_args)
            if isinstance(found, Convolution):
                with candidate.location, ir.InsertionPoint(candidate):
                    answer = self._raise(found)
                folded += [found.padding] if found.padding else []
                found = answer
            if isinstance(found, Rejected):
                alcop.give_reason(found.op, found.reason)
        erase_paddings(folded)

    def _raise(self, found: Convolution) -> Rejected | None:
        """Replace the convolution, or say why alcop-raise-contractions would not."""
        above = set(ops_before(found.op))
        answer = self._joined(found) if has_few_channels(found) else self._wide(found)
        if answer is None:
            found.op.erase()
            return None
        made = takewhile(lambda op: op not in above, ops_before(found.op))
        for op in made:  # each before what it uses
            op.erase()
        return Rejected(found.op, answer)

    def _joined(self, found: Convolution) -> str | None:
        """Build the contraction of joined taps, or say why there is none."""
        why = why_not_joined(found)
        if why is not None:
            return why
        joined = find_convolution(join_taps(found), self.assume_noalias_args)
        assert isinstance(joined, Convolution), joined
        with ir.InsertionPoint(joined.op):
            answer = self._wide(joined)
        if answer is not None:
            return answer
        with ir.InsertionPoint(joined.op):
            _assert_sizes(found)
        joined.op.erase()
        if found.computed:
            diagnostics.remark(found.op, f"its padding is computed: {found.computed}")
        say_what_is_joined(found)
        return None

    def _wide(self, found: Convolution) -> str | None:
        """Build the contraction, or say why alcop-raise-contractions takes none."""
        matrices = pixel_matrices(found) or window_matrices(found)
        fill = find_fill(found.op, found.output.value, self.assume_noalias_args)
        operands = _operands(found, matrices, fill)
        contraction = _contraction(found, matrices, operands)
        answer = classify(contraction, self.allow_tf32)
        if isinstance(answer, Rejected):
            return answer.reason
        _say_what_is_computed(found, matrices)
        with ir.InsertionPoint(contraction):
            _assert_sizes(found)
        if "output" in matrices.copied:
            _return_output(found, matrices, operands[2])
        if fill is not None and operands[2] != found.output.value:
            fill.op.erase()
        return None


def _say_what_is_computed(found: Convolution, matrices: WindowMatrices) -> None:
    """A remark where an operand is not read as it lies; constants are copied before."""
    if found.computed:
        diagnostics.remark(found.op, f"its padding is computed: {found.computed}")
    constant = ["filter"] if is_global(found.filter.value) else []
    transposed = [name for name in matrices.transposed(found) if name not in constant]
    dense = [name for name in matrices.copied if name not in (*transposed, *constant)]
    if transposed:
        diagnostics.remark(
            found.op,
            f"transposed copies are made of its {', '.join(transposed)}: expected "
            "the channels last in image and output, and after the taps in the filter",
        )
    if dense:
        diagnostics.remark(
            found.op,
            f"dense copies are made of its {', '.join(dense)}: expected no gaps "
            "between what is seen of it",
        )


def _operands(
    found: Convolution, matrices: WindowMatrices, fill: Elementwise | None
) -> list[Any]:
    """Image, filter and output, or transposed copies of them."""
    image, kernel, output = found.source, found.filter, found.output.value
    copied = matrices.copied
    if "image" in copied:
        dimensions = list(range(image.type.rank))
        image = transposed(image, dimensions, matrices.image_order)
    weights = kernel.value
    if "filter" in copied:
        loops, backwards = loops_of(kernel), found.backwards
        weights = transposed(weights, loops, matrices.filter, backwards)
    if "output" in copied:
        output = _own_output(found, matrices, fill)
    elif matrices.rows_apart:
        output = _rows(output, fill)
    return [image, weights, output]


def _rows(output: ir.Value, fill: Elementwise | None) -> Any:
    """A view of the output as a matrix, with rows of any distances, filled if it is."""
    kind = output.type
    is_open = any(map(kind.is_dynamic_dim, range(kind.rank - 1)))
    dynamic = ir.ShapedType.get_dynamic_size()
    rows = dynamic if is_open else math.prod(kind.shape[:-1])
    result = build.memref_like(kind, [rows, kind.shape[-1]])
    view = ir.Operation.create("alcop.rows", [result], [output]).results[0]
    if fill is not None:
        linalg.fill(filled_with(fill), outs=[view])
    return view


def _own_output(
    found: Convolution, matrices: WindowMatrices, fill: Elementwise | None
) -> Any:
    """A buffer in another order that holds what the output does."""
    output = found.output
    if fill is None:
        return transposed(output.value, loops_of(output), matrices.output)
    buffer = allocated(output.value, loops_of(output), matrices.output)
    linalg.fill(filled_with(fill), outs=[buffer])
    return buffer


def _return_output(
    found: Convolution, matrices: WindowMatrices, buffer: ir.Value
) -> None:
    """Copy the result to the output."""
    output = found.output
    with ir.InsertionPoint.after(found.op):
        transpose_back(buffer, output.value, loops_of(output), matrices.output)


def _assert_sizes(found: Convolution) -> None:
    """Assert, of sizes known at run time, that there are as many windows as fit."""
    output, source = found.output, found.source
    for number in found.dimensions("batch"):
        if source.type.is_dynamic_dim(number):
            loop = found.image.loops[number]
            images = build.size(output.value, output.loops.index(loop))
            build.assert_at_most(images, build.size(source, number))
    for axis in found.axes:
        window = found.window(axis)
        if window.size is not None:
            continue
        places = build.size(output.value, output.loops.index(axis.place))
        end = build.mul(build.sub(places, 1), axis.stride)
        end = build.add(end, found.span(axis))
        whole = build.size(source, axis.dimension)
        whole = build.add(whole, window.low + window.high)
        build.assert_at_most(end, whole)
        build.assert_at_most(whole, build.add(end, axis.stride - 1))


def _contraction(
    found: Convolution, matrices: WindowMatrices, operands: Sequence[ir.Value]
) -> Any:
    """The convolution as a contraction of matrices, with its own body."""
    image, weights, output = operands
    if matrices.window_groups is None:
        windows = collapsed(image, matrices.parts(matrices.image))
    else:
        windows = _windows(found, matrices.window_groups, image)
    weights = collapsed(weights, matrices.parts(matrices.filter))
    if not matrices.rows_apart:
        output = collapsed(output, matrices.parts(matrices.output))
    values = [windows, weights, output]
    orders = (matrices.image, matrices.filter, matrices.output)
    rank = len(matrices.groups)
    maps = [build.loop_map(rank, matrices.numbers(loops)) for loops in orders]
    given = [found.image, found.filter, found.output]
    return with_body_of(found.view, given, values, maps)


def _windows(found: Convolution, groups: Sequence[list[int]], image: ir.Value) -> Any:
    """The matrix of windows of an image whose dimensions are in order."""
    windows = [found.window(axis) for axis in found.axes]
    batch, axes = len(found.loops("batch")), len(found.axes)
    parts = [
        list(range(batch)),
        *([number] for number in range(batch, batch + axes)),
        list(range(batch + axes, image.type.rank)),
    ]
    source = collapsed(_seen(image, windows, batch), [part for part in parts if part])
    source = source if batch else _with_batch(source)
    parameters = {
        "size": [found.extent_of_taps(axis) for axis in found.axes],
        "strides": [axis.stride for axis in found.axes],
        "dilations": [axis.dilation for axis in found.axes],
        "low": [window.low for window in windows],
        "high": [window.high for window in windows],
        "groups": found.size(found.loops("group")),
    }
    dynamic = ir.ShapedType.get_dynamic_size()
    extents = map(found.size, groups)
    shape = [dynamic if size is None else size for size in extents]
    kind = build.memref_like(source.type, shape)
    op = ir.Operation.create("alcop.im2col", [kind], [source])
    alcop.put(op, alcop.WindowAttr, parameters)
    return op.results[0]


def _seen(image: ir.Value, windows: Sequence[AxisWindow], first: int) -> Any:
    """The part of the image that windows see, which move along dimensions from `first`.

    All of an image of sizes that are not known.
    """
    offsets, extents = [0] * image.type.rank, sizes.sizes_of(image)
    for number, window in enumerate(windows, first):
        if window.size is not None:
            offsets[number], extents[number] = window.first, window.size
    if sizes.shape(extents) == image.type.shape:
        return image
    return sizes.part(image, offsets, extents)


def _with_batch(image: ir.Value) -> Any:
    """One image as a batch of one."""
    kind = image.type
    groups = [[0, 1], *([number] for number in range(2, kind.rank + 1))]
    shape = [1, *kind.shape]
    layout = None
    if isinstance(kind.layout, ir.StridedLayoutAttr):
        strides, offset = kind.get_strides_and_offset()
        is_open = kind.is_dynamic_dim(0) or kind.is_dynamic_stride_or_offset(strides[0])
        dynamic = ir.ShapedType.get_dynamic_stride_or_offset()
        outer = dynamic if is_open else kind.shape[0] * strides[0]
        layout = ir.StridedLayoutAttr.get(offset, [outer, *strides])
    result = build.memref_like(kind, shape, layout=layout)
    return memref.expand_shape(result, image, groups, build.dynamic_sizes(image), shape)
