"""Which elements accesses to global memory are of, where sizes are not known.

`checker/bounds` goes through all blocks as one thread that stands for all: there each
address is a sum of products of sizes, numbers of blocks, turns and threads. With the
strides of an array it is taken apart into an index of each loop: these are the same
number, so that memory there is that element wherever the indices are inside.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np

from alcop_mlir.checker.bounds.accesses import size_of
from alcop_mlir.checker.bounds.thread import Thread
from alcop_mlir.checker.bounds.ways import Ways
from alcop_mlir.checker.form.open_statement import OpenStatement
from alcop_mlir.checker.logic import terms
from alcop_mlir.checker.logic.terms import Choice, Clause, Quotient, Term
from alcop_mlir.checker.machine.arithmetic import Same
from alcop_mlir.checker.machine.held import Frozen
from alcop_mlir.checker.placed.open_facts import Known, Ready, ready
from alcop_mlir.checker.ptx.instructions import (
    Instruction,
    place_of,
    source_size,
    step_of,
)

_JOINED = re.compile(r"j(\d+)\.")
_SHARED = re.compile(r"[.%].*|n\d+")
Indices = dict[str, Term]  # by loop


@dataclass
class Access:
    """offset: bytes behind the array's pointer; size: how many it accesses, and when
    it does, never where that is not known; `runs`, `rests`: where its guard holds,
    and where not
    """

    array: str
    offset: Term
    size: Term
    when: Clause
    runs: Clause
    rests: Clause


@dataclass
class Way:
    """Where a check is: from which block it came to those where ways meet; turns, and
    other numbers of threads, that are known.
    """

    block: int
    edges: tuple[tuple[int, int], ...]
    turns: Mapping[str, int]
    told: Mapping[str, Term]
    values: dict[str, Term] | None = None  # see `Accesses.values`


class Accesses:
    """Of one kernel; `see` gets each, from `check_bounds`.

    resolves: by block where ways meet, blocks of accesses to an address that is one of
              several there
    """

    def __init__(self, statement: OpenStatement):
        self.statement = statement
        self.found: dict[int, Access] = {}
        self.thread: Thread
        self.ways: Ways
        self.joins: set[int] = set()
        self.unknown: set[str] = set()
        self.resolves: dict[int, set[int]] = {}
        self._decided: dict[object, bool] = {}
        self._known: dict[object, tuple[Known, int]] = {}
        self._wholes: dict[Frozen, Term] = {}
        self._values: dict[object, dict[str, Term]] = {}
        self._named: set[str] = set()  # what facts name
        self._numbers: dict[object, int] = {}
        self._inside: dict[str, set[str]] = {}
        self._made: dict[object, Ready] = {}

    def see(self, thread: Thread, ins: Instruction) -> None:
        """An access, where the thread stands."""
        place = place_of(ins)
        address = None if place is None else thread.value(place[1])
        if place is None or not isinstance(address, Same):
            return
        arrays = self.statement.arrays
        found = [s for s in address.term if s[:1] == "." and s[1:] in arrays]
        if len(found) != 1 or address.term[found[0]] != 1:
            return
        offset = terms.plus(address.term, {found[0]: -1, "": step_of(place)})
        guard = thread.holds(thread.guard(ins))
        runs, rests = ([[]], [[]]) if guard is None else (guard.true, guard.false)
        pc = thread.state.pc
        size, when = size_of(thread, ins)
        if source_size(ins) and not self._is_known(thread, ins):
            when = []
        self.found[pc] = Access(found[0][1:], offset, size, when, runs, rests)

    def _is_known(self, thread: Thread, ins: Instruction) -> bool:
        """Whether it is known how many bytes a copy reads, and not just at most."""
        source = source_size(ins)
        width = thread.kernel.width(source) if source.startswith("%") else 32
        value = thread.named(thread.value(source), width)
        if width < 2 or not isinstance(value, Same):
            return False
        return 0 <= value.low <= value.high < 1 << (width - 1)

    def seen(self, thread: Thread, ways: Ways) -> None:
        """All have been gone through."""
        self.thread, self.ways = thread, ways
        into = Counter(to for _, to in ways.edges)
        self.joins = {block for block, count in into.items() if count > 1}
        for way in (*ways.ends.values(), *ways.edges.values()):
            facts = (f for c in way.clauses.values() for one in c for f in one)
            self._named |= terms.inside(*way.facts.values(), *facts)
        every = terms.inside(*(one.offset for one in self.found.values()))
        self.unknown = {name for name in every if name[0] == "u"}
        for pc, one in self.found.items():
            made = (_JOINED.match(name) for name in terms.inside(one.offset))
            for block in {int(found[1]) for found in made if found}:
                self.resolves.setdefault(block, set()).add(ways.flow.block[pc])

    # Questions.

    def values(self, way: Way) -> dict[str, Term]:
        """What stands for one of several values on this way, turns, what is told."""
        if way.values is None:
            told = tuple((n, terms.frozen(t)) for n, t in sorted(way.told.items()))
            key = way.edges, tuple(sorted(way.turns.items())), told
            if key not in self._values:
                self._values[key] = self._resolved(way)
            way.values = self._values[key]
        return way.values

    def _resolved(self, way: Way) -> dict[str, Term]:
        found: dict[str, Term] = {}
        for block, before in way.edges:
            there = self.ways.edges.get((before, block))
            for name, every in self.ways.values.items():
                mine = [t for w, t in every if w is there]
                if mine and name.startswith(f"j{block}."):
                    found[name] = mine[0]
        found |= {n: terms.number(t) for n, t in way.turns.items()}
        found |= way.told
        for _ in found:
            more = {n: terms.replaced(t, found) for n, t in found.items()}
            if more == found:
                break
            found = more
        return found

    def known(self, way: Way, edge: tuple[int, int] | None = None) -> tuple[Known, int]:
        """Facts and clauses on a way, or behind the edge out of it, with values for
        what has one; and a number that is the same for the same ones.
        """
        values = self.values(way)
        named = sorted(self._named & values.keys())
        mine = tuple((n, terms.frozen(values[n])) for n in named)
        key = way.block, way.edges, edge, mine
        if key not in self._known:
            every = [self.ways.ends[way.block]]
            every += [self.ways.edges[before, block] for block, before in way.edges]
            every += [] if edge is None else [self.ways.edges[edge]]
            found = Known()
            for text, fact in {k: f for w in every for k, f in w.facts.items()}.items():
                found.add(self._valued(text, [[fact]], values))
            clauses = {k: c for w in every for k, c in w.clauses.items()}
            for text, clause in clauses.items():
                found.add(self._valued(text, clause, values))
            whole = (*found.facts, "", *found.clauses), found.is_void
            number = self._numbers.setdefault(whole, len(self._numbers))
            self._known[key] = found, number
        return self._known[key]

    def never(
        self, clause: Clause, way: Way, edge: tuple[int, int] | None = None
    ) -> bool:
        """Whether no alternative can hold on a way, or behind the edge out of it."""
        values, (known, number) = self.values(way), self.known(way, edge)
        if known.is_void:
            return True
        every = ([self._plain(f, values) for f in one] for one in clause)
        clause = [one for one in every if not known.refutes(one)]
        key = terms.clause_text(clause), number
        if key not in self._decided:
            given = [*known.facts.values()], [*known.clauses.values()]
            self._decided[key] = self.thread.facts.excludes(clause, *given)
        return self._decided[key]

    def is_zero(self, term: Term, way: Way) -> bool:
        """Whether a term is 0 on a way."""
        term = self._plain(term, self.values(way))
        if terms.is_constant(term):
            return not term.get("", 0)
        below = terms.opposite(term)
        above = terms.opposite(terms.negative(term))
        return self.never([[below]], way) and self.never([[above]], way)

    def _valued(self, text: str, clause: Clause, values: dict[str, Term]) -> Ready:
        """The clause of that text, with values for symbols."""
        if text not in self._inside:
            every = [f for one in clause for f in one]
            self._inside[text] = terms.inside(*every)
        own = sorted(self._inside[text] & values.keys())
        key = text, *(terms.frozen(values[name]) for name in own)
        if key not in self._made:
            plain = [[self._plain(f, values) for f in one] for one in clause]
            self._made[key] = ready(plain)
        return self._made[key]

    def _plain(self, term: Term, values: Mapping[str, Term]) -> Term:
        """With values for symbols; numbers of threads are one symbol, the same for
        numbers that only differ by what is added and multiplied.
        """
        facts = self.thread.facts
        term = facts.folded(terms.replaced(term, values))
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

    # Elements.

    def extent(self, loop: str) -> Term:
        """How many turns a loop has."""
        return self.thread.polynomial([*self.statement.sizes[loop]])

    def inside(self, indices: Indices) -> list[Term]:
        """That the indices are of an element."""
        found = []
        for loop, index in indices.items():
            last = terms.minus(self.extent(loop), index)
            found += [index, terms.plus(last, terms.number(-1))]
        return found

    def valid(self, indices: Indices, count: int) -> list[Term]:
        """Where one of so many elements from these indices on is there."""
        found = []
        for place, (loop, index) in enumerate(indices.items()):
            if loop != self.statement.reduced:
                below, above = self.inside({loop: index})
                is_last = count > 1 and place == len(indices) - 1
                found += [above] if is_last else [below, above]
        return found

    def along(self, indices: Indices, count: int) -> tuple[list[Term], list[Term]]:
        """Where one of so many is before the end of the sum, and where one is not."""
        reduced = self.statement.reduced
        if reduced not in indices:
            return [], [terms.number(-1)]
        more = count - 1 if list(indices)[-1] == reduced else 0
        _, before = self.inside({reduced: indices[reduced]})
        last = terms.plus(indices[reduced], terms.number(more))
        return [before], [terms.minus(last, self.extent(reduced))]

    def indices(self, pc: int, way: Way) -> tuple[str, Indices] | None:
        """The array of an access, and what each loop's index is wherever all but that
        of the sum are inside; None where nobody knows.
        """
        access = self.found.get(pc)
        if access is None:
            return None
        offset = self._plain(
            access.offset, self.values(replace(way, turns={}, values=None))
        )
        apart = self._apart(access.array, offset)
        if apart is None:
            return None
        reduced = self.statement.reduced
        found = {
            loop: t if loop == reduced else self._unchosen(loop, t, way)
            for loop, t in apart.items()
        }
        if not all(self._is_shared(s) for t in found.values() for s in t if s):
            return None
        return access.array, {loop: self._plain(t, {}) for loop, t in found.items()}

    def _apart(self, array: str, offset: Term) -> Indices | None:
        size = self.statement.arrays[array].bytes
        found: Indices = {}
        rest, rests = with_rests(offset)
        for loop, step in self.statement.steps[array].items():
            stride = self.thread.polynomial([*step])
            names = [s for s in stride if s and stride[s]]
            if not names:
                index, rest = self._digit(rest, stride[""] * size)
            elif len(names) == 1 and not stride.get("", 0):
                many, rest = terms.split(rest, names[0])
                by = stride[names[0]] * size
                index = {s: c // by for s, c in many.items() if not c % by}
                left = {s: c for s, c in many.items() if c % by}
                rest = terms.plus(rest, terms.product(left, {names[0]: 1}))
            else:
                return None
            if index is None:
                return None
            found[loop] = index
        if any(rest.values()):
            return None
        return {loop: terms.replaced(index, rests) for loop, index in found.items()}

    def _digit(self, offset: Term, by: int) -> tuple[Term | None, Term]:
        """What a number multiplies in a term, and the rest."""
        own = {s: c for s, c in offset.items() if s in self.thread.facts.own}
        own[""] = offset.get("", 0)
        numbers = self.thread.facts.in_threads(own)
        if numbers is None:
            return None, offset
        shared = {s: c for s, c in offset.items() if s not in own}
        many = {s: c // by for s, c in shared.items()}
        many = terms.plus(many, self.thread.facts.of_threads(numbers // by))
        rest = {s: c % by for s, c in shared.items()}
        return many, terms.plus(rest, self.thread.facts.of_threads(numbers % by))

    def _unchosen(self, loop: str, index: Term, way: Way) -> Term:
        """The index, or where a choice keeps it inside, what it would be without."""
        for symbol in [s for s in index if isinstance(s, Choice)]:
            assert isinstance(symbol, Choice)
            sides = (symbol.first, symbol.false), (symbol.second, symbol.true)
            for value, otherwise in sides:
                rest = {s: c for s, c in index.items() if s != symbol}
                plain = terms.plus(rest, value, index[symbol])
                inside = self.inside({loop: plain})
                if self.never([[*inside, *one] for one in otherwise], way):
                    return self._unchosen(loop, plain, way)
        return index

    def _is_shared(self, symbol: str) -> bool:
        """Whether it is a number of each thread, or all threads share it."""
        if symbol in self.thread.facts.own:
            return True
        return all(map(_SHARED.fullmatch, terms.inside({symbol: 1})))

    def numbers(self, index: Term) -> tuple[Term, np.ndarray]:
        """What all threads share of an index, and a number of each."""
        own = {s: c for s, c in index.items() if s in self.thread.facts.own}
        shared = {s: c for s, c in index.items() if s and s not in own}
        found = self.thread.facts.in_threads({**own, "": index.get("", 0)})
        assert found is not None
        return shared, found


def with_rests(term: Term) -> tuple[Term, dict[str, Term]]:
    """With names for the rests of what is divided by numbers, and what these stand for:
    all of `c * x - 4 * c * (x / 4)` is of one digit, which its coefficient c says then.
    """
    chains: dict[str, list[Quotient]] = {}
    for symbol in term:
        if isinstance(symbol, Quotient) and not symbol.dividend.get("", 0):
            inner = [s for s in symbol.dividend if s]
            if len(inner) == 1 and symbol.dividend[inner[0]] == 1:
                chains.setdefault(inner[0], []).append(symbol)
    rests: dict[str, Term] = {}
    for lower, quotients in chains.items():
        divisor = 1
        for upper in sorted(quotients, key=lambda s: s.divisor):
            many, left = divmod(upper.divisor, divisor)
            if left:
                break
            name = f"{lower}%{many}"
            rests[name] = {lower: 1, upper: -many}
            rest = {s: c for s, c in term.items() if s != lower}
            term = terms.plus(rest, {upper: many, name: 1}, term.get(lower, 0))
            lower, divisor = upper, upper.divisor
    return term, rests
