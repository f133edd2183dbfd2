"""call: to functions of the module, and back.

PTX ISA "Control Flow Instructions: call". What is passed is copied from the caller's
frame, in local memory, to that of the callee, or to its registers. A function that may
call itself has its registers set aside meanwhile, and a frame on the stack.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from math import gcd

import numpy as np

from alcop_mlir.runtime.emulator.arithmetic.storage import S64, U64, Array
from alcop_mlir.runtime.emulator.instructions import access
from alcop_mlir.runtime.emulator.instructions.access import Access
from alcop_mlir.runtime.emulator.instructions.translator import Translator
from alcop_mlir.runtime.emulator.machine.cohort import Cohort
from alcop_mlir.runtime.emulator.machine.faults import fault, location_of_mask
from alcop_mlir.runtime.emulator.machine.loaded_kernel import merge
from alcop_mlir.runtime.emulator.machine.memory_map import FRAME_ALIGN, Frame
from alcop_mlir.runtime.emulator.machine.warps import LANES, Mask
from alcop_mlir.runtime.emulator.ptx.program import Call, read_call
from alcop_mlir.runtime.emulator.ptx.scalars import SCALARS, Scalar
from alcop_mlir.runtime.emulator.ptx.syntax import (
    Instruction,
    Name,
    Operand,
    PtxKernel,
    PtxParameter,
    unsupported,
)

MAX_DEPTH = 1024  # calls of functions that call themselves, in each other
MAX_LOCAL = 512 * 1024  # bytes of a thread: CUDA, "Technical Specifications"
_WIDEST = 8  # bytes that are copied at a time
_STACK, _DEPTH = "%stack", "%depth"

Get = Callable[[Cohort, Mask], Array]
Put = Callable[[Cohort, Mask, Array], None]


def stack_pointer(t: Translator) -> int:
    """The slot of the first free byte of each thread's local memory."""
    start = np.full((1, 1, 1), t.memory_map.local_size, np.uint64)
    return t.registers.known(_STACK, start)


def push(cohort: Cohort, slot: int, size: Array, mask: Mask, ins: Instruction) -> Array:
    """Takes `size` bytes of the stack; returns where they begin, a register."""
    base = cohort.R[slot]
    step = U64.type(FRAME_ALIGN - 1)
    top = base + ((size.astype(U64) + step) & ~step)
    on = top if mask is None else np.where(mask, top, U64.type(0))
    most = int(on.max())
    if most > MAX_LOCAL:
        raise fault(
            ins,
            f"the stack of a thread is full: {most} bytes of local memory, of "
            f"{MAX_LOCAL}",
        )
    cohort.grow_local(most)
    cohort.put(slot, top, mask)
    return base


@dataclass(frozen=True)
class Callee:
    """A function as its callers see it.

    t: of its own registers and variables; entry: its first instruction; back: the slot
    with the call to return to
    """

    t: Translator
    entry: int
    frame: Frame
    back: int

    @property
    def function(self) -> PtxKernel:
        """What was parsed."""
        return self.t.kernel


@dataclass(frozen=True)
class _Passing:
    """How one callee is called: what to move there, and what to move back."""

    callee: Callee
    given: tuple[tuple[Get, Put], ...]
    returned: tuple[tuple[Get, Put], ...]


