"""Refutation where symbols are multiplied: row by row, what one size multiplies.

`2 * (row * lda + col) + 16 - 2 * M * lda > 0` is `lda * L + rest > 0` with
L = 2 * row - 2 * M. Where L is surely at most -2, what its coefficients have in common,
all of it is at most `rest - 2 * lda`: that multiplies no size, and is refuted by facts
on columns, as L by those on rows. Where sizes are multiplied, as for batches, the
largest of these products of sizes comes first.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from math import gcd

import numpy as np

from alcop_mlir.certificate.bounds.ranges import propagated
from alcop_mlir.certificate.bounds.terms import ProductSymbols
from alcop_mlir.certificate.linear import Clause, Linear, at_least, constant
from alcop_mlir.certificate.refutation import Refuter, eliminated

_Facts = tuple[Linear, ...]
# What is near is tried first, as all costs more; 0 for facts of the query's symbols.
_ROUNDS = (0, 2, 3, None)


class ProductRefuter(Refuter):
    """Says which conjunctions of facts with products of sizes have no solution."""

    symbols: ProductSymbols
    splits = 12

    def __init__(self, symbols: ProductSymbols):
        super().__init__(symbols)
        self._links: dict[Linear, set[str]] = {}

    def links(self, fact: Linear) -> Collection[str]:
        """The symbols by which a fact is near to others: those inside of others too."""
        if fact not in self._links:
            self._links[fact] = self.symbols.symbols(fact)
        return self._links[fact]

    def near(
        self, facts: list[Linear], clauses: list[Clause], query: _Facts
    ) -> tuple[list[Linear], list[Clause]]:
        """What shares symbols with the query, in so many rounds."""
        if self.rounds != 0:
            return super().near(facts, clauses, query)
        names = {s for f in query for s in f.terms}
        return [*query, *(f for f in facts if f.terms.keys() <= names)], []

    def is_empty(self, facts: list[Linear]) -> bool:
        """Whether facts have no solution, without clauses."""
        ranges = propagated(facts)
        return ranges is None or eliminated([*facts, *ranges])

    def clashes(self, facts: list[Linear]) -> bool:
        """The same, by ranges alone: asked for each alternative."""
        return propagated(facts) is None

    def refuted(
        self, facts: Iterable[Linear], clauses: Iterable[Clause], query: Clause
    ) -> bool:
        """Whether `query` contradicts the facts and clauses, which have a solution."""
        facts, clauses = list(facts), list(clauses)
        return all(
            self._is_never(facts, clauses, one)
            or self._is_never_in_threads(facts, clauses, one)
            for one in query
        )

    def contradicts(
        self, query: _Facts, facts: Iterable[Linear], clauses: Iterable[Clause]
    ) -> bool:
        """Whether what is near to the query contradicts it."""
        return self._is_never(list(facts), list(clauses), query, _ROUNDS[:3])

    def follows(
        self, fact: Linear, facts: Iterable[Linear], clauses: Iterable[Clause]
    ) -> bool:
        """Whether a fact follows from what is near to it."""
        return self.contradicts(at_least(fact).false[0], facts, clauses)

    def _is_never(
        self,
        facts: list[Linear],
        clauses: list[Clause],
        query: _Facts,
        rounds: Sequence[int | None] = _ROUNDS,
    ) -> bool:
        if any(self.symbols.range_of_term(f)[1] < 0 for f in query):
            return True
        more = self._of_threads(facts, query)
        if more is None:
            return True
        if more:
            query = (*query, *more)
        for number, fact in enumerate(query):
            for size in self._sizes(fact):
                others = query[:number] + query[number + 1 :]
                if self._is_split(facts, clauses, others, fact, size, rounds):
                    return True
        for self.rounds in rounds:
            if super().refuted(facts, clauses, (query,)):
                return True
        return False

    def _is_never_in_threads(
        self, facts: list[Linear], clauses: list[Clause], query: _Facts
    ) -> bool:
        """Whether the query has no solution in any thread, each by itself."""
        symbols = self.symbols
        self.rounds = None
        found, choices = self.near(facts, clauses, query)
        names = sorted(
            {n for f in found for n in symbols.symbols(f)} & symbols.atoms.keys()
        )
        if not names:
            return False
        lanes = np.stack([symbols.atoms[n] for n in names], axis=1)
        rows = np.unique(lanes[self._where((*query, *facts))], axis=0)
        for row in rows.tolist():
            values = {n: constant(x) for n, x in zip(names, row, strict=True)}
            known = [symbols.replaced(f, values) for f in found]
            kept = [symbols.replaced_clause(c, values) for c in choices]
            if not self._split(known, kept, self.splits):
                return False
        return True

    def _where(self, facts: Iterable[Linear]) -> np.ndarray:
        """The threads in which those facts hold that say something of threads alone."""
        where = np.ones(self.symbols.threads, bool)
        for fact in facts:
            numbers = self.symbols.in_threads(fact)
            if numbers is not None:
                where &= numbers >= 0
        return where

    def _of_threads(self, facts: list[Linear], query: _Facts) -> _Facts | None:
        """What the query says of the threads in which facts may hold; None where there
        is none.
        """
        symbols = self.symbols
        where = self._where((*query, *facts))
        if where.all():
            return ()
        if not where.any():
            return None
        found = []
        for fact in query:
            own = {s: c for s, c in fact.terms.items() if s in symbols.atoms}
            numbers = symbols.in_threads(Linear(own))
            if numbers is not None and 0 < len(own) < len(fact.terms):
                most = int(numbers[where].max())
                found.append(fact - Linear(own) + most)
        return tuple(one for one in found if one not in query)

    def _is_split(
        self,
        facts: list[Linear],
        clauses: list[Clause],
        others: _Facts,
        fact: Linear,
        size: str,
        rounds: Sequence[int | None],
    ) -> bool:
        """Whether `size * L + rest >= 0` never holds beside the others."""
        times, rest = self.symbols.split(fact, size)
        step = gcd(times.constant, *times.terms.values())
        for most in (-step, 0):
            above = times - most - 1
            if self._is_never(facts, clauses, (*others, above), rounds):
                left = rest + Linear({size: most})
                return self._is_never(facts, clauses, (*others, left), rounds)
        return False

    def _sizes(self, fact: Linear) -> list[str]:
        """What multiplies what is no size, the most first."""
        found: dict[tuple[str, ...], None] = {}
        for name in fact.terms:
            factors = self.symbols.factors(name)
            sizes = tuple(one for one in factors if self.symbols.is_size(one))
            if 0 < len(sizes) < len(factors):
                found[sizes] = None
        ordered = sorted(found, key=lambda sizes: (-len(sizes), sizes))
        return [self.symbols.multiplied(sizes) for sizes in ordered]
