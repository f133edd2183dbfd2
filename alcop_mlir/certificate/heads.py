"""States at the heads of loops: what is forgotten so that their number is finite.

Of each loop the number of the turn is a symbol. A register that all threads share, and
that grows by the same number in each turn, is a term in it; which registers do so is
learnt from the first turn. Registers of which shared addresses are computed keep their
numbers: they go round with the slots of a pipeline. All others are unknown.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from dataclasses import dataclass, field

from alcop_mlir.certificate import linear, spread
from alcop_mlir.certificate.digests import exact_digest, uniform_text
from alcop_mlir.certificate.endings import is_bounded
from alcop_mlir.certificate.linear import Linear
from alcop_mlir.certificate.machine import Machine
from alcop_mlir.certificate.program import Code
from alcop_mlir.certificate.refutation import projected
from alcop_mlir.certificate.shared_state import IN_FLIGHT, MOST_AGE
from alcop_mlir.certificate.short_loops import MOST_TURNS as MOST_SHORT_TURNS
from alcop_mlir.certificate.short_loops import short_counters
from alcop_mlir.certificate.sources import MOST_APART as MOST_APART_TURNS
from alcop_mlir.certificate.sources import STORED, UNKNOWN
from alcop_mlir.certificate.state import State
from alcop_mlir.certificate.uniform_arithmetic import limits_of
from alcop_mlir.certificate.values import (
    Exact,
    Spread,
    Truth,
    Uniform,
    Value,
    as_uniform,
)
from alcop_mlir.certificate.verdicts import Outside

MOST_STATES = 400  # at one head
MOST_TURNS = 1 << 62
MOST_FACTS = 16
MOST_APART = 2  # states with the same key that are not joined
MOST_JOINS = 2  # that may bring new facts
NO_WRAP = "counters of loops stay in half of the range of their registers"


class Learnt(Exception):
    """The search begins anew, with what it has learnt of a loop."""


@dataclass(eq=False)
class HeadState:
    """One state at a head, of those that a proof lists.

    key: what two states must have in common for one to cover the other
    """

    head: int
    key: tuple[str, str, str]
    state: State
    is_entry: bool
    joins: int = 0
    is_dropped: bool = False


def turn_symbol(head: int) -> str:
    """The number of the turn that begins at a head, 0 in the first one."""
    return f"n{head}"


@dataclass
class Heads:
    """All head states that a search has met; `steps` is learnt, and stays.

    steps:    by head and register, what each turn adds, or None where that differs
    unending: heads of loops that are not shown to end
    short:    by head, counters that keep their numbers, see `short_counters`
    """

    machine: Machine
    steps: dict[tuple[int, str], int | None] = field(default_factory=dict)
    found: dict[int, list[HeadState]] = field(default_factory=dict)
    has_counters: bool = False
    unending: set[int] = field(default_factory=set)
    short: dict[int, set[str]] = field(default_factory=dict)

    @property
    def code(self) -> Code:
        """The kernel's."""
        return self.machine.code

    def arrive(self, state: State) -> HeadState | None:
        """The state from which the search goes on; None where one covers it."""
        head = state.pc
        state.residues = {}
        if head not in self.code.loops:
            return self._arrive_behind(state, head)
        is_back = state.previous in self.code.loops[head]
        if is_back:
            self._check_end(state, head)
        if self.machine.tells_turns:
            self._count(state, head, is_back)
        self._turn(state, head, is_back)
        self._generalize(state, head, is_back)
        self._forget_dead(state, head)
        return self._covered_or_new(state, head, not is_back)

    def _arrive_behind(self, state: State, block: int) -> HeadState | None:
        """Behind loops: in which turn they were left is forgotten, as far as nothing
        reads what was copied there.
        """
        if (state.shared.source == STORED).all():
            state.turns = {}
        self._forget_dead(state, block)
        return self._covered_or_new(state, block, True)

    def _count(self, state: State, head: int, is_back: bool) -> None:
        """The number of the turn, of the first ones of an innermost loop; of all where
        these are told apart by numbers.
        """
        loops = self.code.loops
        turn = state.turns.get(head, -1) + 1 if is_back else 0
        state.turns = {
            h: t for h, t in state.turns.items() if h != head and head in loops[h]
        }
        is_known = turn or not is_back
        most = MOST_SHORT_TURNS if self._short(head) else MOST_APART_TURNS
        if is_known and turn <= most and self.code.is_innermost(head):
            state.turns[head] = turn
        names = {turn_symbol(head)} if not is_back else set()
        back = {turn_symbol(head): Linear({turn_symbol(head): 1}, -1)}

        def change(term: Linear) -> Linear | None:
            inside = self.machine.symbols.symbols(term)
            if inside & names or any(s.startswith(f"h{head}.") for s in inside):
                return None
            return self.machine.symbols.replaced(term, back)

        shared = state.shared
        old = shared.age >= MOST_AGE
        shared.source[old & (shared.source != STORED)] = UNKNOWN
        self.machine.sources.replaced(shared.source, shared.place, change)

    def _check_end(self, state: State, head: int) -> None:
        inside = set(self.code.pcs(self.code.loops[head]))
        symbols = self.machine.symbols
        if not is_bounded(state.facts, turn_symbol(head), inside, symbols):
            self.unending.add(head)

    def _turn(self, state: State, head: int, is_back: bool) -> None:
        """One more turn: what was known of turn n is known of turn n - 1."""
        symbol = turn_symbol(head)
        turn = self.machine.symbols.plain(symbol, 0, MOST_TURNS)
        if is_back:
            self._replace(state, {symbol: turn - 1})
            state.facts.append(turn - 1)
            return
        self._drop(state, {symbol})
        state.facts.append(-turn)
        changed = self.code.changed[head]
        state.entries = {
            **state.entries,
            head: {
                name: value
                for name in sorted(changed & self.code.decisive[head])
                if (value := self._shifted(name, state.registers.get(name)))
            },
        }

    def _replace(self, state: State, values: dict[str, Linear]) -> None:
        replaced = self.machine.symbols.replaced
        for name, value in state.registers.items():
            if isinstance(value, Uniform) and self._names(value) & values.keys():
                term = replaced(value.term, values)
                state.registers[name] = Uniform(term, value.low, value.high)
            elif isinstance(value, Spread) and self._names(value) & values.keys():
                symbols = self.machine.symbols
                state.registers[name] = spread.replaced(value, values, symbols)
            elif isinstance(value, Truth) and self._names(value) & values.keys():
                state.registers[name] = None
        state.facts = [replaced(f, values) for f in state.facts]
        state.clauses = []

    def _drop(self, state: State, names: set[str]) -> None:
        """Forget these symbols; facts that follow without them stay."""
        for name, value in state.registers.items():
            if self._names(value) & names:
                state.registers[name] = None
        for name in names:
            if any(name in f.terms for f in state.facts):
                state.facts = projected(state.facts, name)
        inside = self.machine.symbols.symbols
        state.facts = [f for f in state.facts if not inside(f) & names]
        state.clauses = []

    def _names(self, value: Value) -> set[str]:
        return self.machine.symbols_of(value)

    def _as_uniform(self, name: str, value: Value) -> Uniform | None:
        if name in self.code.needed and isinstance(value, Exact):
            return None
        return as_uniform(value, self.code.width(name))

    def _shifted(self, name: str, value: Value) -> Uniform | Spread | None:
        """The value as one that turns may add a number to."""
        known = self._as_uniform(name, value)
        return value if isinstance(value, Spread) else known

    def _generalize(self, state: State, head: int, is_back: bool) -> None:
        entries = state.entries.get(head, {})
        for name in sorted(self.code.changed[head] & self.code.decisive[head]):
            value = state.registers.get(name)
            if isinstance(value, Exact) and self._is_number(head, name):
                continue
            known = self._shifted(name, value)
            if known is None:
                other = self._generalized_other(state, f"h{head}.{name}", value)
                state.registers[name] = other
                continue
            entry = entries.get(name)
            if is_back:
                self._learn(head, name, entry, known)
            step = self.steps.get((head, name), 0)
            if step is None or entry is None:
                is_shared = isinstance(known, Uniform)
                state.registers[name] = self._own(head, name) if is_shared else None
            elif step:
                state.registers[name] = self._counter(head, name, entry, step)
            else:
                state.registers[name] = entry

    def _is_number(self, head: int, name: str) -> bool:
        """Whether a register keeps its number in each turn."""
        return name in self.code.needed or name in self._short(head)

    def _short(self, head: int) -> set[str]:
        if head not in self.short:
            self.short[head] = short_counters(self.code, head)
        return self.short[head]

    def _generalized_other(self, state: State, symbol: str, value: Value) -> Value:
        """Any predicate; of another one than before nothing is known."""
        if not isinstance(value, Truth):
            return None
        own = linear.at_least(self.machine.symbols.plain(symbol, 0, 1) - 1)
        if value.condition.text != own.text:
            self._drop(state, {symbol})
        return Truth(own)

    def _learn(
        self,
        head: int,
        name: str,
        entry: Uniform | Spread | None,
        now: Uniform | Spread,
    ) -> None:
        """What the turn has added, where that is not known yet, or has changed."""
        key = (head, name)
        known = self.steps.get(key, 0)
        if known is None:
            return
        turn = Linear({turn_symbol(head): 1})
        added: Linear | None = None
        if entry is not None:
            added = spread.difference(now, entry)
        if added is not None:
            if known and added == turn * known:
                return
            if not known and not added.terms and not added.constant:
                return
        is_first = key not in self.steps
        is_number = added is not None and not added.terms
        self.steps[key] = added.constant if is_first and added and is_number else None
        raise Learnt

    def _counter(
        self, head: int, name: str, entry: Uniform | Spread, step: int
    ) -> Value:
        """The register after some turns; that it does not wrap is an assumption."""
        self.has_counters = True
        self.machine.notes.add(NO_WRAP)
        turns = Linear({turn_symbol(head): step})
        low, high = limits_of(self.code.width(name) - 1)
        low, high = (entry.low, high) if step > 0 else (low, entry.high)
        if isinstance(entry, Spread):
            return spread.moved(entry, turns, low, high)
        return Uniform(entry.term + turns, low, high)

    def _own(self, head: int, name: str) -> Uniform:
        low, high = limits_of(self.code.width(name))
        term = self.machine.symbols.plain(f"h{head}.{name}", low, high)
        return Uniform(term, low, high)

    def _forget_dead(self, state: State, head: int) -> None:
        """Registers that nobody reads, and facts about what no register holds."""
        live = self.code.decisive[head]
        state.registers = {
            n: v for n, v in state.registers.items() if n in live and v is not None
        }
        inside = [head for head, body in self.code.loops.items() if state.pc in body]
        state.entries = {h: e for h, e in state.entries.items() if h in inside}
        alive = {turn_symbol(h) for h in inside}
        alive |= {f"h{h}.{r}" for h in inside if h != head for r in self._own_names(h)}
        for value in state.registers.values():
            alive |= self._names(value)
        for entries in state.entries.values():
            for value in entries.values():
                alive |= self._names(value)
        dead = set()
        for fact in state.facts:
            for name in self.machine.symbols.symbols(fact) - alive:
                if name[0] in "uhn" and name[1:2].isdigit():
                    dead.add(name)
        self._drop(state, dead)

    def _own_names(self, head: int) -> set[str]:
        return {
            name for (h, name), step in self.steps.items() if h == head and not step
        }

    def _pruned(self, facts: Iterable[Linear]) -> list[Linear]:
        """Facts that the others do not imply."""
        left = list(dict.fromkeys(f for f in map(linear.tightened, facts) if f.terms))
        for fact in list(left):
            others = [f for f in left if f is not fact]
            if self._implied(fact, others):
                left = others
        return left[-MOST_FACTS:]

    def _implied(self, fact: Linear, by: list[Linear]) -> bool:
        return self.machine.refuter.refuted(by, (), ((-fact - 1,),))

    def _covered_or_new(
        self, state: State, head: int, is_entry: bool
    ) -> HeadState | None:
        if not is_entry:
            state.facts = self._extrapolated(state.facts, head)
        state.facts = self._pruned(state.facts)
        shared = f"{state.shared.digest()} {state.shared.sources_digest()}"
        shared += hashlib.sha256(state.shared.source.tobytes()).hexdigest()
        key = (exact_digest(state), shared, f"{state.turns} {uniform_text(state)}")
        listed = self.found.setdefault(head, [])
        same = [one for one in listed if one.key == key and not one.is_dropped]
        for one in same:
            if all(self._implied(f, state.facts) for f in one.state.facts):
                return None
        older = [one for one in same if one.is_entry == is_entry]
        joins = 0
        flies = (state.shared.status == IN_FLIGHT).any()
        is_quiet = head in self.code.exits and not flies
        if len(older) >= (1 if is_quiet else MOST_APART):
            joins = self._join(state, older)
        new = HeadState(head, key, state.fork(), is_entry, joins)
        listed.append(new)
        if len(listed) > MOST_STATES:
            line = self.code.instructions[head].line
            raise Outside(f"more than {MOST_STATES} states at the head of a loop", line)
        return new

    def _join(self, state: State, older: list[HeadState]) -> int:
        """What both this state and the most similar older one know; how often that was
        joined. After a few times no new fact comes in, so that it ends.
        """
        kept = {
            id(one): [f for f in one.state.facts if self._implied(f, state.facts)]
            for one in older
        }
        before = min(older, key=lambda o: len(o.state.facts) - len(kept[id(o)]))
        before.is_dropped = True
        facts = kept[id(before)]
        if before.joins < MOST_JOINS:
            more = [f for f in state.facts if self._implied(f, before.state.facts)]
            facts = self._pruned([*facts, *more])
        state.facts = facts
        return before.joins + 1

    def _extrapolated(self, facts: list[Linear], head: int) -> list[Linear]:
        """Facts of the first turn as they may be in later ones.

        That the turn is the first is dropped. Of facts that do not name the turn, those
        that would follow if each turn took as much away as it does elsewhere are added;
        a later turn keeps what is true of it too.
        """
        symbol = turn_symbol(head)
        alone = [f for f in facts if f.terms.keys() == {symbol}]
        low = max((-f.constant for f in alone if f.terms[symbol] > 0), default=None)
        drop = [f for f in alone if f.terms[symbol] < 0 and f.constant == low]
        if low is None or not drop:
            return facts
        steps = {abs(f.terms[symbol]) for f in facts if symbol in f.terms}
        turns = Linear({symbol: 1}, -low)
        more = [
            f - turns * step
            for f in facts
            for step in steps
            if f.terms and symbol not in f.terms
        ]
        return [f for f in (*facts, *more) if f not in drop]
