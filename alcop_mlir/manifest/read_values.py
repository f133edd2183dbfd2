"""Which elements of arrays an element of a reference's value is made of.

Values are followed through reshapes, transposes and parts of arrays, to those that
arrays hold.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from itertools import pairwise
from string import ascii_letters

from alcop_mlir.extents import Extent
from alcop_mlir.manifest.arrays import Parameter
from alcop_mlir.manifest.held_values import Held, Operand
from alcop_mlir.manifest.indices import (
    Element,
    Index,
    Linear,
    Shape,
    Split,
    element_of,
    is_known,
    loops_alone,
    numbers,
    steps_of,
    summed,
)
from alcop_mlir.reference.steps import (
    Concat,
    Fold,
    Iota,
    Map,
    Reduction,
    Reshape,
    Slice,
    operand_maps,
)

_DEEPEST = 64  # steps from a value to the arrays that it is made of


class Reads:
    """Of one kernel's arrays, by loops of so many turns.

    guesses: whether an array of which nothing is known may hold what is asked first
    read:    arrays that values are made of, as long as each is read in one way
    own:     those of which one element is used, that of the same indices
    rows:    those of which all elements along some loops are, as of a row's sum, or of
             the parts that are put together along `part_loop`
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
        self.part_loop = ""
        self._taken: dict[str, str] = {}
        self._firsts: dict[str, set[int]] = {}
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

    def has_parts(self) -> bool:
        """Whether arrays that are read in several parts are so in all, along the loop
        of these: then they are read in one way, with whole rows.
        """
        for array, firsts in self._firsts.items():
            one, loop, every = self.read[array], self.part_loop, sorted(firsts)
            steps = {b - a for a, b in pairwise(every)}
            is_all = loop != "" and self.turns[loop] == len(every)
            if not is_all or len(steps) != 1 or self.row_loops not in ("", loop):
                return False
            shape, loops = (*one.shape, len(every)), one.loops + loop
            strides = (*_strides_of(one), *steps)
            self.read[array] = Operand(array, shape, loops, strides, every[0])
            self.own.discard(array)
            self.rows.add(array)
            self.row_loops = loop
        return True

    def _is_one_way(self, array: str, found: Operand) -> bool:
        """Whether an array is read as before, or another part of it is."""
        one = self.read.setdefault(array, found)
        if one == found:
            return True
        if one.loops != found.loops or not is_known(one.shape):
            return False
        self._firsts.setdefault(array, {one.first}).add(found.first)
        return _strides_of(one) == _strides_of(found)

    def _of(self, name: str, element: Element, depth: int) -> bool:
        key = name, element, self._is_in_row
        if key in self._known:
            return True
        array = self.held.holder(name, self.arrays, self.guesses, self._taken)
        if array is not None:
            self._taken.setdefault(array, self.held.values.root(name))
            found = self.operand(array, element)
            is_read = found is not None and self._is_one_way(array, found)
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
        if isinstance(step, Concat):
            return self._put_together(step, element, depth + 1)
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

    def _put_together(self, step: Concat, element: Element, depth: int) -> bool:
        """Of parts that are as long as each other: what each is made of."""
        index, at = self._index(element), step.dimension
        shapes = {self.held.values.shapes.get(name) for name in step.inputs}
        (shape,) = shapes if len(shapes) == 1 else (None,)
        if index is None or shape is None or not is_known(shape):
            return False
        length, found = numbers(shape)[at], dict(index[at].factors)
        for loop, each in index[at].factors:
            inside = int(str(self.turns[loop])) * each
            if each < length < inside and not length % each:
                raise Split(loop, length // each)
        parts = [loop for loop, each in found.items() if each >= length]
        if index[at].first or len(parts) != 1 or found.pop(parts[0]) != length:
            return False
        if self.part_loop not in ("", parts[0]):
            return False
        self.part_loop = parts[0]
        inner = (*index[:at], Linear(tuple(found.items())), *index[at + 1 :])
        return all(self._of(n, element_of(shape, inner), depth) for n in step.inputs)

    def _index(self, element: Element) -> Index | None:
        """By dimension; raises Split where a loop goes through parts of several."""
        if element.dims is not None or element.flat is None:
            return element.dims
        factors, rest = dict(element.flat.factors), element.flat.first
        found: list[Linear] = []
        for step in steps_of(element.shape):
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
        return all(a < b for a, b in zip(last, numbers(shape), strict=True))

    def operand(self, array: str, element: Element) -> Operand | None:
        """An array that holds a value, as its element is read there."""
        order = self.held.order(array, element.shape)
        if order is None:
            return None
        if order:
            index = self._index(element)
            if index is None:
                return None
            shape = tuple(element.shape[n] for n in order)
            element = element_of(shape, tuple(index[n] for n in order))
        one, (shape, index, flat) = self.held.values.arrays[array], element
        own = one.strides if isinstance(one, Parameter) else None
        loops = loops_alone(index) if one.shape == shape or own is None else None
        if loops is not None and (flat is None or own is not None):
            return Operand(array, shape, loops)
        if own is not None:
            is_same = index is not None and one.shape == shape and is_known(own)
            flat = summed(index or (), numbers(own)) if is_same else None
        return None if flat is None else self._stepped(array, flat)

    def _stepped(self, array: str, flat: Linear) -> Operand:
        """An array by counted elements; where there are no gaps its shape says all."""
        factors = sorted(flat.factors, key=lambda one: (-one[1], one[0]))
        loops = "".join(loop for loop, _ in factors)
        shape = tuple(self.turns[loop] for loop in loops)
        steps = tuple(each for _, each in factors)
        if flat.first == 0 and list(steps) == steps_of(shape):
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
    return one == two and is_known(shape) and is_known(other)


def _strides_of(operand: Operand) -> tuple[int, ...]:
    return operand.strides or tuple(steps_of(operand.shape))
