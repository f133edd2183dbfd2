"""What follows where sizes multiply, and where a number is each thread's own.

A number that the thread decides alone is a name, of which it is known what it is in
each thread.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from math import gcd

import numpy as np

from alcop_mlir.checker.logic import terms
from alcop_mlir.checker.logic.facts import Answers, Facts, alike
from alcop_mlir.checker.logic.terms import Choice, Clause, Product, Quotient, Term

_LARGE = 1 << 60


class ProductFacts(Facts):
    """Decides; `own` are the numbers of each thread by name."""

    def __init__(self, answers: Answers, threads: int):
        super().__init__(answers)
        self.threads = threads
        self._deep: dict[str, set[str]] = {}
        self._ranges: dict[str, tuple[int, int]] = {}  # as far as they were asked
        self._named: dict[bytes, Term] = {}

    # Ranges, and numbers of each thread.

    def span(self, term: Term) -> tuple[int, int]:
        """The range of a term."""
        low = high = term.get("", 0)
        for symbol, factor in term.items():
            if symbol:
                ends = sorted(factor * x for x in self.range(symbol))
                low, high = low + ends[0], high + ends[1]
        for symbol, factor in term.items():
            if not isinstance(symbol, Quotient) or factor >= 0:
                continue
            many, left = divmod(-factor, symbol.divisor)
            whole = {s: c * many for s, c in symbol.dividend.items()}
            if not left and all(term.get(s) == c for s, c in whole.items() if s):
                # So many times the rest of a division.
                rest = terms.minus(terms.minus(term, whole), {symbol: factor})
                ends = self.span(rest)
                low = max(low, ends[0])
                high = min(high, ends[1] + many * (symbol.divisor - 1))
        return low, high

    def limit(self, name: str, low: int, high: int) -> None:
        """A name is in that range too."""
        super().limit(name, low, high)
        if name in self._ranges:
            self._ranges.clear()

    def range(self, symbol: str) -> tuple[int, int]:
        """The range of a symbol."""
        if symbol not in self._ranges:
            self._ranges[symbol] = self._range(symbol)
        return self._ranges[symbol]

    def _range(self, symbol: str) -> tuple[int, int]:
        if isinstance(symbol, Quotient):
            low, high = self.span(symbol.dividend)
            return low // symbol.divisor, high // symbol.divisor
        if isinstance(symbol, Choice):
            (a, b), (c, d) = self.span(symbol.first), self.span(symbol.second)
            return min(a, c), max(b, d)
        low = high = 1
        if not isinstance(symbol, Product):
            return super().range(symbol)
        for factor in symbol.factors:
            ends = [x * y for x in (low, high) for y in self.range(factor)]
            low, high = min(ends), max(ends)
        return low, high

    def of_threads(self, numbers: np.ndarray) -> Term:
        """The numbers of threads as a term; of several cases, where they differ."""
        first = numbers[: self.threads]
        if len(numbers) > self.threads and (numbers == alike(first, numbers)).all():
            numbers = first
        key = numbers.tobytes()
        if key not in self._named:
            self._named[key] = self._of_threads(numbers)
        return self._named[key]

    def _of_threads(self, numbers: np.ndarray) -> Term:
        least = int(numbers.min())
        step = int(np.gcd.reduce(numbers - least))
        if not step:
            return terms.number(least)
        own = (numbers - least) // step
        name = f"@{hashlib.sha256(own.tobytes()).hexdigest()}"
        self.own[name] = own
        self.limit(name, 0, int(own.max()))
        return {name: step, "": least}

    def in_threads(self, term: Term) -> np.ndarray | None:
        """A term as a number in each thread, if that is all it is."""
        if not all(s in self.own for s in term if s):
            return None
        if max(map(abs, self.span(term))) > _LARGE:
            return None
        found = np.full(self.threads, term.get("", 0), np.int64)
        for symbol, factor in term.items():
            if symbol:
                own = self.own[symbol]
                found = alike(found, own) + alike(own, found) * factor
        return found

    def folded(self, term: Term) -> Term:
        """With numbers instead of quotients that are such."""
        for symbol in [s for s in term if isinstance(s, Quotient)]:
            low, high = self.range(symbol)
            numbers = self.in_threads(symbol.dividend)
            value = terms.number(low) if low == high else None
            if value is None and numbers is not None:
                value = self.of_threads(numbers // symbol.divisor)
            if value is None:
                value = self._coarse(symbol) or self._divided(symbol)
            if value is not None:
                factor = term[symbol]
                rest = {s: c for s, c in term.items() if s != symbol}
                term = terms.plus(rest, value, factor)
        return term

    def _coarse(self, symbol: Quotient) -> Term | None:
        """Of `(32 * x + y) / 64` with y below 32: `x / 2`."""
        by = symbol.divisor
        step = max(gcd(c, by) for s, c in symbol.dividend.items() if s)
        fine = {s: c for s, c in symbol.dividend.items() if s and c % step}
        fine[""] = symbol.dividend.get("", 0) % step
        low, high = self.span(fine)
        if not any(fine.values()) or low < 0 or high >= step:
            return None
        return terms.quotient(terms.minus(symbol.dividend, fine), by)

    def _divided(self, symbol: Quotient) -> Term | None:
        """Of `x * m / 2**32`, a division by d that is done with one by 2**32: `x / d`.

        As m * d is 2**32 + e, it is that as long as x * e is below 2**32.
        """
        many = gcd(*symbol.dividend.values())
        by = -(-symbol.divisor // max(many, 1))
        whole = {s: c // max(many, 1) for s, c in symbol.dividend.items()}
        low, high = self.span(whole)
        beyond = many * by - symbol.divisor
        if many < 2 or low < 0 or high * beyond >= symbol.divisor:
            return None
        return terms.quotient(whole, by)

    def is_size(self, symbol: str) -> bool:
        """Whether only parameters decide it, and it is not negative."""
        every = terms.inside({symbol: 1})
        return all(n[0] == "." for n in every) and self.range(symbol)[0] >= 0

    def _never(
        self, query: list[Term], facts: list[Term], clauses: list[Clause]
    ) -> bool:
        if any(self.span(fact)[1] < 0 for fact in query):
            return True
        return super()._never(query, facts, clauses)

    def deep(self, term: Term) -> set[str]:
        """All symbols in a term, and those in what they stand for."""
        found: set[str] = set()
        for symbol in term:
            if symbol not in self._deep:
                parts: Iterable[Term] = ()
                if isinstance(symbol, Quotient):
                    parts = [symbol.dividend]
                elif isinstance(symbol, Product):
                    parts = [dict.fromkeys(symbol.factors, 1)]
                elif isinstance(symbol, Choice):
                    tests = [f for one in symbol.true for f in one]
                    parts = [symbol.first, symbol.second, *tests]
                self._deep[symbol] = {symbol}.union(*map(self.deep, parts)) - {""}
            found |= self._deep[symbol]
        return found
