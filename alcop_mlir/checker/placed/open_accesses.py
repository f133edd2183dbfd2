"""Which elements accesses to global memory are of, where sizes are not known.

`checker/bounds` goes through all blocks as one thread that stands for all: there each
address is a sum of products of sizes, numbers of blocks, turns and threads. With the
strides of an array it is taken apart into an index of each loop: these are the same
number, so that memory there is that element wherever the indices are inside.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from alcop_mlir.checker.bounds.accesses import size_of
from alcop_mlir.checker.bounds.thread import Thread
from alcop_mlir.checker.bounds.ways import Ways
from alcop_mlir.checker.form.open_statement import OpenStatement
from alcop_mlir.checker.logic import terms
from alcop_mlir.checker.logic.terms import Choice, Clause, Quotient, Term
from alcop_mlir.checker.machine.arithmetic import Same
from alcop_mlir.checker.placed.open_questions import Edge, Questions, Way
from alcop_mlir.checker.ptx.instructions import (
    Instruction,
    places_of,
    source_size,
)

_JOINED = re.compile(r"j(\d+)\.")
_SHARED = re.compile(r"[.%].*|n\d+")
Indices = dict[str, Term]  # by loop
Asked = tuple[Clause, Way, Edge | None]


@dataclass(frozen=True)
class Rest:
    """Threads that do not execute something: on a way, behind one of some edges."""

    way: Way
    edges: list[Edge]

    @property
    def key(self) -> object:
        """The same for the same edges."""
        return self.way.block, tuple(self.edges)


@dataclass
class Access:
    """offset: bytes behind the array's pointer; size: how many it accesses, and when
    it does, never where that is not known; runs: where its guard holds
    """

    array: str
    offset: Term
    size: Term
    when: Clause
    runs: Clause

    @cached_property
    def names(self) -> list[str]:
        """In the offset."""
        return sorted(terms.inside(self.offset))


class Accesses(Questions):
    """Of one kernel; `see` gets each, from `check_bounds`.

    resolves: by block where ways meet, blocks of accesses to an address that is one of
              several there
    """

    def __init__(self, statement: OpenStatement):
        super().__init__()
        self.statement = statement
        self.found: dict[int, Access] = {}
        self.joins: set[int] = set()
        self.resolves: dict[int, set[int]] = {}
        self._extents: dict[str, Term] = {}
        self._elements: dict[object, Indices | None] = {}
        self._general: dict[object, list[bool]] = {}
        self._plainly: dict[int, Indices | None] = {}
        self._unclamped: dict[object, Term] = {}

    def see(self, thread: Thread, ins: Instruction) -> None:
        """An access, where the thread stands."""
        places = places_of(ins)
        address = thread.value(places[0][0]) if len(places) == 1 else None
        if not isinstance(address, Same):
            return
        arrays = self.statement.arrays
        found = [s for s in address.term if s[:1] == "." and s[1:] in arrays]
        if len(found) != 1 or address.term[found[0]] != 1:
            return
        offset = terms.plus(address.term, {found[0]: -1, "": places[0][1]})
        guard = thread.holds(thread.guard(ins))
        runs: Clause = [[]] if guard is None else guard.true
        pc = thread.state.pc
        size, when = size_of(thread, ins)
        if source_size(ins) and not self._is_known(thread, ins):
            when = []
        self.found[pc] = Access(found[0][1:], offset, size, when, runs)

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
        every = terms.inside(*(one.offset for one in self.found.values()))
        self.unknown = {name for name in every if name[0] == "u"}
        for pc, one in self.found.items():
            made = (_JOINED.match(name) for name in terms.inside(one.offset))
            for block in {int(found[1]) for found in made if found}:
                self.resolves.setdefault(block, set()).add(ways.flow.block[pc])

    # Questions.

    def skips(
        self, rest: Rest, indices: Indices, count: int, is_zero: bool
    ) -> list[Asked]:
        """That one of so many elements from there on is there, and threads go past; 0
        may be instead of it beyond the end of the sum.
        """
        before, _ = self.along(indices, count)
        there = [*self.valid(indices, count), *(before if is_zero else ())]
        ways = {edge: replace(rest.way, block=edge[0]) for edge in rest.edges}
        return [([there], way, edge) for edge, way in ways.items()]

    def beyond(self, pc: int, indices: Indices, count: int, way: Way) -> list[Asked]:
        """That one of so many elements that are accessed is not there."""
        runs, found = self.found[pc].runs, Clause()
        for place, (loop, index) in enumerate(indices.items()):
            more = count - 1 if place == len(indices) - 1 else 0
            last = terms.plus(index, terms.number(more))
            beyond = terms.minus(last, self.extent(loop))
            for outside in (terms.opposite(index), beyond):
                found += [[*one, outside] for one in runs]
        return [(found, way, None)]

    def are_never(
        self,
        pc: int,
        key: object,
        indices: Indices,
        way: Way,
        ask: Callable[[Indices], list[Asked]],
    ) -> bool:
        """Whether nothing can be that is asked of an access; what is so on all ways, as
        it is for most guards, is found out once.

        key: the same where the same is asked behind the same blocks
        """
        if (pc, key) not in self._general:
            found = self.in_general(pc)
            self._general[pc, key] = [
                self.never(clause, Way(way.block), edge)
                for clause, way, edge in ([] if found is None else ask(found))
            ]
        are_known = self._general[pc, key]
        if not self._is_general(pc, indices, way):
            are_known = []
        if are_known and all(are_known):
            return True
        asked = ask(indices)
        every = zip(asked, are_known or [False] * len(asked), strict=True)
        return all(is_known or self.never(*one) for one, is_known in every)

    # Elements.

    def extent(self, loop: str) -> Term:
        """How many turns a loop has."""
        if loop not in self._extents:
            size = [*self.statement.sizes[loop]]
            self._extents[loop] = self.thread.polynomial(size)
        return self._extents[loop]

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
        still = replace(way, turns={}, values={})
        values = self.values(access.names, still)
        key = pc, *((n, terms.frozen(t)) for n, t in values.items())
        if key not in self._elements:
            offset = self.plain(access.offset, still)
            self._elements[key] = self._apart(access.array, offset)
        found = self._elements[key]
        if found is None:
            return None
        reduced = self.statement.reduced
        if any(isinstance(s, Choice) for t in found.values() for s in t):
            found = {
                loop: t if loop == reduced else self._without_choice(loop, t, way)
                for loop, t in found.items()
            }
        if not all(self._is_shared(s) for t in found.values() for s in t if s):
            return None
        return access.array, {loop: self.plain(t) for loop, t in found.items()}

    def in_general(self, pc: int) -> Indices | None:
        """The indices of an access, wherever a way came from; None: nobody knows."""
        if pc not in self._plainly:
            self._plainly[pc] = self._in_general(pc)
        return self._plainly[pc]

    def _in_general(self, pc: int) -> Indices | None:
        access = self.found[pc]
        found = self._apart(access.array, self.plain(access.offset)) or {}
        way, reduced = Way(self.ways.flow.block[pc]), self.statement.reduced
        plain = {
            loop: self.plain(t if loop == reduced else self._unchosen(loop, t, way))
            for loop, t in found.items()
        }
        is_chosen = any(isinstance(s, Choice) for t in plain.values() for s in t)
        return None if is_chosen else plain or None

    def _is_general(self, pc: int, indices: Indices, way: Way) -> bool:
        """Whether an access has these indices on a way as it has them on all."""
        found, still = self.in_general(pc), replace(way, turns={}, values={})
        return found is not None and all(
            terms.frozen(self.plain(term, still)) == terms.frozen(indices[loop])
            for loop, term in found.items()
        )

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

    def _without_choice(self, loop: str, index: Term, way: Way) -> Term:
        """The same as `_unchosen`; what is so on all ways is found out once."""
        key = loop, terms.frozen(index), way.block
        if key not in self._unclamped:
            self._unclamped[key] = self._unchosen(loop, index, Way(way.block))
        return self._unchosen(loop, self._unclamped[key], way)

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

    def numbers(self, index: Term, threads: int) -> tuple[Term, np.ndarray]:
        """What all threads share of an index, and a number of each, in all cases."""
        own = {s: c for s, c in index.items() if s in self.thread.facts.own}
        shared = {s: c for s, c in index.items() if s and s not in own}
        found = self.thread.facts.in_threads({**own, "": index.get("", 0)})
        assert found is not None
        return shared, np.resize(found, threads)


def with_rests(term: Term) -> tuple[Term, dict[str, Term]]:
    """With a name for each rest of a division by a number, and what names stand for:
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
