"""All ways of one thread through a kernel, as `thread` computes.

Where ways meet, what all know is known, and a register is one of its values, with what
was known where that comes from. At the head of a loop a register is its first value
plus the turn times what a turn adds, if each turn leaves that; and it is the first
turn, or what the one before left at its end holds for it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from math import gcd
from typing import Any

import numpy as np

from alcop_mlir.checker import terms
from alcop_mlir.checker.arithmetic import Holds, Same, Value
from alcop_mlir.checker.flow import Flow
from alcop_mlir.checker.instructions import ENDS, Instruction
from alcop_mlir.checker.numbers_of_thread import Way
from alcop_mlir.checker.terms import Clause, Division, Term
from alcop_mlir.checker.thread import Thread
from alcop_mlir.errors import CertificateError

NO_WRAP = "counters of loops do not wrap around"
_MADE = re.compile(r"[nhuj](\d+)(?:\..*)?")
_MOST_TURNS = 1 << 62
_MOST_VALUES = 4
_Edges = dict[tuple[int, int], Way]


class Ways:
    """Goes them; `visit` gets each instruction, at last; `needed` are followed."""

    def __init__(
        self,
        thread: Thread,
        flow: Flow,
        needed: set[str],
        visit: Callable[[Instruction], None],
    ):
        self.thread, self.flow, self.needed, self.visit = thread, flow, needed, visit
        self.steps: dict[int, dict[str, Term]] = {}
        self.turns: dict[Any, str] = {}
        self.assumes_no_wrap = False
        self.pointers = {f".{name}" for name in thread.given.arrays}
        self.order = [b for b in reversed(flow.reached) if b != flow.end]
        self.changed = {
            head: {
                name
                for b in body
                for ins in flow.code[b : flow.stop[b]]
                for name in ins.results
            }
            & needed
            for head, body in flow.loops.items()
        }

    def run(self) -> None:
        """From the entry."""
        for head, body in self.flow.loops.items():
            for block in self.order:
                into = body.intersection(self.flow.next[block]) - {head}
                if into and block not in body:
                    raise CertificateError("a loop with two ways in")
        self._through(set(self.order), 0, self.thread.start.fork(), True)

    def _through(self, blocks: set[int], first: int, way: Way, last: bool) -> _Edges:
        """Each block once; what is known on edges out of them and back."""
        edges: _Edges = {}
        done: set[int] = set()
        for block in self.order:
            if block not in blocks or block in done:
                continue
            met = [w for (_, to), w in edges.items() if to == block]
            here = way if block == first else self._met(block, met) if met else None
            if here is None:
                continue
            body = self.flow.loops.get(block)
            if body is None or body == blocks:
                edges.update(self._block(block, here, last))
            else:
                edges.update(self._loop(block, here, last))
                done |= body
        return edges

    def _block(self, block: int, way: Way, last: bool) -> _Edges:
        thread = self.thread
        thread.way = way
        for pc in range(block, self.flow.stop[block]):
            thread.state.pc, ins = pc, self.flow.code[pc]
            if last:
                self.visit(ins)
            if not self.needed.isdisjoint(ins.results):
                thread.run(ins)
        following = self.flow.next[block]
        ins = self.flow.code[self.flow.stop[block] - 1]
        test = thread.holds(thread.guard(ins))
        if len(set(following)) < 2:
            return {(block, one): way.fork() for one in following}
        found: _Edges = {}
        for place, one in enumerate(following):
            other = found[block, one] = way.fork()
            if test is not None:
                clause = (
                    test.true if (place == 0) ^ (ins.parts[0] in ENDS) else test.false
                )
                thread.way = other
                if len(clause) > 1:
                    clause = [c for c in clause if not thread.never([c])]
                other.assume(clause)
        return found

    def _met(self, block: int, ways: list[Way]) -> Way:
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
        for name in sorted(first.registers.keys() & self.needed):
            met.registers[name] = self._one(block, name, ways, met)
        return met

    def _one(self, block: int, name: str, ways: list[Way], met: Way) -> Value:
        """What a register holds behind all of the ways."""
        values = [w.registers.get(name) for w in ways]
        if all(v is values[0] for v in values):
            return values[0]
        if any(isinstance(v, Same) for v in values):
            values = [self._number(name, v) for v in values]
        if all(is_same(v, values[0]) for v in values):
            return values[0]
        return self._one_of(block, name, values, ways, met)

    def _number(self, name: str, value: Value) -> Value:
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

    def _loop(self, head: int, way: Way, last: bool) -> _Edges:
        body = self.flow.loops[head]
        if head not in self.steps:
            self.steps[head] = self._find_steps(head, way)
        turn = self.thread.symbol(f"n{head}", 0, _MOST_TURNS).term
        wrong: set[str] | None = None
        start, edges = way, {}
        while wrong is None or wrong:
            steps = self.steps[head]
            self.steps[head] = {
                n: s for n, s in steps.items() if n not in (wrong or ())
            }
            start = self._head(head, way, turn)
            edges = self._through(body, head, start.fork(), False)
            wrong = set(self._wrong(head, way, turn, edges))
        before = self._before(head, turn, start, edges)
        self.turns[terms.clause_text(before)] = f"n{head}"
        start.assume(before)
        found = self._through(body, head, start, last)
        return {edge: w for edge, w in found.items() if edge[1] not in body}

    def _find_steps(self, head: int, way: Way) -> dict[str, Term]:
        """What a turn adds to each register."""
        start, symbols = way.fork(), {}
        for name in sorted(self.changed[head]):
            value = start.registers[name] = self.thread.anything(
                name, f"h{head}.{name}"
            )
            if isinstance(value, Same):
                symbols[name] = value
        before, self.thread.decides = self.thread.decides, False
        edges = self._through(self.flow.loops[head], head, start, False)
        self.thread.decides = before
        ends = [w for (_, to), w in edges.items() if to == head]
        steps: dict[str, Term] = {}
        for name, value in symbols.items():
            left = [self._number(name, end.registers.get(name)) for end in ends]
            adds = {
                terms.frozen(terms.minus(v.term, value.term)): v
                for v in left
                if isinstance(v, Same)
            }
            if len(adds) == 1 and all(isinstance(v, Same) for v in left):
                (end,) = adds.values()
                step = terms.minus(end.term, value.term)
                if not self._changes(head, step):
                    steps[name] = step
        return steps

    def _changes(self, head: int, term: Term) -> bool:
        """Whether a term names what is another number in another turn."""
        made = (_MADE.fullmatch(n) for n in terms.inside(term) - {f"n{head}"})
        body = self.flow.loops[head]
        return any(m and self.flow.block[int(m[1])] in body for m in made)

    def _divides(self, turn: str, term: Term) -> bool:
        """Whether a division of the turn by what is not known is in a term."""
        every = self.thread.facts.deep(term)
        return any(isinstance(s, Division) and turn in s.names for s in every)

    def _head(self, head: int, way: Way, turn: Term) -> Way:
        """What is known at the head, where steps are right."""
        start = way.fork()
        for name in self.changed[head]:
            first = self._number(name, way.registers.get(name))
            step = self.steps[head].get(name)
            if isinstance(first, Same) and step is not None:
                value: Value = self._counted(name, first, step, turn)
            else:
                value = self.thread.anything(name, f"h{head}.{name}")
            start.registers[name] = value
        return start

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

    def _wrong(self, head: int, way: Way, turn: Term, edges: _Edges) -> Iterator[str]:
        """Registers that are not as the next turn has them."""
        after = self._head(head, way, terms.plus(turn, terms.number(1))).registers
        for name in self.steps[head]:
            for (_, to), end in edges.items():
                first, last = way.registers.get(name), end.registers.get(name)
                if to == head and isinstance(self._number(name, first), Same):
                    if not is_same(self._number(name, last), after[name]):
                        yield name

    def _before(self, head: int, turn: Term, start: Way, edges: _Edges) -> Clause:
        """The first turn, or one after another."""
        name = f"n{head}"
        found: Clause = [[terms.negative(turn)]]
        for (_, to), end in edges.items():
            if to == head:
                facts = [
                    terms.replaced(f, {name: terms.plus(turn, terms.number(-1))})
                    for key, f in end.facts.items()
                    if key not in start.facts
                    and name in terms.inside(f)
                    and not self._divides(name, f)
                    and not self._changes(head, f)
                ]
                found.append([terms.plus(turn, terms.number(-1)), *facts])
        return found


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
