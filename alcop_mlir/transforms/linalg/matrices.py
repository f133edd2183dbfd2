"""Views of a contraction's operands as matrices, and the sizes of its loops.

Loops are named by letters: "m" rows, "n" columns, "k" the reduction, `BATCHES` those of
the batch. Each has one size; an operand has one matrix per iteration of its batch
loops. Builders use the current insertion point: sizes are built on the host, views in
the kernel.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from functools import reduce
from typing import Any

from alcop_mlir.analysis.ir.alignment import element_bytes
from alcop_mlir.analysis.ir.loops import made_by
from alcop_mlir.analysis.ir.memref_layouts import follows_shape
from alcop_mlir.analysis.ir.promises import row_alignment
from alcop_mlir.analysis.linalg.contraction_letters import BATCHES
from alcop_mlir.bindings import ir, memref
from alcop_mlir.frozen import frozen
from alcop_mlir.passes import build


@frozen
class Size:
    """Extent of a loop.

    known: the number, where it is one
    given: the size of the buffer, as a value
    value: the same, computed so that a promised divisor can be read off
    """

    known: int | None
    given: Any
    value: Any

    def blocks(self, tile: int) -> Any:
        """The number of tiles that cover the loop, as a value."""
        if self.known is not None:
            return build.index(-(-self.known // tile))
        return build.ceil_div(self.given, tile)

    def divides(self, tile: int) -> bool:
        """Whether the size is known to be a multiple of `tile`."""
        return self.known is not None and self.known % tile == 0


def loop_sizes(buffers: Sequence[tuple[Any, str]]) -> dict[str, Size]:
    """The size of each loop, from buffers with the loops that index them."""
    used = {loop for _, loops in buffers for loop in loops}
    batches = [loop for loop in BATCHES if loop in used]
    return {loop: _loop_size(buffers, loop) for loop in (*batches, *"mnk")}


def product(sizes: Sequence[Size]) -> Size:
    """The number of iterations of a nest of loops of these sizes; 1 of none."""
    if len(sizes) == 1:
        return sizes[0]
    known = _product(sizes).known
    if known is not None:
        return Size(known, build.index(known), build.index(known))
    total = reduce(build.mul, [size.given for size in sizes])
    return Size(None, total, total)


def _loop_size(buffers: Sequence[tuple[Any, str]], loop: str) -> Size:
    dims = [(buffer, loops.index(loop)) for buffer, loops in buffers if loop in loops]
    known = [
        buffer.type.shape[number]
        for buffer, number in dims
        if not buffer.type.is_dynamic_dim(number)
    ]
    if known or not dims:
        size = known[0] if known else 1
        return Size(size, build.index(size), build.index(size))
    buffer, number = max(dims, key=lambda dim: _promised(*dim))
    given = build.size(buffer, number)
    step = _promised(buffer, number)
    return Size(None, given, build.mul(build.div(given, step), step))


def _promised(buffer: ir.Value, number: int) -> int:
    """The number of elements that the dimension is promised to be a multiple of."""
    if number != buffer.type.rank - 1:
        return 1
    return max(1, row_alignment(buffer) // element_bytes(buffer.type))


def matrix(
    buffer: ir.Value, loops: str, sizes: dict[str, Size], batch: Mapping[str, ir.Value]
) -> Any:
    """The matrix of `buffer` at the iteration `batch` of the loops of the batch.

    A vector is a matrix of one row: `loops` has its "m", the buffer does not.
    """
    buffer = _all(buffer, loops, sizes)
    dropped = [number for number, loop in enumerate(loops) if loop in BATCHES]
    if not dropped:
        return buffer
    zero = build.index(0)
    offsets = [batch.get(loop, zero) for loop in loops]
    extents = _view_sizes(buffer, sizes, loops, BATCHES)
    return view(buffer, offsets, extents, dropped)


def _all(buffer: ir.Value, loops: str, sizes: dict[str, Size]) -> Any:
    """All of `buffer`, with sizes that show promises; a vector as one row."""
    is_vector = len(loops) > buffer.type.rank
    if buffer.type.has_static_shape and not is_vector:
        return buffer
    if made_by(buffer, "alcop.rows") is not None:  # of any distances
        return buffer
    if follows_shape(buffer.type):
        return _reshaped(buffer, [sizes[loop] for loop in loops])
    if is_vector:
        buffer = _with_row(buffer, loops.index("m"), sizes[loops[-1]])
    zeros = [build.index(0)] * len(loops)
    return view(buffer, zeros, _view_sizes(buffer, sizes, loops, ""))


def _view_sizes(
    buffer: ir.Value, sizes: dict[str, Size], loops: str, single: str
) -> list[Any]:
    """Sizes of a view of all of `buffer`, but of one element along loops `single`."""
    return [
        1
        if loop in single
        else sizes[loop].value
        if buffer.type.is_dynamic_dim(number)
        else buffer.type.shape[number]
        for number, loop in enumerate(loops)
    ]


def view(
    buffer: ir.Value,
    offsets: list[ir.Value],
    extents: Sequence[ir.Value | int],
    dropped: Collection[int] = (),
) -> Any:
    """A subview without the dimensions `dropped`; extents are ints or values."""
    dynamic = ir.ShapedType.get_dynamic_size()
    strides, _ = buffer.type.get_strides_and_offset()
    kept = [number for number in range(buffer.type.rank) if number not in dropped]
    shape = [n if isinstance(n, int) else dynamic for n in extents]
    layout = ir.StridedLayoutAttr.get(
        ir.ShapedType.get_dynamic_stride_or_offset(), [strides[n] for n in kept]
    )
    kind = build.memref_like(buffer.type, [shape[n] for n in kept], layout=layout)
    return memref.subview(
        buffer, offsets, extents, [1] * len(extents), result_type=kind
    )


def _with_row(buffer: ir.Value, row: int, length: Size) -> Any:
    """Vectors with gaps between them as matrices of one row, dimension `row`."""
    strides, offset = buffer.type.get_strides_and_offset()
    strides.insert(row, buffer.type.shape[row])
    shape = list(buffer.type.shape)
    shape.insert(row, 1)
    layout = ir.StridedLayoutAttr.get(offset, strides)
    kind = build.memref_like(buffer.type, shape, layout=layout)
    groups = [[number] for number in range(row)] + [[row, row + 1]]
    given = [
        length.value if number == row else build.dim(buffer, number)
        for number in range(buffer.type.rank)
        if buffer.type.is_dynamic_dim(number)
    ]
    return memref.expand_shape(kind, buffer, groups, given, shape)


def _reshaped(buffer: ir.Value, sizes: Sequence[Size]) -> Any:
    """A buffer without gaps, reinterpreted with these sizes."""
    dynamic = ir.ShapedType.get_dynamic_size()
    dynamic_stride = ir.ShapedType.get_dynamic_stride_or_offset()
    known = [size.known for size in sizes]
    steps = [_product(sizes[number + 1 :]) for number in range(len(sizes))]
    static = [dynamic_stride if step.known is None else step.known for step in steps]
    shape = [dynamic if size is None else size for size in known]
    layout = ir.StridedLayoutAttr.get(0, static) if None in known[1:] else None
    kind = build.memref_like(buffer.type, shape, layout=layout)
    return build.reinterpreted(
        kind,
        buffer,
        [size.value for size in sizes if size.known is None],
        [step.value for step in steps if step.known is None],
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
