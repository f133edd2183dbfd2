"""Accesses to global memory in each thread of each block, where no size is unknown.

A number is an array along blocks in z, y and x, and threads, as far as these decide it.
Threads that part ways are run one after the other, those at the earliest block first.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import prod
from typing import Protocol

import numpy as np

from alcop_mlir.checker.form.certificate import Polynomial, Promises
from alcop_mlir.checker.machine import arithmetic
from alcop_mlir.checker.machine.arithmetic import bits_read
from alcop_mlir.checker.machine.exact import of_numbers
from alcop_mlir.checker.machine.registers import WARP
from alcop_mlir.checker.ptx.flow import Flow
from alcop_mlir.checker.ptx.instructions import (
    ENDS,
    NUMBER,
    Instruction,
    integer,
    is_global,
    most_bytes,
    place_of,
    places_of,
    source_size,
)
from alcop_mlir.errors import CertificateError

_MOST_LANES, _MOST_WORK, _LEAST_WORK = 1 << 22, 1 << 29, 1 << 12
_SHAPE = (1, 1, 1, 1)
_ADDRESS = 64  # bits
# An address with something added: the operation, and the operand that is the address.
_MOVES = (("add", 0), ("add", 1), ("sub", 0), ("mad", 2))
_ALL, _NO = np.ones(_SHAPE, bool), np.zeros(_SHAPE, bool)


@dataclass(eq=False)
class Number:
    """What a register holds where it is `known`: bytes behind the array of that number
    from 1 on, `base`, or where that is 0 no address.
    """

    lanes: np.ndarray
    base: np.ndarray
    known: np.ndarray


@dataclass(frozen=True, eq=False)
class Access:
    """What one instruction accesses of an array: the first byte, and how many, in those
    threads that execute it.

    shape: of all blocks, in z, y and x, and threads
    turns: by the head of a loop around it, of all threads; None where these part ways
    """

    array: str
    shape: tuple[int, ...]
    turns: dict[int, int | None]
    offset: np.ndarray
    size: np.ndarray
    runs: np.ndarray


class SeesAll(Protocol):
    """What looks at accesses too."""

    def see(self, pc: int, ins: Instruction, access: Access | None) -> None:
        """One, of all threads, or None where not all is known of it; numbers are along
        blocks in z, y and x, and threads.
        """
        ...


_PLAIN = np.zeros(_SHAPE, np.int64)
_NOTHING = Number(np.zeros(_SHAPE, np.uint64), _PLAIN, _NO)


class EveryThread:
    """Runs them all; `needed` are the registers that are followed.

    also: looks at accesses of one array too
    """

    def __init__(
        self,
        flow: Flow,
        threads: int,
        given: Promises,
        needed: set[str],
        also: SeesAll | None = None,
    ):
        self.flow, self.needed, self.also = flow, needed, also
        self.turns: dict[int, int | None] = {}
        self.arrays = [*given.arrays]
        values = given.values.items()
        known = (one for one in values if not any(names for _, names in one[1]))
        self.values = {name: _number(value) for name, value in known}
        room = [
            _number(bytes_) if all(map(_number, lengths)) else 0
            for bytes_, lengths in given.arrays.values()
        ]
        self.room = np.array([0, *room], np.int64)
        axes = ("%ctaid.x", "%ctaid.y", "%ctaid.z")
        if not given.grid.keys() >= set(axes):
            raise CertificateError("the number of blocks is not known")
        blocks = [prod(-(-_number(n) // by) for n, by in given.grid[a]) for a in axes]
        if prod(blocks) * threads > _MOST_LANES:
            raise CertificateError("more threads than can be gone through one by one")
        self.shape = (*blocks[::-1], threads)
        thread = _along(threads, 3)
        lanes = {"%tid.x": thread, "%laneid": thread % np.uint64(WARP)}
        sizes = {"%tid.y": 0, "%tid.z": 0, "%ntid.y": 1, "%ntid.z": 1}
        for place, (axis, count) in enumerate(zip("xyz", blocks, strict=True)):
            lanes[f"%ctaid.{axis}"] = _along(count, 2 - place)
            sizes[f"%nctaid.{axis}"] = count
        lanes |= {n: _same(one) for n, one in {"%ntid.x": threads, **sizes}.items()}
        self.held = {name: Number(one, _PLAIN, _ALL) for name, one in lanes.items()}
        self.waiting = {0: _ALL} if all(blocks) else {}
        self.active, self.work = _ALL, 0

    def run(self) -> None:
        """To the end of all; CertificateError where an access may be outside."""
        while self.waiting:
            block = min(self.waiting)
            self.active = self.waiting.pop(block)
            for pc in range(block, self.flow.stop[block]):
                ins = self.flow.code[pc]
                if is_global(ins):
                    self._look(pc, ins)
                if not self.needed.isdisjoint(ins.results):
                    value = self._made(ins) if len(ins.results) == 1 else _NOTHING
                    for name in ins.results:
                        self._write(ins, name, value)
            self._go_on(block)

    def _go_on(self, block: int) -> None:
        """To the blocks behind one."""
        ins, following = (
            self.flow.code[self.flow.stop[block] - 1],
            self.flow.next[block],
        )
        masks = [self.active]
        if len(following) > 1:
            test = self._guard(ins)
            if self._is_unknown(test):
                raise CertificateError(ins.told("nobody knows who goes on"))
            holds = (test.lanes != 0) ^ (ins.parts[0] in ENDS)
            masks = [self.active & holds, self.active & ~holds]
        going = [(o, m) for o, m in zip(following, masks, strict=True) if m.any()]
        going = [(one, mask) for one, mask in going if one != self.flow.end]
        in_step = len(going) == 1 and not self.waiting
        for one, mask in going:
            self._spend(mask)
            self.waiting[one] = _simplest(mask | self.waiting.get(one, _NO))
            if one in self.flow.loops:
                self._turn(one, block in self.flow.loops[one], in_step)

    def _turn(self, head: int, is_back: bool, in_step: bool) -> None:
        """Threads begin one; in_step: all that have not ended yet."""
        before = self.turns.get(head)
        turn = 0 if not is_back else None if before is None else before + 1
        self.turns[head] = turn if in_step else None

    def _spend(self, lanes: np.ndarray) -> None:
        self.work += max(lanes.size, _LEAST_WORK)
        if self.work > _MOST_WORK:
            raise CertificateError("it takes too long to go through all threads")

    def value(self, operand: str, width: int) -> Number:
        """What an operand holds."""
        if NUMBER.fullmatch(operand):
            number = integer(operand)
            held = int(number != 0) if width == 1 else number % 2**width
            return Number(_same(held), _PLAIN, _ALL)
        if operand.startswith("!"):
            found = self.held.get(operand[1:].strip(), _NOTHING)
            return Number((found.lanes == 0).astype(np.uint64), _PLAIN, found.known)
        return self.held.get(operand, _NOTHING)

    def _guard(self, ins: Instruction) -> Number:
        if not ins.guard:
            return Number(_same(1), _PLAIN, _ALL)
        return self.value("!" * ins.is_negated + ins.guard, 1)

    def _is_unknown(self, test: Number) -> bool:
        """Whether it is not known in all threads that are here."""
        return test.known is not _ALL and bool((self.active & ~test.known).any())

    def _write(self, ins: Instruction, name: str, value: Number) -> None:
        self._spend(value.lanes)
        test, old = self._guard(ins), self.held.get(name, _NOTHING)
        here = self.active & (test.lanes != 0) if ins.guard else self.active
        if self._is_unknown(test):
            here, value = self.active, _NOTHING
        if here is _ALL or here.all():
            self.held[name] = value
            return
        self.held[name] = Number(
            np.where(here, value.lanes, old.lanes),
            _base(here, value, old),
            np.where(here, value.known, old.known),
        )

    def _made(self, ins: Instruction) -> Number:
        """What it computes."""
        name, width = ins.parts[0], ins.width
        own = self.flow.kernel.width(ins.results[0])
        if name == "ld":
            return self._loaded(ins, width if width == own else 0)
        v = [
            self.value(one, bits_read(ins.parts, place, width))
            for place, one in enumerate(ins.operands[1:])
        ]
        known, base = _ALL, _PLAIN
        for one in v:
            known = known if one.known is _ALL else known & one.known
        if ins.moves:
            return v[0]
        if name == "selp":
            first = v[2].lanes != 0
            lanes = np.where(first, v[0].lanes, v[1].lanes)
            return Number(lanes, _base(first, v[0], v[1]), known)
        based = (one.base is not _PLAIN and one.base.any() for one in v)
        moved = [place for place, is_based in enumerate(based) if is_based]
        if moved:
            if own != 64 or (name, *moved) not in _MOVES:
                return _NOTHING
            base = v[moved[0]].base
        lanes = of_numbers(ins, [one.lanes for one in v], own)
        return _NOTHING if lanes is None else Number(lanes, base, known)

    def _loaded(self, ins: Instruction, width: int) -> Number:
        """A parameter that fills its register: an address, or a number."""
        name, step = place_of(ins.operands[1]) or ("", 0)
        is_plain = "param" in ins.parts and ins.parts[-1][0] != "f" and not step
        if not is_plain or self.flow.kernel.sizes.get(name) != width // 8:
            return _NOTHING
        if name in self.values:
            return Number(_same(self.values[name] % 2**width), _PLAIN, _ALL)
        if name not in self.arrays or width != _ADDRESS:
            return _NOTHING
        base = _PLAIN + 1 + self.arrays.index(name)
        return Number(_same(0), base, _ALL)

    def _look(self, pc: int, ins: Instruction) -> None:
        """CertificateError where an access may be outside."""
        test, size, places = self._guard(ins), self._size(ins), places_of(ins)
        lanes = self.active & ((test.lanes != 0) | ~test.known)
        runs, seen = lanes & (size > 0), None
        if (runs & (size > most_bytes(ins))).any():
            raise CertificateError(ins.told("it may read more than it copies"))
        self._spend(runs)
        for register, step in places:
            address = self.value(register, 64)
            is_one = address.known & (address.base > 0)
            if not (is_one.all() or (is_one | ~runs).all()):
                raise CertificateError(ins.told("its address is not known"))
            offset = address.lanes.view(np.int64) + step
            room = self.room[address.base] - size
            if offset.min() < 0 or offset.max() > room.min():
                self._check_inside(ins, address, runs, offset, room)
            if len(places) == 1 and self.also is not None:
                seen = self._access(pc, test, address, offset, size, lanes)
        if not places:
            raise CertificateError(ins.told("its address is not known"))
        if self.also is not None and lanes.any():
            self.also.see(pc, ins, seen)

    def _check_inside(
        self,
        ins: Instruction,
        address: Number,
        runs: np.ndarray,
        offset: np.ndarray,
        room: np.ndarray,
    ) -> None:
        outside = runs & ((offset < 0) | (offset > room))
        if outside.any():
            side = "before" if (outside & (offset < 0)).any() else "behind"
            name = self.arrays[int(np.where(outside, address.base, 0).max()) - 1]
            raise CertificateError(ins.told(f"it may be {side} the array of {name}"))

    def _access(
        self,
        pc: int,
        test: Number,
        address: Number,
        offset: np.ndarray,
        size: np.ndarray,
        lanes: np.ndarray,
    ) -> Access | None:
        """What all threads access, if it is known, and of one array."""
        base = np.unique(np.where(lanes, address.base, 0))
        base = base[base > 0]
        is_known = not self._is_unknown(test)
        if not is_known or (lanes & ~address.known).any() or len(base) != 1:
            return None
        block, loops = self.flow.block[pc], self.flow.loops.items()
        turns = {head: self.turns[head] for head, blocks in loops if block in blocks}
        array = self.arrays[int(base[0]) - 1]
        is_one = not (lanes & (address.base == 0)).any()
        return Access(array, self.shape, turns, offset, size, lanes) if is_one else None

    def _size(self, ins: Instruction) -> np.ndarray:
        """How many bytes each thread accesses."""
        size, source = most_bytes(ins), source_size(ins)
        if not source:
            return np.full(_SHAPE, size, np.int64)
        value = self.value(source, 32)
        name = source.lstrip("! ")
        if NUMBER.fullmatch(name) or self.flow.kernel.width(name) > 1:
            lanes = arithmetic.unsigned(value.lanes, 32).astype(np.int64)
        else:
            lanes = np.where(value.lanes != 0, 0, size)
        return np.where(value.known, lanes, size)


def _number(value: Polynomial) -> int:
    if any(names for _, names in value):
        raise CertificateError("a size is not known")
    return sum(factor for factor, _ in value)


def _simplest(mask: np.ndarray) -> np.ndarray:
    return _ALL if mask.all() else mask


def _same(number: int) -> np.ndarray:
    return np.full(_SHAPE, number, np.uint64)


def _along(count: int, axis: int) -> np.ndarray:
    shape = [1] * axis + [count] + [1] * (3 - axis)
    return np.arange(count, dtype=np.uint64).reshape(shape)


def _base(here: np.ndarray, one: Number, other: Number) -> np.ndarray:
    """The array of one where threads are here, else of the other."""
    if one.base is other.base:
        return one.base
    return np.where(here, one.base, other.base)
