"""Which linalg ops are convolutions, and how windows move over their images.

A convolution multiplies each window of an image by a filter:

    out[n, p, q, f] += image[n, p * s + r * d, q * s' + t * d', c] * filter[r, t, c, f]

It is a contraction of a matrix with a row per window, of its taps and channels, with
the filter as a matrix. Read from the indexing maps alone, so that the order of
dimensions and the name of the op do not matter: an operand that is indexed by more than
loops is the image, and what else a loop indexes says what it is. Changes nothing.
"""

from __future__ import annotations

from dataclasses import replace

from alcop_mlir.analysis.ir.extents import stride
from alcop_mlir.analysis.ir.memref_layouts import follows_shape
from alcop_mlir.analysis.ir.rejected import Rejected
from alcop_mlir.analysis.linalg.moving_windows import (
    Axis,
    AxisWindow,
    Convolution,
    loops_of,
)
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
)
from alcop_mlir.bindings import ir
from alcop_mlir.frozen import frozen

# Of a group: one step of mma.sync multiplies 16 elements of f16, and a tap fills up
# steps of its own.
FEWEST_CHANNELS = 16


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
    if not view.reductions or not any(map(_has_window, view.inputs)):
        return None
    try:
        find_operand_transforms(view)
    except NoContraction:  # a pooling, which multiplies nothing
        return None
    try:
        if view.is_empty:
            raise _No("has no iterations: one of its sizes is 0")
        outside = view.outside()
        if outside is not None:
            raise _No(outside)
        found = _with_padding(_convolution(view), noalias_arguments)
        _check_loops(found)
        _check_windows(found)
        return found
    except _No as no:
        return Rejected(view.op, str(no))


def _has_window(operand: Operand) -> bool:
    """Whether an index is computed of two loops, or of one with a stride or offset."""
    return any(index.coefficients and index.loop is None for index in operand.indices)


def _convolution(view: LinalgView) -> Convolution:
    (out,) = view.outputs
    image, kernel = _image_and_filter(view)
    for operand in (kernel, out):
        if None in operand.loops or len(set(operand.loops)) < len(operand.loops):
            raise _No(f"indexes {operand.value.type} by {operand.map}, expected loops")
    roles = _Roles(view, set(loops_of(kernel)), set(loops_of(out)))
    kinds = [roles.kind(index) for index in image.indices]
    windows = [number for number, kind in enumerate(kinds) if kind == "window"]
    for number in range(windows[0], windows[-1]):  # others are windows of one tap
        kinds[number] = kinds[number].replace("batch", "window")
    axes = tuple(
        roles.axis(number, image.indices[number])
        for number, kind in enumerate(kinds)
        if kind == "window"
    )
    return Convolution(view, image, kernel, out, tuple(kinds), axes)


def _image_and_filter(view: LinalgView) -> tuple[Operand, Operand]:
    """The image has windows."""
    if len(view.inputs) != 2:
        raise _No(
            f"is a convolution of {len(view.inputs)} inputs, expected an image and a "
            "filter"
        )
    first, second = view.inputs
    if _has_window(first) and _has_window(second):
        raise _No("has windows in both inputs, expected an image and a filter")
    return (first, second) if _has_window(first) else (second, first)


@frozen
class _Roles:
    """What loops are, by the operands besides the image that they index."""

    view: LinalgView
    filter: set[int]
    out: set[int]

    def kind(self, index: Index) -> str:
        """What a dimension of the image is."""
        if index.loop is None:
            return "window"
        kinds = {
            (False, True): "batch",
            (True, True): "group",
            (True, False): "channel",
        }
        found = kinds.get((index.loop in self.filter, index.loop in self.out))
        if found is None:
            raise _No("reduces a loop of the image alone, expected a loop of both")
        return found

    def axis(self, dimension: int, index: Index) -> Axis:
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
        (place,), tap = places, taps[0] if taps else None
        dilation, offset = 1 if tap is None else steps[tap], index.offset
        if steps[place] < 1 or dilation == 0:
            raise _No(f"moves its window by {index.expression}, expected to grow")
        if dilation > 0:
            return Axis(dimension, place, steps[place], tap, dilation, offset)
        size = None if tap is None else self.view.static_size(tap)
        if size is None:
            raise _No("has a window of a size that is known at run time only")
        offset += (size - 1) * dilation
        return Axis(dimension, place, steps[place], tap, -dilation, offset, True)


def _with_padding(found: Convolution, noalias: bool) -> Convolution:
    """With the padding of its image, if that need not be computed."""
    padding = find_padding(found.image.value, found.op, noalias)
    few = (found.size(found.loops("channel")) or FEWEST_CHANNELS) < FEWEST_CHANNELS
    if isinstance(padding, Padding) and any(
        # Few channels are filled up anyway, see few_channels.py.
        low or (high and not (few and kind == "channel"))
        for low, high, kind in zip(padding.low, padding.high, found.kinds, strict=True)
        if kind != "window"
    ):
        padding = "more is padded than the dimensions along which the window moves"
    if isinstance(padding, Padding) and padding.is_spread:
        padding = "it has zeros between pixels as well, expected around them only"
    if isinstance(padding, str):
        return replace(found, computed=padding)
    return replace(found, padding=padding)


def _check_loops(found: Convolution) -> None:
    """All loops must be accounted for."""
    groups, channels = found.loops("group"), found.loops("channel")
    own = {*found.loops("batch"), *found.places, *groups, *channels, *found.taps}
    filter_loops, out = set(loops_of(found.filter)), set(loops_of(found.output))
    if (filter_loops | out) - own - (filter_loops & out):
        raise _No("has a loop of the filter or of the output alone")
    if not channels:
        if not groups:
            raise _No(f"has no channels, expected {FEWEST_CHANNELS} or more")
        raise _No("is a depthwise convolution: each channel has a filter of its own")
    for what, loops in (("a window", found.taps), ("channels", channels)):
        if found.size(loops) is None:
            raise _No(f"has {what} of a size that is known at run time only")
    if found.size(groups) is None:
        raise _No("has a number of groups that is known at run time only")


def _check_windows(found: Convolution) -> None:
    """Windows must see rows of channels."""
    if 0 in (found.size(found.places), found.size(found.taps)):
        raise _No("has no windows")
    if any(axis.offset < 0 for axis in found.axes):
        raise _No("has windows that begin before its image")
    windows = [found.window(axis) for axis in found.axes]
    if any(_seen(window) < 1 for window in windows if window.size is not None):
        raise _No("has no window that sees its image")
    is_cut = any(
        min(window.low, window.high) < 0 for window in windows if window.size is None
    )
    if is_cut and (found.size(found.loops("channel")) or 0) < FEWEST_CHANNELS:
        raise _No("has windows that see a part of an image of unknown size")
    kind = found.source.type
    if not kind.has_static_shape and not _has_pitches(found.source):
        raise _No(f"has an image {kind}, expected no gaps between its rows")


def _seen(window: AxisWindow) -> int:
    """How many pixels windows see along an axis."""
    return (window.size or 0) + min(0, window.low) + min(0, window.high)


def _has_pitches(image: ir.Value) -> bool:
    """Whether the distances of pixels follow from the sizes, or are made as values.

    Tensors have no layout yet.
    """
    numbers = range(image.type.rank)
    is_tensor = isinstance(image.type, ir.RankedTensorType)
    return (
        is_tensor
        or follows_shape(image.type)
        or all(stride(image, number) is not None for number in numbers)
    )
