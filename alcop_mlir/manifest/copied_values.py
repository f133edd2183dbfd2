"""Arrays that get what others hold in another order of dimensions: channels last, or
back to where they were.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from string import ascii_letters

from alcop_mlir.manifest.arrays import Intermediate, Parameter
from alcop_mlir.manifest.held_values import Held, Operand
from alcop_mlir.manifest.moved_values import Moved


def copies(held: Held, arrays: Sequence[str]) -> Iterator[Moved]:
    """What one of two arrays may get of the other one, likely orders first."""
    for array, source in (arrays, arrays[::-1]) if len(arrays) == 2 else ():
        if isinstance(held.values.arrays[array], Parameter):
            yield from _given_back(held, array, source)
        else:
            yield from _kept(held, array, source)


def _given_back(held: Held, array: str, source: str) -> Iterator[Moved]:
    """A result that the other array holds."""
    shape = held.values.arrays[array].shape
    stored = Operand(array, shape, ascii_letters[: len(shape)])
    if source == array or held.held_by(source) != [array]:
        return
    read = held.viewed(source, shape, stored.loops)
    if read is not None:
        yield _copied(stored, read, [array])


def _kept(held: Held, array: str, source: str) -> Iterator[Moved]:
    """For an array of the function's own, of which nothing is known yet."""
    one, other = held.values.arrays[array], held.values.arrays[source]
    shape, names = other.shape, held.held_by(source)
    is_whole = {held.values.shapes.get(name) for name in names} == {shape}
    is_free = not held.held_by(array) and one.dtype == other.dtype
    if not isinstance(one, Intermediate) or not is_whole or not is_free:
        return
    if held.order(source, shape) or len(shape) < 3:
        return
    read = Operand(source, shape, ascii_letters[: len(shape)])
    rank = len(shape)
    for run in (range(1, 2), range(1, rank - 1), range(1, 3), range(2, 3)):
        # Of channels, in groups too, or of all but these.
        order = (*range(run[0]), *range(run[-1] + 1, rank), *run)
        stored = read._replace(array=array).ordered(order)
        if stored.shape == one.shape:
            yield _copied(stored, read, names)._replace(order=order)


def _copied(stored: Operand, read: Operand, values: list[str]) -> Moved:
    own, none = frozenset((read.array,)), frozenset[str]()
    return Moved(stored, stored.loops, {read.array: read}, own, none, "", values, none)
