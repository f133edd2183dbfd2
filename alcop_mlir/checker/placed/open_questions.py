"""What is known on ways of a check with open sizes, and what is asked there.

All that is asked is whether something can be, where facts and clauses hold that the
thread has met which stands for all, with numbers for what is known on the way.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from alcop_mlir.checker.bounds.thread import Thread
from alcop_mlir.checker.bounds.ways import Ways
from alcop_mlir.checker.logic import terms
from alcop_mlir.checker.logic.terms import Clause, Term
from alcop_mlir.checker.machine.held import Frozen

Edge = tuple[int, int]  # from a block to one behind it
_Given = tuple[dict[str, Clause], list[str]]


class Ready(NamedTuple):
    """A clause as facts, with their texts; as alternatives; or no number holds it."""

    facts: list[tuple[str, Frozen, Term]]
    clause: dict[str, Clause]
    is_void: bool


def ready(clause: Clause) -> Ready:
    """A clause in which symbols have values."""
    left = [
        [f for f in one if not terms.is_constant(f)]
        for one in clause
        if not any(terms.is_constant(f) and f.get("", 0) < 0 for f in one)
    ]
    if len(left) == 1:
        return Ready([(terms.text(f), _way(f), f) for f in left[0]], {}, False)
    is_open = bool(left) and all(left)
    return Ready([], {terms.clause_text(left): left} if is_open else {}, not left)


class Known:
    """Facts and clauses, with values for symbols, once each; is_void: no number makes
    them all true.
    """

    def __init__(self) -> None:
        self.facts: dict[str, Term] = {}
        self.clauses: dict[str, Clause] = {}
        self.is_void = False
        self._least: dict[Frozen, int] = {}

    def refutes(self, facts: list[Term]) -> bool:
        """Whether one of these is against another one or what is known, as it stands;
        or they are against each alternative of a clause.
        """
        least: dict[Frozen, int] = {}
        for fact in facts:
            if self._is_against(fact, least):
                return True
            way, number = _way(fact), fact.get("", 0)
            least[way] = min(number, least.get(way, number))
        return any(
            all(any(self._is_against(f, least) for f in one) for one in clause)
            for clause in self.clauses.values()
        )

    def _is_against(self, fact: Term, others: dict[Frozen, int]) -> bool:
        back = tuple((s, -c) for s, c in _way(fact))
        known = [o[back] for o in (others, self._least) if back in o]
        return bool(known) and min(known) + fact.get("", 0) < 0

    def add(self, known: Ready) -> None:
        """This holds."""
        for text, way, fact in known.facts:
            number = fact.get("", 0)
            self._least[way] = min(number, self._least.get(way, number))
            self.facts[text] = fact
        self.clauses.update(known.clause)
        self.is_void |= known.is_void


@dataclass
class Way:
    """Where a check is: from which block it came to those where ways meet; turns, and
    other numbers of threads, that are known.
    """

    block: int
    edges: tuple[Edge, ...] = ()
    turns: Mapping[str, int] = field(default_factory=dict)
    told: Mapping[str, np.ndarray] = field(default_factory=dict)
    values: dict[str, Term | None] = field(default_factory=dict)  # `Questions.value`


class Questions:
    """Of one kernel; unknown: names of numbers that may be told on ways."""

    thread: Thread
    ways: Ways

    def __init__(self) -> None:
        self.unknown: set[str] = set()
        self._decided: dict[object, bool] = {}
        self._known: dict[object, tuple[Known, int]] = {}
        self._given: dict[object, _Given] = {}
        self._wholes: dict[Frozen, Term] = {}
        self._joined: dict[object, dict[str, Term]] = {}
        self._numbers: dict[object, int] = {}
        self._inside: dict[str, list[str]] = {}
        self._made: dict[object, Ready] = {}

    def value(self, name: str, way: Way) -> Term | None:
        """What a name stands for on this way: one of several values, a turn, or what is
        told.
        """
        if name not in way.values:
            way.values[name] = None
            way.values[name] = self._value(name, way)
        return way.values[name]

    def _value(self, name: str, way: Way) -> Term | None:
        if name in way.turns:
            return terms.number(way.turns[name])
        if name in way.told and name in self.unknown:
            return self.thread.facts.of_threads(way.told[name])
        if way.edges not in self._joined:
            self._joined[way.edges] = self._one_of_several(way.edges)
        found = self._joined[way.edges].get(name)
        return found and terms.replaced(found, self.values(terms.inside(found), way))

    def values(self, names: Iterable[str], way: Way) -> dict[str, Term]:
        """What stands for each of the names, as far as something does."""
        every = {name: self.value(name, way) for name in names}
        return {name: term for name, term in every.items() if term is not None}

    def _one_of_several(self, edges: tuple[Edge, ...]) -> dict[str, Term]:
        """By name, which of several values it is where ways came by these edges."""
        found: dict[str, Term] = {}
        for block, before in edges:
            there = self.ways.edges.get((before, block))
            for name, every in self.ways.values.items():
                mine = [t for w, t in every if w is there]
                if mine and name.startswith(f"j{block}."):
                    found[name] = mine[0]
        return found

    def known(self, way: Way, edge: Edge | None = None) -> tuple[Known, int]:
        """Facts and clauses on a way, or behind the edge out of it, with values for
        what has one; and a number that is the same for the same ones.
        """
        where = way.block, way.edges, edge
        if where not in self._given:
            self._given[where] = self._all_given(way, edge)
        clauses, names = self._given[where]
        values = self.values(names, way)
        key = where, tuple((n, terms.frozen(t)) for n, t in values.items())
        if key not in self._known:
            found = Known()
            for text, clause in clauses.items():
                found.add(self._valued(text, clause, way))
            whole = (*found.facts, "", *found.clauses), found.is_void
            number = self._numbers.setdefault(whole, len(self._numbers))
            self._known[key] = found, number
        return self._known[key]

    def _all_given(self, way: Way, edge: Edge | None) -> _Given:
        """Facts and clauses there, by their text, and what they name."""
        every = [self.ways.ends[way.block]]
        every += [self.ways.edges[before, block] for block, before in way.edges]
        every += [] if edge is None else [self.ways.edges[edge]]
        found = {text: [[fact]] for w in every for text, fact in w.facts.items()}
        found |= {text: clause for w in every for text, clause in w.clauses.items()}
        facts = (f for clause in found.values() for one in clause for f in one)
        return found, sorted(terms.inside(*facts))

    def never(self, clause: Clause, way: Way, edge: Edge | None = None) -> bool:
        """Whether no alternative can hold on a way, or behind the edge out of it."""
        known, number = self.known(way, edge)
        if known.is_void:
            return True
        every = ([self.plain(f, way) for f in one] for one in clause)
        clause = [one for one in every if not known.refutes(one)]
        key = terms.clause_text(clause), number
        if key not in self._decided:
            given = [*known.facts.values()], [*known.clauses.values()]
            self._decided[key] = self.thread.facts.excludes(clause, *given)
        return self._decided[key]

    def is_zero(self, term: Term, way: Way) -> bool:
        """Whether a term is 0 on a way."""
        term = self.plain(term, way)
        if terms.is_constant(term):
            return not term.get("", 0)
        below = terms.opposite(term)
        above = terms.opposite(terms.negative(term))
        return self.never([[below]], way) and self.never([[above]], way)

    def _valued(self, text: str, clause: Clause, way: Way) -> Ready:
        """The clause of that text, with values for symbols."""
        if text not in self._inside:
            every = [f for one in clause for f in one]
            self._inside[text] = sorted(terms.inside(*every))
        values = self.values(self._inside[text], way)
        key = text, *((n, terms.frozen(t)) for n, t in values.items())
        if key not in self._made:
            plain = [[self.plain(f, way) for f in one] for one in clause]
            self._made[key] = ready(plain)
        return self._made[key]

    def plain(self, term: Term, way: Way | None = None) -> Term:
        """With values for symbols; numbers of threads are one symbol, the same for
        numbers that only differ by what is added and multiplied.
        """
        facts = self.thread.facts
        if way is not None:
            term = terms.replaced(term, self.values(terms.inside(term), way))
        term = facts.folded(term)
        own = {s: c for s, c in term.items() if s in facts.own}
        if not own:
            return term
        key = terms.frozen(own)
        if key not in self._wholes:
            self._wholes[key] = self._whole(own)
        rest = {s: c for s, c in term.items() if s not in own}
        return terms.plus(rest, self._wholes[key])

    def _whole(self, own: Term) -> Term:
        """Numbers of threads as one symbol, which grows first."""
        facts = self.thread.facts
        numbers = facts.in_threads(own)
        if numbers is None:
            return own
        apart = numbers - numbers[0]
        if apart[np.argmax(apart != 0)] < 0:
            return terms.negative(facts.of_threads(-numbers))
        return facts.of_threads(numbers)


def _way(fact: Term) -> Frozen:
    """A fact without its number."""
    return terms.frozen({s: c for s, c in fact.items() if s})
