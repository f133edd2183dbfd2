"""Whether each access to global memory is inside of the array that it is meant for."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass

from alcop_mlir.certificate.bounds.every_thread import EveryThread, NotKnown
from alcop_mlir.certificate.bounds.instructions import (
    accesses_global,
    address_of,
    most_bytes,
    needed,
    source_size,
)
from alcop_mlir.certificate.bounds.preconditions import Array, Preconditions
from alcop_mlir.certificate.bounds.thread import Thread
from alcop_mlir.certificate.bounds.ways import Ways
from alcop_mlir.certificate.linear import Linear, constant
from alcop_mlir.certificate.program import Code
from alcop_mlir.certificate.values import Truth, Uniform
from alcop_mlir.certificate.verdicts import Outside
from alcop_mlir.runtime.emulator.ptx.syntax import Instruction, Module, Name

_FEW = 1 << 16  # threads that are gone through one by one before anything else


@dataclass(frozen=True)
class Loose:
    """An access that is not shown to be inside of an array: line and text, and why."""

    line: int
    text: str
    why: str

    def __str__(self) -> str:
        return f"line {self.line}: {self.why}: {self.text}"


def bounds_of(
    module: Module, entry: str, threads: int, given: Preconditions, seconds: float
) -> Bounds:
    """Of one entry of a module."""
    return Bounds(Code(module, module.kernels[entry]), threads, given, seconds)


class Bounds:
    """Shows it of one kernel: of one that takes no sizes by the numbers of all threads,
    if those are few; else by terms; and by numbers at last.

    loose: what it cannot show, by instruction
    shown: what it can
    why:   the first of that, or why nothing is shown
    by_numbers: whether that is how it was shown
    """

    def __init__(
        self, code: Code, threads: int, given: Preconditions, seconds: float = 120
    ):
        self.code = code
        self.why, self.by_numbers, self._stops = "", False, False
        self._limit = time.process_time() + seconds
        self.thread = Thread(code, threads, given)
        self.loose: dict[int, Loose] = {}
        self.shown: set[int] = set()
        self.accesses = {
            pc for pc, ins in enumerate(code.instructions) if accesses_global(ins)
        }
        self.needed = needed(code)
        self.ways = Ways(self.thread, self.needed, self._visit)

    @property
    def assumed(self) -> set[str]:
        """What was taken for granted."""
        return self.ways.assumed

    def is_by_terms(self) -> bool:
        """Whether it is shown first of one thread, which stands for all."""
        if not self.accesses:
            return False
        every = self._every_thread()
        return every is None or every.threads > _FEW

    def run(self) -> bool:
        """Whether all are."""
        if not self.accesses:
            return True
        every = self._every_thread()
        if every is not None and every.threads <= _FEW:
            self.by_numbers = self._is_inside(every)
            every = None
        if not self.by_numbers:
            self._by_terms(every is not None)
        if self.why and every is not None:
            self.by_numbers = self._is_inside(every)
        return not self.why

    def _every_thread(self) -> EveryThread | None:
        task = (self.code, self.thread.threads, self.thread.given)
        try:
            return EveryThread(*task, self.needed, self.accesses)
        except NotKnown:
            return None

    def _by_terms(self, stops: bool) -> None:
        """Of one thread that stands for all; `stops` at what is not shown."""
        self._stops, self.why = stops, ""
        try:
            self.ways.run()
        except Outside as outside:
            self.why = str(outside)
        self.why = next(map(str, self.loose.values()), self.why)

    def _is_inside(self, every: EveryThread) -> bool:
        """By the numbers of all; what depends on others says nothing."""
        try:
            every.run()
        except NotKnown:
            return False
        if not every.lost:
            self.why, self.loose, self.shown = "", {}, every.met
        return not every.lost

    def _visit(self, ins: Instruction) -> None:
        if self.thread.pc not in self.accesses:
            return
        if time.process_time() > self._limit:
            raise Outside("the time for the proof has passed")
        why = self._why_not(ins)
        if not why:
            self.shown.add(self.thread.pc)
            return
        self.loose[self.thread.pc] = Loose(ins.line, ins.text, why)
        if self._stops:
            raise Outside("numbers may say more")

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
        bytes_, given = constant(most_bytes(ins)), source_size(ins)
        value = None if given is None else self.thread.value(given, 32)
        if isinstance(value, Truth):  # the source is ignored
            yield bytes_, value.condition.false
        elif isinstance(value, Uniform) and value.low >= 0:
            yield value.term, ((),)
        else:
            yield bytes_, ((),)
