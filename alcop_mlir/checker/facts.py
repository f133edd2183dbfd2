"""What follows from facts: symbols are eliminated, constants rounded to integers."""

from __future__ import annotations

from collections.abc import Iterable
from math import gcd
from typing import Any

from alcop_mlir.checker import terms
from alcop_mlir.checker.terms import Choice, Clause, Quotient, Term, inside, negative

_MOST_ROWS = 160


class Facts:
    """Decides, with the ranges of names; splits: choices, one inside the other."""

    splits = 6

    def __init__(self) -> None:
        self.ranges: dict[str, tuple[int, int]] = {}
        self._known: dict[Any, bool] = {}

    def limit(self, name: str, low: int, high: int) -> None:
        """A name is in that range too."""
        known = self.ranges.get(name, (low, high))
        self.ranges[name] = min(low, known[0]), max(high, known[1])
        if self.ranges[name] != known:
            self._known.clear()

    def contradict(self, facts: Iterable[Term], clauses: Iterable[Clause]) -> bool:
        """Whether they surely have no solution."""
        rows, left = list(facts), list(clauses)
        key = (
            frozenset(map(terms.frozen, rows)),
            frozenset(map(terms.frozen_clause, left)),
        )
        if key not in self._known:
            met = {""}
            while fresh := {s for f in (*rows, *_in(left)) for s in f} - met:
                met |= fresh
                for symbol in sorted(fresh):
                    rows += self.limits(symbol)
                    if isinstance(symbol, Choice):
                        left.append(sides_of(symbol))
            self._known[key] = self._contradict(rows, left, self.splits)
        return self._known[key]

    def empty(self, facts: list[Term]) -> bool:
        """Whether facts alone have no solution."""
        return empty(facts)

    def clash(self, facts: list[Term], more: list[Term]) -> bool:
        """Whether facts of an alternative surely contradict others."""
        return self.empty([*facts, *more])

    def _contradict(self, facts: list[Term], clauses: list[Clause], depth: int) -> bool:
        if self.empty(facts):
            return True
        if not clauses or not depth:
            return False
        for place, clause in enumerate(clauses):
            left = [one for one in clause if not self.clash(facts, one)]
            if len(left) < 2:
                others = clauses[:place] + clauses[place + 1 :]
                return not left or self._contradict([*facts, *left[0]], others, depth)
        rest, less = clauses[1:], depth - 1
        return all(self._contradict([*facts, *o], rest, less) for o in clauses[0])

    def follows(self, fact: Term, facts: list[Term], clauses: list[Clause]) -> bool:
        """Whether the fact holds wherever those do."""
        return self.excludes([[terms.opposite(fact)]], facts, clauses)

    def excludes(
        self, clause: Clause, facts: list[Term], clauses: list[Clause]
    ) -> bool:
        """Whether no alternative of the clause can hold there."""
        for one in clause:
            if any(terms.is_constant(f) and f.get("", 0) < 0 for f in one):
                continue
            near, around = _near(one, facts, clauses)
            if not self.contradict([*near, *one], around):
                return False
        return True

    def limits(self, symbol: str) -> list[Term]:
        """The range of a name; how far a quotient is from what is divided."""
        if isinstance(symbol, Quotient):
            rest = terms.plus(symbol.dividend, {symbol: 1}, -symbol.divisor)
            return [rest, terms.minus(terms.number(symbol.divisor - 1), rest)]
        if symbol not in self.ranges:
            return []
        low, high = self.ranges[symbol]
        return [{symbol: 1, "": -low}, {symbol: -1, "": high}]


def sides_of(choice: Choice) -> Clause:
    """What a choice is, by which side holds."""
    found: Clause = []
    for side, value in ((choice.true, choice.first), (choice.false, choice.second)):
        same = terms.minus({choice: 1}, value)
        found += [[*one, same, negative(same)] for one in side]
    return found


def _in(clauses: Iterable[Clause]) -> list[Term]:
    return [fact for clause in clauses for one in clause for fact in one]


def _near(
    query: list[Term], facts: list[Term], clauses: list[Clause]
) -> tuple[list[Term], list[Clause]]:
    """The facts that share names with the query, directly or over others."""
    names = inside(*query)
    rows = [(inside(f), f) for f in facts]
    sides = [(inside(*_in([c])), c) for c in clauses]
    grows = True
    while grows:
        grows = False
        for met, _ in (*rows, *sides):
            if met & names and not met <= names:
                names |= met
                grows = True
    return [f for met, f in rows if met & names], [c for met, c in sides if met & names]


def empty(facts: list[Term]) -> bool:
    """No solution: by values for symbols where two facts say one, else by adding each
    lower bound of a symbol to each upper one.
    """
    while True:
        rows: dict[tuple[tuple[str, int], ...], int] = {}  # direction: constant
        equal: Term = {}
        for fact in facts:
            by = gcd(*(c for s, c in fact.items() if s))
            constant = fact.get("", 0)
            if not by and constant < 0:
                return True
            key = tuple(sorted((s, c // by) for s, c in fact.items() if s and c))
            if not by or rows.get(key, constant // by) < constant // by:
                continue
            rows[key] = constant // by
            other = rows.get(tuple((s, -c) for s, c in key))
            if other is None or other + rows[key] > 0:
                continue
            if other + rows[key] < 0:
                return True
            if not equal and any(abs(c) == 1 for _, c in key):
                equal = {**dict(key), "": rows[key]}
        if not rows or len(rows) > _MOST_ROWS:
            return False
        facts = [{**dict(key), "": constant} for key, constant in rows.items()]
        simple = [s for s, c in equal.items() if s and abs(c) == 1]
        facts = _solved(facts, equal, simple[0]) if simple else _combined(facts)


def _solved(facts: list[Term], equal: Term, symbol: str) -> list[Term]:
    """Without a symbol that `equal`, which is 0, gives the value of."""
    sign = equal[symbol]
    return [
        terms.plus(fact, equal, -sign * fact[symbol]) if symbol in fact else fact
        for fact in facts
    ]


def _combined(facts: list[Term]) -> list[Term]:
    """Without the symbol that costs least."""
    counts: dict[str, list[int]] = {}
    for fact in facts:
        for symbol, factor in fact.items():
            counts.setdefault(symbol, [0, 0])[factor > 0] += 1
    del counts[""]
    costs = {s: (a * b - a - b, s) for s, (a, b) in counts.items()}
    symbol = min(costs, key=lambda s: costs[s])
    found = [f for f in facts if symbol not in f]
    lows = [f for f in facts if f.get(symbol, 0) > 0]
    highs = [f for f in facts if f.get(symbol, 0) < 0]
    for low in lows:
        for high in highs:
            a, b = low[symbol], -high[symbol]
            found.append(terms.plus({s: b * c for s, c in low.items()}, high, a))
    return found
