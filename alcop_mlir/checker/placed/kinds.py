"""What registers may hold elements of, and what is made of such: kinds of tags."""

from __future__ import annotations

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
    """

    term: Frozen
    size: int
    upto: Frozen
    reads: frozenset[str]
    first: Frozen = ()


class Fold(NamedTuple):
    """Elements of a row, or one that has not all loops, `term` plus a number; see
    `rows`.

    reads: arrays of which each of these has used an element; None: it is no fold
    own:   arrays of which an element has been used beside, at the index itself; None:
           there is no such index
    loops: those that it has an index for
    """

    term: Frozen
    size: int
    reads: frozenset[str] | None
    own: frozenset[str] | None
    loops: tuple[str, ...]


Kind = Element | Result | Fold


class Whole(NamedTuple):
    """Elements: what they are, and their index, by thread."""

    number: np.ndarray
    at: np.ndarray
