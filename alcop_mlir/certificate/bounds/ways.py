"""All ways of one thread through a kernel, each block once where that is enough.

Where ways meet, what all of them know is known; a register that differs is one of its
values, with what was known on that way. At the head of a loop a counter is its first
value plus the turn times a step, or what turns leave if it is not the first, if what
the turn leaves says so, and what was known at the end of the turn before holds for that
one.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Set

from alcop_mlir.certificate import linear
from alcop_mlir.certificate.bounds.thread import Held, Thread, Way
from alcop_mlir.certificate.bounds.values import (
    divided,
    is_same,
    is_unequal,
    number_of,
)
from alcop_mlir.certificate.endings import changes
from alcop_mlir.certificate.linear import Clause, Linear, constant
from alcop_mlir.certificate.program import ENDS
from alcop_mlir.certificate.uniform_arithmetic import limits_of
from alcop_mlir.certificate.values import Truth, Uniform
from alcop_mlir.certificate.verdicts import Outside
from alcop_mlir.runtime.emulator.ptx.syntax import Instruction

NO_WRAP = "counters of loops do not wrap around"
_MOST_TURNS = 1 << 62
_MOST_VALUES = 4  # of a register where ways meet
_Edge = tuple[int, int]
_Steps = Mapping[str, Linear]


class Ways:
    """Goes them; `visit` is called at each instruction, the last time it is reached.

    needed: the registers that are followed
    """

    def __init__(
        self, thread: Thread, needed: Set[str], visit: Callable[[Instruction], None]
    ):
        self.thread, self.code = thread, thread.code
        self.needed, self.visit = needed, visit
        self.order = [b for b in reversed(self.code.left) if b != self.code.end]
        self.steps: dict[int, _Steps] = {}
        self.left: dict[int, Mapping[str, int]] = {}
        self.pointers = {f".{name}" for name in thread.given.arrays}
        self.assumed: set[str] = set()
        self.turns: dict[Clause, str] = {}

    def run(self) -> None:
        """From the entry to the end."""
        for head, body in self.code.loops.items():
            for block in body - {head}:
                if not body.issuperset(self.code.before[block]):
                    line = self.code.instructions[block].line
                    raise Outside("a loop with two ways in", line)
        start = self.thread.start.fork()
        self._through(set(self.order), 0, start, 0 in self.code.loops, True)

    def _through(
        self, blocks: Set[int], first: int, way: Way, is_loop: bool, is_last: bool
    ) -> dict[_Edge, Way]:
        """All blocks once, from the first; what is known on each edge that leaves them
        or goes back to the first.
        """
        edges: dict[_Edge, Way] = {}
        done: set[int] = set()
        for block in self.order:
            if block not in blocks or block in done:
                continue
            if block == first:
                here = way
            else:
                met = [w for (_, to), w in edges.items() if to == block]
                if not met:
                    continue
                here = self._met(block, met)
            body = self.code.loops.get(block)
            if body is None or (block == first and is_loop):
                edges.update(self._block(block, here, is_last))
            else:
                edges.update(self._loop(block, here, is_last))
                done |= body
        return edges

    def _block(self, block: int, way: Way, is_last: bool) -> dict[_Edge, Way]:
        code, thread = self.code, self.thread
        thread.way = way
        for pc in range(block, code.stop[block]):
            thread.pc = pc
            ins = code.instructions[pc]
            if is_last:
                self.visit(ins)
            if not self.needed.isdisjoint(code.written[pc]):
                thread.execute(ins)
        ins = code.instructions[code.stop[block] - 1]
        following = code.following[block]
        if ins.guard is None or len(following) < 2:
            return {(block, one): way.fork() for one in following}
        thread.pc = code.stop[block] - 1
        test = thread.guard(ins)
        goes = following[0] if ins.parts[0] not in ENDS else following[1]
        found: dict[_Edge, Way] = {}
        for one in following:
            other = way.fork()
            if isinstance(test, Truth) and following[0] != following[1]:
                condition = test.condition
                thread.way = other
                other.assume(
                    self._left(condition.true if one == goes else condition.false)
                )
            found[block, one] = other
        return found

    def _left(self, clause: Clause) -> Clause:
        """The alternatives that may hold, as far as that is soon known."""
        if not is_unequal(clause):
            return clause
        return tuple(one for one in clause if not self.thread.clashes(one))

    # Where ways meet.

    def _met(self, block: int, ways: list[Way]) -> Way:
        first, *rest = ways
        if not rest:
            return first
        facts = {f: None for f in first.facts if all(f in w.facts for w in rest)}
        clauses = {c: None for c in first.clauses if all(c in w.clauses for w in rest)}
        clauses.update(self._turns(ways))
        met = Way({}, facts, clauses)
        apart = tuple(tuple(f for f in w.facts if f not in facts) for w in ways)
        if all(apart) and max(map(len, apart)) > 1 and len(ways) <= _MOST_VALUES:
            met.clauses[apart] = None
        for name in first.registers:
            if name not in self.needed or name not in self.code.live[block]:
                continue
            values = [w.registers.get(name) for w in ways]
            if all(is_same(v, values[0]) for v in values):
                met.registers[name] = values[0]
            else:
                symbol = f"j{block}.{name}"
                met.registers[name] = self._one_of(name, symbol, values, ways, met)
        return met

    def _turns(self, ways: list[Way]) -> dict[Clause, None]:
        """What is known of turns of loops that only some ways have gone through: the
        others may say that of no turn, as they say nothing else of it.
        """
        symbols = self.thread.symbols.symbols
        found: dict[Clause, None] = {}
        for way in ways:
            for clause in way.clauses.keys() & self.turns.keys():
                turn = self.turns[clause]
                others = [w for w in ways if clause not in w.clauses]
                if not any(turn in symbols(f) for w in others for f in w.facts):
                    found[clause] = None
        return found

    def _one_of(
        self, register: str, symbol: str, values: list[Held], ways: list[Way], met: Way
    ) -> Held:
        """A register that holds one of some values."""
        numbers = [v for v in values if isinstance(v, Uniform)]
        if len(numbers) < len(values) or len(values) > _MOST_VALUES:
            return self.thread.unknown(register, symbol)
        first, *rest = (v.term.terms for v in numbers)
        common = Linear(
            {s: c for s, c in first.items() if all(t.get(s) == c for t in rest)}
        )
        low, high = min(v.low for v in numbers), max(v.high for v in numbers)
        size, own = self._parts([v.term - common for v in numbers])
        ranges = [self.thread.symbols.range_of_term(term) for term in own]
        least, most = min(a for a, _ in ranges), max(b for _, b in ranges)
        found = self.thread.plain(symbol, least, most).term
        clause: Clause = tuple(
            (
                *(found - term, term - found),
                *(f for f in way.facts if f not in met.facts),
            )
            for term, way in zip(own, ways, strict=True)
        )
        met.clauses[clause] = None
        term = common + self.thread.symbols.product(size, found)
        return Uniform(term, low, high)

    def _parts(self, terms: list[Linear]) -> tuple[Linear, list[Linear]]:
        """A number, or a number and a size, that divides all; and what it leaves."""
        symbols = self.thread.symbols
        names = {one for t in terms for n in t.terms for one in symbols.factors(n)}
        for name in sorted(filter(symbols.is_size, names)):
            parts = [symbols.split(term, name) for term in terms]
            if not any(rest.terms or rest.constant for _, rest in parts):
                by, terms = divided([times for times, _ in parts])
                return Linear({name: by}), terms
        by, terms = divided(terms)
        return constant(by), terms

    # Loops.

    def _loop(self, head: int, way: Way, is_last: bool) -> dict[_Edge, Way]:
        body = self.code.loops[head]
        if head not in self.steps:
            self.steps[head], self.left[head] = self._find_steps(head, way)
        turn = self.thread.plain(f"n{head}", 0, _MOST_TURNS).term
        while True:
            start = self._head(head, way, turn)
            edges = self._through(body, head, start.fork(), True, False)
            wrong = self._wrong(head, way, turn, edges)
            if not wrong:
                break
            kept = {n: s for n, s in self.steps[head].items() if n not in wrong}
            left = {n: c for n, c in self.left[head].items() if n not in wrong}
            self.steps[head], self.left[head] = kept, left
        edges = self._guessed(head, turn, start, edges)
        before = self._before(head, turn, start, edges)
        start.assume(before)
        self.turns[before] = f"n{head}"
        found = self._through(body, head, start, True, is_last)
        return {edge: w for edge, w in found.items() if edge[1] not in body}

    def _guessed(
        self, head: int, turn: Linear, start: Way, edges: Mapping[_Edge, Way]
    ) -> Mapping[_Edge, Way]:
        """The edges, where turns that go on where they are not a number are known to be
        below that: they are, if the turn before was.
        """
        known = {edge: way.fork() for edge, way in edges.items()}
        guesses: list[tuple[_Edge, Linear]] = []
        for edge, end in edges.items():
            new = (c for c in end.clauses if c not in start.clauses)
            sides = (one[0] for clause in filter(is_unequal, new) for one in clause)
            if edge[1] == head:
                below = (f for f in sides if f.terms.get(f"n{head}", 0) < 0)
                guesses += [(edge, f) for f in below]
        for edge, fact in guesses:
            known[edge].facts[fact] = None
        if not guesses:
            return edges
        tried = start.fork()
        tried.assume(self._before(head, turn, start, known))
        again = self._through(self.code.loops[head], head, tried, True, False)
        return again if all(f in again[edge].facts for edge, f in guesses) else edges

    def _find_steps(self, head: int, way: Way) -> tuple[_Steps, dict[str, int]]:
        """What each turn adds to registers or leaves there, by one turn of unknown
        ones.
        """
        start = way.fork()
        unknown: dict[str, Uniform] = {}
        for name in self._changed(head):
            low, high = limits_of(self.code.width(name))
            if high:
                unknown[name] = self.thread.plain(f"h{head}.{name}", low, high)
                start.registers[name] = unknown[name]
            else:
                start.registers[name] = self.thread.unknown(name, f"h{head}.{name}")
        before, self.thread.decides = self.thread.decides, False
        edges = self._through(self.code.loops[head], head, start, True, False)
        self.thread.decides = before
        ends = [w.registers for (_, to), w in edges.items() if to == head]
        steps: dict[str, Linear] = {}
        for name, value in unknown.items():
            found = [end.get(name) for end in ends]
            terms = {v.term - value.term for v in found if isinstance(v, Uniform)}
            if len(terms) == 1 and all(isinstance(v, Uniform) for v in found):
                (step,) = terms
                if not self._changes(head, step):
                    steps[name] = step
        left: dict[str, int] = {}
        for name in self._changed(head):
            number, *others = {number_of(end.get(name)) for end in ends}
            if number is not None and not others:
                left[name] = number
        return steps, left

    def _changed(self, head: int) -> list[str]:
        return sorted(self.code.changed[head] & self.needed)

    def _changes(self, head: int, *terms: Linear) -> bool:
        """Whether terms are others in another turn, even where the turn is the same."""
        symbols, loop = self.thread.symbols, self.code.loops[head]
        inside = set(self.code.pcs(loop))
        names = set().union(*map(symbols.symbols, terms)) - {f"n{head}"}
        return any(changes(name, inside) for name in names)

    def _divides(self, head: int, term: Linear) -> bool:
        """Whether a quotient of the turn by what is not known is in a term."""
        symbols = self.thread.symbols
        every = symbols.symbols(term) & symbols.divisions.keys()
        return any(f"n{head}" in symbols.divisions[name] for name in every)

    def _head(self, head: int, way: Way, turn: Linear) -> Way:
        """What is known at the head in any turn, for steps that are right."""
        start = way.fork()
        for name in self._changed(head):
            first, step = way.registers.get(name), self.steps[head].get(name)
            value: Held = None
            if name in self.left[head]:
                value = self._after_first(first, self.left[head][name], turn)
            elif isinstance(first, Uniform) and step is not None:
                value = self._counted(name, first, step, turn)
            if value is None:
                value = self.thread.unknown(name, f"h{head}.{name}")
            start.registers[name] = value
        return start

    def _after_first(self, first: Held, left: int, turn: Linear) -> Held:
        """`first` in the first turn, else what a turn leaves."""
        is_first = linear.at_least(-turn)
        known = number_of(first)
        if known is None or known == left:
            return None if known is None else first
        if isinstance(first, Truth):
            return Truth(linear.negated(is_first) if left else is_first)
        later = self.thread.symbols.choice(is_first, constant(0), constant(1))
        term = later * (left - known) + known
        return Uniform(term, min(known, left), max(known, left))

    def _counted(
        self, name: str, first: Uniform, step: Linear, turn: Linear
    ) -> Uniform:
        if not step.terms and not step.constant:
            return first
        symbols = self.thread.symbols
        term = first.term + symbols.product(turn, step)
        low, high = symbols.range_of_term(term)
        half = 1 << (self.code.width(name) - 2)
        is_counter = not step.terms and -half <= first.low <= first.high < half
        if is_counter and not self.pointers & first.term.terms.keys():
            self.assumed.add(NO_WRAP)
            grows = step.constant > 0
            low, high = (first.low, half - 1) if grows else (-half, first.high)
        return Uniform(term, low, high)

    def _wrong(
        self, head: int, way: Way, turn: Linear, edges: Mapping[_Edge, Way]
    ) -> set[str]:
        """Registers that a turn does not leave as the next one has them."""
        expected = self._head(head, way, turn + 1).registers
        lost = {
            name
            for name, number in self.left[head].items()
            for (_, to), end in edges.items()
            if to == head and number_of(end.registers.get(name)) != number
        }
        return lost | {
            name
            for name in self.steps[head].keys() - self.left[head].keys()
            for (_, to), end in edges.items()
            if to == head
            and isinstance(way.registers.get(name), Uniform)
            and not is_same(end.registers.get(name), expected[name])
        }

    def _before(
        self, head: int, turn: Linear, start: Way, edges: Mapping[_Edge, Way]
    ) -> Clause:
        """It is the first turn, or what the one before left holds for that."""
        symbols = self.thread.symbols
        values = {f"n{head}": turn - 1}
        found: list[tuple[Linear, ...]] = [(-turn,)]
        for (_, to), end in edges.items():
            if to != head:
                continue
            facts = [
                symbols.replaced(f, values)
                for f in end.facts
                if f not in start.facts
                and f"n{head}" in symbols.symbols(f)
                and not self._divides(head, f)
                and not self._changes(head, f)
            ]
            found.append((turn - 1, *facts))
        return tuple(found)
