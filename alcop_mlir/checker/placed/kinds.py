"""What registers may hold elements of, and what is made of such: kinds of tags."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from alcop_mlir.checker.machine.held import Frozen


class Element(NamedTuple):
    """An element of an array, with the index `term` plus a number, of `size` bytes."""

    array: str
    term: Frozen
    size: int


class Result(NamedTuple):
    """An element of the sum, as the statement numbers it, of `size` bytes; 0: of one
    bit.

    upto:  what is multiplied at all indices below has been added
    reads: arrays of which elements with the same indices have been used
    first: but not what is multiplied at indices below that
    is_score: of the first contraction of a chain, by whose order it is numbered
    scale:    of a chain: which columns of the row the value is made of that it has
              been computed with; None: no such value; see `chains`
    """

    term: Frozen
    size: int
    upto: Frozen
    reads: frozenset[str]
    first: Frozen = ()
    is_score: bool = False
    scale: Frozen | None = None


class Fold(NamedTuple):
    """Elements of a row, or one that has not all loops, `term` plus a number; see
    `rows`.

    reads: arrays of which each of these has used an element; None: it is no fold
    own:   arrays of which an element has been used beside, at the index itself; None:
           there is no such index
    loops: those that it has an index for
    start, scale: of a chain: the column from where on columns are counted, and the
           scale of each element; see `chains`
    """

    term: Frozen
    size: int
    reads: frozenset[str] | None
    own: frozenset[str] | None
    loops: tuple[str, ...]
    start: Frozen = ()
    scale: Frozen | None = None


# Of a value that is made of the first columns of a row: how many, and their scale.
Prefix = tuple[Frozen, Frozen | None]


class RowValue(NamedTuple):
    """Of a chain: what is computed of such values, of one row."""

    term: Frozen
    size: int
    made: frozenset[Prefix]


Kind = Element | Result | Fold | RowValue


def replaced(kind: Kind, change: Callable[[Frozen], Frozen]) -> Kind:
    """With other terms for all that say how far something goes along the sum."""

    def scaled(scale: Frozen | None) -> Frozen | None:
        return None if scale is None else change(scale)

    if isinstance(kind, Result):
        return kind._replace(upto=change(kind.upto), scale=scaled(kind.scale))
    if isinstance(kind, Fold):
        return kind._replace(start=change(kind.start), scale=scaled(kind.scale))
    if isinstance(kind, RowValue):
        made = ((change(upto), scaled(scale)) for upto, scale in kind.made)
        return kind._replace(made=frozenset(made))
    return kind


def along(kind: Kind) -> list[Frozen]:
    """All terms that `replaced` changes."""
    found: list[Frozen] = []
    replaced(kind, lambda term: found.append(term) or term)
    return found


class Whole(NamedTuple):
    """Elements: what they are, and their index, by thread."""

    number: np.ndarray
    at: np.ndarray
