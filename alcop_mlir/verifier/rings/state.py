"""What threads know of slots while a kernel with roles runs: `State`."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any

from alcop_mlir.verifier.rings.mbarriers import Mbarriers
from alcop_mlir.verifier.rings.records import (
    REGISTERS,
    Filled,
    Mbarrier,
    Reader,
    Slot,
    Wrong,
)


class State(Mbarriers):
    """Mbarriers and slots. Methods raise `Wrong`."""

    @staticmethod
    def at_start(
        of_processes: Sequence[int], mbarriers: list[str], names: list[str], blocks: int
    ) -> State:
        """Before anything has run.

        of_processes: the block of each
        mbarriers, names: of a block, of which there are so many
        """
        processes, count = len(of_processes), len(mbarriers)
        where = [f" of block {n}" if blocks > 1 else "" for n in range(blocks)]
        mbarriers = [f"{one}{block}" for block in where for one in mbarriers]
        names = [f"{one}{block}" for block in where for one in names]
        owners = [number // count for number in range(len(mbarriers))]
        size = 2 * processes + len(mbarriers)
        return State(
            names,
            [[0] * size for _ in range(processes)],
            [Mbarrier(name, clock=[0] * size, done=[0] * size) for name in mbarriers],
            {},
            [Reader() for _ in range(processes)],
            [0] * len(names),
            (of_processes, owners),
        )

    def fill(
        self,
        process: int,
        slot: Slot,
        part: tuple[int, int],
        size: int,
        number: int,
        threads: int,
        op: Any,
    ) -> None:
        """Issue a copy of so many bytes, whose end the mbarrier is told."""
        one = self._in_phase(process, number, "copies into a slot for")
        phase = (number, one.ended + 1)
        filled = self.slots.setdefault(slot, Filled())
        self._refill(process, slot)
        if filled.phase != phase:
            if filled.number >= 0 and not filled.used:
                name = self._name(slot)
                raise Wrong(f"{name} is filled again, and nothing has read it")
            count = self.fills[slot[0]]
            self.slots[slot] = filled = replace(
                filled, number=count, phase=phase, parts=(), used=False, op=op
            )
            self.fills[slot[0]] += 1
        elif any(first < part[1] and part[0] < end for first, end in filled.parts):
            raise Wrong(f"{self._name(slot)} is filled twice in a phase of {one.name}")
        filled.parts += (part,)
        one.landed += size * threads
        self._contribute(process, number, op)
        if not one.pending and one.landed > one.expected:
            raise Wrong(self._bytes(one))
        self._end_phase(number)

    def _refill(self, process: int, slot: Slot) -> None:
        """Check that what lies in a slot is no longer needed."""
        clock, name, filled = self.clocks[process], self._name(slot), self.slots[slot]
        for reader in self.readers:
            if reader.reads(slot):
                if filled.written:
                    raise Wrong(f"{name} is written while a store by TMA may read it")
                raise Wrong(f"{name} is filled while a group of wgmma may read it")
        if any(clock[other] < time for other, time in filled.read.items()):
            if filled.written:
                raise Wrong(
                    f"{name} is written while a store by TMA may still read it: no "
                    "barrier behind the wait for that"
                )
            raise Wrong(
                f"{name} is filled while warps may still read it: no wait is for its "
                "release by all of them"
            )

    def read(self, process: int, slot: Slot) -> None:
        """Read a slot at once."""
        self._check_read(process, slot)
        self.slots[slot].read[process] = self._tick(process)[process]

    def issue(
        self,
        process: int,
        slots: Iterable[Slot],
        op: Any,
        registers: Iterable[int] = (),
    ) -> None:
        """Issue a wgmma that reads these slots, and A in these registers."""
        reader = self.readers[process]
        reader.open |= {(REGISTERS, number) for number in registers}
        for slot in slots:
            self._check_read(process, slot)
            reader.open |= {slot}
        reader.op = op

    def hold(self, process: int, registers: Iterable[int]) -> None:
        """Put fragments of A into registers."""
        reader = self.readers[process]
        if any(reader.reads((REGISTERS, number)) for number in registers):
            raise Wrong(
                "writes registers that a group of wgmma may still read as A: no wait "
                "for that group is between"
            )

    def fence_registers(self, process: int) -> None:
        """Order accesses of registers before it, and wgmma behind it."""
        reader = self.readers[process]
        reader.fenced, reader.touched = True, frozenset()

    def touch(self, process: int, registers: frozenset[int]) -> None:
        """Read or write accumulators by other ops than wgmma."""
        reader = self.readers[process]
        if reader.fenced:
            reader.touched |= registers

    def check_fenced(self, process: int, registers: frozenset[int]) -> None:
        """Check that a wgmma may go on with accumulators in these registers."""
        reader = self.readers[process]
        if not reader.fenced:
            raise Wrong("no 'wgmma.fence' before the first wgmma")
        if reader.touched & registers:
            raise Wrong(
                "its accumulators were read or written by other ops, and no "
                "'wgmma.fence' is between"
            )

    def write(self, process: int, slot: Slot) -> None:
        """Write what TMA stores."""
        one = self.slots.setdefault(slot, Filled(used=True))
        self._refill(process, slot)
        one.written[process] = self._tick(process)[process]

    def fence_proxy(self, process: int) -> None:
        """Let copies by TMA see what the process knows to be written."""
        clock = self._tick(process)
        first = len(self.clocks) + len(self.mbarriers)
        for other in range(len(self.clocks)):
            clock[first + other] = max(clock[first + other], clock[other])

    def store(self, process: int, slot: Slot) -> None:
        """Issue a copy out of a slot that threads have written."""
        one, name = self.slots.get(slot), self._name(slot)
        if one is None or not one.written:
            raise Wrong(f"{name} is stored and was never written")
        clock = self._tick(process)
        first = len(self.clocks) + len(self.mbarriers)
        for other, time in one.written.items():
            if clock[other] < time:
                raise Wrong(
                    f"{name} is stored while threads may still write it: no barrier "
                    "between"
                )
            if clock[first + other] < time:
                raise Wrong(
                    f"{name} is written by threads and stored by TMA, with no "
                    "'fence.proxy.async' between"
                )
        *groups, last = self.readers[process].stores
        self.readers[process].stores = (*groups, last | {slot})

    def commit_stores(self, process: int) -> None:
        """End a group of copies out of slots."""
        reader = self.readers[process]
        reader.stores = (*reader.stores, frozenset())

    def finish_stores(self, process: int, most: int) -> None:
        """Wait until at most so many of these groups still read their slots."""
        reader = self.readers[process]
        time = self._tick(process)[process]
        *groups, last = reader.stores
        done = max(0, len(groups) - most)
        for slot in frozenset[Slot]().union(*groups[:done]):
            self.slots[slot].read[process] = time
        reader.stores = (*groups[done:], last)

    def commit(self, process: int) -> None:
        """End the group of wgmma."""
        reader = self.readers[process]
        reader.groups.append((reader.open, reader.op))
        reader.open = frozenset()
        reader.made += 1

    def finish(self, process: int, most: int) -> None:
        """Wait until at most so many groups are unfinished."""
        reader = self.readers[process]
        time = self._tick(process)[process]
        while len(reader.groups) > most:
            for slot in reader.groups.pop(0)[0]:
                if slot[0] != REGISTERS:
                    self.slots[slot].read[process] = time

    def _check_read(self, process: int, slot: Slot) -> None:
        filled, name = self.slots.get(slot), self._name(slot)
        if filled is None or filled.number < 0:
            raise Wrong(f"{name} is read and was never filled")
        number, ended = filled.phase
        one = self.mbarriers[number]
        if self._known(process, number) < ended:
            raise Wrong(
                f"{name} is read while copies into it may be in flight: no wait for "
                f"the end of phase {ended - 1} of {one.name}"
            )
        latest = self.readers[process].latest
        if latest.get(slot[0], 0) > filled.number:
            raise Wrong(f"{name} is read after a slot that was filled later")
        latest[slot[0]] = filled.number
        filled.used = True

    def _name(self, slot: Slot) -> str:
        return f"slot {slot[1]} of {self.names[slot[0]]}"

    # -- the end ---------------------------------------------------------------------

    def at_exit(self, process: int) -> None:
        """Check what a process leaves behind."""
        reader = self.readers[process]
        for _, op in reader.groups or ([(0, reader.op)] if reader.open else []):
            raise Wrong("its group of wgmma is unfinished when the kernel ends", op)
        if any(reader.stores):
            raise Wrong("a store by TMA may still read shared memory when it ends")

    def at_end(self) -> None:
        """Check what is left over when all have ended."""
        for slot, filled in self.slots.items():
            if not filled.used:
                raise Wrong(
                    f"{self._name(slot)} is filled, and nothing has read it when the "
                    "kernel ends",
                    filled.op,
                )
        for one in self.mbarriers:
            if one.count and not one.pending:
                raise Wrong(self._bytes(one), one.arrivals[1] or one.arrivals[0])
            if one.pending != one.count or one.landed:
                raise Wrong(
                    f"phase {one.ended} of {one.name} lacks {one.pending} of "
                    f"{one.count} arrivals when the kernel ends",
                    one.arrivals[0],
                )
        for number, one in enumerate(self.mbarriers):
            for process, (time, op) in one.far.items():
                if not self._is_awaited(number, process, time):
                    raise Wrong(
                        f"{one.name} may be gone: its block does not wait for this",
                        op,
                    )

    def _is_awaited(self, number: int, process: int, time: int) -> bool:
        """Whether a process of an mbarrier's block ends knowing of what another did."""
        own = self.blocks[1][number]
        return any(
            clock[process] >= time
            for clock, block in zip(self.clocks, self.blocks[0], strict=True)
            if block == own
        )

    def stuck(self, process: int, number: int) -> Wrong:
        """Why a wait never ends."""
        one = self.mbarriers[number]
        if not one.pending:
            return Wrong(self._bytes(one), one.arrivals[1] or one.arrivals[0])
        return Wrong(
            f"waits for ever: phase {one.waiting[process] - 1} of {one.name} lacks "
            f"{one.pending} of {one.count} arrivals"
        )
