"""What a kernel without a contraction stores: made element by element of its arrays."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from string import ascii_letters
from typing import NamedTuple

from alcop_mlir.extents import Extent
from alcop_mlir.manifest.arrays import Intermediate, Parameter
from alcop_mlir.manifest.held_values import Held, Operand, Order
from alcop_mlir.manifest.indices import Linear, Shape, Split, element_of
from alcop_mlir.manifest.read_values import Reads
from alcop_mlir.reference.steps import Concat, Fold, Map, Reduction


class Moved(NamedTuple):
    """An array that is stored, any of `values`.

    loops:   of these, outer ones first
    own:     arrays of which one element is used, `rows` those of which rows are
    through: other values that it is made of
    order:   of dimensions, if the array has them in another one than its value
    """

    stored: Operand
    loops: str
    read: dict[str, Operand]
    own: frozenset[str]
    rows: frozenset[str]
    row_loops: str
    values: list[str]
    through: frozenset[str]
    order: Order = ()


def moves(held: Held, arrays: Sequence[str]) -> list[Moved]:
    """What one of the arrays may be stored of all others, likely ones first: of which
    no other one is made, in the order of the reference.
    """
    for guesses in (False, True)[: 1 + held.has_guesses(arrays)]:
        every = [
            one for array in arrays for one in _stored(held, array, arrays, guesses)
        ]
        found: list[Moved] = []
        for one in every:
            same = [n for n, other in enumerate(found) if other[:6] == one[:6]]
            if same:
                (n,) = same
                found[n] = _both(found[n], one)
            else:
                found.append(one)
        if found:
            return _likely(found) if len(found) == 1 or not guesses else []
    return []


def _both(one: Moved, other: Moved) -> Moved:
    return one._replace(
        values=[*one.values, *other.values], through=one.through | other.through
    )


def _likely(found: list[Moved]) -> list[Moved]:
    last = [
        one
        for one in found
        if not any(o is not one and o.through & {*one.values} for o in found)
    ]
    return last + [one for one in found[::-1] if one not in last]


def _stored(
    held: Held, array: str, arrays: Sequence[str], guesses: bool
) -> Iterator[Moved]:
    """Each value that the array may be stored, made of all others.

    guesses: whether one of these may hold what nobody knows; then it is no value that
             is known to be stored
    """
    rest = [other for other in arrays if other != array]
    made_of = None if guesses else held.made_of(rest)
    for step in held.values.function.reference:
        if made_of is not None and step.out not in made_of:
            continue
        is_made = isinstance(step, Map | Reduction | Fold | Concat)
        if not is_made or not _is_for(held, array, step.out):
            continue
        if guesses and held.is_held(step.out):
            continue
        made = _made(held, array, rest, guesses, step.out)
        if made is not None and made.read.keys() == {*rest}:
            yield made


def _is_for(held: Held, array: str, value: str) -> bool:
    """Whether the array may be for the value."""
    one = held.values.arrays[array]
    if isinstance(one, Parameter):
        return array == value or held.values.is_shape_of(array, value)
    return held.fits(array, value)


def _made(
    held: Held, array: str, arrays: Sequence[str], guesses: bool, value: str
) -> Moved | None:
    """A value that an array may be stored; None where it is made of others too, or one
    is read in two ways.
    """
    shape = held.values.shapes[value]
    letters = [*zip(ascii_letters, shape, strict=False)]
    index = tuple(Linear() if n == 1 else Linear(((a, 1),)) for a, n in letters)
    turns: dict[str, Extent] = {a: n for a, n in letters if n != 1}
    while len(turns) < len(ascii_letters):
        reads = Reads(held.fork(), arrays, guesses, turns)
        try:
            is_made = reads.reads(value, index, is_made=True) and reads.has_parts()
        except Split as split:
            index, turns = split.loops(index, turns)
            continue
        order = _order(held, array, shape, reads.read)
        kept = tuple(shape[n] for n in order), tuple(index[n] for n in order)
        stored = reads.operand(array, element_of(*kept))
        if not is_made or stored is None:
            return None
        loops = "".join(loop for one in index for loop, _ in one.factors)
        more = "".join(loop for loop in reads.row_loops if loop not in loops)
        return Moved(
            stored,
            loops + more,
            reads.read,
            frozenset(reads.own),
            frozenset(reads.rows),
            reads.row_loops,
            [value],
            reads.through - {value},
            order,
        )
    return None


def _order(held: Held, array: str, shape: Shape, read: Mapping[str, Operand]) -> Order:
    """In which order an array has dimensions of a value: as those it is made of."""
    plain, one = tuple(range(len(shape))), held.values.arrays[array]
    orders = {held.order(name, shape) for name in read} - {None, (), plain}
    fits = [o for o in orders if o and tuple(shape[n] for n in o) == one.shape]
    return fits[0] if len(fits) == 1 and isinstance(one, Intermediate) else plain
