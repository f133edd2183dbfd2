"""Whether the number of a block can be computed from other numbers of it.

Of `8 * g + r` where r is from 0 to 7 both are known; of quotient and rest what was
divided, where what it was divided by is: so from row and column of a tile the number of
the block follows, in whatever order blocks take tiles.
"""

from __future__ import annotations

from collections.abc import Iterable

from alcop_mlir.checker.bounds.numbers_of_thread import Way
from alcop_mlir.checker.bounds.thread import Thread
from alcop_mlir.checker.logic import terms
from alcop_mlir.checker.logic.terms import Choice, Division, Product, Quotient, Term

AXES = ("%ctaid.x", "%ctaid.y", "%ctaid.z")


class Numbers:
    """What is known where terms are; `way` has what holds in all blocks."""

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
