"""What instructions leave in the registers of one thread."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from alcop_mlir.certificate import linear
from alcop_mlir.certificate.bounds.arithmetic import ThreadArithmetic
from alcop_mlir.certificate.bounds.preconditions import Preconditions, Sizes, alone
from alcop_mlir.certificate.bounds.products import ProductRefuter
from alcop_mlir.certificate.bounds.terms import ProductSymbols
from alcop_mlir.certificate.comparisons import (
    COMPARISONS,
    UNSIGNED,
    condition,
    unsigned_condition,
)
from alcop_mlir.certificate.exact_arithmetic import scalar_types
from alcop_mlir.certificate.linear import Clause, Condition, Linear, constant
from alcop_mlir.certificate.program import Code
from alcop_mlir.certificate.uniform_arithmetic import NoTerm, limits_of
from alcop_mlir.certificate.values import (
    MOST_BLOCKS,
    PAST_ADDRESSES,
    WARP,
    Truth,
    Uniform,
    masked,
    signed,
    width_of,
)
from alcop_mlir.runtime.emulator.ptx.syntax import (
    Address,
    Instruction,
    Integer,
    Name,
    Negated,
    Operand,
    elements,
)

_AXES = ("%ctaid.x", "%ctaid.y", "%ctaid.z")
Held = Uniform | Truth | None


@dataclass
class Way:
    """What is known where a thread is; of each clause one alternative holds."""

    registers: dict[str, Held] = field(default_factory=dict)
    facts: dict[Linear, None] = field(default_factory=dict)
    clauses: dict[Clause, None] = field(default_factory=dict)

    def fork(self) -> Way:
        """One that goes another way."""
        return Way(dict(self.registers), dict(self.facts), dict(self.clauses))

    def assume(self, clause: Clause) -> None:
        """One of the alternatives holds."""
        if not clause:
            return
        first, *rest = clause
        shared = [f for f in first if all(f in one for one in rest)]
        self.facts.update(dict.fromkeys(f for f in shared if f.terms))
        if rest:
            self.clauses[clause] = None


class Thread:
    """Computes, at the instruction `pc`, of what is known on the `way`.

    decides: whether facts are asked; else nothing follows from them
    """

    decides = True

    def __init__(self, code: Code, threads: int, given: Preconditions):
        self.code, self.threads, self.given = code, threads, given
        self.symbols = ProductSymbols(threads)
        self.parameters = {one.name: one.size for one in code.kernel.parameters}
        self.sizes = Sizes(self.symbols, given, self.parameters)
        self.refuter = ProductRefuter(self.symbols)
        self.arithmetic = ThreadArithmetic(
            self.symbols, self.follows, lambda: self.way.facts
        )
        self.pc, self.way = 0, Way()
        self.start = self._start()

    def _start(self) -> Way:
        """What is known at the entry, of the grid."""
        facts = (self.sizes.term(one) for one in self.given.facts)
        way = Way(facts={one: None for one in facts if one.terms})
        for axis in _AXES:
            if axis in self.given.grid:
                blocks, facts = self.sizes.of_grid(axis)
                last = blocks - self._special(axis).term - 1
                limit = -blocks + MOST_BLOCKS
                facts = [*facts, last, limit] if last.terms else []
                way.facts.update(dict.fromkeys(facts))
        return way

    def follows(self, fact: Linear) -> bool:
        """Whether a fact surely holds here."""
        if not self.decides:
            return False
        return self.refuter.follows(fact, self.way.facts, self.way.clauses)

    def refuted(self, clause: Clause) -> bool:
        """Whether no alternative can hold here."""
        if not self.decides:
            return False
        return self.refuter.refuted(self.way.facts, self.way.clauses, clause)

    def clashes(self, facts: tuple[Linear, ...]) -> bool:
        """The same of facts, without a look at each thread."""
        if not self.decides:
            return False
        return self.refuter.contradicts(facts, self.way.facts, self.way.clauses)

    # Operands.

    def value(self, operand: Operand, width: int) -> Held:
        """What an operand holds."""
        if isinstance(operand, Integer) and width == 1:
            return always(bool(operand.value & 1))
        if isinstance(operand, Integer):
            bits = operand.value & ((1 << width) - 1)
            number = bits - (1 << width) * (bits >> (width - 1))
            return Uniform(constant(number), number, number)
        if isinstance(operand, Negated):
            return inverted(self.value(operand.operand, width))
        if not isinstance(operand, Name):
            return None
        name = operand.name
        if name in self.way.registers:
            return self.way.registers[name]
        if name.startswith("%") and name.split(".")[0] in (
            "%tid",
            "%ntid",
            "%ctaid",
            "%nctaid",
            "%laneid",
        ):
            return self._special(name)
        if name.startswith("%"):
            return None
        return self.plain(f"&{name}", 0, PAST_ADDRESSES)

    def _special(self, name: str) -> Uniform:
        kind, _, axis = name.partition(".")
        if name in ("%laneid", "%tid.x"):
            numbers = np.arange(self.threads) % (WARP if axis == "" else self.threads)
            return self.arithmetic.of_threads(numbers)
        if kind in ("%tid", "%ntid"):
            count = self.threads if axis == "x" else 1
            if kind == "%tid":
                return self.plain(name, 0, count - 1)
            return Uniform(constant(count), count, count)
        grid = self.given.grid.get(f"%ctaid.{axis}")
        if grid is None:
            return self.plain(name, 0, MOST_BLOCKS)
        blocks, _ = self.sizes.of_grid(f"%ctaid.{axis}")
        most = min(MOST_BLOCKS, self.symbols.range_of_term(blocks)[1])
        if kind == "%ctaid":
            return self.plain(name, 0, max(most - 1, 0))
        return Uniform(blocks, 1, most)

    def plain(self, name: str, low: int, high: int) -> Uniform:
        """A symbol as a value; where it can be one number only, that."""
        if low == high:
            return Uniform(constant(low), low, low)
        return Uniform(self.symbols.plain(name, low, high), low, high)

    def guard(self, ins: Instruction) -> Held:
        """The predicate under which it is executed."""
        if ins.guard is None:
            return always(True)
        name, is_negated = ins.guard
        value = self.way.registers.get(name)
        return inverted(value) if is_negated else value

    # Results.

    def execute(self, ins: Instruction) -> None:
        """Leaves what it makes in registers."""
        written = self.code.written[self.pc]
        for number, register in enumerate(written):
            value = self._computed(ins) if len(written) == 1 else None
            if value is None:
                value = self.unknown(register, f"u{self.pc}.{number}")
            if ins.guard is not None:
                value = self._guarded(ins, register, value)
            self.way.registers[register] = value

    def _guarded(self, ins: Instruction, register: str, value: Held) -> Held:
        test, old = self.guard(ins), self.way.registers.get(register)
        if isinstance(test, Truth):
            if self.refuted(test.condition.false):
                return value
            if isinstance(value, Uniform) and isinstance(old, Uniform):
                return self._chosen(test, value, old)
        return self.unknown(register, f"u{self.pc}.g")

    def unknown(self, register: str, name: str) -> Held:
        """Any number or truth that a register may hold."""
        width = self.code.width(register)
        if width == 1:
            bit = self.symbols.plain(name, 0, 1)
            return Truth(linear.at_least(bit - 1))
        low, high = limits_of(width)
        return self.plain(name, low, high)

    def _computed(self, ins: Instruction) -> Held:
        first, last = ins.parts[0], ins.parts[-1]
        width = width_of(last)
        if first == "ld":
            return self._loaded(ins, width)
        operands = [e for o in ins.operands[1:] for e in elements(o)]
        if len(operands) != len(ins.operands) - 1:
            return None
        values = [self.value(one, width) for one in operands]
        if first in ("mov", "cvta") and len(values) == 1:
            return values[0]
        if first == "setp":
            return self._compared(ins, values, width)
        if last == "pred":
            return self._logic(first, values)
        if first == "selp":
            return self._selected(values)
        if not all(isinstance(v, Uniform) for v in values) or not values:
            return None
        numbers = [v for v in values if isinstance(v, Uniform)]
        try:
            found = self.arithmetic.compute(ins.parts, numbers)
        except NoTerm:
            low, high = self.arithmetic.limits(ins.parts, numbers)
            return self._held(ins, self.plain(f"u{self.pc}.0", low, high))
        self.way.facts.update(dict.fromkeys(self.arithmetic.noted))
        return self._held(ins, found)

    def _held(self, ins: Instruction, found: Uniform) -> Held:
        """As the register holds it: its other bits are those of the number."""
        types = scalar_types(ins.parts)
        width = self.code.width(self.code.written[self.pc][0])
        out = types[0][1] * (2 if "wide" in ins.parts else 1) if types else 0
        return found if out == width else None

    def _loaded(self, ins: Instruction, width: int) -> Held:
        place = ins.operands[1]
        if "param" not in ins.parts or not isinstance(place, Address):
            return self._narrow(ins, width)
        name = place.base or ""
        is_whole = not place.offset and self.parameters.get(name) == width // 8
        own = self.code.width(self.code.written[self.pc][0])
        if not is_whole or width != own or ins.parts[-1][0] == "f":
            return None
        if name in self.given.arrays:
            return self.plain(f".{name}", 0, PAST_ADDRESSES)
        term = self.sizes.term(self.given.values.get(name, alone(name)))
        low, high = self.symbols.range_of_term(term)
        least, most = limits_of(width)
        if least <= low and high <= most:
            return Uniform(term, low, high)
        return (
            None if name in self.given.values else self.plain(f".{name}", least, most)
        )

    def _narrow(self, ins: Instruction, width: int) -> Held:
        """What is loaded of fewer bits than the register has."""
        kind = ins.parts[-1][0]
        own = self.code.width(self.code.written[self.pc][0])
        if width >= own or width_of(ins.parts[-1]) != width or kind not in "us":
            return None
        low, high = limits_of(width) if kind == "s" else (0, (1 << width) - 1)
        return self.plain(f"u{self.pc}.0", low, high)

    def _compared(self, ins: Instruction, values: list[Held], width: int) -> Held:
        types = scalar_types(ins.parts)
        if len(values) != 2 or not types or types[-1][0] == "f":
            return None
        first, second = values
        if not isinstance(first, Uniform) or not isinstance(second, Uniform):
            return None
        try:
            a, b = (self.arithmetic.number(v, width) for v in (first, second))
        except NoTerm:
            return None
        name = UNSIGNED.get(ins.parts[1], ins.parts[1])
        if name not in COMPARISONS:
            return None
        is_unsigned = types[-1][0] in "ub" or ins.parts[1] in UNSIGNED
        x, y = (self.symbols.in_threads(v.term) for v in (a, b))
        if x is not None and y is not None:
            reader = masked if is_unsigned else signed
            read = [reader(one.astype(np.uint64), width) for one in (x, y)]
            return self._in_threads(COMPARISONS[name](*read))
        if is_unsigned and name not in ("eq", "ne") and min(a.low, b.low) < 0:
            return Truth(unsigned_condition(name, a.term, b.term))
        return Truth(condition(name, a.term, b.term))

    def _in_threads(self, holds: np.ndarray) -> Truth:
        """A predicate of which it is known in which threads it holds."""
        bit = self.symbols.of_threads(holds.astype(np.int64))
        if not bit.terms:
            return always(bool(bit.constant))
        return Truth(linear.at_least(bit - 1))

    def _threads_of(self, value: Held) -> np.ndarray | None:
        """In which threads a predicate holds, where that is known."""
        if not isinstance(value, Truth):
            return None
        true = value.condition.true
        if len(true) != 1 or len(true[0]) != 1:
            return np.full(self.threads, bool(true)) if true in ((), ((),)) else None
        numbers = self.symbols.in_threads(true[0][0])
        return None if numbers is None else numbers >= 0

    def _logic(self, name: str, values: list[Held]) -> Held:
        lanes = [self._threads_of(v) for v in values]
        known = [one for one in lanes if one is not None]
        of = {"and": np.logical_and, "or": np.logical_or, "xor": np.logical_xor}
        if len(known) == len(values) == 2 and name in of:
            return self._in_threads(of[name](*known))
        return _logic(name, values)

    def _selected(self, values: list[Held]) -> Held:
        first, second, test = values
        if not isinstance(first, Uniform) or not isinstance(second, Uniform):
            return None
        if not isinstance(test, Truth):
            return None
        holds = self._threads_of(test)
        x, y = (self.symbols.in_threads(v.term) for v in (first, second))
        if holds is not None and x is not None and y is not None:
            return self.arithmetic.of_threads(np.where(holds, x, y))
        return self._chosen(test, first, second)

    def _chosen(self, test: Truth, first: Uniform, second: Uniform) -> Held:
        return self.arithmetic.chosen(test.condition, first, second)


def always(holds: bool) -> Truth:
    """A predicate that always or never holds."""
    return Truth(Condition(((),), ()) if holds else Condition((), ((),)))


def inverted(value: Held) -> Held:
    """The opposite of a predicate."""
    return Truth(linear.negated(value.condition)) if isinstance(value, Truth) else None


def _logic(name: str, values: list[Held]) -> Held:
    sides = [v.condition for v in values if isinstance(v, Truth)]
    if len(sides) < len(values) or name not in ("mov", "not", "and", "or"):
        return None
    if name == "mov":
        return Truth(sides[0])
    if name == "not":
        return Truth(linear.negated(sides[0]))
    if name == "and":
        return Truth(linear.both(*sides))
    return Truth(linear.negated(linear.both(*map(linear.negated, sides))))
