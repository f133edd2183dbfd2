"""Whole numbers of which some are not known, and what is known of them.

A number that cannot be computed, a size or the number of the block, is *open*: a sum of
atoms, each times an integer, and an offset. Only orders of open numbers are ever asked
for. What was answered is *knowledge*, an interval for each sum of atoms; what it does
not answer is a `Question`, both answers of which have to be followed. An answer holds
in one iteration of the loops around: in the next one the same is asked anew.

Numbers are those of mathematics: counters and sizes are taken not to overflow.
This file does not depend on MLIR.
"""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass, field
from typing import Any

Terms = tuple[
    tuple[int, int], ...
]  # atoms, ascending, each with what it is multiplied by
Tag = tuple[Any, ...]  # indices of the loops around the op that asks
About = tuple[Terms, Tag]
LONG_NAME = "long"
# Of a sum of atoms: it is more than the first, and at most the second.
Knowledge = dict[About, tuple[int | None, int | None]]


@dataclass(frozen=True)
class Open:
    """A number that is not known."""

    terms: Terms
    offset: int = 0


@dataclass(frozen=True)
class Question:
    """Whether a sum of atoms is more than `least`, in one iteration of outer loops."""

    about: About
    least: int


Found = bool | Question


@dataclass
class Atoms:
    """Unknown numbers, told apart by what they are, as what computes them of what."""

    _known: dict[Hashable, int] = field(default_factory=dict)

    def named(self, what: Hashable) -> Open:
        """The number that is `what`; equal for equal ones."""
        atom = self._known.setdefault(what, len(self._known))
        return Open(((atom, 1),))

    def long(self) -> set[Terms]:
        """The numbers that are named as long ones."""
        return {
            ((atom, 1),)
            for what, atom in self._known.items()
            if isinstance(what, tuple) and what[0] == LONG_NAME
        }


def linear(name: str, operands: list[int | Open]) -> int | Open | None:
    """A sum, difference, multiple or choice of open numbers; None of other ops."""
    if name == "arith.select" and isinstance(operands[0], int):
        return operands[1] if operands[0] else operands[2]
    if name in ("arith.index_cast", "arith.index_castui", "arith.extui"):
        return operands[0]
    if name in ("arith.extsi", "arith.trunci"):
        return operands[0]
    if name == "arith.addi":
        return plus(operands[0], operands[1])
    if name == "arith.subi":
        return plus(operands[0], times(operands[1], -1))
    if name == "arith.muli":
        for one, other in (operands, operands[::-1]):
            if isinstance(other, int):
                return times(one, other)
    return None


def plus(one: int | Open, other: int | Open) -> int | Open:
    """The sum of two numbers."""
    if isinstance(one, int):
        one, other = other, one
    if isinstance(one, int):
        assert isinstance(other, int)
        return one + other
    if isinstance(other, int):
        return Open(one.terms, one.offset + other)
    factors = dict(one.terms)
    for atom, factor in other.terms:
        factors[atom] = factors.get(atom, 0) + factor
    terms = tuple(sorted((a, f) for a, f in factors.items() if f))
    offset = one.offset + other.offset
    return Open(terms, offset) if terms else offset


def times(one: int | Open, factor: int) -> int | Open:
    """A multiple of a number."""
    if isinstance(one, int):
        return one * factor
    if not factor:
        return 0
    return Open(_times(one.terms, factor), one.offset * factor)


def is_more(known: Knowledge, one: int | Open, other: int | Open, tag: Tag) -> Found:
    """Whether `one > other`."""
    room = plus(one, times(other, -1))
    if isinstance(room, int):
        return room > 0
    question, is_turned = asked(known, room, tag)
    found = _answer(known, question)
    return question if found is None else found is not is_turned


def asked(known: Knowledge, room: Open, tag: Tag) -> tuple[Question, bool]:
    """The question that tells whether `room > 0`, or, where turned, that it is not.

    Where something is known of the negated atoms, it is about these.
    """
    least = -room.offset
    negated = _times(room.terms, -1)
    if (room.terms, tag) not in known and (negated, tag) in known:
        return Question((negated, tag), -least - 1), True
    return Question((room.terms, tag), least), False


def with_answer(known: Knowledge, question: Question, answer: bool) -> Knowledge:
    """What is known after an answer."""
    more, most = known.get(question.about, (None, None))
    interval = (question.least, most) if answer else (more, question.least)
    return {**known, question.about: interval}


def _answer(known: Knowledge, question: Question) -> bool | None:
    more, most = known.get(question.about, (None, None))
    if more is not None and question.least <= more:
        return True
    if most is not None and question.least >= most:
        return False
    return None


def _times(terms: Terms, factor: int) -> Terms:
    return tuple((atom, old * factor) for atom, old in terms)
