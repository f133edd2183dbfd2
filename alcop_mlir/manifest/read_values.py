"""Which elements of arrays an element of a reference's value is made of.

An index is a sum of loops, each times a number: `32 * h + d` of a column that heads
share. So values are followed through reshapes, transposes and parts of arrays, to those
that arrays hold.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping
from string import ascii_letters
from typing import NamedTuple

from alcop_mlir.extents import Extent
from alcop_mlir.manifest.arrays import Parameter
from alcop_mlir.manifest.held_values import Held, Operand, Shape
from alcop_mlir.reference.steps import (
    Fold,
    Iota,
    Map,
    Reduction,
    Reshape,
    Slice,
    operand_maps,
)

_DEEPEST = 64  # steps from a value to the arrays that it is made of


class Linear(NamedTuple):
    """The sum of loops, each times its factor, and a number."""

    factors: tuple[tuple[str, int], ...] = ()
    first: int = 0

    def times(self, factor: int, plus: int = 0) -> Linear:
        """Each of it times a factor, and a number more."""
        factors = tuple((loop, each * factor) for loop, each in self.factors)
        return Linear(factors, self.first * factor + plus)


Index = tuple[Linear, ...]  # of each dimension of a value


class Split(Exception):
    """A loop has to be two, of which the inner one has so many turns."""

    def __init__(self, loop: str, turns: int):
        super().__init__(loop)
        self.loop, self.turns = loop, turns

    def loops(
        self, index: Index, turns: Mapping[str, Extent]
    ) -> tuple[Index, dict[str, Extent]]:
        """An index of two loops in its place, and how many turns all have."""
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


class Reads:
    """Of one kernel's arrays, by loops of so many turns.

    guesses: whether an array of which nothing is known may hold what is asked first
    read:    arrays that values are made of, as long as each is read in one way
    own:     those of which one element is used, that of the same indices
    rows:    those of which all elements along some loops are, as of a row's sum
    """

    def __init__(
        self,
        held: Held,
        arrays: Collection[str],
        guesses: bool,
        turns: Mapping[str, Extent],
    ):
        self.held, self.arrays, self.guesses = held, arrays, guesses
        self.turns = dict(turns)
        self.read: dict[str, Operand] = {}
        self.own: set[str] = set()
        self.rows: set[str] = set()
        self.row_loops = ""
        self._is_in_row = False
        self._known: set[tuple[str, Element, bool]] = set()

    @property
    def through(self) -> frozenset[str]:
        """Values that have been met on the way."""
        return frozenset(name for name, *_ in self._known)

    def reads(self, name: str, index: Index, is_made: bool = False) -> bool:
        """Whether an element of a value is made of those of arrays; raises Split.

        is_made: not read from an array that holds the value itself
        """
        shape = self.held.values.shapes.get(name)
        if shape is None or len(shape) != len(index):
            return False
        element = element_of(shape, index)
        return self._steps(name, element, 0) if is_made else self._of(name, element, 0)

    def _of(self, name: str, element: Element, depth: int) -> bool:
        key = name, element, self._is_in_row
        if key in self._known:
            return True
        array = self.held.holder(name, self.arrays, self.guesses)
        if array is not None:
            found = self.operand(array, element)
            is_read = found is not None and self.read.setdefault(array, found) == found
            (self.rows if self._is_in_row else self.own).add(array)
        elif depth > _DEEPEST or name in self.held.values.arrays:
            return False
        else:
            is_read = self._steps(name, element, depth)
        if is_read:
            self._known.add(key)
        return is_read

    def _steps(self, name: str, element: Element, depth: int) -> bool:
        values = self.held.values
        step = values.steps.get(name)
        if isinstance(step, Iota):
            return True
        if isinstance(step, Map):
            return self._inputs(step, element, depth + 1)
        if isinstance(step, Reduction | Fold):
            return self._reduced(step, element, depth + 1)
        source = getattr(step, "source", None)
        shape = None if source is None else values.shapes.get(source)
        if source is None or shape is None:
            return False
        if isinstance(step, Reshape):
            same = shape == element.shape
            index = element.dims if same else None
            if index is None and element.flat is None:
                return False
            return self._of(source, Element(shape, index, element.flat), depth + 1)
        if isinstance(step, Slice):
            return self._part(step, source, shape, element, depth + 1)
        return False

    def _inputs(self, step: Map, element: Element, depth: int) -> bool:
        inputs, out = operand_maps(step)
        shapes = [self.held.values.shapes.get(name) for name in step.inputs]
        for name, own, shape in zip(step.inputs, inputs, shapes, strict=True):
            if shape is not None and _is_in_order(own, shape, out, element.shape):
                found = element._replace(shape=shape)
                if shape != element.shape:
                    found = found._replace(dims=None)
            else:
                found = (
                    None if shape is None else self._permuted(element, out, own, shape)
                )
            if found is None or not self._of(name, found, depth):
                return False
        return True

    def _reduced(self, step: Reduction | Fold, element: Element, depth: int) -> bool:
        """Of a row: all loops that do not index it go through the row's elements."""
        index, (inputs, out) = self._index(element), operand_maps(step)
        shapes = [self.held.values.shapes.get(name) for name in step.inputs]
        if index is None or None in shapes or len(out) != len(index):
            return False
        known, turns = dict(zip(out, index, strict=True)), dict[str, Extent]()
        for own, shape in zip(inputs, shapes, strict=True):
            turns.update(zip(own, shape or (), strict=True))
        along = {n: e for n, e in turns.items() if n not in known and n != "."}
        if not self._has_rows(index, [*along.values()]):
            return False
        rows = zip(along, self.row_loops, strict=True)
        known.update((n, Linear(((loop, 1),))) for n, loop in rows)
        before, self._is_in_row = self._is_in_row, True
        is_read = all(
            self._of(name, element_of(shape, tuple(known[n] for n in own)), depth)
            for name, own, shape in zip(step.inputs, inputs, shapes, strict=True)
            if shape is not None
        )
        self._is_in_row = before
        return is_read

    def _has_rows(self, index: Index, extents: list[Extent]) -> bool:
        """Whether rows are those of the kernel: along loops that the value of a row
        does not have, or loops of their own.
        """
        if not self.row_loops:
            used = {loop for one in index for loop, _ in one.factors}
            spare = [loop for loop in self.turns if loop not in used]
            if [self.turns[loop] for loop in spare] != extents:
                free = (n for n in ascii_letters if n not in self.turns)
                spare = [next(free) for _ in extents]
                self.turns.update(zip(spare, extents, strict=True))
            self.row_loops = "".join(spare)
        return [self.turns[loop] for loop in self.row_loops] == extents

    def _permuted(
        self, element: Element, out: str, own: str, shape: Shape
    ) -> Element | None:
        index = self._index(element)
        if index is None or len(own) != len(shape) or len(out) != len(index):
            return None
        known = dict(zip(out, index, strict=True))
        if any(loop == "." and n != 1 for loop, n in zip(own, shape, strict=True)):
            return None
        if not {*own} - {"."} <= known.keys():
            return None
        found = tuple(Linear() if loop == "." else known[loop] for loop in own)
        return element_of(shape, found)

    def _part(
        self, step: Slice, source: str, shape: Shape, element: Element, depth: int
    ) -> bool:
        index = self._index(element)
        if index is None or not all(isinstance(one, int) for one in step.offsets):
            return False
        found = tuple(
            one.times(by, int(str(first)))
            for one, by, first in zip(index, step.strides, step.offsets, strict=True)
        )
        return self._of(source, element_of(shape, found), depth)

    def _index(self, element: Element) -> Index | None:
        """By dimension; raises Split where a loop goes through parts of several."""
        if element.dims is not None or element.flat is None:
            return element.dims
        factors, rest = dict(element.flat.factors), element.flat.first
        found: list[Linear] = []
        for step in _steps_of(element.shape):
            mine: list[tuple[str, int]] = []
            for loop, each in [*factors.items()]:
                turns = self.turns[loop]
                if not isinstance(turns, int) or (each >= step > 0 and each % step):
                    return None
                if each >= step:
                    mine.append((loop, factors.pop(loop) // step))
                elif each * (turns - 1) >= step:
                    if step % each or turns % (step // each):
                        return None
                    raise Split(loop, step // each)
            first, rest = divmod(rest, step)
            found.append(Linear(tuple(mine), first))
        return tuple(found) if self._is_inside(found, element.shape) else None

    def _is_inside(self, index: list[Linear], shape: Shape) -> bool:
        """Whether no dimension is left: so there is one index of what was counted."""
        last = [
            one.first + sum(c * (int(str(self.turns[n])) - 1) for n, c in one.factors)
            for one in index
        ]
        return all(a < b for a, b in zip(last, _numbers(shape), strict=True))

    def operand(self, array: str, element: Element) -> Operand | None:
        """An array that holds a value, as its element is read there."""
        one, (shape, index, flat) = self.held.values.arrays[array], element
        own = one.strides if isinstance(one, Parameter) else None
        loops = _plain(index) if one.shape == shape or own is None else None
        if loops is not None and (flat is None or own is not None):
            return Operand(array, shape, loops)
        if own is not None:
            is_same = index is not None and one.shape == shape and _is_known(own)
            flat = _summed(index or (), _numbers(own)) if is_same else None
        return None if flat is None else self._stepped(array, flat)

    def _stepped(self, array: str, flat: Linear) -> Operand:
        """An array by counted elements; where there are no gaps its shape says all."""
        factors = sorted(flat.factors, key=lambda one: (-one[1], one[0]))
        loops = "".join(loop for loop, _ in factors)
        shape = tuple(self.turns[loop] for loop in loops)
        steps = tuple(each for _, each in factors)
        if flat.first == 0 and list(steps) == _steps_of(shape):
            return Operand(array, shape, loops)
        return Operand(array, shape, loops, steps, flat.first)


def _is_in_order(own: str, shape: Shape, out: str, other: Shape) -> bool:
    """Whether two values have the same elements one behind the other."""
    if own == out and shape == other:
        return True
    one, two = (
        [(loop, n) for loop, n in zip(loops, sizes, strict=False) if n != 1]
        for loops, sizes in ((own, shape), (out, other))
    )
    return one == two and _is_known(shape) and _is_known(other)


def _plain(index: Index | None) -> str | None:
    """The loops of an index that is one of each dimension."""
    if index is None or any(i.first or len(i.factors) != 1 for i in index):
        return None
    loops = "".join(loop for i in index for loop, _ in i.factors)
    is_plain = all(c == 1 for i in index for _, c in i.factors)
    return loops if is_plain and len({*loops}) == len(loops) else None


def element_of(shape: Shape, index: Index) -> Element:
    """The element of a value with an index for each dimension."""
    known = _is_known(shape)
    return Element(shape, index, _summed(index, _steps_of(shape)) if known else None)


def _is_known(shape: Shape) -> bool:
    return all(isinstance(one, int) for one in shape)


def _numbers(shape: Shape) -> list[int]:
    return [int(str(one)) for one in shape]


def _steps_of(shape: Shape) -> list[int]:
    numbers = _numbers(shape)
    return [math.prod(numbers[n + 1 :]) for n in range(len(numbers))]


def _summed(index: Index, steps: list[int]) -> Linear:
    factors: dict[str, int] = {}
    first = 0
    for one, step in zip(index, steps, strict=True):
        first += one.first * step
        for loop, each in one.factors:
            factors[loop] = factors.get(loop, 0) + each * step
    return Linear(tuple(sorted(factors.items())), first)
