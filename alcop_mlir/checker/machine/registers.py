"""What instructions leave in registers: numbers of threads, terms, predicates."""

from __future__ import annotations

import re
from collections.abc import Mapping
from contextlib import suppress
from typing import Any

import numpy as np

from alcop_mlir.checker.logic import terms
from alcop_mlir.checker.logic.facts import Answers, Facts
from alcop_mlir.checker.machine import arithmetic, divisions
from alcop_mlir.checker.machine.arithmetic import (
    Holds,
    Mixed,
    Same,
    Unknown,
    Value,
    bits_read,
    is_equal,
    same,
)
from alcop_mlir.checker.machine.cells import Cells
from alcop_mlir.checker.machine.exact import of_numbers
from alcop_mlir.checker.machine.mixed import computed, either, mixed, open_symbols
from alcop_mlir.checker.machine.predicates import (
    compared,
    inverted,
    is_shared,
    logic,
    symbols_of,
)
from alcop_mlir.checker.machine.sources import Sources
from alcop_mlir.checker.machine.state import State
from alcop_mlir.checker.ptx.assertions import NO_FAILURE
from alcop_mlir.checker.ptx.instructions import NUMBER, Instruction, integer, place_of
from alcop_mlir.checker.ptx.text import Kernel
from alcop_mlir.errors import CertificateError

_POINTER, _BLOCKS, WARP = 1 << 47, (1 << 31) - 1, 32
_TWICE = 192  # bits of one unknown times another
SAME_STORES = "threads that store to one place at once store the same"
UNIFORM_LOADS = "all threads read the same value from one address"
_STRONG = {"volatile", "relaxed", "acquire", "mmio"}  # loads of what others change
_FLOAT = re.compile(r"0[fF]([0-9a-fA-F]{8})|0[dD]([0-9a-fA-F]{16})")
# Opcodes whose result depends on nothing but operands: of no carry, no other thread.
_FUNCTIONS = frozenset(
    "add sub mul mad mul24 mad24 sad div rem abs neg min max popc clz bfind brev bfe "
    "bfi fns bmsk szext dp4a dp2a and or xor not cnot lop3 shf shl shr prmt cvt selp "
    "slct set setp testp copysign fma rcp sqrt rsqrt sin cos lg2 ex2 tanh mov".split()
)