class CallSite:
    """One call instruction, at `pc` of the program."""

    def __init__(
        self,
        t: Translator,
        ins: Instruction,
        pc: int,
        callees: dict[int, Callee],
        saves: bool,
    ):
        """`callees`: by address, or one at -1; `saves`: they may call the caller."""
        self.t, self.ins, self.pc, self.saves = t, ins, pc, saves
        call = read_call(ins)
        self.address = None if -1 in callees else _target(t, call, ins)
        self.passings = {
            address: self._passing(call, callee) for address, callee in callees.items()
        }
        self.stack = stack_pointer(t)
        self.depth = t.registers.known(_DEPTH, np.zeros((1, 1, 1), np.int64))

    def _passing(self, call: Call, callee: Callee) -> _Passing | None:
        """None if the function does not take or return what the call says."""
        function, ins = callee.function, self.ins
        pairs = (
            (call.arguments, function.parameters),
            (call.results, function.results),
        )
        if any(len(actual) != len(formal) for actual, formal in pairs):
            return None
        given: list[tuple[Get, Put]] = []
        returned: list[tuple[Get, Put]] = []
        for actual, formal in zip(call.arguments, function.parameters, strict=True):
            width = _width(self.t, actual, callee.t, formal)
            source = _Location(self.t, actual, formal, ins, width)
            target = _Location(callee.t, Name(formal.name), formal, ins, width)
            given += zip(source.reads(), target.writes(), strict=True)
        for actual, formal in zip(call.results, function.results, strict=True):
            width = _width(self.t, actual, callee.t, formal)
            source = _Location(callee.t, Name(formal.name), formal, ins, width)
            target = _Location(self.t, actual, formal, ins, width)
            returned += zip(source.reads(), target.writes(), strict=True)
        return _Passing(callee, tuple(given), tuple(returned))

    def enter(self, cohort: Cohort, mask: Mask) -> None:
        """Sends the lanes to the functions that they call."""
        for passing, part in self._groups(cohort, mask):
            if passing is None:
                raise unsupported(self.ins, "the function has other parameters")
            self._enter(cohort, part, passing)

    def _groups(
        self, cohort: Cohort, mask: Mask
    ) -> Iterator[tuple[_Passing | None, Mask]]:
        if self.address is None:
            yield self.passings[-1], mask
            return
        on = np.ones((1, 1, LANES), bool) if mask is None else mask
        address, on = np.broadcast_arrays(self.address(cohort, mask), on)
        for one in np.unique(address[on]).tolist():
            part = on & (address == one)
            if one not in self.passings:
                raise fault(
                    self.ins,
                    f"a call of address 0x{one:x}, where no function begins",
                    location_of_mask(cohort, part),
                )
            yield self.passings[one], part

    def _enter(self, cohort: Cohort, mask: Mask, passing: _Passing) -> None:
        values = [get(cohort, mask) for get, _ in passing.given]
        callee = passing.callee
        if self.saves:
            self._set_aside(cohort, mask)
        if callee.t.frame is not None:
            size = np.array(callee.frame.size)
            base = push(cohort, self.stack, size, mask, self.ins)
            cohort.put(callee.t.frame, base, mask)
        for value, (_, put) in zip(values, passing.given, strict=True):
            put(cohort, mask, value)
        cohort.put(callee.back, np.full((1, 1, 1), self.pc, np.int64), mask)
        cohort.push(callee.entry, mask)

    def leave(self, cohort: Cohort, mask: Mask, callee: Callee) -> None:
        """Takes lanes back from a function that they called here."""
        passing = next(p for p in self.passings.values() if p and p.callee is callee)
        values = [get(cohort, mask) for get, _ in passing.returned]
        if callee.t.frame is not None:
            cohort.put(self.stack, cohort.R[callee.t.frame], mask)
        if self.saves:
            self._bring_back(cohort, mask)
        for value, (_, put) in zip(values, passing.returned, strict=True):
            put(cohort, mask, value)
        cohort.push(self.pc + 1, mask)

    def _own_slots(self) -> list[int]:
        """The registers of the caller that have been met so far."""
        prefix = self.t.prefix
        slots = self.t.registers.slots.items()
        return [slot for name, slot in slots if name.startswith(prefix)]

    def _levels(self, cohort: Cohort, mask: Mask) -> Iterator[tuple[int, Mask]]:
        """The depths of calls in which the lanes are."""
        depth = cohort.R[self.depth]
        if depth.size == 1:
            yield int(depth.reshape(-1)[0]), mask
            return
        on = np.ones((1, 1, 1), bool) if mask is None else mask
        depth, on = np.broadcast_arrays(depth, on)
        for level in np.unique(depth[on]).tolist():
            yield level, on & (depth == level)

    def _set_aside(self, cohort: Cohort, mask: Mask) -> None:
        R = cohort.R
        for level, part in self._levels(cohort, mask):
            if level >= MAX_DEPTH:
                raise fault(self.ins, f"calls in each other, {MAX_DEPTH} deep")
            if level == len(cohort.saved):
                cohort.saved.append({})
            kept = cohort.saved[level]
            for slot in self._own_slots():
                old = kept.get(slot)
                if part is None or old is None:
                    kept[slot] = R[slot]
                else:
                    kept[slot] = merge(part, R[slot], old)
        cohort.put(self.depth, R[self.depth] + 1, mask)

    def _bring_back(self, cohort: Cohort, mask: Mask) -> None:
        cohort.put(self.depth, cohort.R[self.depth] - 1, mask)
        for level, part in self._levels(cohort, mask):
            for slot, value in cohort.saved[level].items():
                if slot in self._own_slots():
                    cohort.put(slot, value, part)


