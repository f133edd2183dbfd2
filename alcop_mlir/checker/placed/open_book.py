"""Tags of elements of arrays whose sizes are not known.

An element is known by an index of each loop: what all threads share, a term, and a
number of each thread. Of all loops together these are one term and one number, digit by
digit of `APART`. A tag says of bytes what they are *where its element is there*: where
all its indices but that of the sum are inside of the array. There they are the element,
or 0 where its index along the sum is beyond the end, so that nothing is added. A sum
is one of a result where that is there.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from alcop_mlir.checker.form.open_statement import APART, OpenStatement
from alcop_mlir.checker.logic import terms
from alcop_mlir.checker.logic.terms import Term
from alcop_mlir.checker.machine.held import Frozen, Tags
from alcop_mlir.checker.placed.kinds import Kind
from alcop_mlir.checker.placed.origins import Origins
from alcop_mlir.checker.placed.tags import Book

_HALF = APART // 2
ENDED: Frozen = (("!", 1),)  # up to where a sum is added that is whole


class OpenOrigins(Origins):
    """Terms are the same for all blocks; `is_nothing` decides whether one is 0."""

    def __init__(self, is_nothing: Callable[[Term], bool]):
        super().__init__((1, 1, 1))
        self.is_nothing = is_nothing

    def go(self, blocks: np.ndarray) -> None:
        """All blocks go all ways."""

    def is_same(self, one: Frozen, other: Frozen) -> bool:
        """Whether two terms of elements are the same."""
        return one == other

    def shift(self, one: Frozen, other: Frozen) -> int | None:
        """Not known: nobody knows where rows end."""
        return None

    def is_zero(self, term: Term) -> bool:
        """Whether a term of turns along the sum is 0 here."""
        return self.is_nothing(term)


class OpenBook(Book):
    """ended: whether a sum up to there is all of it"""

    statement: OpenStatement

    def __init__(
        self,
        statement: OpenStatement,
        grain: int,
        is_nothing: Callable[[Term], bool],
        ended: Callable[[Term], bool],
    ):
        super().__init__(statement, grain)
        self.origins, self.ended = OpenOrigins(is_nothing), ended

    def in_turn(self, every: list[Tags], turn: str, number: int) -> list[Tags]:
        """As they are: first turns are told apart by what they hold."""
        return every

    def is_whole(self, upto: Frozen) -> bool:
        """Whether a sum up to there is all of it."""
        return upto == ENDED or self.ended(dict(upto))

    def numbers(self, kind: Kind, index: np.ndarray) -> dict[str, np.ndarray]:
        """By loop, the number that elements' own indices have."""
        found: dict[str, np.ndarray] = {}
        for loop in reversed(self._strides(kind)):
            found[loop] = _digit(index)
            index = (index - found[loop]) // APART
        return found

    def terms(self, kind: Kind) -> dict[str, tuple[Term, int]]:
        """By loop, what all elements of a kind share of the index: a term."""
        found: dict[str, tuple[Term, int]] = {}
        left = dict(kind.term)
        for loop in reversed(self._strides(kind)):
            own = {s: _digit(c) for s, c in left.items()}
            left = {s: (c - own[s]) // APART for s, c in left.items()}
            found[loop] = {s: c for s, c in own.items() if c}, 0
        return found

    def result(self, loops: Any) -> tuple[Frozen, Any]:
        """The term and the index of the element of the sum with these indices."""
        return self.joined(loops, self.statement.order)

    def joined(self, loops: Any, strides: dict[str, int]) -> tuple[Frozen, Any]:
        """The term and the index of the element with these indices."""
        term: Term = {}
        index: Any = 0
        for loop, stride in strides.items():
            own, number = loops[loop]
            term = terms.plus(term, own, stride)
            index = index + number * stride
        return terms.frozen(term), index


def is_digit(loops: dict[str, tuple[Term, np.ndarray]]) -> bool:
    """Whether numbers are small enough to be read again."""
    return all(
        np.abs(number).max() < _HALF // 2
        and all(abs(c) < _HALF // 2 for c in term.values())
        for term, number in loops.values()
    )


def _digit(value: Any) -> Any:
    """The lowest digit, with a sign."""
    return (value + _HALF) % APART - _HALF
