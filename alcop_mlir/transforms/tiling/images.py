"""Images that windows move over, as kernels see them.

Numbers are ints where sizes are known, else index values of the kernel.
"""

from __future__ import annotations

from itertools import accumulate
from typing import Any

from alcop_mlir.analysis.ir.extents import stride
from alcop_mlir.analysis.ir.gathered_rows import ImageWindow, gathered_rows
from alcop_mlir.analysis.ir.memref_layouts import follows_shape
from alcop_mlir.bindings import ir
from alcop_mlir.frozen import frozen
from alcop_mlir.passes import build
from alcop_mlir.passes.sizes import Number, size_of, times


@frozen
class Image:
    """An image and its window; dimensions are numbered as those of the window.

    batch:   how many images there are
    sizes:   of an image, without the channels
    pitches: elements from an image to the next, then from pixel to pixel by dimension
    """

    source: Any
    window: ImageWindow
    batch: Number
    sizes: tuple[Number, ...]
    pitches: tuple[Number, ...]

    @property
    def channels(self) -> int:
        """Of a group, which are what a row has of a tap."""
        return self.source.type.shape[-1] // self.window.groups

    @property
    def dimensions(self) -> range:
        """The numbers of the dimensions."""
        return range(len(self.sizes))

    def places(self, dimension: int) -> Number:
        """How many places the window has along a dimension."""
        window, pixels = self.window, self.sizes[dimension]
        if isinstance(pixels, int):
            return window.places(dimension, pixels)
        room = build.add(pixels, window.room(dimension))
        return build.add(build.div(room, window.strides[dimension]), 1)


def image_of(matrix: ir.Value) -> Image | None:
    """The image of whose windows `matrix` has a row each; None for other values."""
    rows = gathered_rows(matrix)
    window = None if rows is None else rows.window
    if rows is None or window is None:
        return None
    kind = rows.source.type
    batch, *sizes = (size_of(rows.source, number) for number in range(kind.rank - 1))
    if not kind.has_static_shape and follows_shape(kind):
        inner = accumulate(reversed(sizes), times, initial=kind.shape[-1])
        pitches = [*inner][::-1]
    else:
        pitches = [stride(rows.source, number) for number in range(kind.rank - 1)]
    return Image(rows.source, window, batch, tuple(sizes), tuple(pitches))
