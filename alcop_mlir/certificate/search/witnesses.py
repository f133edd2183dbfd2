"""Search for proofs that facts have no solution in whole numbers.

By the elimination of Fourier and Motzkin with constants rounded to integers (Schrijver,
"Theory of Linear and Integer Programming", 12.2 and 23), with clauses taken apart, and
what a size multiplies: `size * L + rest` is below `rest - size * c` if L is below -c.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from math import gcd, inf
from typing import Any

import numpy as np

from alcop_mlir.certificate.search.elimination import eliminated, left_of
from alcop_mlir.certificate.search.steps import Late, Row, Split, Tree, total
from alcop_mlir.checker.bounds.products import ProductFacts
from alcop_mlir.checker.logic import terms
from alcop_mlir.checker.logic.facts import Facts
from alcop_mlir.checker.logic.terms import Choice, Clause, Term

_ALL = 99
# Over how many facts one is near to another; 0 for facts of the query's symbols alone.
_DEPTH = 4  # how often what a size multiplies is told apart
_ROUNDS = (0, 2, 3, _ALL)
_Bounds = dict[str, tuple[int, Row]]


@dataclass(eq=False)
class Side:
    """An alternative; with what its symbols stand for, and choices that it names."""

    given: list[Row]
    rows: list[Row]
    choices: list[Sides]


@dataclass(eq=False)
class Sides:
    """A clause by its number, or a choice and rows that name it; opened when needed."""

    source: int | tuple[str, list[Row]]
    given: list[list[Row]]
    opened: list[Side] | None = None

    @property
    def terms(self) -> list[Term]:
        """All facts in it."""
        return [r.term for one in self.given for r in one]


class Search:
    """For one question.

    vain:  what was searched for in vain before
    until: the CPU time at which the search ends, by Late
    """

    def __init__(
        self,
        facts: Facts,
        given: list[Term],
        clauses: list[Clause],
        vain: set[Any],
        until: float = inf,
    ):
        self.facts, self.vain, self.until = facts, vain, until
        self.given = [Row(f, ("fact", number)) for number, f in enumerate(given)]
        self.clauses = [
            Sides(number, [[Row(f) for f in one] for one in clause])
            for number, clause in enumerate(clauses)
        ]
        self.axioms: dict[str, list[Row]] = {}
        self.homes: dict[str, list[Row]] = {}  # rows that name a symbol
        self.multiplies = isinstance(facts, ProductFacts)
        self.splits = 12 if self.multiplies else 6
        self._base: tuple[Any, _Bounds, _Bounds] = None, {}, {}
        self._plain: dict[Any, Row] = {}  # of the same rows, by what they name

    def refuted(self, query: list[Row]) -> Tree | None:
        """A proof that they have no solution beside what is given."""
        if self.multiplies:
            return self._never(query, _ROUNDS)
        return self._conflict(*self._near(query))

    # What is near.

    def _limits(self, symbol: str, home: list[Row]) -> list[Row]:
        if symbol not in self.axioms:
            self.homes[symbol] = []
            self.axioms[symbol] = [
                Row(f, ("axiom", symbol, number, self.homes[symbol]))
                for number, f in enumerate(self.facts.limits(symbol))
            ]
        self.homes[symbol] += home
        return self.axioms[symbol]

    def _sides(self, symbol: str, home: list[Row]) -> Sides:
        sides = self.facts.sides(symbol)
        return Sides((symbol, home), [[Row(f) for f in one] for one in sides])

    def _opened(
        self, rows: list[Row], known: set[str]
    ) -> tuple[list[Row], list[Sides]]:
        """Rows with what their symbols stand for, and the choices among these."""
        found, choices, met = list(rows), [], {"", *known}
        while fresh := {s for r in found for s in r.term} - met:
            met |= fresh
            for symbol in sorted(fresh):
                home = [r for r in found if symbol in r.term]
                found += self._limits(symbol, home)
                if isinstance(symbol, Choice):
                    choices.append(self._sides(symbol, home))
        return found, choices

    def _near(self, query: list[Row]) -> tuple[list[Row], list[Sides]]:
        """The facts that share names with the query, directly or over others."""
        names = terms.inside(*(r.term for r in query))
        rows = [(terms.inside(r.term), r) for r in self.given]
        sides = [(terms.inside(*c.terms), c) for c in self.clauses]
        grows = True
        while grows:
            grows = False
            for met, _ in (*rows, *sides):
                if (met & names or not query) and not met <= names:
                    names |= met
                    grows = True
        found = [*query, *(r for met, r in rows if met & names)]
        left = [c for met, c in sides if met & names]
        found, choices = self._opened(found, set())
        return found, [*choices, *left]

    def _around(self, query: list[Row], count: int) -> tuple[list[Row], list[Sides]]:
        """What is near to the query, in so many rounds: facts with its symbols, what
        these stand for, and what that names again.
        """
        assert isinstance(self.facts, ProductFacts)
        if not count:
            names = {"", *(s for r in query for s in r.term)}
            return [*query, *(r for r in self.given if r.term.keys() <= names)], []
        found, near, chosen = list(query), [], []
        left = [(self.facts.deep(r.term), r) for r in self.given]
        sides = [({s for f in c.terms for s in f}, c) for c in self.clauses]
        known: set[str] = set()
        opened: set[str] = set()
        fresh = {f for r in query for s in r.term for f in (s, *terms.factors(s))}
        for _ in range(count):
            fresh -= known | {""}
            if not fresh:
                break
            known |= fresh
            found += [r for names, r in left if not names.isdisjoint(known)]
            left = [one for one in left if one[0].isdisjoint(known)]
            near += [c for names, c in sides if not names.isdisjoint(known)]
            sides = [one for one in sides if one[0].isdisjoint(known)]
            for symbol in sorted(known - opened):
                home = [r for r in found if symbol in r.term]
                if home:
                    opened.add(symbol)
                    found += self._limits(symbol, home)
                if isinstance(symbol, Choice) and home:
                    chosen.append(self._sides(symbol, home))
            inside = (f for c in (*chosen, *near) for f in c.terms)
            fresh = {s for f in (*(r.term for r in found), *inside) for s in f}
        if count == _ALL:
            found, choices = self._opened(found, opened)
            chosen += choices
        return found, [*chosen, *near]

    # What sizes multiply.

    def _never(
        self, query: list[Row], rounds: Sequence[int], depth: int = _DEPTH
    ) -> Tree | None:
        query = [*query, *self._somewhere(query)]
        for row in query:
            if _is_false(row):
                return row
        for place, row in enumerate(query):
            others = query[:place] + query[place + 1 :]
            for names in self._sizes(row.term) if depth else ():
                tree = self._apart(others, row, names, rounds, depth - 1)
                if tree is not None:
                    return tree
        for count in rounds:
            tree = self._conflict(*self._around(query, count))
            if tree is not None:
                return tree
        return None

    def _somewhere(self, query: list[Row]) -> list[Row]:
        """What facts say of those threads only in which others may hold."""
        own = self.facts.own
        alone = [r for r in (*query, *self.given) if self._is_alone(r)]
        found = []
        for row in query if alone else ():
            names = {s for s in row.term if s in own}
            if names and (len(names) < len([s for s in row.term if s]) or row in alone):
                found.append(total((row, 1), (self._most(row, alone), 1)))
        return found

    def _most(self, row: Row, alone: list[Row]) -> Row:
        most = self.facts.at_most(row.term, [r.term for r in alone])
        return Row(most, ("most", row, self._deciding(row, most, alone)))

    def _deciding(self, row: Row, most: Term, alone: list[Row]) -> list[Row]:
        """Those of the facts that leave no thread with more: few of many."""
        own = {s: c for s, c in row.term.items() if s in self.facts.own}
        holds = [self.facts.lanes(r.term) >= 0 for r in alone]
        lanes = self.facts.lanes(own)
        more = lanes > (most[""] if own.keys() <= most.keys() else lanes.min() - 1)
        more, *left = np.broadcast_arrays(more, *holds)
        found: list[Row] = []
        while more.any():
            place = max(range(len(left)), key=lambda n: int((more & ~left[n]).sum()))
            found.append(alone[place])
            more = more & left[place]
        return found

    def _is_alone(self, row: Row) -> bool:
        """Whether only the number of the thread decides it."""
        own = self.facts.own
        return any(row.term) and all(s in own for s in row.term if s)

    def _entered(self, rows: list[Row], side: list[Row]) -> list[Row]:
        """With an alternative, and the most of what the thread decides beside it."""
        every = [*rows, *side]
        if not any(map(self._is_alone, side)):
            return every
        alone = [r for r in every if self._is_alone(r)]
        names = {s for r in every for s in r.term if s in self.facts.own}
        bases = (self.axioms[name][0] for name in sorted(names) if name in self.axioms)
        return [*every, *(self._most(row, alone) for row in bases)]

    def _sizes(self, fact: Term) -> list[tuple[str, ...]]:
        """What multiplies other things than sizes, the most of these first."""
        assert isinstance(self.facts, ProductFacts)
        found: dict[tuple[str, ...], int] = {}
        for symbol in fact:
            every = terms.factors(symbol)
            sizes = tuple(one for one in every if self.facts.is_size(one))
            if 0 < len(sizes) < len(every):
                found[sizes] = -len(sizes)
        return sorted(found, key=lambda s: (found[s], s))

    def _apart(
        self,
        others: list[Row],
        row: Row,
        names: tuple[str, ...],
        rounds: Sequence[int],
        depth: int,
    ) -> Tree | None:
        part, _ = terms.split(row.term, terms.times(*names))
        step = gcd(*part.values())
        for most in (-step, 0):
            below = terms.minus(terms.number(most), part)
            against = Row(terms.opposite(below))
            tree = self._never([*others, against], rounds, depth)
            if tree is not None:
                lemma = Row(below, ("lemma", row, list(names), most, against, tree))
                many = Row(
                    terms.product(lemma.term, {terms.times(*names): 1}),
                    ("times", lemma, list(names)),
                )
                by = gcd(*(c for s, c in below.items() if s))
                rest = total((row, 1), (many, by))
                return self._never([*others, rest], rounds, depth)
        return None

    # Elimination.

    def _conflict(self, rows: list[Row], near: list[Sides]) -> Tree | None:
        if time.process_time() > self.until:
            raise Late
        key = (
            self.splits,
            frozenset(terms.frozen(r.term) for r in rows),
            frozenset(frozenset(map(terms.frozen, c.terms)) for c in near),
        )
        if key in self.vain:
            return None
        self.known = {s for r in rows for s in r.term}
        found = self._contradict(rows, near, self.splits)
        if found is None:
            self.vain.add(key)
        return found

    def _contradict(
        self, rows: list[Row], clauses: list[Sides], depth: int
    ) -> Tree | None:
        found = self._empty(rows)
        if found is not None:
            return found
        if not clauses or not depth:
            return self._nowhere(rows) if self.multiplies else None
        for place, one in enumerate(clauses):
            trees: list[Tree | None] = []
            trees += [self._clash(rows, side.rows) for side in self._of(one)]
            if trees.count(None) < 2:
                rest = clauses[:place] + clauses[place + 1 :]
                if None in trees:
                    number = trees.index(None)
                    side = self._of(one)[number]
                    more = self._entered(rows, side.rows), [*side.choices, *rest]
                    trees[number] = self._contradict(*more, depth)
                return None if None in trees else Split(one.source, one.given, trees)
        one, *rest = clauses
        trees = []
        for side in self._of(one):
            more = self._entered(rows, side.rows), [*side.choices, *rest]
            trees.append(self._contradict(*more, depth - 1))
            if trees[-1] is None:
                return None
        return Split(one.source, one.given, trees)

    def _of(self, one: Sides) -> list[Side]:
        if one.opened is None:
            named = () if isinstance(one.source, int) else one.source[:1]
            known = self.known.union(named)
            one.opened = [Side(side, *self._opened(side, known)) for side in one.given]
        return one.opened

    def _clash(self, rows: list[Row], side: list[Row]) -> Row | None:
        if not self.multiplies:
            return self._empty([*rows, *side])
        if self._base[0] is not rows:
            self._base = rows, *_ranges(rows, {}, {})
            self._plain = {_symbols(row.term, 1): row for row in rows}
        _, least, most = self._base
        for row in side:
            other = self._plain.get(_symbols(row.term, -1))
            if other and other.term.get("", 0) + row.term.get("", 0) < 0:
                return total((row, 1), (other, 1))
        return _crossed(*_ranges(side, dict(least), dict(most)))

    def _empty(self, rows: list[Row]) -> Row | None:
        if not self.multiplies:
            return eliminated(rows) or eliminated(rows, outer_first=True)
        least, most = _ranges(rows, {}, {})
        found = _crossed(least, most)
        if found is not None:
            return found
        more = [row for _, row in (*least.values(), *most.values())]
        return eliminated([*rows, *more])

    def _nowhere(self, rows: list[Row]) -> Row | None:
        """That there is no thread in which all holds that facts say of its numbers."""
        if not any(s in self.facts.own for r in rows for s in r.term):
            return None
        left = [*left_of(rows, self.facts.own), *self.given]
        alone = [r for r in left if self._is_alone(r)]
        most = self._most(alone[0], alone) if alone else None
        return most if most is not None and _is_false(most) else None


def _is_false(row: Row) -> bool:
    return row.term.get("", 0) < 0 and terms.is_constant(row.term)


def _symbols(term: Term, sign: int) -> Any:
    return terms.frozen({s: sign * c for s, c in term.items() if s})


def _crossed(least: _Bounds, most: _Bounds) -> Row | None:
    """That a symbol is above its most."""
    for symbol in least:  # in their order: a proof is the same each time
        if symbol in most and least[symbol][0] > most[symbol][0]:
            return total((least[symbol][1], 1), (most[symbol][1], 1))
    return None


def _ranges(rows: list[Row], least: _Bounds, most: _Bounds) -> tuple[_Bounds, _Bounds]:
    """What facts say of symbols one by one, beside what is known."""
    for _ in range(4):
        changes = [_narrow(row, least, most) for row in rows]
        crossed = any(least[s][0] > most[s][0] for s in least.keys() & most.keys())
        if not any(changes) or crossed:
            break
    return least, most


def _narrow(row: Row, least: _Bounds, most: _Bounds) -> bool:
    """The bound of a symbol that a fact gives, where those of all others are known."""
    fact = row.term
    total_, open_ones = fact.get("", 0), []
    for symbol, factor in fact.items():
        if symbol:
            bound = (most if factor > 0 else least).get(symbol)
            if bound is None:
                open_ones.append(symbol)
            else:
                total_ += factor * bound[0]
    if len(open_ones) > 1:
        return False
    changes = False
    for symbol in open_ones or [s for s in fact if s and fact[s]]:
        factor, others = fact[symbol], total_
        if not open_ones:
            others -= factor * (most if factor > 0 else least)[symbol][0]
        known = (least if factor > 0 else most).get(symbol)
        value = -(others // factor) if factor > 0 else others // -factor
        if known is None or (value > known[0] if factor > 0 else value < known[0]):
            sign = 1 if factor > 0 else -1
            parts = [(row, 1)]
            for s, c in fact.items():
                if s and s != symbol:
                    parts.append(((most if c > 0 else least)[s][1], abs(c)))
            new = Row({symbol: sign, "": -sign * value}, ("sum", tuple(parts)))
            (least if factor > 0 else most)[symbol] = value, new
            changes = True
    return changes
