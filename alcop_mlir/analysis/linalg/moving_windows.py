"""Convolutions: an image, a filter, an output, and the windows that move over it.

`convolutions.find_convolution` makes them of linalg ops. Changes nothing.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any

from alcop_mlir.analysis.ir.index_terms import distance
from alcop_mlir.analysis.ir.size_terms import size_terms
from alcop_mlir.analysis.linalg.padding import Padding
from alcop_mlir.analysis.linalg.view import LinalgView, Operand, static_size
from alcop_mlir.frozen import frozen


@frozen
class Axis:
    """A spatial dimension: the index `place * stride + tap * dilation + offset`.

    dimension:  its number in the image
    place, tap: loops; None for the tap of a window of one element
    backwards:  whether taps are counted from the last
    """

    dimension: int
    place: int
    stride: int
    tap: int | None
    dilation: int
    offset: int
    backwards: bool = False


@frozen
class AxisWindow:
    """What the windows along an axis see of the image.

    first, size: of the part of the image; None for all, of a size known at run time
    low, high:   zeros before and after it; of all of an image, they may be negative,
                 for pixels that no window sees
    """

    first: int
    size: int | None
    low: int
    high: int


@frozen
class Convolution:
    """A linalg op that is a convolution.

    kinds:    what the dimensions of the image are: "batch", "window", "group" (of
              channels, each with a filter of its own), "channel"
    axes:     of the dimensions that are "window"
    padding:  that makes the image operand of a smaller one, if it need not be computed
    computed: why padding has to be computed that there is; "" where there is none
    """

    view: LinalgView
    image: Operand
    filter: Operand
    output: Operand
    kinds: tuple[str, ...]
    axes: tuple[Axis, ...]
    padding: Padding | None = None
    computed: str = ""

    @property
    def op(self) -> Any:
        """The linalg op."""
        return self.view.op

    @property
    def source(self) -> Any:
        """The image: the operand, or what was padded to make that."""
        return self.image.value if self.padding is None else self.padding.source

    def dimensions(self, kind: str) -> list[int]:
        """The dimensions of the image that are of this kind, in its order."""
        return [number for number, one in enumerate(self.kinds) if one == kind]

    def loops(self, kind: str) -> list[int]:
        """The loops of these dimensions, which are not windows."""
        return _known(self.image.loops[number] for number in self.dimensions(kind))

    @property
    def places(self) -> list[int]:
        """The loops that move windows, by axis."""
        return [axis.place for axis in self.axes]

    @property
    def taps(self) -> list[int]:
        """The loops within windows, by axis; none of windows of one element."""
        return [axis.tap for axis in self.axes if axis.tap is not None]

    @property
    def backwards(self) -> list[int]:
        """The loops within windows that go from the last element to the first."""
        backwards = (axis.tap for axis in self.axes if axis.backwards)
        return _known(backwards)

    @property
    def columns(self) -> list[int]:
        """The loops of the filter and the output alone."""
        own = {*self.loops("group"), *self.loops("channel"), *self.taps}
        return [loop for loop in loops_of(self.filter) if loop not in own]

    def window(self, axis: Axis) -> AxisWindow:
        """How the window moves over the image, of which it may see a part."""
        extent, places = self.extent(axis), self.view.static_size(axis.place)
        padding, number = self.padding, axis.dimension
        first = axis.offset - (padding.low[number] if padding else 0)
        if extent is None or places is None:
            high = padding.high[number] if padding else 0
            more = self._more_places(axis)
            if axis.stride == 1 and more is not None:
                high = first + more - 1 + self.span(axis)
            return AxisWindow(0, None, -first, high)
        end = first + (places - 1) * axis.stride + self.span(axis)
        # No window begins in what is left after the last one.
        seen = end if extent - end >= axis.stride else extent
        begin = max(0, first)
        if not self.source.type.has_static_shape and (begin, seen) != (0, extent):
            return AxisWindow(0, extent, -first, end - extent)
        return AxisWindow(begin, seen - begin, max(0, -first), max(0, end - extent))

    def _more_places(self, axis: Axis) -> int | None:
        """How many more places than pixels there are, where that is a number."""
        number = self.output_dimension(axis.place)
        places = size_terms(self.output.value, number)
        return distance(places, size_terms(self.source, axis.dimension))

    @property
    def is_pixelwise(self) -> bool:
        """Whether each window is a pixel, and each pixel a window."""
        return all(
            (self.extent_of_taps(axis), axis.stride) == (1, 1)
            and self.window(axis) == AxisWindow(0, self.extent(axis), 0, 0)
            for axis in self.axes
        )

    def size(self, loops: Iterable[int]) -> int | None:
        """How many iterations the loops have; None where that is not known."""
        sizes = [self.view.static_size(loop) for loop in loops]
        known = [size for size in sizes if size is not None]
        return math.prod(known) if len(known) == len(sizes) else None

    def output_dimension(self, loop: int) -> int:
        """The dimension of the output that a loop indexes."""
        return loops_of(self.output).index(loop)

    def extent_of_taps(self, axis: Axis) -> int:
        """How many elements of a window there are along an axis."""
        return 1 if axis.tap is None else self.size([axis.tap]) or 1

    def span(self, axis: Axis) -> int:
        """From the first to the last element of a window, both counted."""
        return (self.extent_of_taps(axis) - 1) * axis.dilation + 1

    def extent(self, axis: Axis) -> int | None:
        """The size of the image along an axis, where it is known."""
        return static_size(self.source, axis.dimension)


def loops_of(operand: Operand) -> list[int]:
    """The loop along each dimension of a filter or output."""
    return [index.loops[0] for index in operand.indices]


def _known(loops: Iterable[int | None]) -> list[int]:
    return [loop for loop in loops if loop is not None]
