"""Convolutions of few channels, whose taps along a row can be joined with them.

A tap of 3 channels would fill up most of a step of mma.sync with zeros. The taps of a
window along the last dimension are neighbours, though: with channels filled up to whole
chunks of a copy, those of all taps are one run. Changes nothing.
"""

from __future__ import annotations

from alcop_mlir.analysis.ir.alignment import element_bytes
from alcop_mlir.analysis.ir.memref_layouts import follows_shape
from alcop_mlir.analysis.linalg.convolutions import FEWEST_CHANNELS
from alcop_mlir.analysis.linalg.moving_windows import Convolution, loops_of
from alcop_mlir.analysis.linalg.operand_transforms import find_operand_transforms
from alcop_mlir.analysis.linalg.zero_fill import why_fill_disturbs

CHUNK = 8  # bytes that cp.async can copy, and that divide the distances of pixels


def has_few_channels(found: Convolution) -> bool:
    """Whether taps of their own would mostly be filled up."""
    return _channels(found) < FEWEST_CHANNELS


def joined_channels(found: Convolution) -> int:
    """The channels of a pixel, filled up to whole chunks."""
    whole = max(1, CHUNK // element_bytes(found.image.value.type))
    return -(-_channels(found) // whole) * whole


def has_whole_filter(found: Convolution) -> bool:
    """Whether taps of a row are one run of the filter as it lies, with its channels."""
    kernel, loops = found.filter.value, loops_of(found.filter)
    is_filled = _channels(found) == joined_channels(found) and not found.backwards
    lies = loops == filter_order(found) and follows_shape(kernel.type)
    return is_filled and lies


def filter_order(found: Convolution) -> list[int]:
    """The filter's loops: the channels behind the last taps, columns where they are."""
    loops, columns = loops_of(found.filter), found.columns
    inner = [*found.taps, *found.loops("channel")]
    return [*inner, *columns] if loops[-1] in columns else [*columns, *inner]


def why_not_joined(found: Convolution) -> str | None:
    """Why the taps along the last dimension stay apart; None if they can be joined."""
    count, last = _channels(found), found.axes[-1]
    few = f"has {count} channels"
    least = f"expected {FEWEST_CHANNELS} or more"
    if found.loops("group"):
        return f"{few} in a group, {least}"
    if len(found.axes) < 2 or len(found.loops("channel")) > 1:
        return f"{few}, {least}, or images of two dimensions or more"
    if found.extent_of_taps(last) == 1 or last.dilation != 1:
        return f"{few}, {least}, or several taps in a row, which are neighbours"
    if not found.filter.value.type.has_static_shape:
        return f"{few}, {least}, or a number of filters that is known"
    return why_fill_disturbs(found.view.block, find_operand_transforms(found.view))


def _channels(found: Convolution) -> int:
    return found.size(found.loops("channel")) or 0
