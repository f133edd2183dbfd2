"""Indices that are linear in loops: `32 * h + d` of a column that heads share."""

from __future__ import annotations

import math
from collections.abc import Mapping
from string import ascii_letters
from typing import NamedTuple

from alcop_mlir.extents import Extent

Shape = tuple[Extent, ...]


class Linear(NamedTuple):
    """Loops, each times a coefficient, and a number, added up."""

    factors: tuple[tuple[str, int], ...] = ()
    first: int = 0

    def times(self, factor: int, plus: int = 0) -> Linear:
        """All of it times a number, and another one more."""
        factors = tuple((loop, each * factor) for loop, each in self.factors)
        return Linear(factors, self.first * factor + plus)

    def plus(self, other: Linear) -> Linear:
        """Both added up."""
        return Linear(self.factors + other.factors, self.first + other.first)


Index = tuple[Linear, ...]  # of each dimension of a value


class Split(Exception):
    """A loop has to be two, of which the inner one has so many turns."""

    def __init__(self, loop: str, turns: int):
        super().__init__(loop)
        self.loop, self.turns = loop, turns

    def loops(
        self, index: Index, turns: Mapping[str, Extent]
    ) -> tuple[Index, dict[str, Extent]]:
        """An index with two loops instead of it, and how many turns all have."""
        inner = next(one for one in ascii_letters if one not in turns)
        several = int(str(turns[self.loop])) // self.turns
        found = tuple(self._replaced(one, inner) for one in index)
        return found, {**turns, self.loop: several, inner: self.turns}

    def _replaced(self, one: Linear, inner: str) -> Linear:
        found: list[tuple[str, int]] = []
        for loop, each in one.factors:
            is_mine = loop == self.loop
            found.append((loop, each * self.turns if is_mine else each))
            found += [(inner, each)] if is_mine else []
        return Linear(tuple(found), one.first)


class Element(NamedTuple):
    """Of a value of that shape; by dimension, or counted through all of these."""

    shape: Shape
    dims: Index | None
    flat: Linear | None


def loops_of(loops: str) -> Index:
    """An index that is a loop of each dimension."""
    return tuple(Linear(((loop, 1),)) for loop in loops)


def loops_alone(index: Index | None) -> str | None:
    """The loops of an index that is one of each dimension."""
    if index is None or any(i.first or len(i.factors) != 1 for i in index):
        return None
    loops = "".join(loop for i in index for loop, _ in i.factors)
    is_plain = all(c == 1 for i in index for _, c in i.factors)
    return loops if is_plain and len({*loops}) == len(loops) else None


def element_of(shape: Shape, index: Index) -> Element:
    """The element of a value with an index for each dimension."""
    known = is_known(shape)
    return Element(shape, index, summed(index, steps_of(shape)) if known else None)


def is_known(shape: Shape) -> bool:
    """Whether all extents are numbers."""
    return all(isinstance(one, int) for one in shape)


def numbers(shape: Shape) -> list[int]:
    """Extents that are known."""
    return [int(str(one)) for one in shape]


def steps_of(shape: Shape) -> list[int]:
    """Elements between neighbours along each dimension."""
    each = numbers(shape)
    return [math.prod(each[n + 1 :]) for n in range(len(each))]


def summed(index: Index, steps: list[int]) -> Linear:
    """The number of an element, with so many between neighbours."""
    factors: dict[str, int] = {}
    first = 0
    for one, step in zip(index, steps, strict=True):
        first += one.first * step
        for loop, each in one.factors:
            factors[loop] = factors.get(loop, 0) + each * step
    return Linear(tuple(sorted(factors.items())), first)
