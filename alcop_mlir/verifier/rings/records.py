"""What is kept of an mbarrier, of a slot, and of who reads.

This file does not depend on MLIR.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

Clock = list[int]
Slot = tuple[int, int]  # number of a buffer, slot in it
REGISTERS = -1  # as the number of a buffer: registers of A, each of which is a slot


class Wrong(Exception):
    """What is wrong, at an op; None where it is the one that runs."""

    def __init__(self, message: str, op: Any = None):
        super().__init__(message)
        self.op = op


@dataclass
class Mbarrier:
    """One mbarrier: PTX ISA, "mbarrier".

    count:    arrivals that end a phase; 0: not initialised
    made:     who has initialised it, and when
    ended:    phases that have ended
    pending:  arrivals that this phase lacks
    expected: bytes that this phase waits for
    landed:   bytes of copies that were issued for it
    clock:    what those knew who have arrived in this phase
    done:     the same, of the phase that has ended last
    fenced:   whether other blocks see that it is initialised
    far:      what processes of other blocks did last: when, and by which op
    passed:   who has seen the end of that phase: when, and by which op
    waiting:  who waits, and for the end of how many phases
    arrivals: the op that arrived last, and the one that expects bytes
    """

    name: str
    count: int = 0
    made: tuple[int, int] = (0, 0)
    ended: int = 0
    pending: int = 0
    expected: int = 0
    landed: int = 0
    clock: Clock = field(default_factory=list)
    done: Clock = field(default_factory=list)
    passed: dict[int, tuple[int, Any]] = field(default_factory=dict)
    waiting: dict[int, int] = field(default_factory=dict)
    arrivals: tuple[Any, Any] = (None, None)
    fenced: bool = False
    far: dict[int, tuple[int, Any]] = field(default_factory=dict)

    def clone(self) -> Mbarrier:
        """An independent copy."""
        return replace(
            self,
            clock=[*self.clock],
            done=[*self.done],
            passed={**self.passed},
            waiting={**self.waiting},
            far={**self.far},
        )


@dataclass
class Filled:
    """A slot and what lies in it.

    number: of this fill, among those of the buffer; -1: none
    phase:  the mbarrier, and how many of its phases have ended when it has landed
    parts:  first element and end of each copy
    read:   when each process has last read it
    used:   whether anyone has read this fill
    written: when each process has last written what is there for TMA to store
    """

    number: int = -1
    phase: tuple[int, int] = (-1, 0)
    parts: tuple[tuple[int, int], ...] = ()
    read: dict[int, int] = field(default_factory=dict)
    used: bool = False
    op: Any = None
    written: dict[int, int] = field(default_factory=dict)


@dataclass
class Reader:
    """What a process reads: groups of wgmma, oldest first, and the latest fills.

    open:   slots of the group that is not committed, and registers of A
    made:   groups committed so far
    latest: number of the latest fill that it has read of each buffer
    stores: groups of copies out of slots, oldest first; the last one is not committed
    fenced: whether there was a wgmma.fence, without which there is no wgmma
    touched: registers of accumulators that were read or written since the last one
    """

    groups: list[tuple[frozenset[Slot], Any]] = field(default_factory=list)
    open: frozenset[Slot] = frozenset()
    op: Any = None
    made: int = 0
    latest: dict[int, int] = field(default_factory=dict)
    stores: tuple[frozenset[Slot], ...] = (frozenset(),)
    fenced: bool = False
    touched: frozenset[int] = frozenset()

    def clone(self) -> Reader:
        """An independent copy."""
        return replace(self, groups=[*self.groups], latest={**self.latest})

    def is_unfinished(self, group: int | None) -> bool:
        """Whether the group of that number may still compute."""
        return group is not None and group >= self.made - len(self.groups)

    def reads(self, slot: Slot) -> bool:
        """Whether an unfinished group reads a slot."""
        groups = [self.open, *(slots for slots, _ in self.groups), *self.stores]
        return any(slot in slots for slots in groups)
