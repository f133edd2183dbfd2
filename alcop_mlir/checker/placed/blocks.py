"""Numbers in each thread of each block, where the extents are known.

What a guard compares may differ between threads, between blocks and between turns of a
loop, as at the edges of a matrix. A number is an array along blocks in x, y and z,
turns, and threads, as far as these decide it. Blocks, and turns, in which a guard holds
for other threads than in the rest are told apart: each such class goes a way of its
own, on which the guard is known.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Set
from typing import TYPE_CHECKING

import numpy as np

from alcop_mlir.checker.logic import terms
from alcop_mlir.checker.logic.terms import Choice, Clause, Quotient, Term
from alcop_mlir.checker.machine.arithmetic import (
    Holds,
    Mixed,
    Same,
    Value,
    is_equal,
    signed,
    unsigned,
)
from alcop_mlir.checker.machine.exact import of_numbers
from alcop_mlir.checker.machine.mixed import simplest
from alcop_mlir.checker.machine.predicates import symbols_of
from alcop_mlir.checker.machine.state import State
from alcop_mlir.checker.placed.origins import Origins
from alcop_mlir.checker.placed.told import (
    MOST_CLASSES,
    NotKnown,
    of_all_turns,
    restrict,
    turns_of,
)
from alcop_mlir.checker.ptx.instructions import Instruction, source_size

if TYPE_CHECKING:
    from alcop_mlir.checker.machine.machine import Machine

Numbers = Mapping[str, np.ndarray]  # of registers, and of symbols
_MOST = 1 << 24  # of one array
_ONE = (1, 1, 1, 1, 1)


class Blocks:
    """Of one grid, and blocks of so many threads."""

    def __init__(self, origins: Origins, threads: int):
        self.origins, self.grid, self.threads = origins, origins.grid, threads
        self.every = np.ones(self.grid, bool)
        self._axes: dict[str, np.ndarray] = {}
        for place, (axis, count) in enumerate(zip("xyz", self.grid, strict=True)):
            shape = [1, 1, 1, 1, 1]
            shape[place] = count
            self._axes[f"%ctaid.{axis}"] = np.arange(count).reshape(shape)
            self._axes[f"%nctaid.{axis}"] = np.full(_ONE, count)

    # Of values.

    def term(self, term: Term, known: Numbers) -> np.ndarray:
        """A term in each block; raises NotKnown."""
        found = np.full(_ONE, term.get("", 0), np.int64)
        for symbol, factor in term.items():
            if symbol:
                found = _limited(found + factor * self._symbol(symbol, known))
        return found

    def _symbol(self, symbol: str, known: Numbers) -> np.ndarray:
        if symbol in self._axes:
            return self._axes[symbol]
        if symbol in known:
            return known[symbol].view(np.int64)
        if symbol[0] == "@":
            return self.origins.values({symbol: 1}).reshape(*self.grid, 1, 1)
        if isinstance(symbol, Quotient):
            return self.term(symbol.dividend, known) // symbol.divisor
        if isinstance(symbol, Choice):
            first, second = (self.term(t, known) for t in (symbol.first, symbol.second))
            return np.where(self.clause(symbol.true, known), first, second)
        raise NotKnown

    def clause(self, clause: Clause, known: Numbers) -> np.ndarray:
        """Where one of the alternatives holds."""
        found = np.zeros(_ONE, bool)
        for facts in clause:
            one = np.ones(_ONE, bool)
            for fact in facts:
                one = one & (self.term(fact, known) >= 0)
            found = found | one
        return found

    def value(self, value: Value, known: Numbers) -> np.ndarray:
        """What a register holds; raises NotKnown."""
        if isinstance(value, np.ndarray):
            lanes = value[:1] if is_equal(value) else value
            return lanes.reshape(1, 1, 1, 1, -1).astype(np.uint64, copy=False)
        if isinstance(value, Same):
            return self.term(value.term, known).view(np.uint64)
        if isinstance(value, Holds):
            return self.clause(value.true, known).astype(np.uint64)
        if not isinstance(value, Mixed):
            raise NotKnown
        found = value.constant.reshape(1, 1, 1, 1, -1)
        for symbol, factors in value.parts.items():
            if factors.any():
                own = self._symbol(symbol, known) * factors.reshape(1, 1, 1, 1, -1)
                found = _limited(found + own)
        return unsigned(found.view(np.uint64), value.width)

    def result(
        self, ins: Instruction, operands: list[np.ndarray], width: int
    ) -> np.ndarray:
        """What an instruction makes of numbers; raises NotKnown."""
        found = of_numbers(ins, operands, width)
        if found is None:
            raise NotKnown
        return _limited(found)

    # Classes of blocks.

    def classes(
        self, numbers: np.ndarray, within: np.ndarray
    ) -> list[tuple[np.ndarray, np.ndarray]]:
        """Blocks in which threads have the same numbers, with these; raises NotKnown
        where there are many, or turns differ.
        """
        numbers = of_all_turns(numbers)
        if numbers.shape[3] > 1:
            raise NotKnown
        rows = numbers.reshape(-1, numbers.shape[-1])
        kinds: dict[bytes, int] = {}
        which = [kinds.setdefault(row.tobytes(), len(kinds)) for row in rows]
        each = np.array(which).reshape(numbers.shape[:3])
        places = np.broadcast_to(each, self.grid)
        here = np.unique(places[within])
        if len(here) > MOST_CLASSES:
            raise NotKnown
        found = []
        for one in here.tolist():
            lanes = np.broadcast_to(rows[which.index(one)], (self.threads,))
            found.append((within & (places == one), lanes))
        return found


def _at(blocks: np.ndarray, shape: tuple[int, ...]) -> tuple[int, ...]:
    """Where an array along blocks is in the first of these, in the first turn."""
    place = np.unravel_index(int(blocks.argmax()), blocks.shape)
    return (*(min(int(n), m - 1) for n, m in zip(place, shape, strict=False)), 0)


class Classes:
    """Of one machine: `told` are numbers of its state, `blocks` where it is.

    seen: arrays of whose elements accesses are known to be otherwise
    """

    def __init__(
        self, machine: Machine, origins: Origins, seen: Set[str] = frozenset()
    ):
        self.machine, self.blocks = machine, Blocks(origins, machine.threads)
        self.seen = seen

    def counted(self, ins: Instruction, value: Value, lanes: np.ndarray) -> Value:
        """A result, before registers change; told where its value does not say it all.

        Where the machine knows nothing, a number of each block is a symbol.
        """
        state, fresh = self.machine.state, self.machine.fresh
        told = state.data.told
        is_open = value is None or (
            not isinstance(value, np.ndarray) and fresh in symbols_of(value)
        )
        found = self._made(ins, lanes) if is_open and len(ins.results) == 1 else None
        is_unknown = found is None and value is None and len(ins.results) == 1
        if is_unknown and state.lanes is not None and self._is_all(lanes):
            value = self._of_these_threads(ins)
        for name in (*ins.results, fresh):
            told.pop(name, None)
        if found is None:
            return value
        (name,), width = ins.results, self.machine.kernel.width(ins.results[0])
        if value is None and width > 1 and self._is_all(lanes):
            value = self._parted(found, width, self.machine.state)
            if value is not None:
                return value
        told[name] = found
        factor = _factor(value, fresh)
        if found.shape[4] == 1 and factor:
            own = found if width == 1 else _with_sign(found, width)
            each, rest = np.divmod(own.view(np.int64), factor)
            if not rest.any():
                told[fresh] = each.view(np.uint64)
        return value

    def _of_these_threads(self, ins: Instruction) -> Value:
        """A result, where operands are a number of the block plus one of the thread in
        the threads that go this way, if not in all.
        """
        state = self.machine.state
        told, before = state.data.told, state.registers
        names = [n for n in ins.reads if n in told and before.get(n) is None]
        own = {n: self._parted(told[n], self._width(n), state) for n in names}
        if not own or None in own.values():
            return None
        state.registers = {**before, **own}
        value = self.machine.result(ins)
        state.registers = before
        return value

    def _is_all(self, lanes: np.ndarray) -> bool:
        """Whether these are all threads that go this way."""
        active = self.machine.state.lanes
        return bool(lanes.all() or (active is not None and lanes[active].all()))

    def _parted(self, found: np.ndarray, width: int, state: State) -> Value:
        """A number of each block, as a symbol, plus one of each thread, if it is in all
        of both that go this way.
        """
        found = _with_sign(found, width).view(np.int64)
        active, within = state.lanes, state.data.blocks
        here = np.ones(found.shape[4], bool)
        if active is not None and active.any() and found.shape[4] > 1:
            here = active
        blocks = found[..., here].min(axis=4, keepdims=True)
        one = _at(within, found.shape)
        each = found[one] - blocks[one]
        is_other = (found != blocks + each)[..., here].any(axis=4)
        if found.shape[3] > 1 or (is_other[..., 0] & within).any():
            return None
        each = np.where(here, each, 0)
        term = self.blocks.origins.spread(blocks)
        for symbol in term:
            numbers = self.blocks.term({symbol: 1}, {})
            self.machine.symbol(symbol, int(numbers.min()), int(numbers.max()))
        threads = self.machine.threads
        parts = {symbol: np.full(threads, c) for symbol, c in term.items()}
        lanes = np.broadcast_to(each, (threads,))
        limits = int(found.min()), int(found.max())
        return self.machine.interned(simplest(Mixed(parts, lanes, *limits, width)))

    def _made(self, ins: Instruction, lanes: np.ndarray) -> np.ndarray | None:
        machine, told = self.machine, self.machine.state.data.told
        try:
            operands = [self._number(one, told) for one in ins.sources]
            width = machine.kernel.width(ins.results[0])
            found = self.blocks.result(ins, operands, width)
            if not self._is_all(lanes):
                old = self._number(ins.results[0], told)
                found = np.where(lanes, found, old)
        except NotKnown:
            return None
        return of_all_turns(found)

    def _number(self, name: str, told: Numbers) -> np.ndarray:
        if name in told:
            return told[name]
        if name.startswith("!"):
            return (self._number(name[1:].strip(), told) == 0).astype(np.uint64)
        return self.blocks.value(self.machine.value(name), told)

    def tell(self, state: State, ins: Instruction, decides_little: bool) -> list[State]:
        """Other blocks' ways; on this one it is known who executes it, or copies.

        decides_little: what all threads share is told too; else facts are
        """
        others = self._tell_addresses(state, ins)
        for name in self._asked(state, ins):
            value = state.registers.get(name)
            if isinstance(value, np.ndarray):
                continue
            if isinstance(value, Holds) and not decides_little:
                continue
            try:
                others += self._tell_turns(state, name)
                numbers = self._number(name, state.data.told)
                found = self.blocks.classes(numbers, state.data.blocks)
            except NotKnown:
                continue
            if len(found) > 1 and state.lanes is not None:
                continue
            for one in found[1:]:
                others.append(state.fork())
                self._set(others[-1], name, *one)
            self._set(state, name, *found[0])
        return others

    def _tell_addresses(self, state: State, ins: Instruction) -> list[State]:
        """The ways of other blocks, where what is added to a pointer differs by other
        numbers between threads, as where rows end inside of blocks.
        """
        if ins.parts[0] != "add" or state.lanes is not None:
            return []
        told, every = state.data.told, {n: state.registers.get(n) for n in ins.reads}
        names = [n for n, value in every.items() if value is None and n in told]
        symbols = {s for value in every.values() for s in symbols_of(value)}
        pointers = {s[1:] for s in symbols if s[:1] == "."} - self.seen
        if len(names) != 1 or not pointers:
            return []
        (name,) = names
        try:
            numbers = told[name] - told[name][..., :1]
            classes = self.blocks.classes(numbers, state.data.blocks)
        except NotKnown:
            return []
        ways, width = [state, *(state.fork() for _ in classes[1:])], self._width(name)
        for way, (blocks, _) in zip(ways, classes, strict=True):
            way.data.blocks = blocks
            way.registers[name] = self._parted(told[name], width, way)
        return ways[1:]

    def _width(self, name: str) -> int:
        return self.machine.kernel.width(name)

    def _set(
        self, state: State, name: str, blocks: np.ndarray, lanes: np.ndarray
    ) -> None:
        state.data.blocks = blocks
        state.registers[name] = self.machine.numbers(lanes)

    def _tell_turns(self, state: State, name: str) -> list[State]:
        """The ways of other turns, in which a register holds other numbers."""
        if state.lanes is not None:
            return []
        first, *rest = turns_of(self._number(name, state.data.told))
        others = [state.fork() for _ in rest]
        for other, turns in zip((state, *others), (first, *rest), strict=True):
            restrict(other, turns)
        return others

    def _asked(self, state: State, ins: Instruction) -> Iterator[str]:
        told = state.data.told
        if ins.parts[-1] == "pred":
            yield from (n for n in ins.reads if n in told and told[n].shape[3] > 1)
        if ins.guard:
            yield ins.guard
        if source_size(ins):
            yield source_size(ins)
        if ins.parts[0] == "selp" and any(n in state.data.registers for n in ins.reads):
            yield ins.operands[3]

    def narrow(self, state: State, clause: Clause) -> None:
        """Only blocks and turns of which this holds go on."""
        try:
            found = self.blocks.clause(clause, state.data.told)
        except NotKnown:
            return
        if found.shape[4] > 1:
            return
        state.data.blocks = state.data.blocks & np.any(found, axis=3)[..., 0]
        if found.shape[:3] == (1, 1, 1) and found.any():
            restrict(state, found[0, 0, 0, :, 0])


def _factor(value: Value, fresh: str) -> int:
    """What one symbol is multiplied by in a register that holds no more; else 0."""
    if isinstance(value, Holds):
        return int(value.true == [[{fresh: 1, "": -1}]])
    term = value.term if isinstance(value, Same) else {}
    return term[fresh] if terms.frozen(term) == ((fresh, term.get(fresh)),) else 0


def _with_sign(numbers: np.ndarray, width: int) -> np.ndarray:
    return signed(numbers, width).astype(np.int64).view(np.uint64)


def _limited(numbers: np.ndarray) -> np.ndarray:
    if numbers.size > _MOST:
        raise NotKnown
    return numbers