class Registers:
    """Of one kernel; `assumed` is what was taken for granted on the way."""

    def __init__(
        self,
        kernel: Kernel,
        threads: int,
        shared_bytes: int,
        places: Mapping[str, int],
        required: Mapping[str, tuple[int, int, int]],
        steady: dict[int, dict[int, int]] | None = None,
        facts: Facts | None = None,
    ):
        self.kernel, self.threads, self.cases = kernel, threads, 1
        self.shared_bytes, self.places, self.required = shared_bytes, places, required
        self.facts = facts or Facts(Answers([], [], []))
        self.sources = Sources(steady)
        self.shares_stores = False  # threads may store to one place at once
        self.assumed = {NO_FAILURE} if kernel.may_fail else set[str]()
        self.lane = np.arange(threads, dtype=np.uint64)
        self._arrays: dict[bytes, np.ndarray] = {}
        self._values: dict[Any, Value] = {}
        self._fresh = [f"u{pc}" for pc in range(len(kernel.code) + 1)]
        self._known: dict[Any, tuple[list[Value], Value, bool]] = {}
        self._fixed = self._special_registers(threads)
        self.every = np.ones(threads, bool)
        self.forgotten: set[str] = set()  # registers, in any way
        self.state = State(0, {}, Cells(0))
        if any(map(kernel.has_register, (*places, *kernel.parameters))):
            raise CertificateError("a name that stands for two things")

    def _special_registers(self, threads: int) -> dict[str, Value]:
        none, one = self.constant(0), self.constant(1)
        return {
            "%tid.x": self.lane,
            "%laneid": self.lane % np.uint64(WARP),
            "%tid.y": none,
            "%tid.z": none,
            "%ntid.x": self.constant(threads),
            "%ntid.y": one,
            "%ntid.z": one,
        }

    def symbol(self, name: str, low: int, high: int) -> Same:
        """A number that all threads share, of which the range is known."""
        known = self.facts.ranges.get(name, (low, high))
        if name[0] == "." and known != (low, high):
            raise CertificateError(f"parameter {name[1:]} is read in two ways")
        self.facts.limit(name, low, high)
        return Same({name: 1}, low, high)

    def unknown(self, low: int | None = None, high: int = 0) -> Same:
        """One that the instruction makes; any that its register may hold."""
        if low is None:
            low, high = arithmetic.limits(self._width)
        self.state.made.add(self.fresh)
        return self.symbol(self.fresh, low, high)

    @property
    def _width(self) -> int:
        """Of the register that is written first."""
        return self.kernel.width(self.kernel.code[self.state.pc].results[0])

    @property
    def fresh(self) -> str:
        """What the instruction may make is called so."""
        return self._fresh[self.state.pc]

    def forget(self, name: str) -> None:
        """Nothing is known of a symbol that gets another value."""
        state = self.state
        for register, value in state.registers.items():
            if not isinstance(value, np.ndarray) and name in symbols_of(value):
                state.registers[register] = None
                self.forgotten.add(register)
        state.facts = [f for f in state.facts if name not in terms.inside(f)]
        state.clauses = []
        if self.sources.steps is not None:
            self.sources.renamed(state.cells, {}, {name})

    # Operands.

    def numbers(self, lanes: np.ndarray) -> np.ndarray:
        """One object for equal numbers of threads."""
        if len(lanes) != self.threads:
            lanes = np.repeat(lanes, self.threads)
        return self._arrays.setdefault(lanes.tobytes(), lanes)

    def interned(self, value: Value) -> Value:
        """One object for equal values, so that what is made of them is made once."""
        if isinstance(value, np.ndarray):
            return self.numbers(value)
        if isinstance(value, Same):
            key: Any = (terms.frozen(value.term), value.low, value.high)
        elif isinstance(value, Mixed):
            parts = sorted((s, c.tobytes()) for s, c in value.parts.items())
            limits = value.low, value.high, value.width
            key = (*limits, value.constant.tobytes(), *parts)
        else:
            return value
        return self._values.setdefault(key, value)

    def constant(self, value: int) -> np.ndarray:
        """The same number in all threads."""
        return self.numbers(np.full(1, value % 2**64, np.uint64))

    def value(self, operand: str) -> Value:
        """What an operand holds."""
        registers = self.state.registers
        if operand in registers:
            return registers[operand]
        if operand.startswith("!"):
            return inverted(registers.get(operand[1:].strip()))
        if operand not in self._fixed:
            self._fixed[operand] = self._named(operand)
        return self._fixed[operand]

    def _named(self, operand: str) -> Value:
        if NUMBER.fullmatch(operand):
            return self.constant(integer(operand))
        found = _FLOAT.fullmatch(operand)
        if found is not None:
            return self.constant(int(found[1] or found[2], 16))
        if operand in self.places:
            return self.constant(self.places[operand])
        if operand.startswith(("%ctaid.", "%nctaid.")):
            most = self.required.get(operand, (0, _BLOCKS, 1))[1]
            return self.symbol(operand, 0, min(most, _BLOCKS))
        if operand in self.kernel.parameters:
            return self.symbol(f"&{operand}", 0, _POINTER)
        return None

    def guard(self, ins: Instruction) -> Value:
        """Under which predicate threads execute it."""
        if not ins.guard:
            return self.constant(1)
        value = self.state.registers.get(ins.guard)
        return inverted(value) if ins.is_negated else value

    # Results.

    def result(self, ins: Instruction) -> Value:
        """What it leaves; a number that all share is one of the register's width.

        It is computed once of the same values.
        """
        if ins.parts[0] == "ld":
            return self._fitting(self._loaded(ins, ins.width))
        values = [self.value(one) for one in ins.sources]
        if ins.parts[0] == "cvt":
            values = [*map(self._by_facts, values)]
        residues = None
        is_open = ins.parts[0] == "and" and self.state.residues
        if is_open and not all(isinstance(v, np.ndarray) for v in values):
            told = self.state.residues.items()
            residues = frozenset((s, np.asarray(r).tobytes(), m) for s, (r, m) in told)
        key = (self.state.pc, residues, *map(id, values))
        if key not in self._known:
            made = self._fitting(self._found(ins, values))
            is_fresh = self.fresh in self.state.made
            # With the values, so that each keeps its id.
            self._known[key] = values, made, is_fresh
        _, found, is_fresh = self._known[key]
        if is_fresh:
            self.state.made.add(self.fresh)
        # In another arm the same name is another number.
        return None if is_fresh and self.state.lanes is not None else found

    def _by_facts(self, value: Value) -> Value:
        """What has more than 32 bits in the range that facts of the state leave."""
        if not isinstance(value, Same) or value.high < 1 << 31:
            return value
        facts, ranges = self.state.facts, self.facts.ranges
        return self.interned(arithmetic.limited(value, facts, ranges))

    def _fitting(self, value: Value) -> Value:
        if not isinstance(value, Same):
            return self.interned(value)
        low, high = arithmetic.limits(self._width)
        return value if low <= value.low <= value.high <= high else self.unknown()

    def _found(self, ins: Instruction, values: list[Value]) -> Value:
        parts, width = ins.parts, ins.width
        if any(map(ins.rounds, ins.sources)):
            return None
        if parts[-1] == "pred":
            values = [*map(self._bit, values)]
        if ins.moves:
            return values[0]
        if parts[0] == "shfl":
            return self._shuffled(ins, values)
        if any(v is None for v in values) or parts[0] not in _FUNCTIONS:
            return None
        lanes = [v for v in values if isinstance(v, np.ndarray)]
        if len(lanes) == len(values):
            found = of_numbers(ins, lanes, self._width)
            if found is not None:
                return self.numbers(found)
        try:
            return self._computed(parts, values, width)
        except Unknown:
            return self._open(parts, values, width)

    def _bit(self, value: Value) -> Value:
        """A predicate: of a number, whether it is another one than 0."""
        is_number = isinstance(value, np.ndarray)
        return self.numbers((value != 0).astype(np.uint64)) if is_number else value

    def _open(self, parts: list[str], values: list[Value], width: int) -> Value:
        """An unknown; of `mul.wide.u` by a number, and of `shl`, a multiple; parts of
        divisions by what is not known.
        """
        if not all(map(is_shared, values)):
            return None
        of = divisions.of(parts)
        if of is not None:
            a, b = (same(v, width) for v in values)
            if a and b and (found := of(a, b, self.facts)):
                return found
        if parts[0] == "setp" or parts[-1] == "pred":
            bit = self.unknown(0, 1)
            return arithmetic.at_least(terms.minus(bit.term, terms.number(1)))
        if parts[:2] == ["mul", "wide"] and parts[2].startswith("u"):
            numbers = [same(v, width) for v in values]
            by = [n.low for n in numbers if n is not None and n.low == n.high]
            if by and 0 < by[0] < 1 << 20:
                return self._multiple(by[0], 0, 2**width - 1)
        count = same(values[1], 32) if parts[0] == "shl" else None
        if count is not None and 0 < count.low == count.high < min(width - 1, 20):
            return self._multiple(1 << count.low, *arithmetic.limits(width - count.low))
        return self.unknown()

    def _multiple(self, by: int, low: int, high: int) -> Same:
        term = self.unknown(low, high).term
        return Same(terms.plus({}, term, by), low * by, high * by)

    def _computed(self, parts: list[str], values: list[Value], width: int) -> Value:
        if parts[0] == "setp":
            if len(values) != 2:
                raise Unknown
            return self._compared(parts, values, width)
        if parts[-1] == "pred":
            return self._logic(parts[0], values)
        if parts[0] == "selp":
            return self._selected(values, width)
        kinds = arithmetic.types_of(parts)
        if parts[0] == "cvt" and kinds and kinds[0][1] < self._width:
            raise Unknown
        return self._inexact(parts, kinds, values)

    def _compared(self, parts: list[str], values: list[Value], width: int) -> Value:
        return compared(parts, values[0], values[1])

    def _logic(self, name: str, values: list[Value]) -> Value:
        return logic(name, values)

    def _inexact(
        self, parts: list[str], kinds: list[tuple[str, int]], values: list[Value]
    ) -> Value:
        """With unknown numbers."""
        read = kinds[-1][1] if kinds else 32
        every = (same(v, bits_read(parts, i, read)) for i, v in enumerate(values))
        numbers = [n for n in every if n is not None]
        known = self.state.residues, self.fresh
        if len(numbers) == len(values) and parts[0] == "and" and self.cases > 1:
            # What all threads of a case share is a number of each case.
            with suppress(Unknown):
                return computed(parts, kinds, values, self.threads, known)
        if len(numbers) < len(values):
            found = computed(parts, kinds, values, self.threads, known)
            if self.fresh in symbols_of(found):
                self.unknown(*arithmetic.limits(_TWICE))
            return found
        return self.plain(arithmetic.linear(parts, numbers))

    def open_symbols(self, ins: Instruction) -> dict[Any, int]:
        """The symbols on which the result of an `and` depends, each modulo what."""
        try:
            ((_, width),) = arithmetic.types_of(ins.parts)
            a, b = (mixed(self.value(o), width, self.threads) for o in ins.operands[1:])
        except (Unknown, ValueError):
            return {}
        known = self.state.residues
        return {**open_symbols(a, b, known), **open_symbols(b, a, known)}

    def plain(self, found: Same) -> Value:
        """A number where it is one."""
        return self.constant(found.low) if found.low == found.high else found

    def _loaded(self, ins: Instruction, width: int) -> Value:
        found = place_of(ins.operands[1])
        if ins.operands[0].startswith("{") or found is None or ins.is_choice:
            return None
        if "param" in ins.parts:
            return self._parameter(*found, width, ins.parts[-1][0] == "f")
        spaces = {"global", "const"}
        if not _STRONG.isdisjoint(ins.parts) or spaces.isdisjoint(ins.parts):
            return None
        if not is_shared(self.value(found[0])) or self.state.lanes is not None:
            return None
        self.assumed.add(UNIFORM_LOADS)
        return self.unknown()

    def _parameter(self, name: str, step: int, width: int, is_float: bool) -> Value:
        is_whole = not step and width == self._width
        if not is_whole or name not in self.kernel.parameters:
            return self.unknown()
        (low, high), by = arithmetic.limits(width), 1
        least, most, multiple = self.required.get(name, (low, high, 1))
        if low <= least and most <= high and not is_float:
            low, high, by = least, most, multiple
        if low == high:
            return self.constant(low)
        if by == 1:
            return self.symbol(f".{name}", low, high)
        part = self.symbol(f".{name}/{by}", -(-low // by), high // by)
        return Same({f".{name}/{by}": by}, part.low * by, part.high * by)

    def _shuffled(self, ins: Instruction, values: list[Value]) -> Value:
        source, lane, clamp = values[:3]
        if is_shared(source):
            return source
        is_whole = isinstance(clamp, np.ndarray) and (clamp == WARP - 1).all()
        if not isinstance(source, np.ndarray) or not isinstance(lane, np.ndarray):
            return None
        if "idx" not in ins.parts or self.threads % WARP or not is_whole:
            return None
        here = np.arange(self.threads, dtype=np.uint64)
        start = here - here % np.uint64(WARP)
        return source[(start + lane % np.uint64(WARP)).astype(np.int64)]

    def _selected(self, values: list[Value], width: int) -> Value:
        first, second, test = values
        if isinstance(test, np.ndarray):
            if is_equal(test):
                return first if test[0] else second
            return either(test != 0, first, second)
        a, b = same(first, width), same(second, width)
        if not isinstance(test, Holds) or a is None or b is None:
            return None
        return arithmetic.chosen(test, a, b)
