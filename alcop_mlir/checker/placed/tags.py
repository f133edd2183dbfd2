"""What registers and shared memory hold, byte by byte: of which element of which array.

A *tag* says of a few bytes that they are part of an element: a number, which stands for
what is the same in all threads, and an offset, `index * size + byte`.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

from alcop_mlir.checker.form.statement import Statement
from alcop_mlir.checker.logic import terms
from alcop_mlir.checker.logic.terms import Term
from alcop_mlir.checker.machine.held import Frozen, Tags
from alcop_mlir.checker.placed.columns import (
    SET,
    Columns,
    Rule,
    advanced,
    begun,
    in_turn,
)
from alcop_mlir.checker.placed.kinds import (
    Element,
    Fold,
    Kind,
    Result,
    Whole,
    along,
    replaced,
)
from alcop_mlir.checker.placed.origins import Misplaced, Origins, is_turn

UNKNOWN, ZERO, NUMBER = range(3)  # nothing is known; 0; a number of no array
_BETWEEN = "what is between elements"


class Book:
    """All kinds by number; grain: bytes of a granule."""

    def __init__(self, statement: Statement, grain: int):
        self.statement, self.grain = statement, grain
        self.origins = Origins(statement.grid)
        self.turns: dict[str, Term] = {}  # of the loops that one is in, where known
        self.columns = Columns({n: statement.extents[n] for n in self._row_loops})
        self._whole = (("", statement.extents[statement.reduced]),)
        self.kinds: list[Kind | None] = [None, None, None]
        self._numbers: dict[Kind, int] = {}
        self._same: dict[Any, np.ndarray] = {}
        self._digests: dict[int, bytes] = {}
        self._sizes = np.array([-1, -1, -1])

    @property
    def _row_loops(self) -> tuple[str, ...]:
        chain = self.statement.chain
        return (self.statement.reduced,) if chain else self.statement.row_loops

    def is_whole(self, upto: Frozen) -> bool:
        """Whether a sum up to there is all of it."""
        return upto == self._whole

    def is_whole_score(self, upto: Frozen) -> bool:
        """Whether the first sum of a chain up to there is all of it."""
        chain = self.statement.chain
        return chain is not None and upto == (
            ("", self.statement.extents[chain.reduced]),
        )

    def number(self, kind: Kind) -> int:
        """The same for equal kinds."""
        if kind not in self._numbers:
            self._numbers[kind] = len(self.kinds)
            self.kinds.append(kind)
            self._sizes = np.append(self._sizes, kind.size)
        return self._numbers[kind]

    def whole(self, tags: Tags, size: int) -> Whole:
        """Elements of so many bytes, where tags are of such, byte by byte."""
        count = max(size // self.grain, 1)
        number = tags.number.reshape(len(tags.number), -1, count)
        place = tags.place.reshape(number.shape)
        first = number[:, :, 0]
        start = place[:, :, 0]
        is_whole = (self._sizes[first] == size) & (start % max(size, 1) == 0)
        if count > 1:
            follows = start[:, :, None] + np.arange(count) * self.grain
            is_whole &= (number == first[:, :, None]).all(axis=2)
            is_whole &= (place == follows).all(axis=2)
        if is_whole.all():
            return Whole(first, start // max(size, 1))
        is_number = ((number == ZERO) | (number == NUMBER)).all(axis=2)
        numbers = np.where((number == ZERO).all(axis=2), ZERO, NUMBER)
        found = np.where(is_whole, first, np.where(is_number, numbers, UNKNOWN))
        return Whole(found, start // max(size, 1))

    def resized(self, whole: Whole, size: int) -> Whole:
        """Elements of so many bytes instead."""
        number = whole.number
        first = int(number.flat[0]) if number.size else UNKNOWN
        present = [first] if (number == first).all() else np.unique(number).tolist()
        for one in present:
            kind = self.kinds[one]
            if kind is not None and kind.size != size:
                new = self.number(kind._replace(size=size))
                number = np.where(number == one, new, number)
        return Whole(number, whole.at)

    def packed(self, whole: Whole, size: int) -> Tags:
        """Tags of elements, which become those of so many bytes."""
        number = self.resized(whole, size).number
        count = max(size // self.grain, 1)
        place = whole.at[:, :, None] * max(size, 1)
        place = place + np.arange(count) * (self.grain if size else 0)
        place = np.where(number[:, :, None] > NUMBER, place, 0)
        threads = len(number)
        numbers = np.repeat(number, count, axis=1).astype(np.int32)
        return Tags(numbers, place.reshape(threads, -1))

    def loops(self, kind: Kind, index: np.ndarray) -> dict[str, tuple[Term, Any]]:
        """The index of each loop of elements: a term, plus a number."""
        every, numbers = self.terms(kind), self.numbers(kind, index)
        return {n: (term, numbers[n] + more) for n, (term, more) in every.items()}

    def _strides(self, kind: Kind) -> dict[str, int]:
        if isinstance(kind, Element):
            return self.statement.arrays[kind.array].strides
        return self.statement.order_of(is_score(kind))

    def numbers(self, kind: Kind, index: np.ndarray) -> dict[str, np.ndarray]:
        """By loop, the number that elements' own indices have."""
        if isinstance(kind, Element):
            index = index - self.statement.arrays[kind.array].first
        found: dict[str, np.ndarray] = {}
        for loop, stride in self._strides(kind).items():
            found[loop], index = index // stride, index % stride
        if np.any(index):
            raise Misplaced(_BETWEEN)
        return found

    def terms(self, kind: Kind) -> dict[str, tuple[Term, int]]:
        """By loop, what all elements of a kind share of the index: a term and a number.

        What turns add is along the sum. What the block's number adds is known of each
        block, and told apart there: it is an `Origins` of each loop.
        """
        strides, reduced = self._strides(kind), self.statement.reduced
        turns = {s: c for s, c in kind.term if is_turn(s)}
        rest = self.origins.values({s: c for s, c in kind.term if s not in turns})
        found: dict[str, tuple[Term, int]] = {}
        for loop, stride in strides.items():
            found[loop] = self.origins.term(rest // stride), 0
            rest = rest % stride
        if np.any(rest):
            raise Misplaced(_BETWEEN)
        if turns:
            stride = strides.get(reduced, 0)
            if not stride or any(c % stride for c in turns.values()):
                raise Misplaced("turns move along more than the sum")
            same = self.origins.shift(terms.frozen(found[reduced][0]), ())
            if same is None:
                raise Misplaced("turns move along more than the sum")
            found[reduced] = {s: c // stride for s, c in turns.items()}, same
        return found

    def result(self, loops: Mapping[str, tuple[Term, Any]]) -> tuple[Frozen, Any]:
        """The term and the index of the element of the sum with these indices."""
        term, index = self._element(loops, self.statement.order)
        return terms.frozen(self.origins.term(self.origins.values(term))), index

    def score(self, loops: Mapping[str, tuple[Term, Any]]) -> tuple[Frozen, Any]:
        """The same of a chain's first sum, of which turns have columns of their own."""
        term, index = self._element(loops, self.statement.order_of(True))
        turns = {s: c for s, c in term.items() if is_turn(s)}
        rest = {s: c for s, c in term.items() if s not in turns}
        return terms.frozen(turns | self.origins.term(self.origins.values(rest))), index

    def _element(
        self, loops: Mapping[str, tuple[Term, Any]], order: Mapping[str, int]
    ) -> tuple[Term, Any]:
        term: Term = {}
        index: Any = 0
        for loop, stride in order.items():
            own, number = loops.get(loop, ({}, 0))  # of rows: the first column
            term = terms.plus(term, own, stride)
            index = index + number * stride
        return term, index

    def meet(self, one: Frozen, other: Frozen) -> bool:
        """Whether two indices along the sum are the same in these turns."""
        less = terms.replaced(terms.minus(dict(one), dict(other)), self.turns)
        return self.origins.is_same(terms.frozen(less), ())

    def interned(self, array: np.ndarray) -> np.ndarray:
        """One object for equal arrays, so that what is made of them is made once."""
        found = self._same.setdefault((array.shape, array.tobytes()), array)
        self._digests.setdefault(id(found), b"")
        return found

    def digest(self, array: np.ndarray) -> bytes:
        """The same for equal arrays; of one that is interned it is made once."""
        if found := self._digests.get(id(array)):
            return found
        found = hashlib.sha256(array.tobytes()).digest()
        if id(array) in self._digests:
            self._digests[id(array)] = found
        return found

    def renamed(
        self, every: Iterable[Tags], values: Mapping[str, Term], lost: set[str]
    ) -> list[Tags]:
        """Tags with other terms for symbols; unknown where one names a lost one."""
        every = list(every)
        new = np.arange(len(self.kinds), dtype=np.int32)
        more = np.zeros(len(self.kinds), np.int64)
        rules: dict[int, Rule] = {}
        for number in self.present(every):
            kind = self.kinds[number]
            if kind is not None:
                new[number], more[number], rule = self._renamed(kind, values, lost)
                rules.update({} if rule is None else {number: rule})
        if not more.any() and (new == np.arange(len(new))).all():
            return every
        every = [self._with_sets(tags, rules) for tags in every]
        # What shares an array before does so afterwards, so that it is looked at once.
        known: dict[int, tuple[np.ndarray, np.ndarray, bool]] = {}
        for tags in every:
            if id(tags.number) not in known:
                numbers, by = new[tags.number], more[tags.number]
                is_lost = (numbers == UNKNOWN) & (tags.number != UNKNOWN)
                is_changed = bool(by.any() or is_lost.any())
                numbers = self.interned(numbers)
                known[id(tags.number)] = numbers, by, is_changed
        return [_moved(tags, *known[id(tags.number)]) for tags in every]

    def _with_sets(self, tags: Tags, rules: Mapping[int, Rule]) -> Tags:
        """With other sets of columns, by the number of their kind."""
        mine = [one for one in rules if (tags.number == one).any()]
        number, place = (one.copy() if mine else one for one in tags)
        for one in mine:
            kind, where = self.kinds[one], tags.number == one
            each = max(kind.size, 1) if kind is not None else 1
            sets = place[where] // each >> SET
            found = self.columns.mapped(sets, rules[one])
            place[where] += (found - sets << SET) * each
            number[where] = np.where(found < 0, UNKNOWN, one)
            place[number == UNKNOWN] = 0
        return Tags(number, place)

    def in_turn(self, every: list[Tags], turn: str, number: int) -> list[Tags]:
        """Tags of no turn as of that turn, which is a number, so that they are those of
        later turns: of operands' elements, as others of them move, and of each sum.
        """
        kinds = {n: self.kinds[n] for n in self.present(every)}
        steps = self._steps(kinds.values(), turn)
        new = np.arange(len(self.kinds), dtype=np.int32)
        more = np.zeros(len(self.kinds), np.int64)
        rules: dict[int, Rule] = {}
        by = steps.get("", 0)
        for one, kind in kinds.items():
            if isinstance(kind, Element) and kind.array in steps:
                step, term = steps[kind.array], dict(kind.term)
                if turn not in term:
                    kind = kind._replace(term=terms.frozen({**term, turn: step}))
                    new[one] = self.number(kind)
                    more[one] = -step * number * max(kind.size, 1)
            elif kind is not None and by and not is_score(kind):
                found = replaced(kind, lambda term: in_turn(term, turn, by, number))
                if isinstance(kind, Fold) and not kind.start:
                    found = found._replace(start=((turn, by),))
                    rules[one] = begun(by, number)
                new[one] = self.number(found)
        every = [self._with_sets(tags, rules) for tags in every]
        return [Tags(new[t.number], t.place + more[t.number]) for t in every]

    def present(self, every: Iterable[Tags]) -> list[int]:
        """The numbers in tags."""
        is_there = np.zeros(len(self.kinds), bool)
        for number in {id(tags.number): tags.number for tags in every}.values():
            is_there[number] = True
        return np.flatnonzero(is_there).tolist()

    def _steps(self, kinds: Iterable[Kind | None], turn: str) -> dict[str, int]:
        """By operand what a turn adds to the index of elements; "": along the sum."""
        found: dict[str, set[int]] = {}
        for kind in kinds:
            if isinstance(kind, Element) and turn in dict(kind.term):
                found.setdefault(kind.array, set()).add(dict(kind.term)[turn])
        arrays, reduced = self.statement.arrays, self.statement.reduced
        chain = self.statement.chain
        operands = self.statement.lhs, self.statement.rhs, chain and chain.rhs
        steps = {n: each.pop() for n, each in found.items() if len(each) == 1}
        steps = {n: by for n, by in steps.items() if n in operands}
        along = {by // arrays[n].strides[reduced] for n, by in steps.items()}
        return {**steps, "": along.pop()} if len(along) == 1 else steps

    def _renamed(
        self, kind: Kind, values: Mapping[str, Term], lost: set[str]
    ) -> tuple[int, int, Rule | None]:
        is_part = isinstance(kind, Result) and kind.first
        if is_part or terms.inside(*map(dict, [kind.term, *along(kind)])) & lost:
            return UNKNOWN, 0, None
        term = terms.replaced(dict(kind.term), values)
        more = term.pop("", 0) * max(kind.size, 1)
        kind = kind._replace(term=terms.frozen(term))

        def change(one: Frozen) -> Frozen:
            return terms.frozen(terms.replaced(dict(one), values))

        if isinstance(kind, Fold) and kind.start:
            kind, rule = advanced(kind, change)
            return self.number(kind), more, rule
        return self.number(replaced(kind, change)), more, None


def _moved(tags: Tags, number: np.ndarray, by: np.ndarray, is_changed: bool) -> Tags:
    """Tags with other numbers, at places that are more by so much; none if unknown."""
    if not is_changed:
        return Tags(number, tags.place)
    return Tags(number, np.where(number == UNKNOWN, 0, tags.place + by))


def is_score(kind: Kind) -> bool:
    """Whether it is of the first contraction of a chain."""
    return isinstance(kind, Result) and kind.is_score


def nothing(like: np.ndarray) -> Tags:
    """Of bytes of which nothing is known, as many as there are others."""
    return Tags(np.full(like.shape, UNKNOWN, np.int32), np.zeros(like.shape, np.int64))


def chosen(mask: np.ndarray, one: Tags, other: Tags) -> Tags:
    """`one` in the threads of the mask, else `other`."""
    column = mask[:, None]
    number = np.where(column, one.number, other.number)
    return Tags(number, np.where(column, one.place, other.place))


def is_same(one: Tags, other: Tags) -> bool:
    """Whether all tags are the same."""
    if one is other:
        return True
    return all(a is b or np.array_equal(a, b) for a, b in zip(one, other, strict=True))
