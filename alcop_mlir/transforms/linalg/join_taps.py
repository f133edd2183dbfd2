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
from alcop_mlir.analysis.linalg.few_channels import joined_channels
from alcop_mlir.analysis.linalg.moving_windows import Axis, Convolution, loops_of
from alcop_mlir.bindings import ir, linalg, memref
from alcop_mlir.passes import build
from alcop_mlir.transforms.linalg.convolution_code import with_body_of
from alcop_mlir.transforms.linalg.transposed_copies import copy, read_map


def join_taps(found: Convolution) -> Any:
    """The convolution of fewer taps, built at the current insertion point.

    Its loops are those of `found`: the last one of the window has one iteration, that
    of the channels goes through those of all its taps.
    """
    order = _filter_order(found)
    values = [_rows(found), _taps(found, order), found.output.value]
    maps = [
        _image_map(found),
        build.loop_map(found.view.rank, order),
        build.loop_map(found.view.rank, loops_of(found.output)),
    ]
    operands = [found.image, found.filter, found.output]
    return with_body_of(found.view, operands, values, maps)


def say_what_is_joined(found: Convolution) -> None:
    """A remark that image and filter are copied; a constant is so without a kernel."""
    is_free = is_global(found.filter.value)
    diagnostics.remark(
        found.op,
        f"{'image is' if is_free else 'image and filter are'} copied, with "
        f"{joined_channels(found)} channels for {found.size(found.loops('channel'))} "
        f"and zeros around the image: the {found.extent_of_taps(found.axes[-1])} taps "
        "of a row become one run",
    )


def _rows(found: Convolution) -> Any:
    """A view of the padded image: a pixel is what a window sees of a row."""
    padded, last = _padded_image(found), found.axes[-1]
    strides, _ = padded.type.get_strides_and_offset()
    *outer, _, channels = padded.type.shape
    shape = [*outer, found.size([last.place]), found.extent_of_taps(last) * channels]
    strides = [*strides[:-2], last.stride * channels, 1]
    layout = ir.StridedLayoutAttr.get(0, strides)
    kind = build.memref_like(padded.type, shape, layout=layout)
    return build.reinterpreted(kind, padded)


def _padded_image(found: Convolution) -> Any:
    """A copy with zeros around it, channels last."""
    source = found.source
    dimensions = [*range(source.type.rank)]
    windows = {axis.dimension: found.window(axis) for axis in found.axes}
    first, sizes = [0] * len(dimensions), list(source.type.shape)
    for number, window in windows.items():
        first[number], sizes[number] = window.first, window.size
    seen = memref.subview(source, first, sizes, [1] * len(sizes))
    order = [
        *found.dimensions("batch"),
        *(axis.dimension for axis in found.axes),
        *found.dimensions("channel"),
    ]
    low = [windows[n].low if n in windows else 0 for n in order]
    shape = [
        sizes[n] + (windows[n].low + windows[n].high if n in windows else 0)
        for n in order
    ]
    shape[-1] = joined_channels(found)
    return _in_zeros(seen, dimensions, order, shape, low)


def _taps(found: Convolution, order: Sequence[int]) -> Any:
    """A copy of the filter with zeros for further channels, taps of a row as one."""
    kernel, last = found.filter.value, found.axes[-1]
    loops, (channel,) = loops_of(found.filter), found.loops("channel")
    sizes = dict(zip(loops, kernel.type.shape, strict=True))
    sizes[channel] = joined_channels(found)
    shape = [sizes[loop] for loop in order]
    low = [0] * len(shape)
    copied = _in_zeros(kernel, loops, order, shape, low, found.backwards)
    sizes[channel] *= found.extent_of_taps(last)
    sizes[order[order.index(channel) - 1]] = 1
    kind = build.memref_like(copied.type, [sizes[loop] for loop in order])
    return build.reinterpreted(kind, copied)


def _filter_order(found: Convolution) -> list[int]:
    """Its loops: the channels behind the last taps, columns where they are."""
    loops, columns = loops_of(found.filter), found.columns
    inner = [*found.taps, *found.loops("channel")]
    return [*inner, *columns] if loops[-1] in columns else [*columns, *inner]


def _in_zeros(
    source: ir.Value,
    loops: Sequence[int],
    order: Sequence[int],
    shape: Sequence[int],
    low: Sequence[int],
    backwards: Sequence[int] = (),
) -> Any:
    """A new buffer of zeros of this shape, with a copy of a memref from `low` on.

    `loops`, `order` and `backwards` as of `transposed_copies`.
    """
    buffer = build.alloc(ir.MemRefType.get(shape, source.type.element_type))
    linalg.fill(build.zero(source.type.element_type), outs=[buffer])
    sizes = [source.type.shape[loops.index(loop)] for loop in order]
    part = memref.subview(buffer, list(low), sizes, [1] * len(sizes))
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
