"""What instructions leave in the registers of one thread, which stands for all.

A predicate is known in each thread, or by what holds where it does.
"""

from __future__ import annotations

import numpy as np

from alcop_mlir.checker import arithmetic, predicates, terms
from alcop_mlir.checker.arithmetic import Holds, Same, Unknown, limits, types_of
from alcop_mlir.checker.facts import Answers
from alcop_mlir.checker.form import Promises
from alcop_mlir.checker.instructions import (
    NUMBER,
    PLACE,
    Instruction,
    integer,
    items,
)
from alcop_mlir.checker.numbers_of_thread import Held, Numbers, Way
from alcop_mlir.checker.registers import WARP
from alcop_mlir.checker.terms import Term
from alcop_mlir.checker.text import Kernel

_POINTER, _BLOCKS = 1 << 47, (1 << 31) - 1


class Thread(Numbers):
    """Computes at instruction `pc`."""

    def __init__(self, kernel: Kernel, threads: int, given: Promises, answers: Answers):
        super().__init__(threads, answers)
        self.kernel, self.given, self.pc = kernel, given, 0
        self.start = Way()
        self.start.know([self.polynomial(one) for one in given.facts])
        for axis in given.grid:
            counts = self._counts(axis)
            self.start.know([terms.plus(n, terms.number(-1)) for n in counts])
            last = terms.minus(self._blocks(axis), self._special(axis).term)
            self.start.know([terms.plus(last, terms.number(-1))])

    # Sizes.

    def polynomial(self, value: list[tuple[int, tuple[str, ...]]]) -> Term:
        """The term of a polynomial in sizes."""
        found = terms.number(0)
        for factor, names in value:
            product = terms.number(factor)
            for name in names:
                any_number = (*limits(8 * self.kernel.sizes.get(name, 8)), 1)
                low, high, by = self.given.sizes.get(name, any_number)
                self.facts.limit(f".{name}/{by}", -(-low // by), high // by)
                product = terms.product(product, {f".{name}/{by}": by})
            found = terms.plus(found, product)
        return found

    def _counts(self, axis: str) -> list[Term]:
        return [
            terms.quotient(terms.plus(self.polynomial(value), terms.number(by - 1)), by)
            for value, by in self.given.grid[axis]
        ]

    def _blocks(self, axis: str) -> Term:
        found = terms.number(1)
        for count in self._counts(axis):
            found = terms.product(found, count)
        return found

    # Operands.

    def value(self, operand: str, width: int) -> Held:
        """What an operand holds."""
        if operand in self.way.registers:
            return self.way.registers[operand]
        if NUMBER.fullmatch(operand):
            number = integer(operand) % 2**width
            number -= 2**width * (number >> (width - 1))
            return Same(terms.number(number), number, number)
        if operand.startswith("!"):
            return self.inverted(self.value(operand[1:].strip(), width))
        if operand.split(".")[0] in ("%tid", "%ntid", "%ctaid", "%nctaid", "%laneid"):
            return self._special(operand)
        if operand[0] == "%" or operand[0].isdigit() or operand.startswith("-"):
            return None
        return self.symbol(f"&{operand}", 0, _POINTER)

    def _special(self, name: str) -> Same:
        kind, _, axis = name.partition(".")
        if name in ("%tid.x", "%laneid"):
            every = np.arange(self.threads)
            return self.of_threads(every if axis else every % WARP)
        if kind in ("%tid", "%ntid"):
            count = self.threads if axis == "x" else 1
            low = 0 if kind == "%tid" else count
            return self.symbol(name, low, max(low, count - 1))
        if f"%ctaid.{axis}" not in self.given.grid:
            return self.symbol(name, 0, _BLOCKS)
        blocks = self._blocks(f"%ctaid.{axis}")
        most = min(_BLOCKS, self.facts.span(blocks)[1])
        if kind == "%ctaid":
            return self.symbol(name, 0, max(most - 1, 0))
        return Same(blocks, 1, most)

    def guard(self, ins: Instruction) -> Held:
        """Under which predicate an instruction is executed."""
        if not ins.guard:
            return np.ones(self.threads, bool)
        value = self.way.registers.get(ins.guard)
        return self.inverted(value) if ins.is_negated else value

    def inverted(self, value: Held) -> Held:
        """The opposite of a predicate."""
        if isinstance(value, np.ndarray):
            return ~value
        return Holds(value.false, value.true) if isinstance(value, Holds) else None

    def holds(self, value: Held) -> Holds | None:
        """A predicate by what holds where it does."""
        if not isinstance(value, np.ndarray):
            return value if isinstance(value, Holds) else None
        bit = self.facts.of_threads(value.astype(np.int64))
        if terms.is_constant(bit):
            return Holds([[]], []) if bit[""] else Holds([], [[]])
        return arithmetic.at_least(terms.plus(bit, terms.number(-1)))

    # Results.

    def execute(self, ins: Instruction) -> None:
        """Leaves what it makes."""
        for number, register in enumerate(ins.results):
            value = self._computed(ins) if len(ins.results) == 1 else None
            if value is None:
                value = self.unknown(register, f"u{self.pc}.{number}")
            if ins.guard:
                value = self._merged(ins, register, value)
            self.way.registers[register] = value

    def _merged(self, ins: Instruction, register: str, value: Held) -> Held:
        test, old = self.holds(self.guard(ins)), self.way.registers.get(register)
        if test is not None and self.never(test.false):
            return value
        if test is not None and isinstance(value, Same) and isinstance(old, Same):
            return arithmetic.chosen(test, value, old)
        return self.unknown(register, f"u{self.pc}.g")

    def unknown(self, register: str, name: str) -> Held:
        """Anything that a register may hold."""
        width = self.kernel.width(register)
        if width > 1:
            return self.symbol(name, *limits(width))
        bit = self.symbol(name, 0, 1).term
        return arithmetic.at_least(terms.plus(bit, terms.number(-1)))

    def _computed(self, ins: Instruction) -> Held:
        parts, last, width = ins.parts, ins.parts[-1], ins.width
        if parts[0] == "ld":
            return self._loaded(ins, width)
        operands = ins.operands[1:]
        if any(len(items(one)) != 1 or one.startswith("{") for one in operands):
            return None
        values = [self.value(one, width) for one in operands]
        if parts[0] in ("mov", "cvta") and len(values) == 1:
            return values[0]
        if last == "pred":
            return self._logic(parts[0], values)
        numbers = [v for v in values if isinstance(v, Same)]
        if parts[0] == "selp" and len(numbers) == 2:
            return self._selected(numbers, values[2])
        if len(numbers) < len(values) or not values:
            return None
        kinds, self.noted = types_of(parts), []
        if not kinds or any(kind == "f" for kind, _ in kinds):
            return None
        try:
            if parts[0] == "setp":
                return self._compared(parts, numbers, width)
            found = self.result(parts, numbers, kinds)
        except Unknown:
            low, high = limits(width)
            masks = [v.low for v in numbers if v.low == v.high and v.low >= 0]
            if parts[0] == "setp":
                return None
            if parts[0] == "and" and masks:
                low, high = 0, min(masks)
            found = self.symbol(f"u{self.pc}.0", low, high)
        self.way.know(self.noted)
        out = kinds[0][1] * (2 if "wide" in parts else 1)
        return found if out == self.kernel.width(ins.results[0]) else None

    def _loaded(self, ins: Instruction, width: int) -> Held:
        own, kind = self.kernel.width(ins.results[0]), ins.parts[-1][0]
        if "param" not in ins.parts:
            if width >= own or not ins.parts[-1][1:].isdigit() or kind not in "us":
                return None
            low, high = limits(width) if kind == "s" else (0, 2**width - 1)
            return self.symbol(f"u{self.pc}.0", low, high)
        found = PLACE.fullmatch(ins.operands[1])
        is_plain = found is not None and not found[2] and not found[3]
        if found is None or not is_plain or width != own or kind == "f":
            return None
        name = found[1]
        if self.kernel.sizes.get(name) != width // 8:
            return None
        if name in self.given.arrays:
            return self.symbol(f".{name}", 0, _POINTER)
        if name not in self.given.values and name not in self.given.sizes:
            return self.symbol(f".{name}", *limits(width))
        term = self.polynomial(self.given.values.get(name, [(1, (name,))]))
        low, high = self.facts.span(term)
        least, most = limits(width)
        return Same(term, low, high) if least <= low <= high <= most else None

    def _logic(self, name: str, values: list[Held]) -> Held:
        lanes = [v for v in values if isinstance(v, np.ndarray)]
        of = {"and": np.logical_and, "or": np.logical_or, "xor": np.logical_xor}
        if len(lanes) == len(values) == 2 and name in of:
            return of[name](*lanes)
        if name == "not":
            return self.inverted(values[0])
        sides = [self.holds(v) for v in values]
        if any(one is None for one in sides) or name not in ("and", "or"):
            return None
        found = predicates.logic(name, list(sides))
        return found if isinstance(found, Holds) else None

    def _compared(self, parts: list[str], v: list[Same], width: int) -> Held:
        a, b = (self.number(one, width) for one in v)
        lanes = [self.facts.in_threads(one.term) for one in (a, b)]
        if lanes[0] is not None and lanes[1] is not None:
            x, y = (one.astype(np.uint64) for one in lanes if one is not None)
            found = predicates.compared(parts, x, y)
        else:
            found = predicates.compared(parts, a, b)
        if isinstance(found, np.ndarray):
            return np.broadcast_to(found != 0, self.threads).copy()
        return found if isinstance(found, Holds) else None

    def _selected(self, v: list[Same], test: Held) -> Held:
        a, b = v[0], v[1]
        x, y = (self.facts.in_threads(one.term) for one in v)
        if isinstance(test, np.ndarray) and x is not None and y is not None:
            return self.of_threads(np.where(test, x, y))
        holds = self.holds(test)
        return None if holds is None else arithmetic.chosen(holds, a, b)
