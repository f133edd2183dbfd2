"""The memory of a block of threads, element by element: who may race with whom.

All threads do an op before one does the next. Of two accesses by different threads, of
which one writes, the first must come before a barrier that the second comes after; and
of what an asynchronous copy writes nobody may know before its thread has waited for it.

This file does not depend on MLIR.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

_NOBODY = -1
_NEVER = -1
_SEVERAL = -2  # threads
Space = dict[int, "Element"]  # what was allocated: the elements that were accessed
IN_FLIGHT = "is read while a copy into it is in flight: no wait covers its group"
LANDED = "is read with no barrier since its copies landed"
STORED = "is read with no barrier since another thread stored it"
REFILLED = "is filled with no barrier since it was last read"


@dataclass(slots=True)
class Element:
    """Times are numbers of barriers passed.

    written: when `writer` stored it, or its copy landed
    read:    when it was last read, by `reader`
    others:  whether another thread has read it since the same barrier
    """

    value: Any
    op: Any = None
    writer: int = _NOBODY
    written: int = _NEVER
    is_copied: bool = False
    in_flight: bool = False
    reader: int = _NOBODY
    read: int = _NEVER
    others: bool = False


@dataclass
class BlockMemory:
    """What threads have written, and the groups of copies of each.

    Methods for accesses return what is wrong with the access, "" if nothing.
    """

    threads: int
    barriers: int = 0
    spaces: dict[tuple[Any, ...], Space] = field(default_factory=dict)
    counts_groups: bool = True  # else a wait is for all

    def __post_init__(self) -> None:
        self._open: list[list[Element]] = [[] for _ in range(self.threads)]
        self._groups: list[list[list[Element]]] = [[] for _ in range(self.threads)]

    def load(
        self, thread: int, space: Space, places: range, initial: Callable[[int], Any]
    ) -> tuple[list[Any], str]:
        """The values, which are `initial` where nobody has written."""
        now, why, found = self.barriers, "", []
        for place in places:
            one = space.get(place)
            if one is None:
                one = space[place] = Element(initial(place))
            elif one.in_flight:
                why = IN_FLIGHT
            elif one.written == now and one.writer not in (thread, _SEVERAL):
                why = LANDED if one.is_copied else STORED
            one.others = one.read == now and (one.others or one.reader != thread)
            one.reader, one.read = thread, now
            found.append(one.value)
        return found, why

    def store(
        self, thread: int, space: Space, places: range, values: Sequence[Any], op: Any
    ) -> str:
        """Write by the thread itself."""
        now, why = self.barriers, ""
        for place, value in zip(places, values, strict=True):
            before = space.get(place)
            why = why or self._refill(thread, before)
            # Several threads may store the same, and read it.
            is_again = before is not None and before.written == now
            writer = thread
            if is_again and before is not None and before.writer != thread:
                writer = _SEVERAL
            space[place] = Element(value, op, writer, now)
        return why

    def copy(
        self, thread: int, space: Space, places: range, values: Sequence[Any], op: Any
    ) -> str:
        """Begin to write, until a wait of the thread."""
        why = ""
        for place, value in zip(places, values, strict=True):
            why = why or self._refill(thread, space.get(place))
            one = Element(value, op, thread, _NEVER, is_copied=True, in_flight=True)
            space[place] = one
            self._open[thread].append(one)
        return why

    def commit(self, thread: int) -> None:
        """End the open group of a thread."""
        self._groups[thread].append(self._open[thread])
        self._open[thread] = []

    def wait(self, thread: int, younger: int) -> None:
        """Wait until at most that many groups of the thread are in flight."""
        groups = self._groups[thread]
        if not self.counts_groups:
            younger = 0
        landed = groups[: max(0, len(groups) - younger)]
        del groups[: len(landed)]
        for group in landed:
            for one in group:
                one.in_flight, one.written = False, self.barriers

    def barrier(self) -> None:
        """All threads have arrived."""
        self.barriers += 1

    def synchronise(self) -> None:
        """Something may have waited for all, and groups may have been committed."""
        self.counts_groups = False
        for thread in range(self.threads):
            self.commit(thread)
            self.wait(thread, 0)
        self.barrier()

    def _refill(self, thread: int, one: Element | None) -> str:
        if one is None or one.read != self.barriers:
            return ""
        return REFILLED if one.others or one.reader != thread else ""
