"""Whether each access to global memory is inside of the array that it is meant for."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass

from alcop_mlir.certificate.bounds.preconditions import Array, Preconditions
from alcop_mlir.certificate.bounds.thread import Thread
from alcop_mlir.certificate.bounds.ways import Ways
from alcop_mlir.certificate.linear import Linear, constant
from alcop_mlir.certificate.program import Code, is_generic, registers
from alcop_mlir.certificate.values import Truth, Uniform, width_of
from alcop_mlir.certificate.verdicts import Outside
from alcop_mlir.runtime.emulator.ptx.syntax import (
    Address,
    Instruction,
    Integer,
    Module,
    Name,
)

_MEMORY = ("ld", "ldu", "st", "atom", "red")
# They name a state space, or an address, and access nothing.
_HARMLESS = (
    "cvta isspacep mov prefetch prefetchu discard applypriority createpolicy membar "
    "fence".split()
)


@dataclass(frozen=True)
class Loose:
    """An access that is not shown to be inside of an array: line and text, and why."""

    line: int
    text: str
    why: str

    def __str__(self) -> str:
        return f"line {self.line}: {self.why}: {self.text}"


def accesses_global(ins: Instruction) -> bool:
    """Whether it may access global memory, at an address of a register."""
    if ins.parts[0] in _HARMLESS:
        return False
    return "global" in ins.parts or is_generic(ins) or ins.parts[0] == "call"


def address_of(ins: Instruction) -> Address | None:
    """Of the access to global memory; None where it is of a kind that is not known."""
    is_copy = ins.parts[:2] == ("cp", "async") and ins.parts[2] in ("ca", "cg")
    if ins.parts[0] not in _MEMORY and not is_copy:
        return None
    if "async" in ins.parts and not is_copy:
        return None
    places = [one for one in ins.operands if isinstance(one, Address)]
    return places[1 if is_copy else 0] if len(places) > is_copy else None


def bounds_of(
    module: Module, entry: str, threads: int, given: Preconditions, seconds: float
) -> Bounds:
    """Of one entry of a module."""
    return Bounds(Code(module, module.kernels[entry]), threads, given, seconds)


class Bounds:
    """Shows it of one kernel.

    loose: what it cannot show, by instruction
    why:   the first of that, or why nothing is shown
    """

    def __init__(
        self, code: Code, threads: int, given: Preconditions, seconds: float = 120
    ):
        self.code = code
        self.why = ""
        self._limit = time.monotonic() + seconds
        self.thread = Thread(code, threads, given)
        self.loose: dict[int, Loose] = {}
        self.shown = 0
        self.ways = Ways(self.thread, self._needed(), self._visit)

    @property
    def assumed(self) -> set[str]:
        """What was taken for granted."""
        return self.ways.assumed

    def run(self) -> bool:
        """Whether all are."""
        if any(map(accesses_global, self.code.instructions)):
            try:
                self.ways.run()
            except Outside as outside:
                self.why = str(outside)
                return False
        self.why = next(map(str, self.loose.values()), "")
        return not self.loose

    def _needed(self) -> set[str]:
        """Registers that addresses, sizes and guards of accesses are computed of."""
        names: set[str] = set()
        for ins in self.code.instructions:
            if accesses_global(ins):
                places = [o for o in ins.operands if isinstance(o, Address)]
                sizes = ins.operands[3:] if ins.parts[0] == "cp" else ()
                for operand in (*places, *sizes):
                    names.update(registers(operand))
            if ins.guard and (ins.parts[0] == "bra" or accesses_global(ins)):
                names.add(ins.guard[0])
        is_open = True
        while is_open:
            before = len(names)
            for pc in range(self.code.end - 1, -1, -1):
                ins = self.code.instructions[pc]
                if ins.parts[0] != "ld" and not names.isdisjoint(self.code.written[pc]):
                    names.update(self.code.read[pc])
            is_open = len(names) > before
        return names

    def _visit(self, ins: Instruction) -> None:
        if not accesses_global(ins):
            return
        if time.monotonic() > self._limit:
            raise Outside("the time for the proof has passed")
        why = self._why_not(ins)
        if why:
            self.loose[self.thread.pc] = Loose(ins.line, ins.text, why)
        else:
            self.shown += 1

    def _why_not(self, ins: Instruction) -> str:
        """Why the access is not shown to be in bounds; empty where it is."""
        place = address_of(ins)
        if place is None or place.base is None:
            return "an access that is not modelled"
        address = self.thread.value(Name(place.base), 64)
        if not isinstance(address, Uniform):
            return "its address is not known"
        names = address.term.terms.keys() & self.ways.pointers
        if len(names) != 1 or address.term.terms[next(iter(names))] != 1:
            return "its address is not computed of one array's"
        (pointer,) = names
        offset = address.term - Linear({pointer: 1}) + place.offset
        array = self.thread.given.arrays[pointer[1:]]
        runs = self._runs(ins)
        for size, test in self._sizes(ins):
            for what, fact in self._out(array, offset, size):
                clause = tuple(
                    (*one, *more, fact, size - 1) for one in runs for more in test
                )
                if not self.thread.refuted(clause):
                    return f"it may be {what} the array of {pointer[1:]}"
        return ""

    def _runs(self, ins: Instruction) -> tuple[tuple[Linear, ...], ...]:
        test = self.thread.guard(ins)
        return test.condition.true if isinstance(test, Truth) else ((),)

    def _out(
        self, array: Array, offset: Linear, size: Linear
    ) -> Iterator[tuple[str, Linear]]:
        """What must not be, if an access is inside."""
        term = self.thread.sizes.term
        yield "before", -offset - 1
        yield "behind", offset + size - term(array.bytes) - 1
        for length in array.lengths:
            yield "in none of the bytes of", -term(length)

    def _sizes(
        self, ins: Instruction
    ) -> Iterator[tuple[Linear, tuple[tuple[Linear, ...], ...]]]:
        """Bytes that are accessed, and when."""
        if ins.parts[0] != "cp":
            count = next((int(p[1:]) for p in ins.parts if p in ("v2", "v4", "v8")), 1)
            yield constant(max(width_of(ins.parts[-1]) // 8, 1) * count), ((),)
            return
        size = ins.operands[2]
        bytes_ = constant(size.value if isinstance(size, Integer) else 16)
        is_hinted = any("cache_hint" in part for part in ins.parts)
        others = ins.operands[3 : len(ins.operands) - is_hinted]
        value = self.thread.value(others[0], 32) if others else None
        if isinstance(value, Truth):  # the source is ignored
            yield bytes_, value.condition.false
        elif isinstance(value, Uniform) and value.low >= 0:
            yield value.term, ((),)
        else:
            yield bytes_, ((),)
