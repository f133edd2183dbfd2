"""Layouts of memref types: strides that are static, dynamic, or implied by sizes."""

from __future__ import annotations

import math

from alcop_mlir.bindings import ir


def open_strides(kind: ir.Type) -> list[int]:
    """Dimensions whose stride is dynamic and does not follow from the sizes."""
    if follows_shape(kind):
        return []
    strides, _ = kind.get_strides_and_offset()
    return [
        number
        for number, stride in enumerate(strides)
        if kind.is_dynamic_stride_or_offset(stride)
    ]


def has_negative_strides(kind: ir.Type) -> bool:
    """Whether a memref type has a stride that is known to be negative."""
    strides, _ = kind.get_strides_and_offset()
    return any(
        stride < 0 and not kind.is_dynamic_stride_or_offset(stride)
        for stride in strides
    )


def is_strided(kind: ir.Type) -> bool:
    """Whether a memref's layout is given by a stride for each dimension."""
    return follows_shape(kind) or isinstance(kind.layout, ir.StridedLayoutAttr)


def follows_shape(kind: ir.Type) -> bool:
    """Whether rows follow each other without gaps, from the first element on.

    Also where the type says so by a layout: `memref<5x8xf16, strided<[8, 1]>>`.
    """
    if kind.layout == ir.MemRefType.get(kind.shape, kind.element_type).layout:
        return True
    if not isinstance(kind.layout, ir.StridedLayoutAttr):
        return False
    if any(kind.is_dynamic_dim(number) for number in range(1, kind.rank)):
        return False
    return is_contiguous(kind)


def is_contiguous(kind: ir.Type) -> bool:
    """Whether a memref type is row-major from its first element on, without gaps.

    Its sizes must be static, but for the outermost.
    """
    strides = [math.prod(kind.shape[number + 1 :]) for number in range(kind.rank)]
    return kind.get_strides_and_offset() == (strides, 0)
