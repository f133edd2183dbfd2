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

Only what alcop-raise-contractions then takes is changed: images with the batch first
and the channels last, and filters and outputs whose dimensions can be collapsed to
those of matrices. All other convolutions are left unchanged, with an `alcop.reason`.

Runs before alcop-raise-contractions, which says why an op is left unchanged. Writes
`alcop.window`, and `alcop.reason` on unsupported ops.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import takewhile
from typing import Any

from alcop_mlir import diagnostics
from alcop_mlir.analysis.ir.code_motion import ops_before
from alcop_mlir.analysis.ir.memory import VIEW_OPS
from alcop_mlir.analysis.ir.memref_layouts import follows_shape
from alcop_mlir.analysis.ir.rejected import Rejected
from alcop_mlir.analysis.linalg.contractions import classify, structured_ops
from alcop_mlir.analysis.linalg.convolutions import (
    AxisWindow,
    Convolution,
    find_convolution,
)
from alcop_mlir.analysis.linalg.padding import Padding
from alcop_mlir.analysis.linalg.view import Operand
from alcop_mlir.bindings import ir, linalg, memref
from alcop_mlir.dialects import alcop
from alcop_mlir.passes import build
from alcop_mlir.passes.base import NOALIAS, Pass, option
from alcop_mlir.transforms.linalg.collapsed_views import collapsed


@dataclass(frozen=True)
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
        for padding in folded:
            _erase_unused(padding)

    def _raise(self, found: Convolution) -> Rejected | None:
        """Replace the convolution, or say why alcop-raise-contractions would not."""
        contraction = _contraction(found)
        answer = classify(contraction, self.allow_tf32)
        if isinstance(answer, Rejected):
            contraction.erase()
            for above in takewhile(_is_unused_view, ops_before(found.op)):
                above.erase()
            return Rejected(found.op, answer.reason)
        if found.computed:
            diagnostics.remark(found.op, f"its padding is computed: {found.computed}")
        with ir.InsertionPoint(contraction):
            _assert_sizes(found)
        found.op.erase()
        return None


def _assert_sizes(found: Convolution) -> None:
    """Assert, of sizes known at run time, that there are as many windows as fit."""
    output, source = found.output, found.source
    for number, loop in enumerate(found.batch):
        if source.type.is_dynamic_dim(number):
            images = build.size(output.value, output.loops.index(loop))
            build.assert_at_most(images, build.size(source, number))
    for number, axis in enumerate(found.axes, len(found.batch)):
        window = found.window(axis)
        if window.size is not None:
            continue
        places = build.size(output.value, output.loops.index(axis.place))
        end = build.mul(build.sub(places, 1), axis.stride)
        end = build.add(end, found.span(axis))
        whole = build.add(build.size(source, number), window.low + window.high)
        build.assert_at_most(end, whole)
        build.assert_at_most(whole, build.add(end, axis.stride - 1))


def _erase_unused(padding: Padding) -> None:
    """Erase the padded buffer, and what fills it, where nothing else reads it."""
    users = (use.owner.operation for use in padding.buffer.uses)
    if all(user in padding.ops for user in users):
        for op in padding.ops:
            op.erase()


def _is_unused_view(op: ir.Operation) -> bool:
    return op.name in VIEW_OPS and not any(True for _ in op.results[0].uses)


def _contraction(found: Convolution) -> Any:
    """The convolution as a contraction of matrices, with its own body."""
    operands = [
        (_windows(found), found.window_loops, found.image.argument),
        *(
            (_matrix(found, one), one.loops, one.argument)
            for one in (found.filter, found.output)
        ),
    ]
    maps = [
        build.loop_map(len(found.loop_groups), found.grouped(loops))
        for _, loops, _ in operands
    ]
    first, second, out = (value for value, _, _ in operands)
    op = build.generic([first, second], out, maps)
    (block,) = op.regions[0].blocks
    elements = [argument for _, _, argument in operands]
    with ir.InsertionPoint(block):
        mapping = dict(zip(elements, block.arguments, strict=True))
        linalg.YieldOp(build.inline(found.view.block, mapping))
    return op


def _matrix(found: Convolution, operand: Operand) -> Any:
    """A view of the filter or the output with a dimension for each group of loops."""
    loops = operand.loops
    parts = [
        [loops.index(loop) for loop in found.loop_groups[number]]
        for number in found.grouped(loops)
    ]
    return collapsed(operand.value, parts)


def _windows(found: Convolution) -> Any:
    """The matrix of windows: an `alcop.im2col`, or a view where each is a pixel."""
    if found.is_pixelwise:
        return collapsed(found.source, found.pixel_parts)
    windows = [found.window(axis) for axis in found.axes]
    source = collapsed(_seen(found, windows), found.image_parts)
    source = source if found.batch else _with_batch(source)
    parameters = {
        "size": [found.taps(axis) for axis in found.axes],
        "strides": [axis.stride for axis in found.axes],
        "dilations": [axis.dilation for axis in found.axes],
        "low": [window.low for window in windows],
        "high": [window.high for window in windows],
        "groups": found.size(found.groups),
    }
    dynamic = ir.ShapedType.get_dynamic_size()
    rows, groups, columns = map(found.size, found.matrix_loops)
    shape = [dynamic if size is None else size for size in (rows, groups, columns)]
    if not found.groups:
        del shape[1]
    kind = build.memref_like(source.type, shape)
    op = ir.Operation.create("alcop.im2col", [kind], [source])
    alcop.put(op, alcop.WindowAttr, parameters)
    return op.results[0]


def _seen(found: Convolution, windows: Sequence[AxisWindow]) -> Any:
    """The part of the image that the windows see."""
    image, before = found.source, len(found.batch)
    extents = [found.extent(axis) for axis in found.axes]
    seen = [(window.first, window.size) for window in windows]
    if seen == [(0, extent) for extent in extents]:
        return image
    rank = image.type.rank
    offsets, sizes = [0] * rank, [build.size(image, number) for number in range(rank)]
    for number, window in enumerate(windows, before):
        offsets[number] = window.first
        sizes[number] = sizes[number] if window.size is None else window.size
    return memref.subview(image, offsets, sizes, [1] * rank)


def _with_batch(image: ir.Value) -> Any:
    """One image as a batch of one."""
    kind = image.type
    groups = [[0, 1], *([number] for number in range(2, kind.rank + 1))]
    shape = [1, *kind.shape]
    layout = None
    if not follows_shape(kind):
        strides, offset = kind.get_strides_and_offset()
        layout = ir.StridedLayoutAttr.get(
            offset, [kind.shape[0] * strides[0], *strides]
        )
    result = build.memref_like(kind, shape, layout=layout)
    return memref.expand_shape(result, image, groups, build.dynamic_sizes(image), shape)
