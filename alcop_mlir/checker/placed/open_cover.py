"""That blocks together store each output once, where nobody knows how many there are.

On each way a block stores a box of the output: so many indices of each loop, from a
multiple of that on. All multiples are inside of the output, there are as many blocks as
such multiples, and no two blocks have the same ones, as the number of a block can be
computed of its multiples: so each box has one block. Of `8 * g + r` where r is from 0
to 7 both are known; of quotient and rest what was divided, where what it was divided by
is: so it is in whatever order blocks take tiles.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from alcop_mlir.checker.bounds.numbers_of_thread import Way
from alcop_mlir.checker.bounds.thread import Thread
from alcop_mlir.checker.logic import terms
from alcop_mlir.checker.logic.terms import Choice, Division, Product, Quotient, Term
from alcop_mlir.checker.machine.held import Frozen
from alcop_mlir.checker.placed.cover import Stored
from alcop_mlir.checker.placed.kinds import Result
from alcop_mlir.checker.placed.open_accesses import Accesses
from alcop_mlir.checker.placed.open_book import OpenBook
from alcop_mlir.checker.placed.origins import Misplaced

AXES = ("%ctaid.x", "%ctaid.y", "%ctaid.z")
_Box = tuple[tuple[str, Frozen, int], ...]  # by loop, which multiple of how many


class OpenCover:
    """What ways have stored at their ends."""

    def __init__(self, book: OpenBook, accesses: Accesses):
        self.book, self.accesses = book, accesses
        self._boxes: dict[str, set[_Box]] = {n: set() for n in book.statement.outputs}

    def add(self, stored: Stored, blocks: np.ndarray) -> None:
        """A way ends, and has stored that, the same in each case."""
        for array in self._boxes:
            mine = [(term, index) for name, term, index in stored if name == array]
            for case in range(len(mine[0][1]) if mine else 1):
                each = [(term, index[case]) for term, index in mine]
                self._boxes[array].add(self._box(array, each))

    def _box(self, array: str, mine: list[tuple[Frozen, np.ndarray]]) -> _Box:
        if len({term for term, _ in mine}) != 1:
            raise Misplaced(f"elements of {array} that are not stored")
        kind = Result(mine[0][0], 1, (), frozenset())
        index = np.concatenate([i.ravel() for _, i in mine])
        found, volume, place = [], 1, np.zeros(len(index), np.int64)
        for loop, (own, numbers) in self.book.loops(kind, index).items():
            count = int(numbers.max()) + 1
            if int(numbers.min()) or any(c % count for c in own.values()):
                raise Misplaced(f"elements of {array} that are not stored")
            multiple = {s: c // count for s, c in own.items()}
            found.append((loop, terms.frozen(multiple), count))
            volume, place = volume * count, place * count + numbers
        if volume > len(index) or not np.bincount(place, minlength=volume).all():
            raise Misplaced(f"elements of {array} that are not stored")
        return tuple(sorted(found))

    def check(self) -> None:
        """Raises Misplaced where an element may not be stored, or by two blocks."""
        for array, boxes in self._boxes.items():
            if len(boxes) != 1:
                raise Misplaced("ways store other elements")
            (box,) = boxes
            self._check(array, box)

    def _check(self, array: str, box: _Box) -> None:
        thread = self.accesses.thread
        # At the end of the first block no block has gone any way yet.
        start = self.accesses.ways.ends[0]
        numbers = Numbers(thread, start, [dict(m) for _, m, _ in box if m])
        places = [terms.number(1)]
        for loop, multiple, count in box:
            extent = self.accesses.extent(loop)
            rounded = terms.plus(extent, terms.number(count - 1))
            many = terms.quotient(rounded, count)
            last = terms.plus(many, terms.number(-1))
            if multiple and not numbers.is_within(dict(multiple), last):
                raise Misplaced(f"which elements of {array} a block stores")
            if not multiple and not numbers.is_within(extent, terms.number(count)):
                raise Misplaced(f"elements of {array} that are not stored")
            # Of the one place of a loop that needs one at most there are blocks in any
            # case, or as many as places: with none there are no elements either.
            more = [terms.product(one, many) for one in places]
            places = more if multiple else [*places, *more]
        blocks = terms.number(1)
        for axis in thread.given.grid:
            blocks = terms.product(blocks, thread.blocks(axis))
        if terms.frozen(blocks) not in map(terms.frozen, places):
            raise Misplaced(f"as many blocks as {array} has tiles")
        if not numbers.tell_block():
            raise Misplaced(f"elements of {array} that are stored by two blocks")


class Numbers:
    """What of the numbers of a block is known where terms are; `way` has what holds in
    all blocks.
    """

    def __init__(self, thread: Thread, way: Way, given: Iterable[Term]):
        self.thread = thread
        self.facts = [*way.facts.values()], [*way.clauses.values()]
        self.terms = [*given]
        self.known: set[str] = set()
        self._divided: set[str] = set()

    def tell_block(self) -> bool:
        """Whether they tell a block from all others."""
        while self._learn():
            pass
        every = (self.thread.number_of_block(axis).term for axis in AXES)
        return all(self._is_known(s) for term in every for s in term)

    def is_within(self, term: Term, most: Term) -> bool:
        """Whether a term is from 0 to the most in all blocks."""
        above = terms.plus(terms.minus(term, most), terms.number(-1))
        outside = [[terms.opposite(term)], [above]]
        return self.thread.facts.excludes(outside, *self.facts)

    def _learn(self) -> bool:
        """Whether one more is known now."""
        for term in self.terms:
            left = {s: c for s, c in term.items() if not self._is_known(s)}
            found = self._first(left)
            if found:
                self.known.add(found)
                return True
        for symbol in self.known - self._divided:
            if isinstance(symbol, Division) and self._has_both(symbol):
                self._divided.add(symbol)
                self.terms.append(symbol.dividend)
                return True
        return False

    def _first(self, term: Term) -> str:
        """What can be told of symbols that are known together; none is empty."""
        symbol = max(term, key=lambda s: term[s], default="")
        rest = {s: c for s, c in term.items() if s != symbol}
        if rest and not self.is_within(rest, terms.number(term[symbol] - 1)):
            return ""
        return symbol

    def _has_both(self, symbol: Division) -> bool:
        if not all(map(self._is_known, symbol.by)):
            return False
        is_one = self.thread.facts.span(symbol.by)[1] <= 1
        quotient, rest = terms.division(symbol.dividend, symbol.by)
        return self._is_known(quotient) and (is_one or self._is_known(rest))

    def _is_known(self, symbol: str) -> bool:
        if symbol in self.known or not symbol:
            return True
        if isinstance(symbol, Product):
            return all(map(self._is_known, symbol.factors))
        if isinstance(symbol, Quotient):
            return all(map(self._is_known, symbol.dividend))
        if isinstance(symbol, Choice):
            tests = (f for one in (*symbol.true, *symbol.false) for f in one)
            every = (symbol.first, symbol.second, *tests)
            return all(self._is_known(s) for term in every for s in term)
        return symbol[0] == "."
