"""What instructions leave in registers: numbers per thread, or terms that all share."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress

import numpy as np

from alcop_mlir.certificate import exact_arithmetic, linear, spread
from alcop_mlir.certificate.code.assertions import NO_FAILURE
from alcop_mlir.certificate.comparisons import (
    COMPARISONS,
    UNSIGNED,
    compared_by_range,
    condition,
    unsigned_condition,
)
from alcop_mlir.certificate.linear import Symbols
from alcop_mlir.certificate.program import Code, is_generic, touches_shared
from alcop_mlir.certificate.shared_state import SharedState
from alcop_mlir.certificate.sources import Sources
from alcop_mlir.certificate.state import Requirement, State
from alcop_mlir.certificate.uniform_arithmetic import (
    NoTerm,
    UniformArithmetic,
    limited,
    limits_of,
)
from alcop_mlir.certificate.values import (
    MOST_BLOCKS,
    PAST_ADDRESSES,
    WARP,
    Exact,
    Spread,
    Truth,
    Uniform,
    Value,
    as_uniform,
    is_shared_by_all,
    masked,
    signed,
    width_of,
)
from alcop_mlir.runtime.emulator.ptx.syntax import (
    Address,
    Float,
    Instruction,
    Integer,
    Name,
    Negated,
    Operand,
    elements,
)

# Opcodes of which operands alone decide the result: no carry, and no other thread.
_FUNCTIONS = frozenset(
    "add sub mul mad mul24 mad24 sad div rem abs neg min max popc clz bfind brev bfe "
    "bfi fns bmsk szext dp4a dp2a and or xor not cnot lop3 shf shl shr prmt cvt selp "
    "slct set setp testp copysign fma rcp sqrt rsqrt sin cos lg2 ex2 tanh mov".split()
)
_STRONG = {"volatile", "relaxed", "acquire", "mmio"}  # loads of what others change
_TWICE = 192  # bits that one unknown times another surely has
SAME_STORES = "threads that store to one place at once store the same"
UNIFORM_LOADS = "all threads read the same value from one address"


class Registers:
    """What instructions leave in registers, in `state`, of the instruction at `pc`.

    notes: assumptions that were used
    """

    def __init__(
        self,
        code: Code,
        threads: int,
        bases: Mapping[str, int],
        requirements: Mapping[str, Requirement],
    ):
        self.code, self.threads = code, threads
        self.bases, self.requirements = bases, requirements
        self.symbols = Symbols()
        self.notes = {NO_FAILURE} if code.may_fail else set[str]()
        self.pc, self.state = 0, State(0, {}, SharedState(0))
        self.uniform = UniformArithmetic(self.symbols)
        self._lane = np.arange(threads, dtype=np.uint64)
        self._made: set[str] = set()
        self.sources, self.follows_sources = Sources(), False
        self.tells_turns = False  # the first ones, of innermost loops
        self.shares_stores = False  # threads may store to one place at once

    def unknown(self, width: int | None = None) -> Uniform:
        """A new unknown that all threads share, named after the instruction: any number
        of so many bits, else any that its register may hold.
        """
        name = f"u{self.pc}"
        self._made.add(name)
        low, high = limits_of(width or self._bits)
        return Uniform(self.symbols.plain(name, low, high), low, high)

    @property
    def _bits(self) -> int:
        """Of the register that the instruction writes first."""
        return self.code.width(self.code.written[self.pc][0])

    def forget(self) -> None:
        """What the instruction made when it ran before is known no more."""
        if f"u{self.pc}" not in self._made:
            return
        names = {f"u{self.pc}"}
        state = self.state
        for register, value in state.registers.items():
            if self.symbols_of(value) & names:
                state.registers[register] = None
        inside = self.symbols.symbols
        if self.follows_sources:
            self.forget_sources(names)
        state.facts = [f for f in state.facts if not names & inside(f)]
        state.clauses = [
            c for c in state.clauses if not any(names & inside(f) for o in c for f in o)
        ]

    def forget_sources(self, names: set[str]) -> None:
        """Of bytes whose source names one of these symbols."""
        shared, inside = self.state.shared, self.symbols.symbols
        self.sources.replaced(
            shared.source,
            shared.place,
            lambda term: None if inside(term) & names else term,
        )

    def symbols_of(self, value: Value) -> set[str]:
        """The symbols in a value."""
        if isinstance(value, Uniform):
            return self.symbols.symbols(value.term)
        if isinstance(value, Truth):
            terms = [f for one in value.condition.true for f in one]
            return set().union(*map(self.symbols.symbols, terms))
        if isinstance(value, Spread):
            return set().union(*map(self.symbols.inside, value.terms))
        return set()

    # Operands.

    def value(self, operand: Operand, width: int) -> Value:
        """What an operand holds."""
        if isinstance(operand, Integer):
            bits = operand.value % 2**64 if width > 1 else operand.value != 0
            return Exact(np.full(self.threads, bits, np.uint64))
        if isinstance(operand, Float) and 8 * operand.size != width:
            return None  # it is rounded
        if isinstance(operand, Float):
            return Exact(np.full(self.threads, operand.bits, np.uint64))
        if isinstance(operand, Negated):
            return self._inverted(self.value(operand.operand, width))
        if isinstance(operand, Address):
            base = (operand.base or "").lstrip("&")
            if base not in self.bases:
                return None
            place = self.bases[base] + operand.offset
            return Exact(np.full(self.threads, place, np.uint64))
        if not isinstance(operand, Name):
            return None
        return self._named(operand.name, width)

    def _named(self, name: str, width: int) -> Value:
        if name in self.state.registers:
            return self.state.registers[name]
        if name in self.bases:
            return Exact(np.full(self.threads, self.bases[name], np.uint64))
        if name in ("%tid.x", "%laneid"):
            return Exact(self._lane if name == "%tid.x" else self._lane % WARP)
        if name in ("%tid.y", "%tid.z"):
            return Exact(self._lane * 0)
        if name.startswith("%ntid."):
            count = self.threads if name[-1] == "x" else 1
            return Exact(np.full(self.threads, count, np.uint64))
        if name.startswith(("%ctaid.", "%nctaid.")):
            known = self.requirements.get(name)
            most = MOST_BLOCKS if known is None else min(known.high, MOST_BLOCKS)
            return Uniform(self.symbols.plain(name, 0, most), 0, most)
        if name.startswith(("%clock", "%globaltimer")) or name.startswith("%"):
            return None
        if any(name == p.name for p in self.code.kernel.parameters):
            term = self.symbols.plain(f"&{name}", 0, PAST_ADDRESSES)
            return Uniform(term, 0, PAST_ADDRESSES)
        variable = self.code.module.variables.get(name)
        if variable is not None:
            term = self.symbols.plain(f"&{name}", 0, PAST_ADDRESSES)
            return Uniform(term, 0, PAST_ADDRESSES)
        return None

    def _inverted(self, value: Value) -> Value:
        if isinstance(value, Exact):
            return Exact(value.lanes ^ np.uint64(1))
        if isinstance(value, Truth):
            return Truth(linear.negated(value.condition))
        return None

    def guard(self, ins: Instruction) -> Value:
        """The predicate under which a thread executes the instruction."""
        if ins.guard is None:
            return Exact(np.ones(self.threads, np.uint64))
        name, is_negated = ins.guard
        value = self.state.registers.get(name)
        return self._inverted(value) if is_negated else value

    # Results.

    def compute(self, ins: Instruction) -> Value:
        """What the instruction leaves in the one register that it writes.

        A term is a number of the register's width, with a sign.
        """
        value = self._computed(ins)
        if isinstance(value, Uniform):
            low, high = limits_of(self._bits)
            return value if low <= value.low <= value.high <= high else self.unknown()
        return value

    def _computed(self, ins: Instruction) -> Value:
        first, last = ins.parts[0], ins.parts[-1]
        width = width_of(last)
        operands = ins.operands[1:]
        if first == "ld":
            return self._loaded(ins, width)
        if first == "mov" or (first == "cvta" and "global" in ins.parts):
            if len(operands) == 1 and len(elements(operands[0])) == 1:
                return self.value(operands[0], width)
        if first != "shfl" and first not in _FUNCTIONS:
            return None
        values = [
            self.value(one, width) for operand in operands for one in elements(operand)
        ]
        if first == "shfl":
            return self._shuffled(ins, values)
        if any(value is None for value in values):
            return None
        if first == "setp":
            return self._compared(ins, values, width)
        if last == "pred":
            return self._logic(first, values)
        if first == "selp":
            return self._selected(values, width)
        found = None
        types = exact_arithmetic.scalar_types(ins.parts)
        if first == "cvt" and types and types[0][1] < self._bits:
            return self._converted_narrowly(types, values)
        if all(isinstance(v, Exact) for v in values):
            lanes = [v.lanes for v in values if isinstance(v, Exact)]
            found = exact_arithmetic.compute(ins.parts, lanes)
        if found is not None:
            return found
        read = exact_arithmetic.bits_read(ins.parts, len(values), width)
        terms = [as_uniform(v, bits) for v, bits in zip(values, read, strict=True)]
        if first == "cvt":  # reads another width than it writes
            terms = [as_uniform(values[0], types[-1][1])] if types else terms
            terms = [self._by_facts(one) if one else None for one in terms]
        if all(isinstance(t, Uniform) for t in terms):
            return self._term(ins, [t for t in terms if t], width)
        if all(map(is_shared_by_all, values)):
            return self.unknown()
        found = spread.compute(ins.parts, values, self.state.residues, f"u{self.pc}")
        if f"u{self.pc}" in self.symbols_of(found):
            self.unknown(_TWICE)
        return found

    def open_residues(self, ins: Instruction) -> dict[str, int]:
        """The symbols whose low bits an `and` with low bits asks for, and modulo what
        it asks for them, where more than that is not known.
        """
        width = width_of(ins.parts[-1])
        values = [self.value(one, width) for one in ins.operands[1:]]
        found: dict[str, int] = {}
        for a, mask in (values, values[::-1]):
            if not isinstance(mask, Exact) or not isinstance(a, Spread):
                continue
            bits = int(mask.lanes.max()).bit_length()
            if bits <= spread.RESIDUE_BITS:
                found = spread.open_residues(a, bits)
        known = self.state.residues
        return {s: m for s, m in found.items() if m > known.get(s, (0, 1))[1]}

    def _term(self, ins: Instruction, terms: list[Uniform], width: int) -> Value:
        try:
            return self._plain(self.uniform.compute(ins.parts, terms))
        except NoTerm:
            return self._open(ins.parts, terms, width)

    def _by_facts(self, value: Uniform) -> Uniform:
        """What has more than 32 bits in the range that facts of the state leave."""
        if value.high < 1 << 31:
            return value
        return limited(value, self.state.facts, self.symbols.ranges)

    def _open(
        self, parts: tuple[str, ...], terms: list[Uniform], width: int
    ) -> Uniform:
        """What is no sum of what it is made of; else an unknown, or a multiple."""
        with suppress(NoTerm):
            if parts[0] == "div" and len(parts) == 2 and parts[1][0] in "us":
                return self.uniform.quotient(*terms)
            if parts[:2] == ("mul", "lo"):
                return self.uniform.whole(*terms)
        return self._unknown_multiple(parts, terms, width)

    def _converted_narrowly(
        self, types: list[tuple[str, int]], values: list[Value]
    ) -> Value:
        """`cvt` to fewer bits than the register has: the others are 0 or the sign."""
        if isinstance(values[0], Exact) and {kind for kind, _ in types} <= {"u", "b"}:
            return Exact(masked(values[0].lanes, min(bits for _, bits in types)))
        return self.unknown() if is_shared_by_all(values[0]) else None

    def _unknown_multiple(
        self, parts: tuple[str, ...], terms: list[Uniform], width: int
    ) -> Uniform:
        """A new unknown: a multiple, where a number multiplies without a sign, or where
        bits are shifted to the left, of which others are lost.
        """
        by = next((t.low for t in terms[:2] if t.low == t.high), 0)
        (name,) = self.unknown().term.terms
        low, high = 0, (1 << width) - 1
        if parts[0] == "shl" and terms[1].low == terms[1].high:
            count = terms[1].low
            low, high = limits_of(width - count) if 0 < count < width else (0, 0)
            by = 1 << count if high else 0
        elif parts[0] != "mul" or parts[1] != "wide" or parts[2][0] != "u":
            by = 0
        if not 0 < by < 1 << 20:
            return self.unknown()
        return Uniform(self.symbols.plain(name, low, high) * by, low * by, high * by)

    def _plain(self, value: Uniform) -> Value:
        """A term without symbols as a number."""
        if value.low != value.high:
            return value
        bits = value.low & (2**64 - 1)
        return Exact(np.full(self.threads, bits, np.uint64))

    def _loaded(self, ins: Instruction, width: int) -> Value:
        place = ins.operands[1]
        if not isinstance(place, Address) or not isinstance(ins.operands[0], Name):
            return None
        if "param" in ins.parts:
            return self._parameter(place, width, ins)
        if touches_shared(ins) or is_generic(ins) or not _STRONG.isdisjoint(ins.parts):
            return None
        base = self.value(Name(place.base), 64) if place.base else None
        if not is_shared_by_all(base) or self.state.lanes is not None:
            return None
        self.notes.add(UNIFORM_LOADS)
        return self.unknown()

    def _parameter(self, place: Address, width: int, ins: Instruction) -> Value:
        """A parameter, where all of it is read and fills the register."""
        name = place.base or ""
        sizes = [p.size for p in self.code.kernel.parameters if p.name == name]
        if place.offset or sizes != [width // 8] or width != self._bits:
            return self.unknown()
        (low, high), by = limits_of(width), 1
        known = self.requirements.get(name)
        is_float = ins.parts[-1][0] == "f"
        if known and not is_float and low <= known.low <= known.high <= high:
            low, high, by = known.low, known.high, known.multiple
        if low == high:
            return Exact(np.full(self.threads, low % 2**64, np.uint64))
        if by == 1:
            return Uniform(self.symbols.plain(f".{name}", low, high), low, high)
        least, most = -(-low // by), high // by
        term = self.symbols.plain(f".{name}/{by}", least, most) * by
        return Uniform(term, least * by, most * by)

    def _shuffled(self, ins: Instruction, values: list[Value]) -> Value:
        source, lane, clamp = values[:3]
        if is_shared_by_all(source):
            return source
        if not isinstance(clamp, Exact) or (clamp.lanes != WARP - 1).any():
            return None
        if "idx" not in ins.parts or not isinstance(source, Exact):
            return None
        if not isinstance(lane, Exact) or self.threads % WARP:
            return None
        start = (self._lane // WARP) * WARP
        places = (start + lane.lanes % np.uint64(WARP)).astype(np.int64)
        return Exact(source.lanes[places])

    def _compared(self, ins: Instruction, values: list[Value], width: int) -> Value:
        types = exact_arithmetic.scalar_types(ins.parts)
        if len(values) != 2 or not types or types[-1][0] == "f":
            return self._opaque(values)
        kind, (first, second) = types[-1][0], values
        comparison = UNSIGNED.get(ins.parts[1], ins.parts[1])
        is_unsigned = kind in "ub" or ins.parts[1] in UNSIGNED
        if comparison not in COMPARISONS:
            return self._opaque(values)
        if isinstance(first, Exact) and isinstance(second, Exact):
            reader = masked if is_unsigned else signed
            lanes = (reader(v.lanes, width) for v in (first, second))
            return Exact(COMPARISONS[comparison](*lanes).astype(np.uint64))
        a, b = as_uniform(first, width), as_uniform(second, width)
        if a is None or b is None:
            return None
        is_order = comparison not in ("eq", "ne")
        if is_order and is_unsigned and min(a.low, b.low) < 0:
            return Truth(unsigned_condition(comparison, a.term, b.term))
        return self._decided(comparison, a, b)

    def _decided(self, comparison: str, a: Uniform, b: Uniform) -> Value:
        """A truth, or a number where ranges alone tell."""
        low, high = a.low - b.high, a.high - b.low
        if not (a.term - b.term).terms:
            low = high = (a.term - b.term).constant
        holds = compared_by_range(comparison, low, high)
        if holds is None:
            return Truth(condition(comparison, a.term, b.term))
        return Exact(np.full(self.threads, int(holds), np.uint64))

    def _opaque(self, values: list[Value]) -> Value:
        """An unknown predicate, where all threads share what it is computed of."""
        if not all(map(is_shared_by_all, values)):
            return None
        bit = self.unknown(2)
        self.symbols.ranges[next(iter(bit.term.terms))] = (0, 1)
        return Truth(linear.at_least(bit.term - 1))

    def _logic(self, name: str, values: list[Value]) -> Value:
        if all(isinstance(v, Exact) for v in values):
            lanes = [v.lanes for v in values if isinstance(v, Exact)]
            if name == "not":
                return Exact(lanes[0] ^ np.uint64(1))
            found = {"and": np.bitwise_and, "or": np.bitwise_or, "xor": np.bitwise_xor}
            return Exact(found[name](*lanes)) if name in found else values[0]
        conditions = [_as_condition(v) for v in values]
        if any(c is None for c in conditions):
            return _absorbed(name, values)
        known = [c for c in conditions if c is not None]
        if name in ("mov", "not"):
            return Truth(known[0] if name == "mov" else linear.negated(known[0]))
        if name == "and":
            return Truth(linear.both(*known))
        if name == "or":
            parts = map(linear.negated, known)
            return Truth(linear.negated(linear.both(*parts)))
        return self._opaque(values)

    def _selected(self, values: list[Value], width: int) -> Value:
        first, second, predicate = values
        if isinstance(predicate, Exact):
            if predicate.is_uniform:
                return first if predicate.lanes[0] else second
            return spread.blended(predicate.lanes != 0, first, second)
        if not isinstance(predicate, Truth):
            return None
        a, b = as_uniform(first, width), as_uniform(second, width)
        if a is None or b is None:
            return None
        return self.uniform.chosen(predicate.condition, a, b)


def _as_condition(value: Value) -> linear.Condition | None:
    if isinstance(value, Truth):
        return value.condition
    if isinstance(value, Exact) and value.is_uniform:
        holds = bool(value.lanes[0] & np.uint64(1))
        return linear.Condition(((),), ()) if holds else linear.Condition((), ((),))
    return None


def _absorbed(name: str, values: list[Value]) -> Value:
    """What one operand decides alone: `or` with true, `and` with false."""
    decides = {"or": 1, "and": 0}.get(name)
    for value in values:
        if isinstance(value, Exact) and value.is_uniform:
            if int(value.lanes[0]) == decides:
                return value
    return None
