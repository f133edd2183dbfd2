"""All blocks of a kernel once, as one thread goes through them that stands for all.

Where ways meet, what all know is known, and a register is one of its values, with what
was known where that comes from. At the head of a loop the certificate says what a turn
adds to registers or leaves there, and what was known when the turn before was done: a
register is its first value plus the turn times what a turn adds, or what turns leave if
it is not the first. All is looked at where a turn ends.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from math import gcd

import numpy as np

from alcop_mlir.checker.bounds.numbers_of_thread import Way
from alcop_mlir.checker.bounds.thread import Thread
from alcop_mlir.checker.form.certificate import Turn, read_turn
from alcop_mlir.checker.logic import terms
from alcop_mlir.checker.logic.terms import Clause, Division, Term
from alcop_mlir.checker.machine import arithmetic, predicates
from alcop_mlir.checker.machine.arithmetic import Holds, Same, Value
from alcop_mlir.checker.ptx.flow import Flow
from alcop_mlir.checker.ptx.instructions import ENDS, Instruction
from alcop_mlir.errors import CertificateError

NO_WRAP = "counters of loops stay in half of the range of their registers"
_MADE = re.compile(r"[nhuj](\d+)(?:\..*)?")
_MOST_TURNS = 1 << 62
_MOST_VALUES = 4
_BIT = [Same(terms.number(bit), bit, bit) for bit in (0, 1)]


class Ways:
    """Goes them; `visit` gets each instruction; `needed` are followed.

    ends:   by block, what is known at its end; edges: and on the way to another one
    values: what stands for one of several values, by its name: each, and where it
            comes from
    """

    def __init__(
        self,
        thread: Thread,
        flow: Flow,
        needed: set[str],
    ):
        self.thread, self.flow, self.needed = thread, flow, needed
        self.turns: dict[str, str] = {}
        self.ends: dict[int, Way] = {}
        self.edges: dict[tuple[int, int], Way] = {}
        self.values: dict[str, list[tuple[Way, Term]]] = {}
        self.assumes_no_wrap = False
        self.pointers = {f".{name}" for name in thread.given.arrays}
        self.order = [b for b in reversed(flow.reached) if b != flow.end]
        self.live = flow.live
        self.changed = {
            head: {
                name
                for b in body
                for ins in flow.code[b : flow.stop[b]]
                for name in ins.results
            }
            & needed
            & self.live[head]
            for head, body in flow.loops.items()
        }
        for head, body in flow.loops.items():
            for block in self.order:
                into = body.intersection(flow.next[block]) - {head}
                if into and block not in body:
                    raise CertificateError("a loop with two ways in")

    def run(self, visit: Callable[[Instruction], None]) -> None:
        """From the entry to the end; a block comes behind those that lead to it."""
        into: dict[int, list[Way]] = {0: [self.thread.start.fork()]}
        loops: dict[int, tuple[Way, Turn]] = {}
        for block in self.order:
            if block not in into:
                continue
            way = self.met(block, into.pop(block))
            if block in self.flow.loops:
                answers, facts = self.thread.facts.answers, self.thread.facts
                turn = read_turn(answers.turn(block, self), facts)
                loops[block] = way, turn
                way = self.head(block, way, turn)
            for to, there in self.through(block, way, visit):
                self.edges[block, to] = there
                if block in self.flow.loops.get(to, ()):
                    self._check_turn(to, *loops[to], there)
                else:
                    into.setdefault(to, []).append(there)

    def through(
        self, block: int, way: Way, visit: Callable[[Instruction], None] | None
    ) -> list[tuple[int, Way]]:
        """The blocks behind one, with what is known on the way there."""
        thread = self.thread
        thread.way = way
        for pc in range(block, self.flow.stop[block]):
            thread.state.pc, ins = pc, self.flow.code[pc]
            if visit is not None:
                visit(ins)
            if not self.needed.isdisjoint(ins.results):
                thread.run(ins)
        following = self.flow.next[block]
        self.ends[block] = way
        ins = self.flow.code[self.flow.stop[block] - 1]
        test = thread.holds(thread.guard(ins))
        if len(set(following)) < 2:
            return [(one, way.fork()) for one in dict.fromkeys(following)]
        found = []
        for place, one in enumerate(following):
            other = way.fork()
            found.append((one, other))
            if test is not None:
                clause = (
                    test.true if (place == 0) ^ (ins.parts[0] in ENDS) else test.false
                )
                thread.way = other
                if _is_unequal(clause):
                    clause = [c for c in clause if not thread.never([c])]
                other.assume(clause)
        return found

    def met(self, block: int, ways: list[Way]) -> Way:
        """What is known behind all of the ways."""
        first, *rest = ways
        if not rest:
            return first
        met = Way()
        met.facts = {
            k: f for k, f in first.facts.items() if all(k in w.facts for w in rest)
        }
        apart = [[f for k, f in w.facts.items() if k not in met.facts] for w in ways]
        if all(apart) and max(map(len, apart)) > 1 and len(ways) <= _MOST_VALUES:
            met.clauses[terms.clause_text(apart)] = apart
        for way in ways:
            for key, clause in way.clauses.items():
                others = [w for w in ways if key not in w.clauses]
                turn = self.turns.get(key)
                names = terms.inside(*(f for w in others for f in w.facts.values()))
                if not others or (turn is not None and turn not in names):
                    met.clauses[key] = clause
        for name in sorted(first.registers.keys() & self.live[block]):
            value = first.registers[name]
            if any(w.registers.get(name) is not value for w in rest):
                value = self._one(block, name, ways, met)
            met.registers[name] = value
        return met

    def _one(self, block: int, name: str, ways: list[Way], met: Way) -> Value:
        """What a register holds behind all of the ways."""
        values = [w.registers.get(name) for w in ways]
        if any(isinstance(v, Same) for v in values):
            values = [self.number(name, v) for v in values]
        if not all(is_same(v, values[0]) for v in values):
            return self._one_of(block, name, values, ways, met)
        numbers = [v for v in values if isinstance(v, Same)]
        if not numbers:
            return values[0]
        # Facts of its own way may have narrowed the range of each.
        low, high = min(v.low for v in numbers), max(v.high for v in numbers)
        return Same(numbers[0].term, low, high)

    def number(self, name: str, value: Value) -> Value:
        """A register's value; numbers of threads by name."""
        return self.thread.named(value, self.thread.kernel.width(name))

    def _one_of(
        self, block: int, name: str, values: list[Value], ways: list[Way], met: Way
    ) -> Value:
        """A register that holds one of several values."""
        numbers = [v for v in values if isinstance(v, Same)]
        if len(numbers) < len(values) or len(values) > _MOST_VALUES:
            return self.thread.anything(name, f"j{block}.{name}")
        shared = {
            s: c
            for s, c in numbers[0].term.items()
            if s and all(v.term.get(s) == c for v in numbers)
        }
        size, own = self._parts([terms.minus(v.term, shared) for v in numbers])
        spans = [self.thread.facts.span(term) for term in own]
        low, high = min(a for a, _ in spans), max(b for _, b in spans)
        found = self.thread.symbol(f"j{block}.{name}", low, high).term
        self.values[f"j{block}.{name}"] = list(zip(ways, own, strict=True))
        clause: Clause = []
        for term, way in zip(own, ways, strict=True):
            less = terms.minus(found, term)
            more = [f for k, f in way.facts.items() if k not in met.facts]
            clause.append([less, terms.negative(less), *more])
        met.clauses[terms.clause_text(clause)] = clause
        term = terms.plus(shared, terms.product(size, found))
        low, high = min(v.low for v in numbers), max(v.high for v in numbers)
        return Same({**term, "": term.get("", 0)}, low, high)

    def _parts(self, every: list[Term]) -> tuple[Term, list[Term]]:
        """What divides all, a size too if one does, and what that leaves."""
        names = {f for t in every for s in t for f in terms.factors(s)}
        size = ""
        for name in sorted(filter(self.thread.facts.is_size, names)):
            parts = [terms.split(term, name) for term in every]
            if not any(any(rest.values()) for _, rest in parts):
                size, every = name, [times for times, _ in parts]
                break
        by = gcd(*(c for t in every for c in t.values())) or 1
        return {size: by}, [{s: c // by for s, c in t.items()} for t in every]

    # Loops.

    def changes(self, head: int, term: Term) -> bool:
        """Whether a term names what is another number in another turn."""
        made = (_MADE.fullmatch(n) for n in terms.inside(term) - {f"n{head}"})
        body = self.flow.loops[head]
        return any(m and self.flow.block[int(m[1])] in body for m in made)

    def is_kept(self, head: int, fact: Term) -> bool:
        """Whether a fact of one turn says the same of that turn in the next one."""
        name = f"n{head}"
        every = self.thread.facts.deep(fact)
        divides = any(isinstance(s, Division) and name in s.names for s in every)
        return name in terms.inside(fact) and not (divides or self.changes(head, fact))

    def head(self, head: int, way: Way, turn: Turn) -> Way:
        """What is known at the head: it is the first turn, or one after another."""
        name = f"n{head}"
        steps = turn.steps.values()
        if any(self.changes(head, s) or name in terms.inside(s) for s in steps):
            raise CertificateError("turns do not add the same")
        if not all(self.is_kept(head, f) for one in turn.facts for f in one):
            raise CertificateError("a fact that the next turn does not know")
        number = self.thread.symbol(name, 0, _MOST_TURNS).term
        start = self.at_turn(head, way, turn, number)
        last = terms.plus(number, terms.number(-1))
        before = [[terms.negative(number)]] + [
            [last, *(terms.replaced(f, {name: last}) for f in one)]
            for one in turn.facts
        ]
        self.turns[terms.clause_text(before)] = name
        start.assume(before)
        return start

    def at_turn(self, head: int, way: Way, turn: Turn, number: Term) -> Way:
        """Registers at the head, in the turn of that number."""
        start = way.fork()
        for name in self.changed[head]:
            first = self.number(name, way.registers.get(name))
            step = turn.steps.get(name)
            value: Value = None
            if name in turn.left:
                value = self._after_first(name, first, turn.left[name], number)
            elif isinstance(first, Same) and step is not None:
                value = self._counted(name, first, step, number)
            if value is None:
                value = self.thread.anything(name, f"h{head}.{name}")
            start.registers[name] = value
        return start

    def _after_first(self, name: str, first: Value, left: int, turn: Term) -> Value:
        """`first` in the first turn, else what a turn leaves."""
        is_first = arithmetic.at_least(terms.negative(turn))
        if self.thread.kernel.width(name) == 1 and first is not None:
            test = predicates.inverted(is_first) if left else is_first
            return predicates.logic("or" if left else "and", [test, first])
        if not isinstance(first, Same) or not terms.is_constant(first.term):
            return None
        number = first.term.get("", 0)
        later = arithmetic.chosen(is_first, _BIT[0], _BIT[1]).term
        term = terms.plus(first.term, later, left - number)
        return Same(term, min(number, left), max(number, left))

    def _counted(self, name: str, first: Same, step: Term, turn: Term) -> Same:
        if not any(step.values()):
            return first
        term = terms.plus(first.term, terms.product(turn, step))
        low, high = self.thread.facts.span(term)
        half = 1 << (self.thread.kernel.width(name) - 2)
        is_number = self.pointers.isdisjoint(first.term) and terms.is_constant(step)
        if is_number and -half <= first.low <= first.high < half:
            self.assumes_no_wrap = True
            grows = step[""] > 0
            low, high = (first.low, half - 1) if grows else (-half, first.high)
        return Same(term, low, high)

    def wrong(self, head: int, way: Way, turn: Turn, end: Way) -> set[str]:
        """Registers that are not as the next turn has them."""
        lost = {n for n, c in turn.left.items() if self.fixed(n, end) != c}
        following = {f"n{head}": 1, "": 1}
        after = self.at_turn(head, way, turn, following).registers
        return lost | {
            name
            for name in (turn.steps.keys() - turn.left.keys()) & self.changed[head]
            if isinstance(self.number(name, way.registers.get(name)), Same)
            and not is_same(self.number(name, end.registers.get(name)), after[name])
        }

    def fixed(self, name: str, way: Way) -> int | None:
        """The number that a register surely holds; 0 or 1 for a predicate."""
        value = self.number(name, way.registers.get(name))
        if isinstance(value, Same) and terms.is_constant(value.term):
            return value.term.get("", 0)
        holds = self.thread.holds(value)
        if holds is None or [[]] not in (holds.true, holds.false):
            return None
        return int(holds.true == [[]])

    def _check_turn(self, head: int, way: Way, turn: Turn, end: Way) -> None:
        if self.wrong(head, way, turn, end):
            raise CertificateError("a turn does not add what the certificate says")
        if not any(all(terms.text(f) in end.facts for f in one) for one in turn.facts):
            raise CertificateError("a turn does not leave what the certificate says")


def _is_unequal(clause: Clause) -> bool:
    """Whether it says that a number is less or more than another: one of them may be
    out of the question, as where a loop ends at a number that counters meet.
    """
    if len(clause) != 2 or any(len(one) != 1 for one in clause):
        return False
    (first,), (second,) = clause
    return terms.is_constant(terms.plus(first, second))


def is_same(one: Value, other: Value) -> bool:
    """Whether two are the same."""
    if one is other:
        return True
    if isinstance(one, Same) and isinstance(other, Same):
        return terms.frozen(one.term) == terms.frozen(other.term)
    if isinstance(one, Holds) and isinstance(other, Holds):
        return terms.clause_text(one.true) == terms.clause_text(other.true)
    if isinstance(one, np.ndarray) and isinstance(other, np.ndarray):
        return bool((one == other).all())
    return False
