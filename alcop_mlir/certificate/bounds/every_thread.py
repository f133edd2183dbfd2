"""Accesses to global memory in each thread of each block, by its numbers.

Of a kernel that takes no sizes all is known that addresses and guards are computed of,
so that masks, shifts and counters of any kind are numbers. Threads need not go in step:
those that wait at the earliest block go on first.
"""

from __future__ import annotations

from collections.abc import Set
from dataclasses import dataclass, field
from functools import cached_property
from math import prod

import numpy as np

from alcop_mlir.certificate import exact_arithmetic
from alcop_mlir.certificate.bounds.instructions import (
    address_of,
    most_bytes,
    source_size,
)
from alcop_mlir.certificate.bounds.preconditions import Polynomial, Preconditions
from alcop_mlir.certificate.comparisons import COMPARISONS, UNSIGNED
from alcop_mlir.certificate.exact_arithmetic import scalar_types
from alcop_mlir.certificate.program import ENDS, Code
from alcop_mlir.certificate.values import WARP, masked, signed, width_of
from alcop_mlir.runtime.emulator.ptx.syntax import (
    Address,
    Instruction,
    Integer,
    Name,
    Negated,
    Operand,
)

_MOST_LANES = 1 << 22  # threads of all blocks
_MOST_WORK = 1 << 28  # numbers that are computed
_LEAST_WORK = 1 << 12  # what an instruction costs, however few numbers it makes
_SHAPE = (1, 1, 1, 1)  # blocks along z, y and x, and threads: what all share
_ALL = np.ones(_SHAPE, bool)
_AXES = ("%ctaid.x", "%ctaid.y", "%ctaid.z")


class NotKnown(Exception):
    """It depends on what is not known, or there is too much to do."""


@dataclass(eq=False)
class Numbers:
    """What a register holds: one number of each thread in each block, or of those
    along the axes on which it depends.

    base:  which array an address is counted from, from 1 on; 0 for a number
    known: in which threads
    """

    lanes: np.ndarray
    base: np.ndarray = field(default_factory=lambda: _NO_BASE)
    known: np.ndarray = field(default_factory=lambda: _ALL)

    @cached_property
    def ends(self) -> tuple[int, int]:
        """The least and the largest, with a sign."""
        numbers = self.lanes.view(np.int64)
        return int(numbers.min()), int(numbers.max())


_NONE = np.zeros(_SHAPE, bool)
_NO_BASE = np.zeros(_SHAPE, np.int64)
_NOTHING = Numbers(np.zeros(_SHAPE, np.uint64), _NO_BASE, _NONE)


def number_of(value: Polynomial) -> int | None:
    """A polynomial that names no size."""
    return None if any(names for _, names in value) else sum(c for c, _ in value)


