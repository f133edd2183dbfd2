"""What a kernel without a contraction stores: made element by element of its arrays."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from string import ascii_letters
from typing import NamedTuple

from alcop_mlir.manifest.arrays import Parameter
from alcop_mlir.manifest.held_values import Held, Operand, Shape
from alcop_mlir.reference.steps import Map, Reshape, operand_maps

_DEEPEST = 64  # steps from a value to the arrays that it is made of


class Moved(NamedTuple):
    """An array that is stored, of that shape and these loops; any of `values`."""

    array: str
    shape: Shape
    loops: str
    read: dict[str, Operand]
    values: list[str]


def moves(held: Held, arrays: Sequence[str]) -> Moved | None:
    """What one of the arrays is stored of all others, if anything is."""
    for guesses in (False, True):
        found = [
            one for array in arrays for one in _stored(held, array, arrays, guesses)
        ]
        if found:
            break
    else:
        return None
    last = found[-1]
    same = [one for one in found if one[:4] == last[:4]]
    if guesses and len(same) < len(found):
        return None
    return last._replace(values=[value for one in same for value in one.values])


def _stored(
    held: Held, array: str, arrays: Sequence[str], guesses: bool
) -> Iterator[Moved]:
    """Each value that the array may be stored, made of all others.

    guesses: whether one of these may hold what nobody knows; then it is no value that
             is known to be stored
    """
    rest = [other for other in arrays if other != array]
    for step in held.values.function.reference:
        if not isinstance(step, Map) or not _is_for(held, array, step.out):
            continue
        if guesses and held.is_held(step.out):
            continue
        made = _Made(held.fork(), rest, guesses).of(step.out)
        if made is not None and made.keys() == {*rest}:
            loops = ascii_letters[: len(step.shape)]
            yield Moved(array, step.shape, loops, made, [step.out])


def _is_for(held: Held, array: str, value: str) -> bool:
    """Whether the array may be for the value."""
    one = held.values.arrays[array]
    if isinstance(one, Parameter):
        return array == value or held.values.is_shape_of(array, value)
    return held.fits(array, value)


class _Made:
    """Which arrays values are made of, and how these are read."""

    def __init__(self, held: Held, arrays: Sequence[str], guesses: bool):
        self.held, self.arrays, self.guesses = held, arrays, guesses
        self.read: dict[str, Operand] = {}

    def of(self, value: str) -> dict[str, Operand] | None:
        """Of one, with a loop for each of its dimensions; None where it is made of
        others too, or one is read in two ways.
        """
        shape = self.held.values.shapes[value]
        step = self.held.values.steps[value]
        loops = ascii_letters[: len(shape)]
        is_made = isinstance(step, Map) and self._inputs(step, loops, 0)
        return self.read if is_made else None

    def _find(self, name: str, loops: str, depth: int) -> bool:
        values = self.held.values
        array = self.held.holder(name, self.arrays, self.guesses)
        shape = values.shapes.get(name)
        if array is not None and shape is not None:
            found = self.held.viewed(array, shape, loops)
            return found is not None and self.read.setdefault(array, found) == found
        step = values.steps.get(name)
        if depth > _DEEPEST or name in values.arrays:
            return False
        if isinstance(step, Map):
            return self._inputs(step, loops, depth)
        if isinstance(step, Reshape) and shape == values.shapes.get(step.source):
            return self._find(step.source, loops, depth + 1)
        return False

    def _inputs(self, step: Map, loops: str, depth: int) -> bool:
        inputs, out = operand_maps(step)
        if len(out) != len(loops):
            return False
        names = dict(zip(out, loops, strict=True))
        for name, own in zip(step.inputs, inputs, strict=True):
            spare = iter(reversed(ascii_letters))  # each of one turn
            shape = self.held.values.shapes.get(name, ())
            if any(n == "." and e != 1 for n, e in zip(own, shape, strict=False)):
                return False
            mine = "".join(next(spare) if n == "." else names.get(n, "") for n in own)
            if len(mine) < len(own) or not self._find(name, mine, depth + 1):
                return False
        return True
