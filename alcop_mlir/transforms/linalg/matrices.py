"""The arrays of a product as matrices: one size per loop, one matrix per batch.

Loops are named by letters: "m" rows, "n" columns, "k" the sum, "b" the batch. What
builds ops says where; sizes are built on the host, views in the kernel.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from alcop_mlir.analysis.ir.alignment import element_bytes
from alcop_mlir.analysis.ir.extents import extent
from alcop_mlir.analysis.ir.memref_layouts import follows_shape
from alcop_mlir.analysis.ir.promises import row_alignment
from alcop_mlir.bindings import arith, ir, memref
from alcop_mlir.passes import build


@dataclass(frozen=True)
class Size:
    """Extent of a loop.

    known: the number, where it is one
    given: the value as the array has it
    value: the same, computed so that what was promised of it can be seen
    """

    known: int | None
    given: Any
    value: Any

    def blocks(self, tile: int) -> Any:
        """Tiles that cover it, as a value."""
        if self.known is not None:
            return build.index(-(-self.known // tile))
        return arith.ceildivui(self.given, build.index(tile))

    def divides(self, tile: int) -> bool:
        """Whether tiles cover it without a rest, for all that is known."""
        return self.known is not None and self.known % tile == 0


def loop_sizes(arrays: Sequence[tuple[Any, str]]) -> dict[str, Size]:
    """The size of each loop, by the arrays and the loops that index them."""
    return {loop: _loop_size(arrays, loop) for loop in "bmnk"}


def _loop_size(arrays: Sequence[tuple[Any, str]], loop: str) -> Size:
    places = [(array, loops.index(loop)) for array, loops in arrays if loop in loops]
    known = [
        array.type.shape[number]
        for array, number in places
        if not array.type.is_dynamic_dim(number)
    ]
    if known or not places:
        size = known[0] if known else 1
        return Size(size, build.index(size), build.index(size))
    array, number = max(places, key=lambda place: _promised(*place))
    given = extent(array, number)
    if not isinstance(given, ir.Value):
        given = memref.dim(array, build.index(number))
    step = _promised(array, number)
    if step == 1:
        return Size(None, given, given)
    whole = build.mul(arith.divui(given, build.index(step)), build.index(step))
    return Size(None, given, whole)


def _promised(array: Any, number: int) -> int:
    """Elements that the dimension is promised to be a multiple of."""
    if number != array.type.rank - 1:
        return 1
    return max(1, row_alignment(array) // element_bytes(array.type))


def matrix(array: Any, loops: str, sizes: dict[str, Size], batch: Any) -> Any:
    """The matrix number `batch` of `array`, which has as many as loop "b" runs.

    A vector is a matrix of one row: `loops` names it ("m"), the array lacks it.
    """
    array = _all(array, loops, sizes)
    if "b" not in loops:
        return array
    zero = build.index(0)
    offsets = [batch if loop == "b" else zero for loop in loops]
    place = loops.index("b")
    return view(array, offsets, _view_sizes(array, sizes, loops, "b"), dropped=place)


def _all(array: Any, loops: str, sizes: dict[str, Size]) -> Any:
    """All of `array`, in sizes that show what was promised; vectors with their row."""
    is_vector = len(loops) > array.type.rank
    if array.type.has_static_shape and not is_vector:
        return array
    if follows_shape(array.type):
        return _reshaped(array, [sizes[loop] for loop in loops])
    if is_vector:
        array = _with_row(array, loops.index("m"), sizes[loops[-1]])
    zeros = [build.index(0)] * len(loops)
    return view(array, zeros, _view_sizes(array, sizes, loops, ""))


def _view_sizes(
    array: Any, sizes: dict[str, Size], loops: str, single: str
) -> list[Any]:
    """Sizes of a view of all of `array`, of one element along the loop `single`."""
    return [
        1
        if loop == single
        else sizes[loop].value
        if array.type.is_dynamic_dim(number)
        else array.type.shape[number]
        for number, loop in enumerate(loops)
    ]


def view(
    array: Any, offsets: list[Any], extents: list[Any], dropped: int | None = None
) -> Any:
    """Part of `array`: extents are ints or values; without the dimension `dropped`."""
    dynamic = ir.ShapedType.get_dynamic_size()
    strides, _ = array.type.get_strides_and_offset()
    kept = [number for number in range(array.type.rank) if number != dropped]
    shape = [n if isinstance(n, int) else dynamic for n in extents]
    layout = ir.StridedLayoutAttr.get(
        ir.ShapedType.get_dynamic_stride_or_offset(), [strides[n] for n in kept]
    )
    kind = ir.MemRefType.get(
        [shape[n] for n in kept], array.type.element_type, layout=layout
    )
    return memref.subview(array, offsets, extents, [1] * len(extents), result_type=kind)


def _with_row(array: Any, place: int, length: Size) -> Any:
    """Vectors with gaps between them as matrices of one row, dimension `place`."""
    strides, offset = array.type.get_strides_and_offset()
    strides.insert(place, array.type.shape[place])
    shape = list(array.type.shape)
    shape.insert(place, 1)
    layout = ir.StridedLayoutAttr.get(offset, strides)
    kind = ir.MemRefType.get(shape, array.type.element_type, layout=layout)
    groups = [[number] for number in range(place)] + [[place, place + 1]]
    given = [
        length.value if number == place else memref.dim(array, build.index(number))
        for number in range(array.type.rank)
        if array.type.is_dynamic_dim(number)
    ]
    return memref.expand_shape(kind, array, groups, given, shape)


def _reshaped(array: Any, sizes: Sequence[Size]) -> Any:
    """An array without gaps as one of these sizes."""
    dynamic = ir.ShapedType.get_dynamic_size()
    dynamic_stride = ir.ShapedType.get_dynamic_stride_or_offset()
    known = [size.known for size in sizes]
    steps = [_product(sizes[number + 1 :]) for number in range(len(sizes))]
    static = [dynamic_stride if step.known is None else step.known for step in steps]
    shape = [dynamic if size is None else size for size in known]
    kind = ir.MemRefType.get(shape, array.type.element_type)
    if None in known[1:]:
        layout = ir.StridedLayoutAttr.get(0, static)
        kind = ir.MemRefType.get(shape, array.type.element_type, layout=layout)
    return memref.reinterpret_cast(
        kind,
        array,
        offsets=[],
        sizes=[size.value for size in sizes if size.known is None],
        strides=[step.value for step in steps if step.known is None],
        static_offsets=[0],
        static_sizes=shape,
        static_strides=static,
    )


def _product(sizes: Sequence[Size]) -> Size:
    known = [size.known for size in sizes]
    if None not in known:
        product = math.prod(size for size in known if size is not None)
        return Size(product, None, None)
    value = sizes[0].value
    for size in sizes[1:]:
        value = build.mul(value, size.value)
    return Size(None, value, value)