def blocks_of(given: Preconditions) -> tuple[int, ...] | None:
    """How many there are along each axis, where no size decides that."""
    found = []
    for axis in _AXES:
        counts = [(number_of(value), by) for value, by in given.grid.get(axis, ())]
        if axis not in given.grid or any(value is None for value, _ in counts):
            return None
        found.append(prod(-(-(value or 0) // by) for value, by in counts))
    return tuple(found)


class EveryThread:
    """Runs all threads of all blocks, and looks at each access.

    needed:   the registers that are followed
    accesses: those that are looked at
    lost:     accesses that are not inside, with what they may be
    met:      those that some thread has come to
    """

    def __init__(
        self,
        code: Code,
        threads: int,
        given: Preconditions,
        needed: Set[str],
        accesses: Set[int],
    ):
        self.code, self.needed, self.accesses = code, needed, accesses
        self.arrays = [*given.arrays]
        self.bytes = np.array([0, *_bytes_of(given)], np.int64)
        blocks = blocks_of(given)
        self.special = _special(blocks, threads)
        self.threads = prod(blocks or ()) * threads
        self.registers: dict[str, Numbers] = {}
        self.lost: dict[int, str] = {}
        self.met: set[int] = set()
        self.active = _ALL
        self._work = 0

    def run(self) -> None:
        """From the entry until all have ended; raises NotKnown."""
        waiting = {0: _ALL} if self.threads else {}
        while waiting:
            block = min(waiting)
            self.active = waiting.pop(block)
            self._block(block)
            for one, mask in self._next(block):
                if one != self.code.end and mask.any():
                    waiting[one] = mask | waiting.get(one, _NONE)

    def _block(self, block: int) -> None:
        for pc in range(block, self.code.stop[block]):
            ins = self.code.instructions[pc]
            if pc in self.accesses:
                self._look(pc, ins)
            written = self.code.written[pc]
            if self.needed.isdisjoint(written):
                continue
            value = self._computed(ins, written[0]) if len(written) == 1 else _NOTHING
            for name in written:
                self._write(ins, name, value)

    def _next(self, block: int) -> list[tuple[int, np.ndarray]]:
        """Where threads go from the end of a block, and which."""
        ins = self.code.instructions[self.code.stop[block] - 1]
        following = self.code.following[block]
        if ins.guard is None or len(following) < 2:
            return [(one, self.active) for one in following]
        test = self._guard(ins)
        if not _all(test.known | ~self.active):
            raise NotKnown
        self._spend(self.active)
        holds = test.lanes != 0
        if ins.parts[0] in ENDS:
            holds = ~holds
        return [
            (following[0], self.active & holds),
            (following[1], self.active & ~holds),
        ]

    # Values.

    def value(self, operand: Operand, width: int) -> Numbers:
        """What an operand holds."""
        if isinstance(operand, Integer):
            bits = operand.value & ((1 << width) - 1)
            return Numbers(np.full(_SHAPE, bits, np.uint64))
        if isinstance(operand, Negated):
            found = self.value(operand.operand, 1)
            return Numbers((found.lanes == 0).astype(np.uint64), _NO_BASE, found.known)
        if not isinstance(operand, Name):
            return _NOTHING
        name = operand.name
        return self.registers.get(name) or self.special.get(name, _NOTHING)

    def _spend(self, lanes: np.ndarray) -> None:
        self._work += max(lanes.size, _LEAST_WORK)
        if self._work > _MOST_WORK:
            raise NotKnown

    def _guard(self, ins: Instruction) -> Numbers:
        if ins.guard is None:
            return Numbers(np.ones(_SHAPE, np.uint64))
        name, is_negated = ins.guard
        return self.value(Negated(Name(name)) if is_negated else Name(name), 1)

    def _write(self, ins: Instruction, name: str, value: Numbers) -> None:
        """Where threads are that execute it; others keep what they have."""
        self._spend(value.lanes)
        here = self.active
        if ins.guard is not None:
            test = self._guard(ins)
            here = here & (test.lanes != 0)
            if not _all(test.known | ~self.active):
                value, here = _NOTHING, self.active
        if here is _ALL or _all(here):
            self.registers[name] = value
            return
        old = self.registers.get(name, _NOTHING)
        self.registers[name] = Numbers(
            np.where(here, value.lanes, old.lanes),
            _base_of(here, value, old),
            np.where(here, value.known, old.known),
        )

    def _computed(self, ins: Instruction, result: str) -> Numbers:
        first, last = ins.parts[0], ins.parts[-1]
        if first == "ld":
            return self._loaded(ins)
        v = [self.value(one, width_of(last)) for one in ins.operands[1:]]
        known = v[0].known if v else _ALL
        for one in v[1:]:
            known = known if one.known is _ALL else known & one.known
        if not known.any():
            return _NOTHING
        if first in ("mov", "cvta") and len(v) == 1:
            return v[0]
        if first == "selp":
            return _selected(v, known)
        base = self._base(ins, v)
        if base is None:
            return _NOTHING
        lanes = _lanes(ins, [one.lanes for one in v], self.code.width(result))
        return _NOTHING if lanes is None else Numbers(lanes, base, known)

    def _base(self, ins: Instruction, v: list[Numbers]) -> np.ndarray | None:
        """What the result is counted from; None where that says nothing."""
        places = [place for place, one in enumerate(v) if one.base.any()]
        if not places:
            return _NO_BASE
        first, place = ins.parts[0], places[0]
        bits = width_of(ins.parts[-1]) * (2 if "wide" in ins.parts else 1)
        if len(places) > 1 or bits != 64:
            return None
        moves = first == "add" or (first == "sub" and not place)
        return v[place].base if moves or (first == "mad" and place == 2) else None

    def _loaded(self, ins: Instruction) -> Numbers:
        place = ins.operands[1]
        is_pointer = "param" in ins.parts and ins.parts[-1] in ("u64", "b64", "s64")
        if not is_pointer or not isinstance(place, Address) or place.offset:
            return _NOTHING
        if place.base is None or place.base not in self.arrays:
            return _NOTHING
        base = _NO_BASE + 1 + self.arrays.index(place.base)
        return Numbers(np.zeros(_SHAPE, np.uint64), base)

    # Accesses.

    def _look(self, pc: int, ins: Instruction) -> None:
        """Whether the access is inside, in all threads that make it."""
        self.met.add(pc)
        test = self._guard(ins)
        runs = self.active & ((test.lanes != 0) | ~test.known)
        size = self._size(ins)
        runs = runs & (size > 0)
        place = address_of(ins)
        if place is None or not place.base:
            self.lost[pc] = "an access that is not modelled"
            return
        address = self.value(Name(place.base), 64)
        if not _all((address.known & (address.base > 0)) | ~runs):
            self.lost[pc] = "its address is not computed of an array's"
            return
        length = self.bytes[address.base] - place.offset
        self._spend(runs)
        low, high = address.ends
        if low >= -place.offset and high <= int(length.min()) - int(size.max()):
            return
        offset = address.lanes.view(np.int64)
        for what, is_out in (
            ("before", offset < -place.offset),
            ("behind", offset > length - size),
        ):
            lost = runs & is_out
            if lost.any():
                base = np.broadcast_to(address.base, lost.shape)[lost][0]
                self.lost[pc] = f"it is {what} the array of {self.arrays[base - 1]}"

    def _size(self, ins: Instruction) -> np.ndarray:
        """How many bytes each thread accesses."""
        size, given = most_bytes(ins), source_size(ins)
        if given is None:
            return np.full(_SHAPE, size, np.int64)
        value = self.value(given, 32)
        if isinstance(given, Name) and self.code.width(given.name) == 1:
            lanes = np.where(value.lanes != 0, 0, size)  # the source is ignored
        else:
            lanes = masked(value.lanes, 32).astype(np.int64)
        return np.where(value.known, lanes, size)


def _all(mask: np.ndarray) -> bool:
    return mask is _ALL or bool(mask.all())


def _bytes_of(given: Preconditions) -> list[int]:
    """How many bytes are behind each pointer; none where a length is 0."""
    found: list[int] = []
    for array in given.arrays.values():
        bytes_ = number_of(array.bytes)
        lengths = [number_of(one) for one in array.lengths]
        if bytes_ is None or None in lengths:
            raise NotKnown
        found.append(bytes_ if all(lengths) else 0)
    return found


def _special(blocks: tuple[int, ...] | None, threads: int) -> dict[str, Numbers]:
    """Special registers, of one thread after the other, block by block."""
    if blocks is None or prod(blocks) * threads > _MOST_LANES:
        raise NotKnown
    thread = _along(threads, 3)
    found = {"%tid.x": thread, "%laneid": thread % np.uint64(WARP)}
    sizes = {"%ntid.x": threads, "%tid.y": 0, "%tid.z": 0, "%ntid.y": 1, "%ntid.z": 1}
    for place, (axis, count) in enumerate(zip("xyz", blocks, strict=True)):
        found[f"%ctaid.{axis}"] = _along(count, 2 - place)
        sizes[f"%nctaid.{axis}"] = count
    found.update({n: np.full(_SHAPE, size, np.uint64) for n, size in sizes.items()})
    return {name: Numbers(numbers) for name, numbers in found.items()}


def _along(count: int, axis: int) -> np.ndarray:
    """Numbers from 0 along one axis."""
    shape = [*_SHAPE]
    shape[axis] = count
    return np.arange(count, dtype=np.uint64).reshape(shape)


def _base_of(here: np.ndarray, one: Numbers, other: Numbers) -> np.ndarray:
    """What one is counted from where threads are here, else the other."""
    if one.base is other.base:
        return one.base
    return np.where(here, one.base, other.base)


def _selected(v: list[Numbers], known: np.ndarray) -> Numbers:
    first, second, test = v
    here = test.lanes != 0
    lanes = np.where(here, first.lanes, second.lanes)
    return Numbers(lanes, _base_of(here, first, second), known)


def _lanes(ins: Instruction, v: list[np.ndarray], width: int) -> np.ndarray | None:
    """What it makes of numbers, for a register of that width."""
    types = scalar_types(ins.parts)
    if ins.parts[0] == "setp":
        return _compared(ins, types, v)
    if ins.parts[-1] == "pred":
        if ins.parts[0] == "not":
            return (v[0] == 0).astype(np.uint64)
        of = {"and": np.bitwise_and, "or": np.bitwise_or, "xor": np.bitwise_xor}
        return of[ins.parts[0]](*v) if ins.parts[0] in of else None
    if not types or width != types[0][1] * (2 if "wide" in ins.parts else 1):
        return None
    found = exact_arithmetic.compute(ins.parts, v)
    return None if found is None else found.lanes


def _compared(
    ins: Instruction, types: list[tuple[str, int]], v: list[np.ndarray]
) -> np.ndarray | None:
    name = UNSIGNED.get(ins.parts[1], ins.parts[1])
    if len(v) != 2 or not types or types[-1][0] == "f" or name not in COMPARISONS:
        return None
    kind, width = types[-1]
    is_signed = kind == "s" and ins.parts[1] not in UNSIGNED
    reader = signed if is_signed else masked
    return COMPARISONS[name](*(reader(one, width) for one in v)).astype(np.uint64)
