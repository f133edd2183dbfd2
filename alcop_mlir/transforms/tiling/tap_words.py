"""Builders of words of bits: which tap a K step has, and which taps a row lacks.

One `and` of a tap's word with that of a row tells whether the row has the tap. Where
there are bits enough, a word has one per tap, so that the next tap's is twice it:

    the third of 3x3 taps   000 000 100
    a row at the top left   001 001 111        it lacks the tap: 100 != 0

Else it has a bit per position of the window along each dimension. That of a tap has one
bit set per dimension, that of a row has those of the positions that are outside of the
image; a tap's word becomes that of the next tap by a sum:

    the third of 7x7 taps   0000001 0000100
    a row at the top left   0000111 0000111

The last dimension has the lowest bits, the first position of each the lowest of these.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import reduce
from itertools import product
from typing import Any

from alcop_mlir.bindings import arith, ir
from alcop_mlir.frozen import frozen
from alcop_mlir.passes import build
from alcop_mlir.passes.sizes import Number, plus, times

_WIDTHS = (32, 64)  # bits; the highest stays 0, so that no word is negative


@frozen
class TapWords:
    """The words of a window with so many taps along each dimension."""

    size: tuple[int, ...]

    @property
    def kind(self) -> Any:
        """The type of a word."""
        return build.integer(next(one for one in _WIDTHS if self._bits < one))

    @property
    def every(self) -> int:
        """The word of a row that has no tap."""
        return (1 << self._bits) - 1

    def bits(self, dimension: int, position: int) -> int:
        """The bits of the taps at a position along a dimension, or of that position."""
        if not self._has_taps:
            return self._bit(dimension, position)
        taps = product(*map(range, self.size))
        return sum(1 << n for n, tap in enumerate(taps) if tap[dimension] == position)

    @property
    def _has_taps(self) -> bool:
        """Whether there is a bit per tap."""
        return math.prod(self.size) < _WIDTHS[0]

    @property
    def _bits(self) -> int:
        return math.prod(self.size) if self._has_taps else sum(self.size)

    def _bit(self, dimension: int, position: int) -> int:
        """The bit of a position along a dimension."""
        return 1 << sum(self.size[dimension + 1 :]) + position

    def constant(self, word: int) -> Any:
        """A word as a value."""
        return arith.constant(self.kind, word)

    def of_tap(self, positions: Sequence[ir.Value | int]) -> Any:
        """The word of the tap at these positions."""
        if self._has_taps:
            return self._shifted(1, self._number(positions))
        bits = [
            self._moved(dimension, position)
            for dimension, position in enumerate(positions)
        ]
        return reduce(arith.ori, bits)

    def is_last(self, word: ir.Value, dimension: int) -> Any:
        """Whether a tap is the last along a dimension."""
        last = self.constant(self.bits(dimension, self.size[dimension] - 1))
        return arith.cmpi(
            arith.CmpIPredicate.ne, arith.andi(word, last), self.constant(0)
        )

    def advance(self, word: ir.Value, dimension: int) -> Any:
        """What leads to the next position along a dimension, added to the word.

        Along the dimensions after it, from the last position to the first.
        """
        if self._has_taps:
            return word
        own = sum(self._bit(dimension, n) for n in range(self.size[dimension]))
        back = sum(
            self._bit(inner, 0) - self._bit(inner, self.size[inner] - 1)
            for inner in range(dimension + 1, len(self.size))
        )
        return arith.addi(arith.andi(word, self.constant(own)), self.constant(back))

    def _number(self, positions: Sequence[ir.Value | int]) -> Any:
        """The number of the tap at these positions."""
        number: Number = 0
        for position, size in zip(positions, self.size, strict=True):
            number = plus(times(number, size), position)
        return number

    def _moved(self, dimension: int, position: ir.Value | int) -> Any:
        return self._shifted(self._bit(dimension, 0), position)

    def _shifted(self, word: int, by: ir.Value | int) -> Any:
        if isinstance(by, int):
            return self.constant(word << by)
        return arith.shli(self.constant(word), arith.index_cast(self.kind, by))
