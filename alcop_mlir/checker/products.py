"""What follows where sizes multiply, and where a number is each thread's own.

A number that the thread decides alone is a name, of which it is known what it is in
each thread. What a size multiplies is looked at apart from the rest: `size * L + rest`
is below `rest - size * c` where L is below -c.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Sequence
from math import gcd

import numpy as np

from alcop_mlir.checker import terms
from alcop_mlir.checker.facts import Facts, empty, sides_of
from alcop_mlir.checker.terms import Choice, Clause, Product, Quotient, Term

_LARGE = 1 << 60
_Bounds = dict[str, int]
_ALL = 99
_ROUNDS = (2, 3, _ALL)  # over how many facts one is near to another


class ProductFacts(Facts):
    """Decides; `own` are the numbers of each thread by name."""

    splits = 12

    def __init__(self, threads: int):
        super().__init__()
        self.threads = threads
        self.own: dict[str, np.ndarray] = {}
        self._deep: dict[str, set[str]] = {}
        self._last: tuple[list[Term], _Bounds, _Bounds] = [], {}, {}

    # Ranges, and numbers of each thread.

    def span(self, term: Term) -> tuple[int, int]:
        """The range of a term."""
        low = high = term.get("", 0)
        for symbol, factor in term.items():
            if symbol:
                ends = sorted(factor * x for x in self.range(symbol))
                low, high = low + ends[0], high + ends[1]
        return low, high

    def range(self, symbol: str) -> tuple[int, int]:
        """The range of a symbol."""
        if isinstance(symbol, Quotient):
            low, high = self.span(symbol.dividend)
            return low // symbol.divisor, high // symbol.divisor
        if isinstance(symbol, Choice):
            (a, b), (c, d) = self.span(symbol.first), self.span(symbol.second)
            return min(a, c), max(b, d)
        low = high = 1
        if not isinstance(symbol, Product):
            return self.ranges[symbol]
        for factor in symbol.factors:
            ends = [x * y for x in (low, high) for y in self.range(factor)]
            low, high = min(ends), max(ends)
        return low, high

    def of_threads(self, numbers: np.ndarray) -> Term:
        """The numbers of threads as a term."""
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
                found += self.own[symbol] * factor
        return found

    def folded(self, term: Term) -> Term:
        """With numbers instead of quotients that are such."""
        for symbol in [s for s in term if isinstance(s, Quotient)]:
            low, high = self.range(symbol)
            numbers = self.in_threads(symbol.dividend)
            value = terms.number(low) if low == high else None
            if value is None and numbers is not None:
                value = self.of_threads(numbers // symbol.divisor)
            if value is not None:
                factor = term[symbol]
                rest = {s: c for s, c in term.items() if s != symbol}
                term = terms.plus(rest, value, factor)
        return term

    def is_size(self, symbol: str) -> bool:
        """Whether only parameters decide it, and it is not negative."""
        every = terms.inside({symbol: 1})
        return all(n[0] == "." for n in every) and self.range(symbol)[0] >= 0

    # What facts say.

    def limits(self, symbol: str) -> list[Term]:
        """The range of a `Product`, for what one part of it may be."""
        if not isinstance(symbol, Product):
            return super().limits(symbol)
        found = []
        for place, factor in enumerate(symbol.factors):
            rest = symbol.factors[:place] + symbol.factors[place + 1 :]
            if all(self.range(one)[0] >= 0 for one in rest):
                low, high = self.range(factor)
                other = terms.times(*rest)
                found.append(terms.plus({symbol: 1}, {other: -low}))
                found.append(terms.plus({symbol: -1}, {other: high}))
        return found

    def clash(self, facts: list[Term], more: list[Term]) -> bool:
        """By ranges, each rounded: those of the facts are kept for the next time."""
        if self._last[0] is not facts:
            self._last = facts, *_ranges(facts, {}, {})
        _, least, most = self._last
        return _is_empty(*_ranges(more, dict(least), dict(most)))

    def empty(self, facts: list[Term]) -> bool:
        """No solution, by ranges first."""
        least, most = _ranges(facts, {}, {})
        if _is_empty(least, most):
            return True
        more = [{s: 1, "": -x} for s, x in least.items()]
        return empty([*facts, *more, *({s: -1, "": x} for s, x in most.items())])

    def never(self, clause: Clause, facts: list[Term], clauses: list[Clause]) -> bool:
        """Whether no alternative can hold beside facts and clauses."""
        return all(
            self._never(one, facts, clauses) or self._nowhere(one, facts, clauses)
            for one in clause
        )

    def follows(self, fact: Term, facts: list[Term], clauses: list[Clause]) -> bool:
        """Whether it follows from what is near."""
        return self._never([terms.opposite(fact)], facts, clauses, _ROUNDS[:2])

    def _never(
        self,
        query: list[Term],
        facts: list[Term],
        clauses: list[Clause],
        rounds: Sequence[int] = _ROUNDS,
    ) -> bool:
        if any(self.span(fact)[1] < 0 for fact in query):
            return True
        where = np.ones(self.threads, bool)
        for numbers in map(self.in_threads, (*query, *facts)):
            where &= True if numbers is None else numbers >= 0
        if not where.any():
            return True
        query = [*query, *self._somewhere(query, where)]
        for place, fact in enumerate(query):
            others = query[:place] + query[place + 1 :]
            for size in self._sizes(fact):
                given = (facts, clauses, rounds)
                if self._apart(others, fact, size, *given):
                    return True
        return any(
            self._conflict(*self._around(query, facts, clauses, count))
            for count in rounds
        )

    def _somewhere(self, query: list[Term], where: np.ndarray) -> list[Term]:
        """What facts say of those threads only."""
        found: list[Term] = []
        for fact in query if not where.all() else ():
            own = {s: c for s, c in fact.items() if s in self.own}
            numbers = self.in_threads(own)
            if own and numbers is not None:
                rest = {s: c for s, c in fact.items() if s not in own}
                found.append(terms.plus(rest, {"": int(numbers[where].max())}))
        return found

    def _apart(
        self,
        others: list[Term],
        fact: Term,
        size: str,
        facts: list[Term],
        clauses: list[Clause],
        rounds: Sequence[int],
    ) -> bool:
        times, rest = split(fact, size)
        step = gcd(*times.values())
        for most in (-step, 0):
            above = terms.plus(times, terms.number(-most - 1))
            if self._never([*others, above], facts, clauses, rounds):
                left = terms.plus(rest, {size: most})
                return self._never([*others, left], facts, clauses, rounds)
        return False

    def _sizes(self, fact: Term) -> list[str]:
        """What multiplies other things than sizes, the most of these first."""
        found: dict[str, int] = {}
        for symbol in fact:
            every = terms.factors(symbol)
            sizes = [one for one in every if self.is_size(one)]
            if 0 < len(sizes) < len(every):
                found[terms.times(*sizes)] = -len(sizes)
        return sorted(found, key=lambda s: (found[s], s))

    def _nowhere(
        self, query: list[Term], facts: list[Term], clauses: list[Clause]
    ) -> bool:
        """The same, asked for each thread by itself."""
        rows, around = self._around(query, facts, clauses, _ALL)
        names = sorted(set().union(*map(self.deep, rows)) & self.own.keys())
        if not names:
            return False
        every = np.unique(np.stack([self.own[n] for n in names], axis=1), axis=0)
        for thread in every.tolist():
            values = {n: terms.number(x) for n, x in zip(names, thread, strict=True)}
            here = [terms.replaced(fact, values) for fact in rows]
            sides = [terms.replaced_in(c, values) for c in around]
            if not self._contradict(here, sides, self.splits):
                return False
        return True

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

    def _around(
        self, query: list[Term], facts: list[Term], clauses: list[Clause], count: int
    ) -> tuple[list[Term], list[Clause]]:
        """What is near to the query, in so many rounds: facts with its symbols, what
        these stand for, and what that names again.
        """
        found, near = list(query), []
        left = [(self.deep(f), f) for f in facts]
        sides = [({s for f in _in([c]) for s in f}, c) for c in clauses]
        known: set[str] = set()
        fresh = {f for fact in query for s in fact for f in (s, *terms.factors(s))}
        for _ in range(count):
            fresh -= known | {""}
            if not fresh:
                break
            known |= fresh
            for symbol in fresh:
                found += self.limits(symbol)
                near += [sides_of(symbol)] if isinstance(symbol, Choice) else []
            found += [f for names, f in left if not names.isdisjoint(known)]
            left = [one for one in left if one[0].isdisjoint(known)]
            near += [c for names, c in sides if not names.isdisjoint(known)]
            sides = [one for one in sides if one[0].isdisjoint(known)]
            fresh = {s for fact in (*found, *_in(near)) for s in fact}
        return found, near

    def _conflict(self, rows: list[Term], near: list[Clause]) -> bool:
        key = (
            frozenset(map(terms.frozen, rows)),
            frozenset(map(terms.frozen_clause, near)),
        )
        if key not in self._known:
            self._known[key] = self._contradict(rows, near, self.splits)
        return self._known[key]


def _in(clauses: Iterable[Clause]) -> Iterator[Term]:
    return (fact for clause in clauses for one in clause for fact in one)


def split(fact: Term, by: str) -> tuple[Term, Term]:
    """What a symbol multiplies in a term, and the rest."""
    times, rest = terms.number(0), terms.number(0)
    for symbol, factor in fact.items():
        left = list(terms.factors(symbol))
        for one in terms.factors(by):
            if one not in left:
                rest = terms.plus(rest, {symbol: factor})
                break
            left.remove(one)
        else:
            times = terms.plus(times, {terms.times(*left): factor})
    return times, rest


def _ranges(
    facts: list[Term], least: _Bounds, most: _Bounds
) -> tuple[_Bounds, _Bounds]:
    """What facts say of symbols one by one, beside what is known."""
    for _ in range(4):
        changes = [_narrow(fact, least, most) for fact in facts]
        if not any(changes) or _is_empty(least, most):
            break
    return least, most


def _is_empty(least: _Bounds, most: _Bounds) -> bool:
    return any(least[s] > most[s] for s in least.keys() & most.keys())


def _narrow(fact: Term, least: _Bounds, most: _Bounds) -> bool:
    """The bound of a symbol that a fact gives, where those of all others are known."""
    total, open_ones = fact.get("", 0), []
    for symbol, factor in fact.items():
        if symbol:
            bound = most.get(symbol) if factor > 0 else least.get(symbol)
            if bound is None:
                open_ones.append(symbol)
            total += factor * (bound or 0)
    changes = False
    for symbol in open_ones or [s for s in fact if s and fact[s]]:
        factor, others = fact[symbol], total
        if len(open_ones) > 1 or not factor:
            break
        if not open_ones:
            others -= factor * (most if factor > 0 else least)[symbol]
        if factor > 0 and least.get(symbol, -others // factor - 1) < -(
            others // factor
        ):
            least[symbol], changes = -(others // factor), True
        if factor < 0 and most.get(symbol, others // -factor + 1) > others // -factor:
            most[symbol], changes = others // -factor, True
    return changes
