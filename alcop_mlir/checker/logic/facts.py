"""What is known of symbols, and what follows by the answers of a certificate.

Answers are read in order, and say what a check would have to search for: a question is
whether facts have no solution in whole numbers, its answer a proof of that, or that
nobody knows. A proof is a list of steps, each of which makes a fact:

    0 i            the i-th of the facts that are known where it is asked
    1 r s i        the i-th fact about the s-th symbol of row r
    2 r m ...      a sum of rows, each so many times
    3 r names      a row times parameters that are not negative
    4 r names m p  m - L, where row r is names * L and others: p proves it
    5 i p ...      one of the alternatives of clause i holds: each is refuted
    6 r s p ...    one of the sides of a choice, the s-th symbol of row r, holds
    7 r s ...      m - N, where N is what row r has of numbers of threads, and m the
                   most of it in those threads in which the rows s hold

Rows are the question's facts and those that were made. Each is divided by what divides
all that symbols are multiplied by, and rounded down. The last one is a negative number.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from math import gcd
from typing import Any, TypeVar

import numpy as np

from alcop_mlir.checker.logic import terms
from alcop_mlir.checker.logic.terms import Choice, Clause, Quotient, Term
from alcop_mlir.errors import CertificateError

UNKNOWN = -1
_Shown = TypeVar("_Shown")
_LARGE = 1 << 62
_NOBODY_KNOWS = (-float("inf"), float("inf"))

_IN_LOOP = re.compile(r"[nhu](\d+)(?:\..*)?")


class Answers:
    """Of one walk; asked: numbers of proofs; places: of states that are covered;
    turns: by the head of a loop, see `Turn`; gathers: by instruction, see `Gathers`;
    way: of several ways to show one thing, the number of that which does.
    """

    def __init__(
        self,
        proofs: list[Any],
        asked: list[int],
        places: list[int],
        turns: dict[int, Any] | None = None,
        gathers: dict[int, list[Any]] | None = None,
        way: int = 0,
    ):
        self.proofs, self.asked, self.places, self.way = proofs, asked, places, way
        self.turns, self.gathers = turns or {}, gathers or {}
        self._asked, self._places = iter(asked), iter(places)

    def proof(
        self, facts: Facts, query: list[Term], given: list[Term], clauses: list[Clause]
    ) -> Any:
        """The next proof, or None."""
        number = next(self._asked, UNKNOWN)
        if not UNKNOWN <= number < len(self.proofs):
            raise CertificateError("an answer without a proof")
        return None if number == UNKNOWN else self.proofs[number]

    def place(self, count: int, fits: Callable[[int], bool]) -> int | None:
        """Which of so many fits."""
        number = next(self._places, count)
        return number if 0 <= number < count and fits(number) else None

    def turn(self, head: int, ways: Any) -> Any:
        """What a turn of a loop adds and leaves, on the ways of a thread."""
        if head not in self.turns:
            raise CertificateError("the certificate says nothing of a loop's turns")
        return self.turns[head]

    def by(self, ways: Sequence[Callable[[], _Shown]]) -> _Shown:
        """What one of the ways shows."""
        if not 0 <= self.way < len(ways):
            raise CertificateError("the certificate names a way that there is not")
        return ways[self.way]()

    def columns(self, pc: int) -> Any:
        """Which columns of windows an instruction accesses."""
        if pc not in self.gathers:
            raise CertificateError(
                "the certificate says nothing of an access's columns"
            )
        return self.gathers[pc]


def rounded(term: Term) -> Term:
    """The strongest fact that says the same of whole numbers."""
    factors = [c for s, c in term.items() if s]
    by = gcd(*factors) or 1
    if by == 1 and 0 not in factors:
        return term
    return {s: c // by for s, c in term.items() if c or not s}


def symbol_of(row: Term, number: int) -> str:
    """A symbol of a row, by its number."""
    return sorted(s for s in row if s)[number]


class Facts:
    """Decides, with the ranges of names; own: numbers of threads by name."""

    def __init__(self, answers: Answers) -> None:
        self.answers = answers
        self.ranges: dict[str, tuple[Any, Any]] = {}
        self.own: dict[str, np.ndarray] = {}
        self._lanes: dict[Any, np.ndarray] = {}
        self._asked: set[str] = set()  # of which the range was asked for

    def limit(self, name: str, low: int, high: int) -> None:
        """A name is in that range too; none that was asked for grows, as what a proof
        has shown of a listed state stands for all that arrives there.
        """
        least, most = self.ranges.get(name, (low, high))
        if name in self._asked and (low < least or most < high):
            raise CertificateError(f"{name} is of another range than before")
        self.ranges[name] = min(low, least), max(high, most)

    def range(self, symbol: str) -> tuple[Any, Any]:
        """The range of a symbol."""
        self._asked.add(symbol)
        return self.ranges.get(symbol, _NOBODY_KNOWS)

    def follows(
        self, fact: Term, facts: Sequence[Term], clauses: Sequence[Clause]
    ) -> bool:
        """Whether the fact holds wherever those do."""
        return self.excludes([[terms.opposite(fact)]], facts, clauses)

    def excludes(
        self, clause: Clause, facts: Sequence[Term], clauses: Sequence[Clause]
    ) -> bool:
        """Whether no alternative of the clause can hold there."""
        return all(self._never(one, [*facts], [*clauses]) for one in clause)

    def _never(
        self, query: list[Term], facts: list[Term], clauses: list[Clause]
    ) -> bool:
        if any(terms.is_constant(f) and f.get("", 0) < 0 for f in query):
            return True
        proof = self.answers.proof(self, query, facts, clauses)
        if proof is None:
            return False
        try:
            Replay(self, facts, clauses).refute(query, proof)
        except (LookupError, TypeError, ValueError, RecursionError) as error:
            raise CertificateError(f"an answer that is none: {error}") from error
        return True

    def limits(self, symbol: str) -> list[Term]:
        """The range of a name, or of what is multiplied for what one part of it may be;
        how far a quotient is from what is divided.
        """
        if isinstance(symbol, Quotient):
            rest = terms.plus(symbol.dividend, {symbol: 1}, -symbol.divisor)
            return [rest, terms.minus(terms.number(symbol.divisor - 1), rest)]
        found = []
        for place, factor in enumerate(terms.factors(symbol)):
            every = terms.factors(symbol)
            rest = every[:place] + every[place + 1 :]
            if all(self.range(one)[0] >= 0 for one in rest):
                other = terms.times(*rest)
                ends = self.range(factor)
                if ends != _NOBODY_KNOWS:
                    found.append(terms.plus({symbol: 1}, {other: -ends[0]}))
                    found.append(terms.plus({symbol: -1}, {other: ends[1]}))
        return found

    def sides(self, symbol: str) -> Clause:
        """What a choice is, by which side holds."""
        if not isinstance(symbol, Choice):
            raise CertificateError("an answer with sides of what is no choice")
        found: Clause = []
        for side, value in (
            (symbol.true, symbol.first),
            (symbol.false, symbol.second),
        ):
            same = terms.minus({symbol: 1}, value)
            found += [[*one, same, terms.negative(same)] for one in side]
        return found

    def at_most(self, row: Term, others: list[Term]) -> Term:
        """That a row's numbers of threads are at most those where others hold."""
        where = np.ones(1, bool)
        for one in others:
            holds = self.lanes(one) >= 0
            where = alike(where, holds) & alike(holds, where)
        own = {s: c for s, c in row.items() if s in self.own}
        lanes = self.lanes(own)
        lanes, where = np.broadcast_arrays(alike(lanes, where), alike(where, lanes))
        if not where.any():
            return terms.number(-1)
        return terms.minus(terms.number(int(lanes[where].max())), own)

    def lanes(self, term: Term) -> np.ndarray:
        """A term of numbers of threads, in each."""
        key = terms.frozen(term)
        if key not in self._lanes:
            names = [s for s in term if s]
            most = sum(abs(term[s]) * int(np.abs(self.own[s]).max()) for s in names)
            kind = np.int64 if most + abs(term.get("", 0)) < _LARGE else object
            found = np.full(1, term.get("", 0), kind)
            for name in names:
                own = self.own[name].astype(kind) * term[name]
                found = alike(found, own) + alike(own, found)
            self._lanes[key] = found
        return self._lanes[key]


