"""Rectangles of the positions of a window: another order of the rows of A and of C.

    4x6 positions, numbered by rows     rectangles of 2x4: eight numbers each
     0  1  2  3  4  5                    0  1  2  3 |  8  9  .  .
     6  7  8  9 10 11                    4  5  6  7 | 12 13  .  .
    12 13 14 15 16 17                   ------------+------------
    18 19 20 21 22 23                   16 17 18 19 | 24 25  .  .
                                        20 21 22 23 | 28 29  .  .

Where rectangles go over the edge of an image, numbers have no position.
"""

from __future__ import annotations

import math
from typing import Any, Protocol

from alcop_mlir.frozen import frozen


class Arithmetic(Protocol):
    """On numbers of positions: ints, index values, or vectors of these."""

    def add(self, left: Any, right: Any, /) -> Any:
        """`left + right`."""
        ...

    def mul(self, left: Any, right: Any, /) -> Any:
        """`left * right`."""
        ...

    def div(self, left: Any, right: Any, /) -> Any:
        """`left / right`, rounded down."""
        ...

    def rem(self, left: Any, right: Any, /) -> Any:
        """The remainder of `left / right`."""
        ...


@frozen
class Rectangles:
    """The order that goes through images by rectangles of their positions.

    places: positions in an image, along its last two dimensions
    sides:  of a rectangle, along these
    """

    places: tuple[int, int]
    sides: tuple[int, int]

    @property
    def counts(self) -> tuple[int, int]:
        """How many rectangles cover an image, along both dimensions."""
        (high, wide), (p, q) = self.sides, self.places
        return -(-p // high), -(-q // wide)

    def numbers(self, rows: int) -> int:
        """How many numbers lead through so many rows, of whole images."""
        images = rows // math.prod(self.places)
        return images * math.prod(self.counts) * math.prod(self.sides)

    def row(self, number: Any, on: Arithmetic) -> tuple[Any, list[tuple[Any, int]]]:
        """The number that a position has by rows; and what must be below what, if any.

        Where it is not, the number has no position.
        """
        (high, wide), (down, across) = self.sides, self.counts
        inside = on.rem(number, high * wide)
        rectangle = on.div(number, high * wide)
        above = on.div(rectangle, across)
        p = on.add(on.mul(on.rem(above, down), high), on.div(inside, wide))
        q = on.add(on.mul(on.rem(rectangle, across), wide), on.rem(inside, wide))
        row = on.add(on.mul(on.div(above, down), self.places[0]), p)
        bounds = [
            (position, size)
            for position, size, side in zip(
                (p, q), self.places, self.sides, strict=True
            )
            if size % side
        ]
        return on.add(on.mul(row, self.places[1]), q), bounds
