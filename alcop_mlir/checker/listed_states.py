"""The states that a certificate lists, and whether what a check meets is one of them.

A state stands for all threads of a block at the head of a loop, or of another block
that it names, with the listed facts. The first state, at the entry, has none; from it
and from each listed one, all ways are gone until the next place that has states. There
a listed state has to cover what arrived: the same numbers and cells by their hashes,
the same terms, and facts that follow.
"""

from __future__ import annotations

import hashlib
import weakref
from collections.abc import Set
from copy import copy
from typing import Any

import numpy as np

from alcop_mlir.checker.bounds.ways import NO_WRAP
from alcop_mlir.checker.form.certificate import Certificate, Head
from alcop_mlir.checker.form.open_statement import OpenStatement
from alcop_mlir.checker.form.statement import Statement
from alcop_mlir.checker.logic import terms
from alcop_mlir.checker.logic.facts import is_bounded
from alcop_mlir.checker.logic.terms import Term
from alcop_mlir.checker.machine.arithmetic import (
    Holds,
    Mixed,
    Same,
    Unknown,
    Value,
    is_equal,
    same,
)
from alcop_mlir.checker.machine.cases import Cases
from alcop_mlir.checker.machine.cells import Cells
from alcop_mlir.checker.machine.held import Held
from alcop_mlir.checker.machine.machine import Machine
from alcop_mlir.checker.machine.mixed import is_same, mixed, narrowed, replaced, total
from alcop_mlir.checker.machine.predicates import symbols_of
from alcop_mlir.checker.machine.state import State
from alcop_mlir.checker.placed.gathers import Gathers
from alcop_mlir.checker.placed.open_accesses import Accesses
from alcop_mlir.checker.placed.open_placing import OpenPlacing
from alcop_mlir.checker.placed.placing import Placing
from alcop_mlir.checker.ptx.flow import Flow
from alcop_mlir.checker.walk import Walk
from alcop_mlir.errors import CertificateError, NotPlacedError

_MOST_TURNS = 1 << 62
_Key = tuple[int, bytes]  # a listed state, and of which blocks


