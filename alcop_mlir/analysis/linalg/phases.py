"""Convolutions of an image with zeros between its pixels, in dense phases.

The gradient of a convolution with respect to its image, or a transposed convolution,
is written in one of two ways, with steps of 2 along one dimension:

    padded[2 * i + 1] = image[i], else 0               out[2 * h + r] += image[h] *
    out[p] += padded[p + r] * filter[r]                                filter[r]

In both, output `p` is a sum of `image[(p * stride + r * dilation + offset) / step]`
over the taps for which that is a whole number. Which taps these are depends on `p`
modulo a period only: all outputs with the same remainder are a *phase*, a dense
convolution with some taps of the filter, whose outputs are a period apart. Changes
nothing.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from itertools import product
from typing import Any

from alcop_mlir.analysis.linalg.convolutions import find_convolution
from alcop_mlir.analysis.linalg.moving_windows import Axis, Convolution
from alcop_mlir.analysis.linalg.operand_transforms import (
    NoContraction,
    find_operand_transforms,
)
from alcop_mlir.analysis.linalg.padding import Padding, find_padding
from alcop_mlir.analysis.linalg.view import (
    Index,
    LinalgView,
    Operand,
    linalg_view,
    static_size,
)
from alcop_mlir.bindings import ir
from alcop_mlir.frozen import frozen

_FILTERS = "and a size of its filter is known at run time only"


@frozen
class SparseAxis:
    """A dimension of an image: output `p` and tap `t` meet a pixel of it, or none.

    That is pixel `(p * stride + t * dilation + offset) / step`, if this is whole.

    dimension:  its number in the image
    place, tap: the loops that become those of outputs and taps; None for one tap
    places, taps, pixels: how many there are. Of pixels that are known at run time only,
                None, `places` is how many more than `step` times these; stride is 1
    """

    dimension: int
    place: int
    tap: int | None
    places: int
    taps: int
    pixels: int | None
    stride: int
    dilation: int
    offset: int
    step: int

    def phases(self) -> list[AxisPhase]:
        """One per remainder of `p`, in order; of fewer outputs than that, one each."""
        period = self.step // math.gcd(self.stride, self.step)
        count = period if self.pixels is None else min(period, self.places)
        return [self._phase(n, period) for n in range(count)]

    @property
    def _open(self) -> int | None:
        """The dimension whose pixels are not known."""
        return self.dimension if self.pixels is None else None

    def _phase(self, first: int, period: int) -> AxisPhase:
        start = first * self.stride + self.offset
        met = [
            t for t in range(self.taps) if (start + t * self.dilation) % self.step == 0
        ]
        tap = met[0] if met else 0
        apart = self.step // math.gcd(self.dilation, self.step)
        return AxisPhase(
            Part(first, -(-(self.places - first) // period), period, self._open),
            Part(tap, len(met), apart),
            stride=self.stride * period // self.step,
            # Of one tap, to say nothing of a direction.
            dilation=self.dilation * apart // self.step if len(met) > 1 else 1,
            offset=(start + tap * self.dilation) // self.step,
        )


@frozen
class Part:
    """Elements of a dimension: the first, how many, and the distance of two.

    than: a dimension of the image: `count` is by how many more than its pixels
    """

    first: int
    count: int
    step: int
    than: int | None = None


@frozen
class AxisPhase:
    """A dense window along an axis: `place * stride + tap * dilation + offset`.

    The indices count pixels; those that the image does not have are zero.

    places, taps: which outputs and which taps of the filter
    """

    places: Part
    taps: Part
    stride: int
    dilation: int
    offset: int

    def margins(self, pixels: int | None) -> tuple[int, int]:
        """Zeros that it meets before and after the image; may be negative."""
        end = (self.taps.count - 1) * self.dilation
        last = (self.places.count - 1) * self.stride - (pixels or 0)
        low, high = self.offset + min(0, end), self.offset + max(0, end)
        return -low, high + last + 1


@frozen
class SparseConvolution:
    """A linalg op that is a convolution of an image with zeros between its pixels.

    source:  the image, without zeros
    image, filter, output: the operands; `image` may be what has the zeros
    axes:    the dimensions along which there are zeros
    padding: that has put zeros between the pixels; None if the op does so itself
    is_part: whether the output may have more than what is computed
    """

    view: LinalgView
    source: Any
    image: Operand
    filter: Operand
    output: Operand
    axes: tuple[SparseAxis, ...]
    padding: Padding | None = None
    is_part: bool = False

    def phases(self) -> Iterator[tuple[AxisPhase, ...]]:
        """Each with an entry per axis."""
        return product(*(axis.phases() for axis in self.axes))

    def margins(self) -> list[tuple[int, int]]:
        """Per axis, the zeros that phases need before and after the image."""
        found = []
        for axis in self.axes:
            zeros = [
                phase.margins(axis.pixels)
                for phase in axis.phases()
                if phase.taps.count
            ]
            low, high = (max((0, *side)) for side in zip((0, 0), *zeros, strict=True))
            found.append((low, high))
        return found

    def part(
        self, operand: Operand, dimension: int, phase: Sequence[AxisPhase]
    ) -> Part | None:
        """What a phase has of a dimension of filter or output; None for all of it."""
        loops = operand.indices[dimension].loops
        for axis, one in zip(self.axes, phase, strict=True):
            if operand is self.output and axis.place in loops:
                return one.places
            if operand is self.filter and axis.tap in loops:
                return one.taps
        return None


def find_sparse_convolution(
    op: ir.Operation, noalias_arguments: bool = False
) -> SparseConvolution | str | None:
    """The convolution that a linalg op is, if its image has zeros between pixels.

    Why it is an unsupported one, or None for any other op.

    noalias_arguments: whether a written argument overlaps no other
    """
    view = linalg_view(op)
    if view is None or len(view.inputs) != 2 or len(view.outputs) != 1:
        return None
    if _is_scattered(view):
        return _scattered(view)
    found = find_convolution(op, noalias_arguments)
    if not isinstance(found, Convolution):
        return None
    padding = find_padding(found.image.value, op, noalias_arguments)
    if not isinstance(padding, Padding) or not padding.is_spread:
        return None
    return _spread(found, padding)


def _spread(found: Convolution, padding: Padding) -> SparseConvolution | str | None:
    """Of an image that a copy has spread out."""
    if not found.filter.value.type.has_static_shape:
        return f"its image is spread out, {_FILTERS}"
    windows = {axis.dimension for axis in found.axes}
    for number, step in enumerate(padding.steps):
        around = padding.low[number] or padding.high[number]
        if number not in windows and (step != 1 or around):
            return "more is padded than the dimensions along which the window moves"
    axes = tuple(_spread_axis(found, axis, padding) for axis in found.axes)
    if any(axis.pixels is None and axis.stride > 1 for axis in axes):
        return (
            "its image is spread out, with a size that is known at run time only and "
            "a stride of its own"
        )
    operands = (found.image, found.filter, found.output)
    return SparseConvolution(found.view, padding.source, *operands, axes, padding)


def _spread_axis(found: Convolution, axis: Axis, padding: Padding) -> SparseAxis:
    taps, offset, dilation = found.extent_of_taps(axis), axis.offset, axis.dilation
    if axis.backwards:
        offset, dilation = offset + (taps - 1) * dilation, -dilation
    number, step = axis.dimension, padding.steps[axis.dimension]
    pixels, places = static_size(padding.source, number), found.size([axis.place])
    if pixels is None or places is None:
        zeros = padding.low[number] + padding.high[number]
        padded = ((pixels or 0) - 1) * step + 1 + zeros
        places = (padded - axis.offset - found.span(axis)) // axis.stride + 1
    return SparseAxis(
        number,
        axis.place,
        axis.tap,
        places,
        taps,
        pixels,
        axis.stride,
        dilation,
        offset=offset - padding.low[number],
        step=step,
    )


def _is_scattered(view: LinalgView) -> bool:
    """Whether only the output is indexed by more than loops."""
    *inputs, output = view.operands
    return None in output.loops and not any(None in one.loops for one in inputs)


def _scattered(view: LinalgView) -> SparseConvolution | str | None:
    """Of an op that adds to outputs `h * step + r * dilation + offset`."""
    try:
        find_operand_transforms(view)
    except NoContraction:
        return None
    (output,) = view.outputs
    if view.outside() is not None:
        return None
    for image, kernel in (view.inputs, view.inputs[::-1]):
        if not kernel.value.type.has_static_shape:
            continue
        axes = [
            _scattered_axis(view, image, kernel, number, output.indices[number])
            for number in _windows(output)
        ]
        known = tuple(axis for axis in axes if axis is not None)
        if len(known) == len(axes) and _has_own_loops(image, kernel, output, known):
            operands = (image.value, image, kernel, output)
            sizes = [static_size(output.value, n) for n in _windows(output)]
            is_part = None in (*sizes, *(axis.pixels for axis in known))
            return SparseConvolution(view, *operands, known, is_part=is_part)
    if not any(one.value.type.has_static_shape for one in view.inputs):
        return f"adds to windows of its output, {_FILTERS}"
    return "adds to its output at indices that are no windows over an image"


def _windows(output: Operand) -> list[int]:
    """The dimensions of the output that windows move along."""
    return [n for n, index in enumerate(output.indices) if index.loop is None]


def _scattered_axis(
    view: LinalgView, image: Operand, kernel: Operand, number: int, index: Index
) -> SparseAxis | None:
    """The axis of a dimension of the output; None if the index is another one."""
    if index.coefficients is None:
        return None
    steps = dict(zip(index.loops, index.coefficients, strict=True))
    places = [loop for loop in steps if loop in image.loops]
    taps = [loop for loop in steps if loop in kernel.loops]
    if len(places) != 1 or len(taps) > 1 or len(steps) != 1 + len(taps):
        return None
    (place,), tap = places, taps[0] if taps else None
    if place in taps or steps[place] < 1:
        return None
    count = 1 if tap is None else view.static_size(tap) or 0
    span = 0 if tap is None else steps[tap] * (count - 1)
    if index.offset + min(0, span) < 0:
        return None
    pixels, outputs = view.static_size(place), view.outputs[0].static_size(number)
    if pixels is None or outputs is None:  # those that are added to
        last = index.offset + ((pixels or 0) - 1) * steps[place] + max(0, span)
        outputs = last + 1
    return SparseAxis(
        image.loops.index(place),
        place,
        tap,
        places=outputs,
        taps=count,
        pixels=pixels,
        stride=1,
        dilation=0 if tap is None else -steps[tap],
        offset=-index.offset,
        step=steps[place],
    )


def _has_own_loops(
    image: Operand, kernel: Operand, output: Operand, axes: Sequence[SparseAxis]
) -> bool:
    """Whether each window moves by loops that nothing else is indexed by."""
    places = [axis.place for axis in axes]
    taps = [axis.tap for axis in axes if axis.tap is not None]
    if len({*places, *taps}) < len(places) + len(taps):
        return False
    return not ({*places, *taps} & {*output.loops} or {*places} & {*kernel.loops})
