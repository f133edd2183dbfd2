"""Builder of convolutions whose taps along a row are one run with their channels.

Before:  linalg.conv_2d_nhwc_hwcf ins(%x, %w : memref<1x224x224x3xf16>,
             memref<7x7x3x64xf16>) outs(%y : memref<1x112x112x64xf32>)  // by 2, padded
After:   %p = memref.alloc() : memref<1x229x229x4xf16>      // %x and zeros around it
         %rows = memref.reinterpret_cast %p to
             memref<1x229x112x28xf16, strided<[209764, 916, 8, 1]>>
         %f = memref.alloc() : memref<7x7x4x64xf16>         // %w and zeros
         %taps = memref.reinterpret_cast %f to memref<7x1x28x64xf16>
         linalg.generic ins(%rows, %taps) outs(%y)          // windows of 7 x 1

A pixel of %rows is what a window sees of a row, so that pixels overlap; a run ends
where the window does, and no neighbour is multiplied, not even by zero. Small kernels
fill and copy %p and %f; zeros around images are computed here.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from alcop_mlir import diagnostics
from alcop_mlir.analysis.ir.constant_arrays import is_global
from alcop_mlir.analysis.linalg.few_channels import (
    filter_order,
    has_whole_filter,
    joined_channels,
)
from alcop_mlir.analysis.linalg.moving_windows import Axis, Convolution, loops_of
from alcop_mlir.bindings import ir, linalg
from alcop_mlir.passes import build, sizes
from alcop_mlir.passes.sizes import Number
from alcop_mlir.transforms.linalg.convolution_code import with_body_of
from alcop_mlir.transforms.linalg.transposed_copies import copy, read_map


def join_taps(found: Convolution) -> Any:
    """The convolution of fewer taps, built at the current insertion point.

    Its loops are those of `found`: the last one of the window has one iteration, that
    of the channels goes through those of all its taps.
    """
    order = filter_order(found)
    values = [_rows(found), _taps(found, order), found.output.value]
    maps = [
        _image_map(found),
        build.loop_map(found.view.rank, order),
        build.loop_map(found.view.rank, loops_of(found.output)),
    ]
    operands = [found.image, found.filter, found.output]
    return with_body_of(found.view, operands, values, maps)


def say_what_is_joined(found: Convolution) -> None:
    """A remark that image and filter are copied; a constant costs no kernel."""
    is_free = is_global(found.filter.value) or has_whole_filter(found)
    (channel,) = found.dimensions("channel")
    given, filled = found.source.type.shape[channel], joined_channels(found)
    channels = f"with {filled} channels for {given} and" if given < filled else "with"
    diagnostics.remark(
        found.op,
        f"{'image is' if is_free else 'image and filter are'} copied, {channels} zeros "
        f"around the image: the {found.extent_of_taps(found.axes[-1])} taps of a row "
        "become one run",
    )


def _rows(found: Convolution) -> Any:
    """A view of the padded image: a pixel is what a window sees of a row."""
    last = found.axes[-1]
    padded, numbers = _padded_image(found)
    *outer, _, channels = numbers
    pitches = [sizes.product(numbers[n + 1 :]) for n in range(len(outer))]
    count = found.output_dimension(last.place)
    places = sizes.size_of(found.output.value, count)
    shape = [*outer, places, found.extent_of_taps(last) * channels]
    strides = [*pitches, last.stride * channels, 1]
    layout = ir.StridedLayoutAttr.get(0, sizes.strides(strides))
    kind = build.memref_like(padded.type, sizes.shape(shape), layout=layout)
    return build.reinterpreted(kind, padded, sizes.values(shape), sizes.values(strides))


def _padded_image(found: Convolution) -> tuple[Any, list[Any]]:
    """A copy with zeros around it, channels last, and its sizes."""
    source = found.source
    dimensions = [*range(source.type.rank)]
    windows = {axis.dimension: found.window(axis) for axis in found.axes}
    first, extents = [0] * len(dimensions), sizes.sizes_of(source)
    for number, window in windows.items():
        if window.size is not None:
            cut = max(0, -window.low), max(0, -window.high)
            first[number] = window.first + cut[0]
            extents[number] = window.size - sum(cut)
    seen = source
    if sizes.shape(extents) != source.type.shape:
        seen = sizes.part(source, first, extents)
    order = [
        *found.dimensions("batch"),
        *(axis.dimension for axis in found.axes),
        *found.dimensions("channel"),
    ]
    low = [max(0, windows[n].low) if n in windows else 0 for n in order]
    high = [max(0, windows[n].high) if n in windows else 0 for n in order]
    shape = [
        sizes.plus(extents[number], before + after)
        for number, before, after in zip(order, low, high, strict=True)
    ]
    shape[-1] = joined_channels(found)
    copied = [extents[number] for number in order]
    return _in_zeros(seen, dimensions, order, shape, low, copied), shape


def _taps(found: Convolution, order: Sequence[int]) -> Any:
    """The filter with zeros for further channels, taps of a row as one; or a copy."""
    kernel, last = found.filter.value, found.axes[-1]
    loops, (channel,) = loops_of(found.filter), found.loops("channel")
    extents = dict(zip(loops, kernel.type.shape, strict=True))
    copied = [extents[loop] for loop in order]
    extents[channel] = joined_channels(found)
    shape = [extents[loop] for loop in order]
    low, backwards = [0] * len(shape), found.backwards
    buffer = kernel
    if not has_whole_filter(found):
        buffer = _in_zeros(kernel, loops, order, shape, low, copied, backwards)
    extents[channel] *= found.extent_of_taps(last)
    extents[order[order.index(channel) - 1]] = 1
    kind = build.memref_like(buffer.type, [extents[loop] for loop in order])
    return build.reinterpreted(kind, buffer)


def _in_zeros(
    source: ir.Value,
    loops: Sequence[int],
    order: Sequence[int],
    shape: Sequence[Number],
    low: Sequence[int],
    copied: Sequence[Number],
    backwards: Sequence[int] = (),
) -> Any:
    """A new buffer of zeros of this shape, with a copy of a memref from `low` on.

    copied: the sizes of the copy
    `loops`, `order` and `backwards` as of `transposed_copies`.
    """
    buffer = sizes.alloc(source.type.element_type, shape)
    linalg.fill(build.zero(source.type.element_type), outs=[buffer])
    part = sizes.part(buffer, low, copied)
    copy(source, part, read_map(source, loops, order, backwards))
    return buffer


def _image_map(found: Convolution) -> Any:
    """How loops index %rows: along the last axis the next place is the next pixel."""
    *outer, last = found.axes
    with found.op.context:
        batch = map(ir.AffineExpr.get_dim, found.loops("batch"))
        indices = [_index(axis, axis.stride) for axis in outer]
        channels = map(ir.AffineExpr.get_dim, found.loops("channel"))
        results = [*batch, *indices, _index(last, 1), *channels]
        return ir.AffineMapAttr.get(ir.AffineMap.get(found.view.rank, 0, results))


def _index(axis: Axis, stride: int) -> Any:
    place = ir.AffineExpr.get_dim(axis.place) * stride
    if axis.tap is None:
        return place
    return place + ir.AffineExpr.get_dim(axis.tap) * axis.dilation
