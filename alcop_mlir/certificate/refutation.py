"""Which conjunctions of linear facts have no solution in integers.

By the elimination of Fourier and Motzkin, with constants rounded to integers
(Schrijver, "Theory of Linear and Integer Programming", 12.2 and 23): what is refuted
has no solution. What is not refuted may still have none.
"""

from __future__ import annotations

from collections.abc import Iterable
from math import gcd

from alcop_mlir.certificate.linear import (
    Clause,
    Linear,
    Symbols,
    constant,
    tightened,
)

MOST_FACTS = 160  # of one elimination: beyond it nothing is said
MOST_SPLITS = 6  # clauses, one inside the other


class Refuter:
    """Says which conjunctions have no solution; remembers what it was asked."""

    def __init__(self, symbols: Symbols):
        self.symbols = symbols
        self.asked = 0
        self._known: dict[frozenset[str], bool] = {}

    def refuted(
        self, facts: Iterable[Linear], clauses: Iterable[Clause], query: Clause
    ) -> bool:
        """Whether `query` contradicts the facts and clauses, which have a solution."""
        return all(
            self._refuted([*facts], [*clauses], alternative) for alternative in query
        )

    def _refuted(
        self, facts: list[Linear], clauses: list[Clause], query: tuple[Linear, ...]
    ) -> bool:
        if any(not f.terms and f.constant < 0 for f in query):
            return True
        facts, clauses = self._near(facts, clauses, query)
        key = frozenset([*map(str, facts), *(f"|{c}" for c in map(_text, clauses))])
        if key not in self._known:
            self.asked += 1
            self._known[key] = self._split(facts, clauses, MOST_SPLITS)
        return self._known[key]

    def _split(self, facts: list[Linear], clauses: list[Clause], depth: int) -> bool:
        """Whether facts and clauses have no solution, each alternative tried."""
        if _eliminated(facts):
            return True
        if not clauses or not depth:
            return False
        first, *rest = clauses
        # An alternative that the facts alone refute costs nothing: those clauses first.
        for clause in clauses:
            open_ones = [one for one in clause if not _eliminated([*facts, *one])]
            if not open_ones:
                return True
            if len(open_ones) == 1:
                left = [c for c in clauses if c is not clause]
                return self._split([*facts, *open_ones[0]], left, depth)
        return all(self._split([*facts, *one], rest, depth - 1) for one in first)

    def _near(
        self, facts: list[Linear], clauses: list[Clause], query: tuple[Linear, ...]
    ) -> tuple[list[Linear], list[Clause]]:
        """What shares symbols with the query, with the definitions of these: choices
        first, as these say what the query is about.
        """
        found, clauses_found, chosen = list(query), [], []
        left_facts, left_clauses = list(facts), list(clauses)
        known: set[str] = set()
        pending = {s for f in query for s in f.terms}
        while pending:
            known |= pending
            for symbol in pending:
                more, choices = self.symbols.definition(symbol)
                found += more
                chosen += choices
            found += [f for f in left_facts if not known.isdisjoint(f.terms)]
            left_facts = [f for f in left_facts if known.isdisjoint(f.terms)]
            near = [c for c in left_clauses if known & _names(c)]
            left_clauses = [c for c in left_clauses if not known & _names(c)]
            clauses_found += near
            names = {s for f in found for s in f.terms}
            pending = names.union(*map(_names, [*chosen, *clauses_found])) - known
        return found, list(dict.fromkeys([*chosen, *clauses_found]))


# Facts by their direction: what is added to the constant.
Rows = dict[frozenset[tuple[str, int]], Linear]


def _names(clause: Clause) -> set[str]:
    return {s for one in clause for f in one for s in f.terms}


def _text(clause: Clause) -> str:
    return " | ".join(" & ".join(map(str, one)) for one in clause)


def _eliminated(facts: Iterable[Linear]) -> bool:
    """Whether the facts have no solution, by eliminating one symbol after the other."""
    rows = _least(facts)
    while rows:
        found = _equality(rows)
        if found is not None:
            rows = _substituted(rows, *found)
        else:
            rows = _without(rows, _cheapest(rows))
        if rows is not None and len(rows) > MOST_FACTS:
            return False
    return rows is None


def _least(facts: Iterable[Linear]) -> Rows | None:
    """Each direction once, with the strictest constant; None for a contradiction."""
    rows: Rows = {}
    for fact in facts:
        fact = tightened(fact)
        if not fact.terms:
            if fact.constant < 0:
                return None
            continue
        key = frozenset(fact.terms.items())
        old = rows.get(key)
        if old is None or fact.constant < old.constant:
            rows[key] = fact
    return rows


def _equality(rows: Rows) -> tuple[str, Linear] | None:
    """A symbol that two of the facts say, and its value; its coefficient there is 1, so
    that no other solution comes in.
    """
    for key, fact in rows.items():
        other = rows.get(frozenset((s, -c) for s, c in key))
        if other is None or other.constant != -fact.constant:
            continue
        for symbol, factor in fact.terms.items():
            if factor in (1, -1):
                return symbol, Linear({symbol: 1}) - fact * factor
    return None


def _substituted(rows: Rows, symbol: str, value: Linear) -> Rows | None:
    change = value - Linear({symbol: 1})
    return _least(
        row + change * row.terms[symbol] if symbol in row.terms else row
        for row in rows.values()
    )


def _cheapest(rows: Rows) -> str:
    """The symbol whose elimination leaves the fewest facts."""
    signs: dict[str, list[int]] = {}
    for fact in rows.values():
        for symbol, factor in fact.terms.items():
            count = signs.setdefault(symbol, [0, 0])
            count[factor > 0] += 1
    return min(signs, key=lambda s: (signs[s][0] * signs[s][1] - sum(signs[s]), s))


def _without(rows: Rows, symbol: str) -> Rows | None:
    """The facts that follow for the other symbols."""
    lower = [f for f in rows.values() if f.terms.get(symbol, 0) > 0]
    upper = [f for f in rows.values() if f.terms.get(symbol, 0) < 0]
    rest = [f for f in rows.values() if symbol not in f.terms]
    for low in lower:
        for high in upper:
            a, b = low.terms[symbol], -high.terms[symbol]
            common = gcd(a, b)
            rest.append(low * (b // common) + high * (a // common))
    return _least(rest)


def projected(facts: Iterable[Linear], symbol: str, most: int = 8) -> list[Linear]:
    """Facts that follow without the symbol; those that name it are dropped at need."""
    rows = _least(facts)
    if rows is None:
        return [constant(-1)]
    lower = sum(f.terms.get(symbol, 0) > 0 for f in rows.values())
    upper = sum(f.terms.get(symbol, 0) < 0 for f in rows.values())
    if lower * upper > most:
        return [f for f in rows.values() if symbol not in f.terms]
    left = _without(rows, symbol)
    return [constant(-1)] if left is None else list(left.values())
