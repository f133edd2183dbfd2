"""Which linalg ops are convolutions, and how windows move over their images.

A convolution multiplies each window of an image by a filter:

    out[n, p, q, f] += image[n, p * s + r * d, q * s' + t * d', c] * filter[r, t, c, f]

It is a contraction of a matrix with a row per window, of its taps and channels, with
the filter as a matrix. Read from the indexing maps alone, so that the order of
dimensions and the name of the op do not matter: an operand that is indexed by more than
loops is the image, and what else a loop indexes says what it is. Changes nothing.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

from alcop_mlir.analysis.ir.memref_layouts import open_strides
from alcop_mlir.analysis.ir.rejected import Rejected
from alcop_mlir.analysis.linalg.loop_groups import has_dense_parts, loop_groups_of
from alcop_mlir.analysis.linalg.operand_transforms import (
    NoContraction,
    find_operand_transforms,
)
from alcop_mlir.analysis.linalg.padding import Padding, find_padding
from alcop_mlir.analysis.linalg.view import (
    Index,
    LinalgView,
    Loops,
    Operand,
    linalg_view,
    static_size,
)
from alcop_mlir.bindings import ir

# Of a group: one step of mma.sync multiplies 16 elements of f16, and a tap fills up
# steps of its own.
FEWEST_CHANNELS = 16


@dataclass(frozen=True)
class Axis:
    """A spatial dimension: the index `place * stride + tap * dilation + offset`.

    place, tap: loops; None for the tap of a window of one element
    """

    place: int
    stride: int
    tap: int | None
    dilation: int
    offset: int


@dataclass(frozen=True)
class AxisWindow:
    """What the windows along an axis see of the image.

    first, size: of the part of the image; None for all, of a size known at run time
    low, high:   zeros before and after it
    """

    first: int
    size: int | None
    low: int
    high: int


@dataclass(frozen=True)
class Convolution:
    """A linalg op that is a convolution.

    axes:     the spatial dimensions, in the image's order
    batch, groups, channels: loops of the image's other dimensions, in its order
    padding:  that makes the image operand of a smaller one, if it need not be computed
    computed: why padding has to be computed that there is; "" where there is none
    """

    view: LinalgView
    image: Operand
    filter: Operand
    axes: tuple[Axis, ...]
    batch: tuple[int, ...]
    groups: tuple[int, ...]
    channels: tuple[int, ...]
    padding: Padding | None = None
    computed: str = ""

    @property
    def source(self) -> Any:
        """The image: the operand, or what was padded to make that."""
        return self.image.value if self.padding is None else self.padding.source

    @property
    def op(self) -> Any:
        """The linalg op."""
        return self.view.op

    @property
    def output(self) -> Operand:
        """What is written."""
        return self.view.outputs[0]

    @property
    def matrix_loops(self) -> tuple[Sequence[int], Sequence[int], Sequence[int]]:
        """The loops of the windows as matrices: of rows, groups, and columns."""
        places = [axis.place for axis in self.axes]
        taps = [axis.tap for axis in self.axes if axis.tap is not None]
        return (*self.batch, *places), self.groups, (*taps, *self.channels)

    @property
    def window_loops(self) -> Loops:
        """The loops of all windows as one memref, outer ones first."""
        rows, groups, columns = self.matrix_loops
        return *rows, *groups, *columns

    @cached_property
    def loop_groups(self) -> list[list[int]]:
        """The loops that can be one each, if the windows have no gaps between them."""
        memrefs = [
            (None, self.window_loops),
            (self.filter.value, self.filter.loops),
            (self.output.value, self.output.loops),
        ]
        return loop_groups_of(memrefs) or []

    def grouped(self, loops: Iterable[int | None]) -> list[int]:
        """The numbers of the groups that index an operand with these loops."""
        first = {group[0]: number for number, group in enumerate(self.loop_groups)}
        return [first[loop] for loop in loops if loop in first]

    @property
    def image_parts(self) -> list[list[int]]:
        """Dimensions of the image: the batch's, each axis's, and those of channels."""
        return [part for part in self._parts if part]

    @property
    def pixel_parts(self) -> list[list[int]]:
        """Dimensions of the image as matrices of pixels, if `is_pixelwise`."""
        batch, *axes, channels = self._parts
        own = len(self.groups)
        parts = [batch + [axis for (axis,) in axes], channels[:own], channels[own:]]
        return [part for part in parts if part]

    @property
    def _parts(self) -> list[list[int]]:
        batch, axes = len(self.batch), len(self.axes)
        channels = list(range(batch + axes, len(self.image.indices)))
        spatial = ([batch + number] for number in range(axes))
        return [list(range(batch)), *spatial, channels]

    def window(self, axis: Axis) -> AxisWindow:
        """How the window moves over the image, of which it may see a part."""
        number = len(self.batch) + self.axes.index(axis)
        extent, places = self.extent(axis), self.view.static_size(axis.place)
        first = axis.offset - (self.padding.low[number] if self.padding else 0)
        if extent is None or places is None:
            high = self.padding.high[number] if self.padding else 0
            return AxisWindow(0, None, -first, high)
        end = first + (places - 1) * axis.stride + self.span(axis)
        # No window begins in what is left after the last one.
        seen = end if extent - end >= axis.stride else extent
        begin = max(0, first)
        return AxisWindow(begin, seen - begin, max(0, -first), max(0, end - extent))

    @property
    def is_pixelwise(self) -> bool:
        """Whether each window is a pixel, and each pixel a window."""
        return has_dense_parts(self.source.type, self.pixel_parts) and all(
            (self.taps(axis), axis.stride) == (1, 1)
            and self.window(axis) == AxisWindow(0, self.extent(axis), 0, 0)
            for axis in self.axes
        )

    def size(self, loops: Iterable[int]) -> int | None:
        """How many iterations the loops have; None where that is not known."""
        sizes = [self.view.static_size(loop) for loop in loops]
        known = [size for size in sizes if size is not None]
        return math.prod(known) if len(known) == len(sizes) else None

    def taps(self, axis: Axis) -> int | None:
        """The size of the window along an axis, where it is known."""
        return 1 if axis.tap is None else self.view.static_size(axis.tap)

    def span(self, axis: Axis) -> int:
        """How many elements a window spans along an axis."""
        taps = self.taps(axis)
        assert taps is not None, axis  # checked in find_convolution
        return (taps - 1) * axis.dilation + 1

    def extent(self, axis: Axis) -> int | None:
        """The size of the image along an axis, where it is known."""
        return static_size(self.source, len(self.batch) + self.axes.index(axis))


class _No(Exception):
    """Carries the reason to `find_convolution`."""


def find_convolution(
    op: ir.Operation, noalias_arguments: bool = False
) -> Convolution | Rejected | None:
    """The convolution that a linalg op is; why it is an unsupported one; or None.

    None also where its body is not that of a contraction.

    noalias_arguments: whether a written argument overlaps no other
    """
    view = linalg_view(op)
    if view is None or len(view.inputs) < 2 or len(view.outputs) != 1:
        return None
    images = [one for one in view.inputs if None in one.loops]
    if not view.reductions or not any(map(_has_window, images)):
        return None
    try:
        find_operand_transforms(view)
    except NoContraction:  # a pooling, which multiplies nothing
        return None
    try:
        found = _convolution(view, images)
        padding = find_padding(found.image.value, view.op, noalias_arguments)
        if isinstance(padding, Padding):
            padding = _of_axes(found, padding)
        if isinstance(padding, str):
            found = replace(found, computed=padding)
        else:
            found = replace(found, padding=padding)
        _check_loops(found)
        _check_image(found)
        return found
    except _No as no:
        return Rejected(view.op, str(no))


def _has_window(operand: Operand) -> bool:
    return any(index.coefficients and index.loop is None for index in operand.indices)


def _convolution(view: LinalgView, images: Sequence[Operand]) -> Convolution:
    if len(view.inputs) != 2 or len(images) != 1:
        raise _No(
            f"is a convolution of {len(view.inputs)} inputs, expected an image and a "
            "filter"
        )
    (image,) = images
    (kernel,) = (one for one in view.inputs if one is not image)
    (out,) = view.outputs
    for operand in (kernel, out):
        if None in operand.loops or len(set(operand.loops)) < len(operand.loops):
            raise _No(f"indexes {operand.value.type} by {operand.map}, expected loops")
    roles = _Roles(set(_known(kernel.loops)), set(_known(out.loops)))
    numbers = range(len(image.indices))
    kinds = [roles.kind(index) for index in image.indices]
    spatial = [number for number in numbers if kinds[number] == "window"]
    first, last = min(spatial), max(spatial)
    for number in range(first, last + 1):  # other places are windows of one tap
        kinds[number] = kinds[number].replace("place", "window")
    order = ("place", "window", "group", "channel")
    if kinds != sorted(kinds, key=order.index):
        raise _No(
            f"has an image {image.value.type} indexed by {image.map}, expected the "
            "batch first and the channels last"
        )

    def loops(kind: str) -> tuple[int, ...]:
        found = [image.loops[number] for number in numbers if kinds[number] == kind]
        return tuple(_known(found))

    axes = tuple(roles.axis(image.indices[n]) for n in numbers if kinds[n] == "window")
    return Convolution(
        view, image, kernel, axes, loops("place"), loops("group"), loops("channel")
    )


def _of_axes(found: Convolution, padding: Padding) -> Padding | str:
    """The padding, if it is along the axes alone."""
    first, last = len(found.batch), len(found.batch) + len(found.axes)
    others = [*range(first), *range(last, len(padding.low))]
    if any(padding.low[number] or padding.high[number] for number in others):
        return "more is padded than the dimensions along which the window moves"
    return padding


@dataclass(frozen=True)
class _Roles:
    """What loops are, by the operands besides the image that they index."""

    filter: set[int]
    out: set[int]

    def kind(self, index: Index) -> str:
        """What a dimension of the image is: place, window, group or channel."""
        if index.loop is None:
            return "window"
        kinds = {
            (False, True): "place",
            (True, True): "group",
            (True, False): "channel",
        }
        found = kinds.get((index.loop in self.filter, index.loop in self.out))
        if found is None:
            raise _No("reduces a loop of the image alone, expected a loop of both")
        return found

    def axis(self, index: Index) -> Axis:
        """The axis that an index moves a window along."""
        if index.coefficients is None:
            raise _No(f"indexes its image by {index.expression}, expected a window")
        steps = dict(zip(index.loops, index.coefficients, strict=True))
        places = [loop for loop in steps if loop in self.out - self.filter]
        taps = [loop for loop in steps if loop in self.filter - self.out]
        if len(places) != 1 or len(places) + len(taps) != len(steps) or len(taps) > 1:
            raise _No(
                f"indexes its image by {index.expression}, expected a loop of the "
                "output and one of the filter"
            )
        tap = taps[0] if taps else None
        dilation = 1 if tap is None else steps[tap]
        if min(steps[places[0]], dilation) < 1:
            raise _No(f"moves its window by {index.expression}, expected to grow")
        return Axis(places[0], steps[places[0]], tap, dilation, index.offset)


def _check_loops(found: Convolution) -> None:
    """All loops must be accounted for, and the windows be matrices."""
    own = set(found.window_loops)
    filter_loops, out = set(found.filter.loops), set(found.output.loops)
    if filter_loops - own - out or out - own - filter_loops:
        raise _No("has a loop of the filter or of the output alone")
    if not found.channels:
        raise _No("is a depthwise convolution: each channel has a filter of its own")
    channels = found.size(found.channels)
    if channels is None:
        raise _No("has channels whose number is known at run time only")
    if channels < FEWEST_CHANNELS:
        of_group = " in a group" if found.groups else ""
        raise _No(
            f"has {channels} channels{of_group}, expected {FEWEST_CHANNELS} or more"
        )
    if any(found.taps(axis) is None for axis in found.axes):
        raise _No("has a window whose size is known at run time only")
    if found.groups and found.size(found.groups) is None:
        raise _No("has groups whose number is known at run time only")
    for loops in found.matrix_loops:
        if loops and list(loops) not in found.loop_groups:
            raise _No(
                "has operands whose dimensions are no matrices: expected the channels "
                "last in image and output, and after the taps in the filter"
            )


def _check_image(found: Convolution) -> None:
    """Each window must see rows of channels."""
    kind = found.source.type
    if open_strides(kind):
        raise _No(f"has an image {kind}, expected known strides")
    if not has_dense_parts(kind, found.image_parts):
        raise _No(f"has an image {kind} with gaps between channels")
    if found.size(found.matrix_loops[0]) == 0:
        raise _No("has no windows")
    for axis in found.axes:
        window = found.window(axis)
        if window.low < 0:
            raise _No("has windows that begin inside of an image of unknown size")
        if window.size is not None and window.size < 1:
            raise _No("has no window that sees its image")


def _known(loops: Iterable[int | None]) -> list[int]:
    return [loop for loop in loops if loop is not None]