def _target(t: Translator, call: Call, ins: Instruction) -> Get:
    read = t.read(Name(call.target), SCALARS["b64"], ins)
    return lambda cohort, mask: read(cohort.R)


def _width(
    caller: Translator, actual: Operand, callee: Translator, formal: PtxParameter
) -> int:
    """How many bytes to move at a time, so that both sides are aligned."""
    name = actual.name if isinstance(actual, Name) else ""
    width = gcd(formal.size, _WIDEST)
    for t, one in ((caller, name), (callee, formal.name)):
        width = gcd(width, t.memory_map.local.get(one, 0))
    return width


@dataclass(frozen=True)
class _Location:
    """Where one parameter is, in a frame or a register, moved by `width` bytes."""

    t: Translator
    operand: Operand
    formal: PtxParameter
    ins: Instruction
    width: int

    def _addresses(self) -> Sequence[Callable[[list[Array]], Array]] | None:
        """Of each piece in local memory; None for a register or a number."""
        if not isinstance(self.operand, Name):
            return None
        name = self.operand.name
        if name not in self.t.memory_map.local:
            return None
        steps = range(0, self.formal.size, self.width)
        found = [self.t.address_reader(name, at, SCALARS["b64"]) for at in steps]
        return [read for read in found if read is not None]

    def _scalar(self) -> Scalar:
        """The type of the one register; a structure does not fit in one."""
        if self.formal.size != self.formal.type.size:
            raise unsupported(self.ins, "a structure in a register")
        kind = "pred" if self.formal.type.kind == "pred" else f"b{8 * self.formal.size}"
        return SCALARS[kind]

    def reads(self) -> list[Get]:
        """How to read each piece."""
        addresses = self._addresses()
        if addresses is None:
            scalar = self._scalar()
            value = self.t.read(self.operand, scalar, self.ins)
            return _in_pieces(value, scalar.dtype, self.width)
        return [self._load(read) for read in addresses]

    def _load(self, address: Callable[[list[Array]], Array]) -> Get:
        def get(cohort: Cohort, mask: Mask) -> Array:
            at = address(cohort.R)
            return access.load(Access(cohort, mask, at, "local", self.width, self.ins))

        return get

    def writes(self) -> list[Put]:
        """How to write each piece."""
        addresses = self._addresses()
        if addresses is None:
            scalar = self._scalar()
            write = self.t.writer(self.operand, scalar.dtype, self.ins)
            if self.width != scalar.size:
                raise unsupported(self.ins, "a register in pieces")
            return [lambda cohort, mask, value: write(cohort, value, mask)]
        return [self._store(read) for read in addresses]

    def _store(self, address: Callable[[list[Array]], Array]) -> Put:
        def put(cohort: Cohort, mask: Mask, value: Array) -> None:
            at = address(cohort.R)
            access.store(Access(cohort, mask, at, "local", self.width, self.ins), value)

        return put


def _in_pieces(
    value: Callable[[list[Array]], Array], dtype: np.dtype, width: int
) -> list[Get]:
    """A register as the pieces that are stored."""
    if dtype.itemsize == width:
        return [lambda cohort, mask: value(cohort.R)]

    def piece(number: int) -> Get:
        part = np.dtype(f"u{width}")
        bits = np.uint64(8 * width * number)
        return lambda cohort, mask: (value(cohort.R).astype(U64) >> bits).astype(part)

    return [piece(number) for number in range(dtype.itemsize // width)]


def return_addresses(
    cohort: Cohort, slot: int, mask: Mask
) -> Iterator[tuple[int, Mask]]:
    """The calls to which lanes return, and which lanes do."""
    back = cohort.R[slot].astype(S64)
    if back.size == 1:
        yield int(back.reshape(-1)[0]), mask
        return
    on = np.ones((1, 1, 1), bool) if mask is None else mask
    back, on = np.broadcast_arrays(back, on)
    for pc in np.unique(back[on]).tolist():
        yield pc, on & (back == pc)
