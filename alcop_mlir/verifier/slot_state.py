"""The state of shared slots while a pipelined program runs: which accesses are legal.

One thread is followed; barriers represent the others. All threads run the same program,
so that another thread may be doing now what this thread did since the last barrier:

  a slot may be read     if its copies landed (a wait covers their group) before the
                         last barrier: each thread waits for its own copies only
  a slot may be refilled if its last read was before the last barrier

And the slot that is read must be the one that was waited for last, not an older one.

This file does not depend on MLIR.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from dataclasses import dataclass, field, replace
from itertools import zip_longest

_NEVER = -1
_REMEMBERED = 64  # groups; of older ones is not known what they copied
SlotId = tuple[int, int]  # number of a buffer, slot in it


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
        """The state after either of two ways: the worse of each field."""
        return _Slot(
            self.in_flight or other.in_flight,
            max(self.filled, other.filled),
            max(self.read, other.read),
            self.released and other.released,
        )

    def aged(self, barriers: int) -> _Slot:
        """The same, where so many more barriers were passed than are counted."""
        filled, read = _earlier(self.filled, barriers), _earlier(self.read, barriers)
        return _Slot(self.in_flight, filled, read, self.released)


@dataclass
class State:
    """All slots, and the commit groups in flight, oldest first, with their numbers.

    stored:  what the thread itself stored into since the last commit
    made:    what each group filled, and what was stored with it, by its number
    kept:    the latter
    awaited: of each buffer, the slots that the last wait for any of its copies named

    Methods for accesses return what is wrong with the access, "" if nothing.
    """

    barriers: int = 1  # one more than were passed: 0 is before all of them
    groups_made: int = 0
    groups: list[tuple[int, frozenset[SlotId]]] = field(default_factory=list)
    open_group: frozenset[SlotId] = frozenset()
    stored: frozenset[SlotId] = frozenset()
    made: dict[int, frozenset[SlotId]] = field(default_factory=dict)
    kept: dict[int, frozenset[SlotId]] = field(default_factory=dict)
    awaited: dict[int, frozenset[SlotId]] = field(default_factory=dict)
    slots: dict[SlotId, _Slot] = field(default_factory=dict)

    def copy_into(self, slot_id: SlotId) -> str:
        """Issue an asynchronous copy."""
        self._slot(slot_id).in_flight = True
        self.open_group |= {slot_id}
        return self._refill(slot_id)

    def store_into(self, slot_id: SlotId) -> str:
        """Store by the thread itself."""
        self._slot(slot_id).filled = self.barriers
        if slot_id[0] in self.awaited:
            self.awaited[slot_id[0]] |= {slot_id}  # no wait is for what was stored
        self.stored |= {slot_id}
        return self._refill(slot_id)

    def read(self, slot_id: SlotId) -> str:
        """Read what any thread has put there."""
        slot = self._slot(slot_id)
        slot.read, slot.released = self.barriers, False
        if slot.in_flight:
            return "is read while a copy into it is in flight: no wait covers its group"
        if slot.filled == _NEVER:
            return "is read and was never filled"
        if slot.filled == self.barriers:
            return "is read with no barrier since its copies landed"
        if slot_id not in self.awaited.get(slot_id[0], (slot_id,)):
            return "is read, but the last wait was for another slot"
        return ""

    def read_part(self, slot_id: SlotId) -> str:
        """Read a part of what stands for a buffer of which no slots are known."""
        slot = self._slot(slot_id)
        if slot.in_flight and slot.filled == _NEVER:
            return "is read before any copy into it has landed: no wait covers one"
        return ""

    def commit(self) -> int:
        """End the open group; returns its number."""
        self.groups.append((self.groups_made, self.open_group))
        self.made[self.groups_made] = self.open_group | self.stored
        self.kept[self.groups_made] = self.stored
        self.made.pop(self.groups_made - _REMEMBERED, None)
        self.kept.pop(self.groups_made - _REMEMBERED, None)
        self.open_group = self.stored = frozenset()
        self.groups_made += 1
        return self.groups_made - 1

    def repeat(self, groups: int, since: int) -> None:
        """Make so many more groups of which all have landed, as those made last did.

        since: the number of the first that may have been made alike
        """
        self.groups_made += groups
        self.groups = [(number + groups, copied) for number, copied in self.groups]
        for known in (self.made, self.kept):
            older = {number: one for number, one in known.items() if number < since}
            later = {number + groups: one for number, one in known.items()}
            known.clear()
            known.update(later | older)

    def wait(self, younger: int) -> None:
        """Wait until at most that many of the youngest groups are in flight."""
        landed = self.groups[: max(0, len(self.groups) - younger)]
        self.groups = self.groups[len(landed) :]
        still = self.open_group.union(*(slot_ids for _, slot_ids in self.groups))
        for _, slot_ids in landed:
            for slot_id in slot_ids:
                slot = self._slot(slot_id)
                slot.in_flight = slot_id in still
                slot.filled = self.barriers

    def name_awaited(self, group: int | None) -> None:
        """Record which group a wait is for; None where it is not known."""
        if group is None or group not in self.made:
            self.awaited.clear()
            return
        slot_ids = self.made[group]
        # No wait is for what was stored since.
        later = (one for number, one in self.kept.items() if number > group)
        fresh = slot_ids.union(self.stored, *later)
        for buffer in {slot_id[0] for slot_id in slot_ids}:
            self.awaited[buffer] = frozenset(p for p in fresh if p[0] == buffer)

    def younger_than(self, group: int) -> int:
        """Groups that were committed after the group of that number."""
        return self.groups_made - 1 - group

    def barrier(self) -> None:
        """All threads have arrived."""
        self.barriers += 1

    def release(self) -> None:
        """Release all reads so far: they are over after the next acquire."""
        for slot in self.slots.values():
            slot.released = True

    def acquire(self) -> None:
        """Released reads are over."""
        for slot in self.slots.values():
            if slot.released:
                slot.read = _NEVER

    def in_flight(self) -> set[SlotId]:
        """Slots that a copy may still land in."""
        return {slot_id for slot_id, slot in self.slots.items() if slot.in_flight}

    def forget(self, slot_ids: Iterable[SlotId]) -> None:
        """Stop following these slots."""
        gone = frozenset(slot_ids)
        self.groups = [(number, copied - gone) for number, copied in self.groups]
        self.open_group -= gone
        self.stored -= gone
        for slot_id in gone:
            self.slots.pop(slot_id, None)

    def clone(self) -> State:
        """An independent copy."""
        return replace(
            self,
            groups=[*self.groups],
            made={**self.made},
            kept={**self.kept},
            awaited={**self.awaited},
            slots={slot_id: slot.aged(0) for slot_id, slot in self.slots.items()},
        )

    def join(self, other: State) -> None:
        """Become the state after either of two ways that threads may take.

        What one of them leaves in flight, or passed no barrier since, counts; groups
        are as many as where fewer were committed, as there a wait leaves more of them.
        """
        barriers = min(self.barriers, other.barriers)
        ways = (self, other)
        slots = [
            {key: slot.aged(way.barriers - barriers) for key, slot in way.slots.items()}
            for way in ways
        ]
        lists = [[slot_ids for _, slot_ids in way.groups] for way in ways]
        pairs = zip_longest(*map(reversed, lists), fillvalue=frozenset[SlotId]())
        copied = [one | two for one, two in pairs][::-1]
        self.groups_made = min(self.groups_made, other.groups_made)
        first = self.groups_made - len(copied)
        self.groups = [(first + place, ids) for place, ids in enumerate(copied)]
        self.barriers = barriers
        self.open_group |= other.open_group
        self.stored |= other.stored
        self.awaited = {
            buffer: slot_ids | other.awaited[buffer]
            for buffer, slot_ids in self.awaited.items()
            if buffer in other.awaited
        }
        self.slots = {
            key: slots[0].get(key, _Slot()).joined(slots[1].get(key, _Slot()))
            for key in {*slots[0], *slots[1]}
        }

    def signature(self) -> Hashable:
        """Equal for states from which the same violations can follow."""
        now = self.barriers
        slots = {
            (slot_id, s.in_flight, _age(s.filled, now), _age(s.read, now), s.released)
            for slot_id, s in self.slots.items()
        }
        copied = tuple(slot_ids for _, slot_ids in self.groups)
        awaited = frozenset(self.awaited.items())
        return frozenset(slots), copied, self.open_group, self.stored, awaited

    def _refill(self, slot_id: SlotId) -> str:
        if self._slot(slot_id).read == self.barriers:
            return "is filled with no barrier since it was last read"
        return ""

    def _slot(self, slot_id: SlotId) -> _Slot:
        slot = self.slots.get(slot_id)
        if slot is None:
            slot = self.slots[slot_id] = _Slot()
        return slot


def _earlier(time: int, barriers: int) -> int:
    return time if time == _NEVER else max(0, time - barriers)


def _age(time: int, now: int) -> int:
    """0: never; 1: before the last barrier; 2: since then."""
    return 0 if time == _NEVER else 1 + (time == now)
