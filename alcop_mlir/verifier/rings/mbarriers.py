"""What threads know of mbarriers and slots while a kernel with roles runs.

Each process has a vector clock: how far it knows that each process is, and how many
phases it knows to have ended of each mbarrier; then again how far each process is, as
far as there was a proxy fence behind that on the way. What it knows follows from what
it has waited for, never from who happens to run first: so what is found to be in order
is so in any order of time. Times are the numbers of a process's own events.

This file does not depend on MLIR.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeVar

from alcop_mlir.verifier.rings.records import (
    Clock,
    Filled,
    Mbarrier,
    Reader,
    Slot,
    Wrong,
)

_Own = TypeVar("_Own", bound="Mbarriers")


@dataclass
class Mbarriers:
    """Mbarriers, and all that is kept. Methods raise `Wrong`.

    names:  of the buffers
    fills:  how often each buffer was filled
    blocks: of each process, and of each mbarrier
    """

    names: Sequence[str]
    clocks: list[Clock]
    mbarriers: list[Mbarrier]
    slots: dict[Slot, Filled]
    readers: list[Reader]
    fills: list[int]
    blocks: tuple[Sequence[int], Sequence[int]]

    def clone(self: _Own) -> _Own:
        """An independent copy."""
        return replace(
            self,
            clocks=[[*clock] for clock in self.clocks],
            mbarriers=[one.clone() for one in self.mbarriers],
            slots={
                slot: replace(one, read={**one.read}, written={**one.written})
                for slot, one in self.slots.items()
            },
            readers=[one.clone() for one in self.readers],
            fills=[*self.fills],
        )

    def join(self, processes: Iterable[int]) -> None:
        """These meet: each knows afterwards what any of them has known."""
        met = list(processes)
        for process in met:
            self._tick(process)
        known = [
            max(times) for times in zip(*(self.clocks[p] for p in met), strict=True)
        ]
        for process in met:
            self.clocks[process] = [*known]

    # -- mbarriers -------------------------------------------------------------------

    def initialise(self, process: int, number: int, count: int, threads: int) -> None:
        """Make an mbarrier whose phases end after so many arrivals."""
        one = self.mbarriers[number]
        if one.count:
            raise Wrong(f"{one.name} is initialised twice")
        if count < 1 or threads != 1:
            raise Wrong(
                f"{one.name} is initialised for {count} arrivals by {threads} threads, "
                "expected 1 arrival or more, and one thread"
            )
        one.count = one.pending = count
        one.made = (process, self._tick(process)[process])

    def fence_mbarriers(self, process: int) -> None:
        """Let other blocks see the mbarriers that the process has initialised."""
        time = self._tick(process)[process]
        for one in self.mbarriers:
            if one.count and one.made[0] == process:
                one.made, one.fenced = (process, time), True

    def target(self, process: int, number: int, parity: int) -> int:
        """For the end of how many phases a wait is, by what the process knows."""
        one = self._seen(process, number)
        known = self._known(process, number)
        wanted = known if known % 2 != parity else known + 1
        if one.ended > wanted:
            raise Wrong(
                f"waits for {_phase(wanted - 1)} of {one.name} (parity {parity}), but "
                f"phase {one.ended - 1} may have ended: then it waits for ever"
            )
        one.waiting[process] = wanted
        return wanted

    def passes(self, process: int, number: int, op: Any) -> bool:
        """Go on behind a wait, if that phase has ended."""
        one = self.mbarriers[number]
        if one.ended < one.waiting[process]:
            return False
        del one.waiting[process]
        clock = self._tick(process)
        if one.ended > clock[len(self.clocks) + number]:
            self.clocks[process] = list(map(max, clock, one.done))
        one.passed[process] = (clock[process], op)
        return True

    def arrive(
        self, process: int, number: int, threads: int, size: int, op: Any
    ) -> None:
        """Arrive, by so many threads, each of which expects so many bytes."""
        one = self._in_phase(process, number, "arrives at")
        if threads > one.pending:
            raise Wrong(
                f"phase {one.ended} of {one.name} ends after {one.count} arrivals, and "
                f"{threads} more come"
            )
        one.pending -= threads
        one.expected += size * threads
        one.arrivals = (op, op if size else one.arrivals[1])
        self._contribute(process, number, op)
        if not one.pending and one.landed > one.expected:
            raise Wrong(self._bytes(one))
        self._end_phase(number)

    def _contribute(self, process: int, number: int, op: Any) -> None:
        one = self.mbarriers[number]
        one.clock = list(map(max, one.clock, self._tick(process)))
        if self._is_far(process, number):
            one.far[process] = (self.clocks[process][process], op)

    def _in_phase(self, process: int, number: int, what: str) -> Mbarrier:
        """The mbarrier, if it is sure which phase the process means."""
        one = self._seen(process, number)
        known = self._known(process, number)
        if known < one.ended:
            raise Wrong(
                f"{what} {one.name} knowing the end of {known} of its phases, and "
                f"{one.ended} may have ended: no wait tells which one this is"
            )
        return one

    def _seen(self, process: int, number: int) -> Mbarrier:
        one = self.mbarriers[number]
        if not one.count:
            raise Wrong(f"{one.name} is used before it is initialised")
        maker, time = one.made
        if self.clocks[process][maker] < time:
            raise Wrong(f"{one.name} is used with no barrier since it is initialised")
        if self._is_far(process, number) and not one.fenced:
            raise Wrong(
                f"{one.name} is used by another block, with no fence of its init"
            )
        return one

    def _is_far(self, process: int, number: int) -> bool:
        """Whether an mbarrier is in another block."""
        return self.blocks[0][process] != self.blocks[1][number]

    def _known(self, process: int, number: int) -> int:
        return self.clocks[process][len(self.clocks) + number]

    def _end_phase(self, number: int) -> None:
        one = self.mbarriers[number]
        if one.pending or one.expected != one.landed:
            return
        for process, (time, op) in one.passed.items():
            if one.clock[process] < time:
                raise Wrong(_missed(one), op)
        if any(wanted <= one.ended for wanted in one.waiting.values()):
            raise Wrong(_missed(one))
        one.ended += 1
        one.clock[len(self.clocks) + number] = one.ended
        one.done, one.clock = one.clock, [0] * len(one.clock)
        one.pending, one.expected, one.landed = one.count, 0, 0
        one.passed = {}

    @staticmethod
    def _bytes(one: Mbarrier) -> str:
        return (
            f"phase {one.ended} of {one.name} expects {one.expected} bytes, and copies "
            f"bring {one.landed}"
        )

    def _tick(self, process: int) -> Clock:
        clock = self.clocks[process]
        clock[process] += 1
        return clock


def _missed(one: Mbarrier) -> str:
    return (
        f"phase {one.ended} of {one.name} may end before this wait has seen the end of "
        f"{_phase(one.ended - 1)}: then it waits for ever"
    )


def _phase(number: int) -> str:
    return f"phase {number}" if number >= 0 else "the phase before phase 0"
