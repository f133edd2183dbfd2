"""What is known of shared slots while a pipelined program runs: who may touch them.

One thread is followed; the others are represented by barriers. All threads run the same
program, so that what this thread did to a slot since the last barrier, another thread
may be doing now:

  a slot may be read     if its copies landed (a wait covers their group) before the
                         last barrier: each thread waits for its own copies only
  a slot may be refilled if its last read was before the last barrier

And the slot that is read is the one that was waited for last, not an older tile's.

Of MLIR this file knows nothing.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from dataclasses import dataclass, field

_NEVER = -1
_REMEMBERED = 64  # groups; nobody waits for older ones
Place = tuple[int, int]  # number of a buffer, slot in it


@dataclass
class _Slot:
    """Times are numbers of barriers passed.

    in_flight: a copy into it was issued, and no wait covered it yet
    filled:    when it was last filled: a copy landed, or a thread stored
    read:      when it was last read, and whether that read was released since
    """

    in_flight: bool = False
    filled: int = _NEVER
    read: int = _NEVER
    released: bool = False

    def joined(self, other: _Slot) -> _Slot:
        """What holds of both: the worse of each."""
        return _Slot(
            self.in_flight or other.in_flight,
            max(self.filled, other.filled),
            max(self.read, other.read),
            self.released and other.released,
        )


@dataclass
class State:
    """All slots, and the commit groups in flight, oldest first, with their numbers.

    made:    what each group copied into, by its number
    awaited: of each buffer, the slots that the last wait for any of its copies named

    Each method that does something returns what is wrong with it, "" if nothing.
    """

    barriers: int = 0
    groups_made: int = 0
    groups: list[tuple[int, frozenset[Place]]] = field(default_factory=list)
    open_group: frozenset[Place] = frozenset()
    made: dict[int, frozenset[Place]] = field(default_factory=dict)
    awaited: dict[int, frozenset[Place]] = field(default_factory=dict)
    slots: dict[Place, _Slot] = field(default_factory=dict)

    def copy_into(self, place: Place) -> str:
        """Issue an asynchronous copy."""
        self._slot(place).in_flight = True
        self.open_group |= {place}
        return self._refill(place)

    def store_into(self, place: Place) -> str:
        """Store by the thread itself."""
        self._slot(place).filled = self.barriers
        return self._refill(place)

    def read(self, place: Place) -> str:
        """Read what any thread has put there."""
        slot = self._slot(place)
        slot.read, slot.released = self.barriers, False
        if slot.in_flight:
            return "is read while a copy into it is in flight: no wait covers its group"
        if slot.filled == _NEVER:
            return "is read and was never filled"
        if slot.filled == self.barriers:
            return "is read with no barrier since its copies landed"
        if place not in self.awaited.get(place[0], (place,)):
            return "is read, but the last wait was for another slot"
        return ""

    def commit(self) -> int:
        """End the open group; returns its number."""
        self.groups.append((self.groups_made, self.open_group))
        self.made[self.groups_made] = self.open_group
        self.made.pop(self.groups_made - _REMEMBERED, None)
        self.open_group = frozenset()
        self.groups_made += 1
        return self.groups_made - 1

    def wait(self, younger: int) -> None:
        """Wait until at most that many of the youngest groups are in flight."""
        landed = self.groups[: max(0, len(self.groups) - younger)]
        self.groups = self.groups[len(landed) :]
        still = self.open_group.union(*(places for _, places in self.groups))
        for _, places in landed:
            for place in places:
                slot = self._slot(place)
                slot.in_flight = place in still
                slot.filled = self.barriers

    def name_awaited(self, group: int | None) -> None:
        """A wait named this group; None where it is not known."""
        if group is None:
            self.awaited.clear()
        places = self.made.get(-1 if group is None else group, frozenset())
        for buffer in {place[0] for place in places}:
            self.awaited[buffer] = frozenset(p for p in places if p[0] == buffer)

    def younger_than(self, group: int) -> int:
        """Groups that were committed after the group of that number."""
        return self.groups_made - 1 - group

    def barrier(self) -> None:
        """All threads got here."""
        self.barriers += 1

    def release(self) -> None:
        """All reads so far may be over once somebody acquires."""
        for slot in self.slots.values():
            slot.released = True

    def acquire(self) -> None:
        """Released reads are over."""
        for slot in self.slots.values():
            if slot.released:
                slot.read = _NEVER

    def in_flight(self) -> set[Place]:
        """Slots that a copy may still land in."""
        return {place for place, slot in self.slots.items() if slot.in_flight}

    def forget(self, places: Iterable[Place]) -> None:
        """These are not followed any more."""
        gone = frozenset(places)
        self.groups = [(number, held - gone) for number, held in self.groups]
        self.open_group -= gone
        for place in gone:
            self.slots.pop(place, None)

    def clone(self) -> State:
        """A state of its own."""
        slots = {place: _Slot(**vars(slot)) for place, slot in self.slots.items()}
        return State(
            self.barriers,
            self.groups_made,
            list(self.groups),
            self.open_group,
            dict(self.made),
            dict(self.awaited),
            slots,
        )

    def join(self, other: State) -> None:
        """Become what holds on two ways, on which no group was made or waited for."""
        self.open_group |= other.open_group
        for place in {*self.slots, *other.slots}:
            mine, its = self._slot(place), other._slot(place)
            self.slots[place] = mine.joined(its)

    def signature(self) -> Hashable:
        """Equal for states from which the same things can go wrong."""
        now = self.barriers
        slots = {
            (place, s.in_flight, _age(s.filled, now), _age(s.read, now), s.released)
            for place, s in self.slots.items()
        }
        held = tuple(places for _, places in self.groups)
        awaited = frozenset(self.awaited.items())
        return frozenset(slots), held, self.open_group, awaited

    def _refill(self, place: Place) -> str:
        if self._slot(place).read == self.barriers:
            return "is filled with no barrier since it was last read"
        return ""

    def _slot(self, place: Place) -> _Slot:
        return self.slots.setdefault(place, _Slot())


def _age(time: int, now: int) -> int:
    """Never, before the last barrier, since."""
    return 0 if time == _NEVER else 1 + (time == now)
