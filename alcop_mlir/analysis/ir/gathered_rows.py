"""Matrices that are never made: what their rows hold of another memref."""

from __future__ import annotations

import math
from typing import Any

from alcop_mlir.analysis.ir.alignment import stride_divisor
from alcop_mlir.analysis.ir.loops import made_by
from alcop_mlir.bindings import ir
from alcop_mlir.dialects import alcop
from alcop_mlir.frozen import frozen
from alcop_mlir.taps import Taps

# Along all dimensions of a window together: a row has a bit for each, in a word of 64
# bits whose highest one stays 0.
MAX_POSITIONS = 63


@frozen
class ImageWindow:
    """The window of an `alcop.im2col`; each tuple has an entry per spatial dimension.

    low, high: zeros before and after the image
    groups:    of channels
    """

    size: tuple[int, ...]
    strides: tuple[int, ...]
    dilations: tuple[int, ...]
    low: tuple[int, ...]
    high: tuple[int, ...]
    groups: int

    @property
    def taps(self) -> int:
        """How many elements of a channel it has."""
        return math.prod(self.size)

    def outside(self, dimension: int) -> list[int]:
        """The positions along a dimension that may be outside of the image."""
        low, dilation = self.low[dimension], self.dilations[dimension]
        last = self.reach(dimension) - self.high[dimension]
        positions = range(self.size[dimension])
        return [n for n in positions if not low <= n * dilation <= last]

    def places(self, dimension: int, pixels: int) -> int:
        """How many it has along a dimension of so many pixels."""
        return (pixels + self.room(dimension)) // self.strides[dimension] + 1

    def room(self, dimension: int) -> int:
        """By how much more than there are pixels it can be moved; may be negative."""
        return self.low[dimension] + self.high[dimension] - self.reach(dimension) - 1

    def reach(self, dimension: int) -> int:
        """From its first to its last pixel along a dimension."""
        return (self.size[dimension] - 1) * self.dilations[dimension]


@frozen
class GatheredRows:
    """The rows of an `alcop.im2col` or `alcop.take`, of which each has its address.

    source: the memref that they are read from
    run:    elements of a row that are neighbours in the source: the channels of a tap,
            or a row of the table; None where that is known at run time only
    """

    op: Any
    source: Any
    run: int | None

    @property
    def distance(self) -> int:
        """Divides the distance, in elements, of any two runs of elements."""
        outer = range(self.source.type.rank - 1)
        strides = (stride_divisor(self.source, number) for number in outer)
        return math.gcd(self.run or 1, *strides)

    @property
    def window(self) -> ImageWindow | None:
        """The window of an image: there is a row each time that it is moved."""
        given = alcop.get(self.op, alcop.WindowAttr)
        if given is None:
            return None
        groups = given.pop("groups")
        lists = {name: tuple(numbers) for name, numbers in given.items()}
        return ImageWindow(**lists, groups=groups)


def never_made(matrix: ir.Value) -> Any | None:
    """The op that gives `matrix`, if that is one that is never made."""
    return made_by(matrix, "alcop.im2col", "alcop.take")


def named_matrices(batch: ir.Value) -> Any | None:
    """The `alcop.take` that gives a batch of whole matrices, if one does."""
    op = made_by(batch, "alcop.take")
    is_named = op is not None and batch.type.rank > op.operands[1].type.rank + 1
    return op if is_named else None


def gathered_rows(matrix: ir.Value) -> GatheredRows | None:
    """What the rows of `matrix` hold, if it is one that is never made.

    None for a batch of whole matrices, which have one address each.
    """
    op = never_made(matrix)
    if op is None or named_matrices(matrix) is not None:
        return None
    source = op.operands[0]
    kind, last = source.type, source.type.rank - 1
    run = None if kind.is_dynamic_dim(last) else kind.shape[last]
    window = alcop.get(op, alcop.WindowAttr)
    if run is not None and window is not None:
        run //= window["groups"]
    return GatheredRows(op, source, run)


def taps_of(lhs: ir.Value, rhs: ir.Value) -> Taps | None:
    """Of the windows that A or B consists of."""
    for name, value in (("A", lhs), ("B", rhs)):
        rows = gathered_rows(value)
        window = None if rows is None else rows.window
        if window is not None:
            moves = map(min, window.size, window.strides)
            return Taps(name, window.taps, math.prod(moves))
    return None


def places_of(lhs: ir.Value) -> tuple[int, int] | None:
    """Of the windows that A consists of, along the last two dimensions of an image.

    None where these have one tap, or where there are no two, or not of known sizes.
    """
    rows = gathered_rows(lhs)
    window = None if rows is None else rows.window
    if rows is None or window is None or window.taps == 1 or len(window.size) == 1:
        return None
    kind, last = rows.source.type, len(window.size)
    if not kind.has_static_shape:
        return None
    p, q = (window.places(n - 1, kind.shape[n]) for n in (last - 1, last))
    return p, q
