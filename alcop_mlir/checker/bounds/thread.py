"""What instructions leave in the registers of one thread, which stands for all.

A predicate is known in each thread, or by what holds where it does.
"""

from __future__ import annotations

import numpy as np

from alcop_mlir.checker.bounds.numbers_of_thread import Numbers, Way
from alcop_mlir.checker.bounds.products import ProductFacts
from alcop_mlir.checker.form.certificate import Promises
from alcop_mlir.checker.logic import terms
from alcop_mlir.checker.logic.facts import Answers
from alcop_mlir.checker.logic.terms import Term
from alcop_mlir.checker.machine import arithmetic, predicates
from alcop_mlir.checker.machine.arithmetic import (
    Holds,
    Same,
    Value,
    bits_read,
    limits,
    same,
)
from alcop_mlir.checker.ptx.instructions import Instruction, place_of
from alcop_mlir.checker.ptx.text import Kernel
from alcop_mlir.errors import CertificateError

_POINTER, _BLOCKS = 1 << 47, (1 << 31) - 1


class Thread(Numbers):
    """Computes at instruction `pc`."""

    def __init__(self, kernel: Kernel, threads: int, given: Promises, answers: Answers):
        super().__init__(kernel, threads, ProductFacts(answers, threads))
        self.given, self.start = given, Way()
        self.sizes = _of_blocks(given)
        self.start.know([self.polynomial(one) for one in given.facts])
        for axis in given.grid:
            counts = self.counts(axis)
            self.start.know([terms.plus(n, terms.number(-1)) for n in counts])
            last = terms.minus(self.blocks(axis), self.number_of_block(axis).term)
            limit = terms.minus(terms.number(_BLOCKS), self.blocks(axis))
            self.start.know([terms.plus(last, terms.number(-1)), limit])

    # Sizes.

    def polynomial(self, value: list[tuple[int, tuple[str, ...]]]) -> Term:
        """The term of a polynomial in sizes; `K/8` is an eighth of a size."""
        found = terms.number(0)
        for factor, names in value:
            product = terms.number(factor)
            for name in names:
                product = terms.product(product, self._size(name))
            found = terms.plus(found, product)
        return found

    def _size(self, text: str) -> Term:
        name, _, part = text.partition("/")
        part = part or "1"
        any_number = (*limits(8 * self.kernel.sizes.get(name, 8)), 1)
        low, high, by = self.sizes.get(name, any_number)
        if not part.isdigit() or not int(part) or by % int(part):
            raise CertificateError(f"{name} is not known to have {part} equal parts")
        self.facts.limit(f".{name}/{by}", -(-low // by), high // by)
        return {f".{name}/{by}": by // int(part)}

    def counts(self, axis: str) -> list[Term]:
        """Numbers that multiplied are how many blocks there are along an axis."""
        return [
            terms.quotient(terms.plus(self.polynomial(value), terms.number(by - 1)), by)
            for value, by in self.given.grid[axis]
        ]

    def blocks(self, axis: str) -> Term:
        """The number of blocks along an axis."""
        found = terms.number(1)
        for count in self.counts(axis):
            found = terms.product(found, count)
        return found

    # Operands.

    def _named(self, operand: str) -> Value:
        if operand.startswith(("%ctaid.", "%nctaid.")):
            return self.number_of_block(operand)
        if operand[0] == "%" or operand[0].isdigit() or operand.startswith("-"):
            return super()._named(operand)
        return self.symbol(f"&{operand}", 0, _POINTER)

    def number_of_block(self, name: str) -> Same:
        """`%ctaid` along an axis, or, of `%nctaid`, how many blocks there are."""
        kind, _, axis = name.partition(".")
        if f"%ctaid.{axis}" not in self.given.grid:
            return self.symbol(name, 0, _BLOCKS)
        blocks = self.blocks(f"%ctaid.{axis}")
        most = min(_BLOCKS, self.facts.span(blocks)[1])
        if kind == "%ctaid":
            return self.symbol(name, 0, max(most - 1, 0))
        return Same(blocks, 1, most)

    def holds(self, value: Value) -> Holds | None:
        """A predicate by what holds where it does."""
        if not isinstance(value, np.ndarray):
            return value if isinstance(value, Holds) else None
        bit = self.facts.of_threads(value.astype(np.int64))
        if terms.is_constant(bit):
            return Holds([[]], []) if bit[""] else Holds([], [[]])
        return arithmetic.at_least(terms.plus(bit, terms.number(-1)))

    # Results.

    def run(self, ins: Instruction) -> None:
        """Leaves what the instruction makes."""
        for number, register in enumerate(ins.results):
            value = self._made(ins) if len(ins.results) == 1 else None
            if value is None:
                value = self.anything(register, f"u{self.state.pc}.{number}")
            if ins.guard and not self._runs(ins):
                value = self.anything(register, f"u{self.state.pc}.g{number}")
            self.way.registers[register] = value

    def _made(self, ins: Instruction) -> Value:
        if ins.parts[0] == "ld":
            return self._loaded(ins, ins.width)
        found = self._found(ins, list(map(self.value, ins.sources)))
        return self.numbers(found) if isinstance(found, np.ndarray) else found

    def _runs(self, ins: Instruction) -> bool:
        """Whether its guard surely holds."""
        test = self.holds(self.guard(ins))
        return test is not None and self.never(test.false)

    def anything(self, register: str, name: str) -> Value:
        """Anything that a register may hold."""
        width = self.kernel.width(register)
        if width > 1:
            return self.symbol(name, *limits(width))
        bit = self.symbol(name, 0, 1).term
        return arithmetic.at_least(terms.plus(bit, terms.number(-1)))

    def _shuffled(self, ins: Instruction, values: list[Value]) -> Value:
        return None

    def _inexact(
        self, parts: list[str], kinds: list[tuple[str, int]], values: list[Value]
    ) -> Value:
        if not kinds or any(kind == "f" for kind, _ in kinds):
            return None
        width, out = kinds[-1][1], kinds[0][1] * (2 if "wide" in parts else 1)
        read = (bits_read(parts, place, width) for place in range(len(values)))
        named = [self.named(v, bits) for v, bits in zip(values, read, strict=True)]
        numbers = [v for v in named if isinstance(v, Same)]
        if len(numbers) < len(values) or out != self._width:
            return None
        self.noted = []
        found = self.made(parts, numbers, kinds)
        self.way.know(self.noted)
        return self.settled(found, out)

    def _open(self, parts: list[str], values: list[Value], width: int) -> Value:
        numbers = [same(v, width) for v in values]
        masks = [v.low for v in numbers if v is not None and v.low == v.high >= 0]
        if parts[0] == "and" and masks and width == self._width > 1:
            return self.symbol(f"u{self.state.pc}.0", 0, min(masks))
        return None

    def _loaded(self, ins: Instruction, width: int) -> Value:
        own, kind = self.kernel.width(ins.results[0]), ins.parts[-1][0]
        name, step = place_of(ins.operands[1]) or ("", 0)
        if "param" not in ins.parts or step or width != own or kind == "f":
            return None
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

    def _logic(self, name: str, values: list[Value]) -> Value:
        known = [v for v in map(self.holds, values) if v is not None]
        is_known = len(known) == len(values)
        return predicates.logic(name, [*known]) if is_known else None

    def _compared(self, parts: list[str], values: list[Value], width: int) -> Value:
        named = [self.named(one, width) for one in values]
        numbers = [self.number(v, width) for v in named if isinstance(v, Same)]
        is_known = len(numbers) == len(values)
        return predicates.compared(parts, *numbers) if is_known else None

    def _selected(self, values: list[Value], width: int) -> Value:
        first, second, test = values
        a, b = self.named(first, width), self.named(second, width)
        holds = self.holds(test)
        if holds is None or not isinstance(a, Same) or not isinstance(b, Same):
            return None
        return arithmetic.chosen(holds, a, b)


def _of_blocks(given: Promises) -> dict[str, tuple[int, int, int]]:
    """Sizes where a block runs: none that counts blocks is 0 then."""
    found = dict(given.sizes)
    for value, _ in (one for counts in given.grid.values() for one in counts):
        names = [names for factor, names in value if factor > 0]
        if len(value) == len(names) == 1 and len(names[0]) == 1:
            (name,) = names[0]
            if name in found:
                low, high, by = found[name]
                found[name] = max(low, 1), high, by
    return found
