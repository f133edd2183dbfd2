"""Builders of words of bits: which tap a K step has, and which taps a row lacks.

A word has a bit per position of the window along each dimension. That of a tap has one
bit set per dimension, that of a row has those of the positions that are outside of the
image, so that one `and` tells whether the row has the tap:

    the third of 3x3 taps   001 100
    a row at the top left   001 001        it lacks the tap: 001 != 0

The last dimension has the lowest bits, the first position of each the lowest of these.
A tap's word becomes that of the next tap by a sum: a bit moves by adding itself.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import reduce
from typing import Any

from alcop_mlir.bindings import arith, ir
from alcop_mlir.passes import build

_WIDTHS = (32, 64)  # bits; the highest stays 0, so that no word is negative


@dataclass(frozen=True)
class TapWords:
    """The words of a window with so many taps along each dimension."""

    size: tuple[int, ...]

    @property
    def kind(self) -> Any:
        """The type of a word."""
        return build.integer(next(one for one in _WIDTHS if sum(self.size) < one))

    @property
    def every(self) -> int:
        """The word of a row that has no tap."""
        return (1 << sum(self.size)) - 1

    def bit(self, dimension: int, position: int) -> int:
        """The bit of a position along a dimension."""
        return 1 << sum(self.size[dimension + 1 :]) + position

    def constant(self, word: int) -> Any:
        """A word as a value."""
        return arith.constant(self.kind, word)

    def of_tap(self, positions: Sequence[ir.Value | int]) -> Any:
        """The word of the tap at these positions."""
        bits = [
            self._moved(dimension, position)
            for dimension, position in enumerate(positions)
        ]
        return reduce(arith.ori, bits)

    def is_last(self, word: ir.Value, dimension: int) -> Any:
        """Whether a tap is the last along a dimension."""
        last = self.constant(self.bit(dimension, self.size[dimension] - 1))
        return arith.cmpi(
            arith.CmpIPredicate.ne, arith.andi(word, last), self.constant(0)
        )

    def advance(self, word: ir.Value, dimension: int) -> Any:
        """What leads to the next position along a dimension, added to the word.

        Along the dimensions after it, from the last position to the first.
        """
        own = sum(self.bit(dimension, n) for n in range(self.size[dimension]))
        back = sum(
            self.bit(inner, 0) - self.bit(inner, self.size[inner] - 1)
            for inner in range(dimension + 1, len(self.size))
        )
        return arith.addi(arith.andi(word, self.constant(own)), self.constant(back))

    def _moved(self, dimension: int, position: ir.Value | int) -> Any:
        if isinstance(position, int):
            return self.constant(self.bit(dimension, position))
        shift = arith.index_cast(self.kind, position)
        return arith.shli(self.constant(self.bit(dimension, 0)), shift)
