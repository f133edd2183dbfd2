"""Which elements of an array a sum is of, where windows are moved over it.

As a contraction sees it, the array is one of elements `A[m, k]`: rows are positions of
the window, and columns what is in it. Element `A[m, k]` is one of the array, or 0 where
an index is outside of it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from alcop_mlir.checker.form.reading import count, require, signed


class Part(NamedTuple):
    """What a loop adds to an index: `loop // divisor % many * factor`."""

    loop: str
    divisor: int
    many: int
    factor: int

    def digit(self, at: np.ndarray) -> np.ndarray:
        """Of numbers of the loop."""
        return at // self.divisor % self.many


class Dimension(NamedTuple):
    """One of the array, with the elements between neighbours: its index is `first` and
    what the parts add, and is inside from 0 on below the extent.
    """

    extent: int
    stride: int
    first: int
    parts: tuple[Part, ...]


@dataclass(frozen=True)
class Window:
    """Of one array."""

    dimensions: tuple[Dimension, ...]

    def parts(self) -> Iterator[tuple[int, Part]]:
        """All parts, with what one more of each adds to the number of the element."""
        for dimension in self.dimensions:
            for part in dimension.parts:
                yield dimension.stride * part.factor, part

    def indices(self, at: Mapping[str, np.ndarray]) -> list[np.ndarray]:
        """What loops add to the index of each dimension."""
        found = []
        for one in self.dimensions:
            index: np.ndarray = np.zeros(1, np.int64)
            for part in one.parts:
                if part.loop in at:
                    index = index + part.digit(at[part.loop]) * part.factor
            found.append(index)
        return found


def read_window(value: Any, extents: Mapping[str, Any]) -> Window:
    """Of JSON values, strictly; parts of one number are left out."""
    found = []
    for extent, stride, first, parts in value:
        read = [
            Part(str(loop), count(d), count(c), signed(f)) for loop, d, c, f in parts
        ]
        loops = {one.loop for one in read}
        require(loops <= extents.keys(), "a window of no such loop")
        kept = tuple(one for one in read if one.many > 1)
        found.append(Dimension(count(extent), count(stride), signed(first), kept))
    return Window(tuple(found))