class ListedStates:
    """Of one check; `waiting` are listed states that were met, with what they hold:
    those that came last go first. `covered` are those for which another one stands, so
    that none stands for them in turn.

    placed: results are followed, as this says; what is in cells of shared memory, and
            who may access them, is not, which another check does
    seen:   where sizes are open, or windows are moved, of which elements accesses are
    heads:  the listed states
    unrolled: loops that are gone through turn by turn, as far as numbers lead
    """

    def __init__(
        self,
        given: Certificate,
        machine: Machine,
        flow: Flow,
        heads: list[Head],
        placed: Statement | None = None,
        seen: Accesses | Gathers | None = None,
        unrolled: Set[int] = frozenset(),
    ):
        self.given, self.machine, self.flow, self.heads = given, machine, flow, heads
        known = {n for head in given.heads for n in head.registers}
        stops = ({head.pc for head in given.heads} | self.flow.loops.keys()) - unrolled
        cases: Cases | None = None
        self.placing: Placing | None = None
        if isinstance(given.placed, OpenStatement):
            cases = Cases(machine, self.flow, stops)
        if isinstance(placed, OpenStatement):
            assert cases is not None
            assert isinstance(seen, Accesses)
            self.placing = OpenPlacing(machine, self.flow, placed, seen, cases)
        elif placed is not None:
            assert not isinstance(seen, Accesses)
            self.placing = Placing(machine, self.flow, placed, seen)
        # It holds the machine: that is of no use without it, and is gone at once then.
        machine.placing = self.placing and weakref.proxy(self.placing)
        skips = frozenset(given.skips)
        self.walk = Walk(machine, self.flow, stops, skips, known, cases)
        self.stops = stops
        self.waiting: list[tuple[_Key, State]] = []
        self.met: dict[_Key, None] = {}  # in this order, as facts are asked in it
        self.covered: set[_Key] = set()
        self.sums: dict[_Key, dict[str, Mixed]] = {}
        self.cells: dict[int, tuple[np.ndarray, np.ndarray]] = {}
        self.is_bounded = True
        limit = machine.facts.limit
        for pc in self.flow.loops:
            limit(f"n{pc}", 0, _MOST_TURNS)
        for head in given.heads:
            if head.pc not in self.flow.next:
                raise CertificateError("a listed state is at no head of a block")
            for name in head.terms:
                half = 1 << (self.machine.kernel.width(name) - 1)
                limit(f"h{head.pc}.{name}", -half, half - 1)
            for name in head.truths:
                limit(f"h{head.pc}.{name}", 0, 1)

    @property
    def ends(self) -> bool:
        """Whether all loops end."""
        return self.is_bounded and not self.walk.skipped_loops

    def run(self) -> tuple[int, ...]:
        """Goes from the entry, and from each state that is met for the first time."""
        placing, count = self.placing, 1
        if placing is None:
            count += self.given.shared_bytes // self.machine.grain
        cells = Cells(count)
        data = Held() if placing is None else placing.start()
        self.walk.run(State(0, {}, cells, data=data), self.arrive)
        while self.waiting:
            # In the order of the text: states that come out of a loop in later turns
            # may stand for those that come out before.
            first = min(range(len(self.waiting)), key=lambda n: self.waiting[n][1].pc)
            key, state = self.waiting.pop(first)
            if self._is_covered(key, state):
                self.covered.add(key)
            else:
                self.walk.run(state, self.arrive)
        if placing is not None:
            placing.finish()
        return tuple(sorted({number for number, _ in self.met}))

    def arrive(self, state: State) -> None:
        """One way has come to the head of a loop."""
        blocks = self.flow.loops.get(state.pc, set())
        if state.previous in blocks:
            loop = {pc for b in blocks for pc in range(b, self.flow.stop[b])}
            self.is_bounded &= is_bounded(state.pc, state.facts, loop)
        placing = self.placing
        if placing is not None:
            placing.turned(state, state.previous in blocks)
            if not state.data.blocks.any():
                return
        self._count(state, state.previous in blocks)
        heads, cells = self.heads, state.cells
        digests = cells.digest(), cells.sources_digest()
        here = b"" if placing is None else placing.key(state)

        misses: list[int] = []

        def fits(number: int) -> bool:
            head = heads[number]
            if head.pc != state.pc or any(
                state.turns.get(h) != t for h, t in head.turns.items()
            ):
                return False
            has_cells = digests == (head.cells_sha256, head.sources_sha256)
            if placing is None and not (has_cells and self._has_sources(number, state)):
                return False
            sums = self._sums(head, state) if self._covers(head, state) else None
            if sums is None or not self._are_known((number, here), sums):
                return False
            if placing is None or placing.matches(number, state):
                return True
            misses.append(number)
            return False

        number = self.given.answers.place(len(heads), fits)
        if number is None and misses:
            raise NotPlacedError("turns differ in what registers or shared memory hold")
        if number is None:
            where = "the head of a loop" if blocks else f"instruction {state.pc}"
            raise CertificateError(f"a state at {where} is not listed")
        self.cells.setdefault(number, (cells.source, cells.place))
        key = number, here
        if key not in self.met:
            self.met[key] = None
            listed = self._listed(heads[number], state, self.sums[key])
            self.waiting.append((key, listed))

    def is_last(self, pc: int) -> bool:
        """Whether no state is listed on ways from there."""
        later = set().union(*map(self.flow.later, self.flow.next[pc]))
        return later.isdisjoint(self.stops)

    def _is_covered(self, key: _Key, state: State) -> bool:
        """Whether another state of the same listed one, of which less is known, stands
        for this one: what comes of it comes of that too.
        """
        placing = self.placing
        others = (k for k in self.met if k[0] == key[0] and k != key)
        return placing is not None and any(
            placing.covers(other, state)
            for other in others
            if other not in self.covered and self._are_known(other, self.sums[key])
        )

    def _is_back(self, state: State) -> bool:
        return state.previous in self.flow.loops.get(state.pc, ())

    def _count(self, state: State, is_back: bool) -> None:
        """The turn that begins; sources are those of the turn before it."""
        pc, loops, turns = state.pc, self.flow.loops, state.turns
        turn = turns.get(pc, -1) + 1 if is_back else 0
        is_known = pc in turns or not is_back
        if pc in loops:
            state.turns = {h: t for h, t in turns.items() if h != pc and pc in loops[h]}
        if is_known and pc in loops:
            state.turns[pc] = turn
        sources, cells = self.machine.sources, state.cells
        if sources.steps is not None:
            name = f"n{pc}"
            every = terms.inside(*sources.known)
            lost = {n for n in every if n.startswith(f"h{pc}.")}
            sources.age(cells)
            lost |= set() if is_back else {name}
            sources.renamed(cells, {name: {name: 1, "": -1}}, lost)

    def _has_sources(self, number: int, state: State) -> bool:
        """Whether sources are those of the listed state: what came first."""
        cells = state.cells
        first = self.cells.get(number, (cells.source, cells.place))
        return all(map(np.array_equal, first, (cells.source, cells.place)))

    def _sums(self, head: Head, state: State) -> dict[str, Mixed] | None:
        """The listed spreads, as they are in the listed state; None
        where what arrived has others.
        """
        turn, own = f"n{head.pc}", f"h{head.pc}."
        back: dict[Any, Term] = {turn: {turn: 1, "": -1}}
        is_back = self._is_back(state)
        found: dict[str, Mixed] = {}
        for name, (step, low, high) in head.spreads.items():
            value = state.registers.get(name)
            if not isinstance(value, Mixed):
                return None
            names = symbols_of(value)
            if (not is_back and turn in names) or any(n.startswith(own) for n in names):
                return None
            limits = narrowed(value, self.machine.facts.ranges)
            if not self._is_between(head, name, step, limits):
                return None
            try:
                if is_back:
                    value = replaced(value, back)
                else:
                    term = Same({turn: step, "": 0}, low, high)
                    more = mixed(term, value.width, len(value.constant))
                    value = total(value, more, 1, value.width)
            except Unknown:
                return None
            if (value.parts.get(turn, np.zeros(1)) != step).any():
                return None
            parts = {s: c for s, c in value.parts.items() if c.any()}
            found[name] = Mixed(parts, value.constant, low, high, value.width)
        return found

    def _is_between(
        self, head: Head, name: str, step: int, at: tuple[int, int]
    ) -> bool:
        """Whether a range is in the listed one, where the register counts by `step`.

        A counter may reach the end of half of its range, by the assumption that it
        stays there.
        """
        listed = head.spreads[name] if name in head.spreads else head.terms[name]
        _, low, high = listed
        half = 1 << (self.machine.kernel.width(name) - 2)
        grows = step > 0 and high == half - 1
        falls = step < 0 and low == -half
        if grows or falls:
            self.machine.assumed.add(NO_WRAP)
        return (at[0] >= low or falls) and (at[1] <= high or grows)

    def _are_known(self, key: _Key, sums: dict[str, Mixed]) -> bool:
        """Whether these are the spreads of the listed state: those that came first."""
        first = self.sums.setdefault(key, sums)
        return all(is_same(sums[name], first[name]) for name in sums)

    def _covers(self, head: Head, state: State) -> bool:
        """Whether what arrived is one of the states that the listed one stands for."""
        registers = state.registers
        if _digest(registers, head.numbers) != head.numbers_sha256:
            return False
        values = self._values(head, state, self._is_back(state))
        return (
            all(self._has_term(head, state, name, values) for name in head.terms)
            and all(self._has_truth(head, state, name, values) for name in head.truths)
            and all(
                self.machine.facts.follows(f, state.facts, state.clauses)
                for f in (terms.replaced(fact, values) for fact in head.facts)
            )
        )

    def _values(self, head: Head, state: State, is_back: bool) -> dict[Any, Term]:
        """What the listed state's own symbols are, of what arrived."""
        turn = f"n{head.pc}"
        values = {turn: terms.number(0)}
        if is_back:
            values[turn] = terms.plus({turn: 1}, terms.number(1))
        for name in (*head.terms, *head.truths):
            value = state.registers.get(name)
            found = same(value, self.machine.kernel.width(name))
            if found is not None:
                values[f"h{head.pc}.{name}"] = found.term
            elif name in head.truths:
                # What was known of the one before is not of this one.
                values[f"h{head.pc}.{name}"] = {self._bit(value) or f"?{name}": 1}
        return values

    def _bit(self, value: Value) -> str:
        """The symbol that is 1 where a predicate holds, else 0, if it is no more."""
        ranges = self.machine.facts.ranges
        if isinstance(value, Holds):
            for name in symbols_of(value):
                if value.true == [[{name: 1, "": -1}]] and ranges.get(name) == (0, 1):
                    return name
        return ""

    def _has_term(
        self, head: Head, state: State, name: str, values: dict[Any, Term]
    ) -> bool:
        """Whether a register holds the listed term, in the listed range."""
        term, _, _ = head.terms[name]
        found = same(state.registers.get(name), self.machine.kernel.width(name))
        if found is None:
            return False
        step = term.get(f"n{head.pc}", 0)
        if not self._is_between(head, name, step, (found.low, found.high)):
            return False
        less = terms.minus(found.term, terms.replaced(term, values))
        if terms.is_constant(less):
            return not less.get("", 0)
        if any(terms.names_division(s) for s in term):
            return False  # nothing but its computation says what it is
        follows = self.machine.facts.follows
        return all(
            follows(one, state.facts, state.clauses)
            for one in (less, terms.negative(less))
        )

    def _has_truth(
        self, head: Head, state: State, name: str, values: dict[Any, Term]
    ) -> bool:
        value = state.registers.get(name)
        if head.truths[name] == [[{f"h{head.pc}.{name}": 1, "": -1}]]:
            is_number = isinstance(value, np.ndarray) and is_equal(value)
            return is_number or isinstance(value, Holds)
        if not isinstance(value, Holds):
            return False
        listed = terms.replaced_in(head.truths[name], values)
        return terms.clause_text(value.true) == terms.clause_text(listed)

    def _listed(self, head: Head, state: State, sums: dict[str, Mixed]) -> State:
        """The listed state, with numbers and cells of one that it covers."""
        registers: dict[str, Any] = {n: state.registers[n] for n in head.numbers}
        registers |= {n: self.machine.interned(v) for n, v in sums.items()}
        for name, (term, low, high) in head.terms.items():
            registers[name] = self.machine.interned(Same(term, low, high))
        for name, true in head.truths.items():
            registers[name] = Holds(true, _opposite(true))
        facts = list(head.facts)
        known = terms.inside(*facts, *self.machine.sources.known)
        known = known.union(*map(symbols_of, registers.values()))
        cells, turns = copy(state.cells), dict(head.turns)
        data = copy(state.data)
        found = State(
            head.pc, registers, cells, facts, turns=turns, made=known, data=data
        )
        if self.placing is not None:
            kept = {n: self.machine.interned(v) for n, v in data.kept.items()}
            found.registers = {**kept, **registers}
            found.made = known.union(*map(symbols_of, data.kept.values()))
            self.placing.pinned(found)
        return found


def _opposite(true: terms.Clause) -> terms.Clause:
    """Where none of the alternatives holds; each is one fact, or an equality."""
    found: terms.Clause = [[]]
    for one in true:
        found = [[*rest, terms.opposite(f)] for rest in found for f in one]
    return found


def _digest(registers: dict[str, Any], names: list[str]) -> str:
    found = hashlib.sha256()
    for name in sorted(names):
        value = registers.get(name)
        if not isinstance(value, np.ndarray):
            return ""
        found.update(name.encode() + b"=" + value.astype(np.uint64).tobytes())
    return found.hexdigest()
