"""Sizes as numbers: ints where they are known, else index values; memrefs of such.

All build at the current insertion point.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import reduce
from typing import Any

from alcop_mlir.bindings import ir, memref
from alcop_mlir.passes import build

Number = int | ir.Value


def size_of(source: ir.Value, number: int) -> Number:
    """The size of a dimension of a memref."""
    kind = source.type
    is_open = kind.is_dynamic_dim(number)
    return build.size(source, number) if is_open else kind.shape[number]


def sizes_of(source: ir.Value) -> list[Number]:
    """The sizes of all dimensions of a memref."""
    return [size_of(source, number) for number in range(source.type.rank)]


def plus(left: Number, right: Number) -> Number:
    """`left + right`."""
    if isinstance(right, int) and right == 0:
        return left
    return _folded(int.__add__, build.add, left, right)


def times(left: Number, right: Number) -> Number:
    """`left * right`."""
    if isinstance(left, int) and left == 1:
        return right
    return _folded(int.__mul__, build.mul, left, right)


def product(numbers: Iterable[Number]) -> Number:
    """All numbers multiplied."""
    return reduce(times, numbers, 1)


def is_open(number: Number) -> bool:
    """Whether a number is known at run time only."""
    return not isinstance(number, int)


def shape(numbers: Iterable[Number]) -> list[int]:
    """The sizes as a type has them."""
    dynamic = ir.ShapedType.get_dynamic_size()
    return [number if isinstance(number, int) else dynamic for number in numbers]


def values(numbers: Iterable[Number]) -> list[Any]:
    """Those that a type leaves open."""
    return [number for number in numbers if not isinstance(number, int)]


def strides(numbers: Iterable[Number]) -> list[int]:
    """The strides as a type has them."""
    dynamic = ir.ShapedType.get_dynamic_stride_or_offset()
    return [number if isinstance(number, int) else dynamic for number in numbers]


def alloc(element: ir.Type, sizes: Sequence[Number]) -> Any:
    """An allocation with these sizes."""
    return build.alloc(ir.MemRefType.get(shape(sizes), element), values(sizes))


def part(
    buffer: ir.Value,
    offsets: Sequence[int],
    sizes: Sequence[Number],
    steps: Sequence[int] = (),
) -> Any:
    """A subview with these sizes; steps of 1 where none are given."""
    steps = steps or [1] * len(sizes)
    kind, dynamic = buffer.type, ir.ShapedType.get_dynamic_stride_or_offset()
    if kind.has_static_shape and not any(map(is_open, sizes)):
        return memref.subview(buffer, list(offsets), list(sizes), list(steps))
    given, offset = kind.get_strides_and_offset()
    moved = zip(offsets, given, strict=True)
    for first, stride in moved:
        if first and dynamic in (stride, offset):
            offset = dynamic
        elif first:
            offset += first * stride
    inner = [
        dynamic if stride == dynamic else stride * step
        for stride, step in zip(given, steps, strict=True)
    ]
    layout = ir.StridedLayoutAttr.get(offset, inner)
    result = build.memref_like(kind, shape(sizes), layout=layout)
    return memref.subview(
        buffer, list(offsets), list(sizes), list(steps), result_type=result
    )


def _folded(
    on_ints: Callable[[int, int], int],
    on_values: Callable[[Number, Number], ir.Value],
    left: Number,
    right: Number,
) -> Number:
    if isinstance(left, int) and isinstance(right, int):
        return on_ints(left, right)
    return on_values(left, right)