def alike(one: np.ndarray, other: np.ndarray) -> np.ndarray:
    """Numbers of threads as often as another array has cases of all of them."""
    return np.resize(one, len(other)) if 1 < len(one) < len(other) else one


class Replay:
    """Goes through a proof."""

    def __init__(self, facts: Facts, given: list[Term], clauses: list[Clause]):
        self.facts, self.given, self.clauses = facts, given, clauses

    def refute(self, query: list[Term], proof: Any) -> None:
        """CertificateError where it proves no contradiction."""
        self._refute(list(map(rounded, query)), proof)

    def _refute(self, rows: list[Term], proof: Any) -> None:
        """Of rows that are rounded; adds to them."""
        for kind, *step in proof:
            if kind in (5, 6):
                sides, proofs = self._sides(rows, kind, step)
                for side, one in zip(sides, proofs, strict=True):
                    self._refute([*rows, *map(rounded, side)], one)
                return
            row = rounded(self._row(rows, kind, step))
            if row.get("", 0) < 0 and terms.is_constant(row):
                return
            rows.append(row)
        if not any(terms.is_constant(row) and row.get("", 0) < 0 for row in rows):
            raise CertificateError("an answer does not prove what it should")

    def _sides(
        self, rows: list[Term], kind: int, step: list[Any]
    ) -> tuple[Clause, Any]:
        if kind == 5:
            return self.clauses[step[0]], step[1:]
        symbol = symbol_of(rows[step[0]], step[1])
        return self.facts.sides(symbol), step[2:]

    def _row(self, rows: list[Term], kind: int, step: list[Any]) -> Term:
        if kind == 0:
            return self.given[step[0]]
        first = rows[step[0]]
        if kind == 1:
            return self.facts.limits(symbol_of(first, step[1]))[step[2]]
        if kind == 2:
            return self._sum(rows, step)
        if kind == 3:
            return terms.product(first, {self._size(step[1]): 1})
        if kind == 4:
            part, _ = terms.split(first, terms.times(*step[1]))
            row = terms.minus(terms.number(int(step[2])), part)
            self._refute([*rows, rounded(terms.opposite(row))], step[3])
            return row
        if kind == 7:
            return self.facts.at_most(first, [rows[one] for one in step[1:]])
        raise CertificateError("an answer with an unknown step")

    def _sum(self, rows: list[Term], step: list[int]) -> Term:
        found: Term = {}
        for row, many in zip(step[::2], step[1::2], strict=True):
            if type(many) is not int or many < 1:
                raise CertificateError("an answer adds a fact less than once")
            for symbol, factor in rows[row].items():
                found[symbol] = found.get(symbol, 0) + many * factor
        return found

    def _size(self, names: list[str]) -> str:
        if any(self.facts.range(name)[0] < 0 for name in names):
            raise CertificateError("an answer multiplies by what may be negative")
        return terms.times(*names)


def is_bounded(head: int, facts: list[Term], loop: set[int]) -> bool:
    """Whether a fact says that the turn is below what no turn of the loop changes.

    head: of the loop, by its instruction; loop: all of its instructions
    """
    turn = f"n{head}"
    for fact in facts:
        others = terms.inside({s: c for s, c in fact.items() if s != turn})
        made = (_IN_LOOP.fullmatch(name) for name in others)
        if fact.get(turn, 0) < 0 and not any(m and int(m[1]) in loop for m in made):
            return True
    return False
