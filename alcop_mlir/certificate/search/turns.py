"""What a turn of each loop adds and leaves, searched for on the checker's own ways.

The checker goes each block once, and is told what turns add to registers and which
facts they leave. Here a turn is first gone through with unknown registers: what it
adds to them may be what each turn adds. Then it is gone through as the checker will,
and what differs is dropped, until nothing does. What the first turn leaves is what each
may leave: what a turn does not, that had it from the one before, is dropped likewise.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from alcop_mlir.checker.bounds.numbers_of_thread import Way
from alcop_mlir.checker.bounds.thread import Thread
from alcop_mlir.checker.bounds.ways import Ways
from alcop_mlir.checker.form.certificate import Turn
from alcop_mlir.checker.logic import terms
from alcop_mlir.checker.logic.facts import Answers
from alcop_mlir.checker.logic.terms import (
    Choice,
    Clause,
    Division,
    Product,
    Quotient,
    Term,
)
from alcop_mlir.checker.machine.arithmetic import Same

_Edges = dict[tuple[int, int], Way]


class Turns:
    """Of all loops on the ways of a thread; `found` by their heads."""

    def __init__(self, ways: Ways, answers: Answers):
        thread = ways.thread
        own = Thread(thread.kernel, thread.threads, thread.given, answers)
        self.ways = Ways(own, ways.flow, ways.needed)
        self.found: dict[int, Turn] = {}
        self.flow = ways.flow
        self._through(set(self.ways.order), 0, own.start.fork())

    def _through(self, blocks: set[int], first: int, way: Way) -> _Edges:
        """Each block once; what is known on edges out of them and back."""
        edges: _Edges = {}
        done: set[int] = set()
        for block in self.ways.order:
            if block not in blocks or block in done:
                continue
            met = [w for (_, to), w in edges.items() if to == block]
            if block != first and not met:
                continue
            here = way if block == first else self.ways.met(block, met)
            body = self.flow.loops.get(block)
            if body is None or body == blocks:
                edges |= {
                    (block, to): there
                    for to, there in self.ways.through(block, here, None)
                }
            else:
                edges |= self._loop(block, here)
                done |= body
        return edges

    def _loop(self, head: int, way: Way) -> _Edges:
        body = self.flow.loops[head]
        if head not in self.found:
            self.found[head] = self._turn(head, way)
        turn = replace(self.found[head], facts=[])
        while True:
            start = _first(self.ways.head(head, way, turn), way)
            edges = self._through(body, head, start)
            ends = [w for (_, to), w in edges.items() if to == head]
            wrong = set().union(*(self.ways.wrong(head, way, turn, e) for e in ends))
            if not wrong:
                break
            steps = {n: s for n, s in turn.steps.items() if n not in wrong}
            left = {n: c for n, c in turn.left.items() if n not in wrong}
            turn = Turn(steps, left, [])
        facts = [self._facts(head, start, end) for end in ends]
        while True:
            self.found[head] = replace(turn, facts=facts)
            edges = self._through(
                body, head, self.ways.head(head, way, self.found[head])
            )
            ends = [w for (_, to), w in edges.items() if to == head]
            kept = [*map(_known, facts, ends)]
            if kept == facts:
                return {edge: w for edge, w in edges.items() if edge[1] not in body}
            facts = kept

    def _facts(self, head: int, start: Way, end: Way) -> list[Term]:
        """What is known where the first turn ends, and was not where it started."""
        new = (f for key, f in end.facts.items() if key not in start.facts)
        return [f for f in new if self.ways.is_kept(head, f)]

    def _turn(self, head: int, way: Way) -> Turn:
        """What a turn adds to each register or leaves there, as far as that is soon
        known.
        """
        start, thread = way.fork(), self.ways.thread
        symbols: dict[str, Same] = {}
        for name in sorted(self.ways.changed[head]):
            value = start.registers[name] = thread.anything(name, f"h{head}.{name}")
            if isinstance(value, Same):
                symbols[name] = value
        answers, thread.facts.answers = thread.facts.answers, Answers([], [], [])
        edges = self._through(self.flow.loops[head], head, start)
        thread.facts.answers = answers
        ends = [w for (_, to), w in edges.items() if to == head]
        left: dict[str, int] = {}
        for name in sorted(self.ways.changed[head]):
            number, *others = {self.ways.fixed(name, end) for end in ends}
            if number is not None and not others:
                left[name] = number
        steps: dict[str, Term] = {}
        for name, value in symbols.items():
            after = [self.ways.number(name, end.registers.get(name)) for end in ends]
            adds = [
                terms.minus(v.term, value.term) for v in after if isinstance(v, Same)
            ]
            if len(adds) < len(after) or len({terms.frozen(one) for one in adds}) != 1:
                continue
            if not self.ways.changes(head, adds[0]):
                steps[name] = adds[0]
        return Turn(steps, left, [])


def _first(start: Way, way: Way) -> Way:
    """The first turn's start, where what says that it is the first is no fact: a turn
    may leave that fact.
    """
    for key in start.facts.keys() - way.facts.keys():
        start.clauses[key] = [[start.facts.pop(key)]]
    return start


def _known(facts: list[Term], way: Way) -> list[Term]:
    return [f for f in facts if terms.text(f) in way.facts]


def encoded(turn: Turn) -> dict[str, Any]:
    """As JSON values, with what symbols stand for."""
    table = _Table()
    steps = {name: table.term(step) for name, step in sorted(turn.steps.items())}
    facts = [[table.term(fact) for fact in one] for one in turn.facts]
    left = dict(sorted(turn.left.items()))
    return {"steps": steps, "left": left, "facts": facts, "symbols": table.symbols}


class _Table:
    """Names for symbols that stand for something."""

    def __init__(self) -> None:
        self.symbols: dict[str, Any] = {}
        self._names: dict[str, str] = {}

    def term(self, term: Term) -> list[Any]:
        """`[constant, [symbol, factor], ...]`."""
        parts = sorted((s, c) for s, c in term.items() if s and c)
        return [term.get("", 0), *([self.name(s), c] for s, c in parts)]

    def clause(self, clause: Clause) -> list[Any]:
        """A list of alternatives, each a list of terms."""
        return [[self.term(fact) for fact in one] for one in clause]

    def name(self, symbol: str) -> str:
        """The name in the table, or the symbol itself."""
        made = self._made(symbol)
        if made is None:
            return symbol
        if symbol not in self._names:
            self._names[symbol] = f"#{len(self._names)}"
            self.symbols[self._names[symbol]] = made
        return self._names[symbol]

    def _made(self, symbol: str) -> dict[str, Any] | None:
        if isinstance(symbol, Quotient):
            return {"dividend": self.term(symbol.dividend), "divisor": symbol.divisor}
        if isinstance(symbol, Product):
            return {"factors": list(map(self.name, symbol.factors))}
        if isinstance(symbol, Division):
            parts = self.term(symbol.dividend), self.term(symbol.by)
            return {"dividend": parts[0], "by": parts[1], "is_rest": symbol.is_rest}
        if isinstance(symbol, Choice):
            return {
                "if": self.clause(symbol.true),
                "unless": self.clause(symbol.false),
                "then": self.term(symbol.first),
                "else": self.term(symbol.second),
            }
        return None
