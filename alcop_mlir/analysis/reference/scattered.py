"""Ops that add to windows of their output, as ops with a loop along that.

    out[h * 2 + r] += image[h] * filter[r]              // loops h, r
    out[p] += image[(p - r) / 2] * filter[r]            // loops p, r

In the second form an operand is zero where its index is none. So it is taken where what
is added is one element times another: zeros add nothing then.
"""

from __future__ import annotations

from collections.abc import Sequence

from alcop_mlir.analysis.linalg.view import LinalgView, Window
from alcop_mlir.analysis.reference.buffer_values import NotUnderstood
from alcop_mlir.analysis.reference.loop_bodies import Indices, loops_of
from alcop_mlir.frozen import frozen


@frozen
class Scattered(Window):
    """The index `(position - tap * dilation - offset) / stride`, if that is whole."""


def gathered_indices(indices: Sequence[Indices], view: LinalgView) -> list[Indices]:
    """What indexes each operand, where no output is indexed by a window.

    A loop of such a window becomes one along the output: it keeps its number.
    Raises NotUnderstood where the other operands cannot be read so.
    """
    windows = [one for one in indices[-1] if isinstance(one, Window)]
    if not windows:
        return list(indices)
    if len(view.outputs) > 1:
        raise NotUnderstood
    moves = [_moved(window, view) for window in windows]
    found = [tuple(_gathered(index, moves) for index in one) for one in indices[:-1]]
    ends = iter(moves)
    out = tuple(
        next(ends).position if isinstance(index, Window) else _kept(index, moves)
        for index in indices[-1]
    )
    for one in (*found, out):
        loops = [loop for loop in loops_of(one) if loop is not None]
        if len(set(loops)) != len(loops):
            raise NotUnderstood
    return [*found, out]


def _moved(window: Window, view: LinalgView) -> Window:
    """The same, with the longer of its loops as that of positions."""
    if window.tap is None:
        return window
    position, tap = (view.static_size(one) for one in (window.position, window.tap))
    if tap is not None and (position is None or position >= tap):
        return window
    return Window(
        window.tap, window.dilation, window.position, window.stride, window.offset
    )


def _gathered(
    index: int | Window | None, moves: Sequence[Window]
) -> int | Window | None:
    """An index of an input."""
    for window in moves:
        if index == window.position:
            return Scattered(**vars(window))
    return _kept(index, moves)


def _kept(index: int | Window | None, moves: Sequence[Window]) -> int | Window | None:
    """An index of loops that are what they were. Raises NotUnderstood for others."""
    if not {*loops_of((index,))}.isdisjoint(window.position for window in moves):
        raise NotUnderstood
    return index
