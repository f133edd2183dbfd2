"""Plays a plan for some iterations, on slots that remember which tile they hold.

- each read finds the tile of its iteration in the slot where that must be
- no copy overwrites a tile that is read later
- buffers that have slots already have as many as their ring

How the rules of plans are put, as inequalities of leads and slots, is not known here.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from alcop_mlir.bindings import ir
from alcop_mlir.verifier.accesses import COPY, STORE, inside, touched
from alcop_mlir.verifier.read_plan import LOOP, Entry, Lead, Plan
from alcop_mlir.verifier.violations import Violation

_FILLS = (COPY, STORE)


@dataclass(frozen=True)
class Event:
    """In each iteration, `op` fills or reads the slots of `buffer`."""

    op: Any
    buffer: Any
    fills: bool
    ring: int
    lead: Lead
    place: int


@dataclass
class _Slots:
    """Which tile each slot of a buffer holds."""

    count: int
    tiles: dict[int, int] = field(default_factory=dict)

    def fill(self, tile: int) -> None:
        self.tiles[tile % self.count] = tile

    def holds(self, tile: int) -> int | None:
        """The tile in the slot where `tile` must be."""
        return self.tiles.get(tile % self.count)


def slot_events(plan: Plan, named: dict[Any, Entry]) -> Iterator[Event]:
    """Who fills and reads the buffers that named copies fill, in the loop's order."""
    accesses = []
    for op in inside(plan.loop):
        entry = named.get(op) or _around(op, plan.loop, named)
        accesses += [(op, entry, buffer, kind) for buffer, kind in touched(op)]
    rings = {
        buffer: entry.ring
        for _, entry, buffer, kind in accesses
        if kind in _FILLS and entry is not None and entry.ring >= 0
    }
    for number, (op, entry, buffer, kind) in enumerate(accesses):
        if buffer in rings:
            unnamed = len(plan.entries) + number
            yield Event(
                op,
                buffer,
                kind in _FILLS,
                rings[buffer],
                Lead() if entry is None else entry.lead,
                unnamed if entry is None else entry.place,
            )


def _around(
    op: ir.Operation, loop: ir.Operation, named: dict[Any, Entry]
) -> Entry | None:
    """What the plan says of the copy around `op`: one under conditions, or in loops."""
    parent = op.parent.operation
    while parent != loop:
        if parent in named and named[parent].kind != LOOP:
            return named[parent]
        parent = parent.parent.operation
    return None


def check_slots(plan: Plan, events: list[Event]) -> list[Violation]:
    """What is wrong with the slots of a plan, and which reads find another tile."""
    return [*_wrong_slots(plan, events), *_played(plan, events)]


def _wrong_slots(plan: Plan, events: list[Event]) -> Iterator[Violation]:
    for event in events:
        if not 0 <= event.ring < len(plan.slots):
            yield Violation(event.op, f"is of ring {event.ring}, there is none")
            continue
        slots, given = plan.slots[event.ring], _slots_of(plan.loop, event.buffer)
        if given not in (None, slots):
            why = f"its buffer has {given} slots, its plan says {slots}"
            yield Violation(event.op, why)


def _slots_of(loop: ir.Operation, buffer: ir.Value) -> int | None:
    """The slots of a buffer, where the loop's ring counter chooses one; else None."""
    for use in buffer.uses:
        view = use.owner.operation
        if view.name != "memref.subview" or use.operand_number:
            continue
        sizes = list(view.attributes["static_sizes"])
        whole = list(buffer.type.shape)
        if sizes != [1, *whole[1:]] or len(view.operands) < 2:
            continue
        counter = view.operands[1].owner
        if isinstance(counter, ir.Block) and counter.owner.operation == loop:
            return whole[0]
    return None


def _played(plan: Plan, events: list[Event]) -> Iterator[Violation]:
    """The plan, iteration by iteration: what reads find another tile than theirs."""
    if any(not 0 <= event.ring < len(plan.slots) for event in events):
        return
    ordered = sorted(events, key=lambda event: event.place)
    most = max((event.lead.whole + 1 for event in events), default=0)
    slots = {e.buffer: _Slots(plan.slots[e.ring]) for e in events}
    found: set[Any] = set()
    for now in range(-most, 3 * most + 2 * max(plan.slots, default=0)):
        for event, tile in _in_time(ordered, now):
            if tile < 0:
                continue
            if event.fills:
                slots[event.buffer].fill(tile)
                continue
            late = tile - (plan.last_in_flight if event.lead == Lead() else 0)
            for wanted in range(max(0, late), tile + 1):
                held = slots[event.buffer].holds(wanted)
                if held != wanted and event.op not in found:
                    found.add(event.op)
                    yield Violation(
                        event.op,
                        f"reads tile {wanted}, but its slot holds "
                        f"{'nothing' if held is None else f'tile {held}'}: leads and "
                        f"{slots[event.buffer].count} slots do not fit",
                    )


def _in_time(ordered: list[Event], now: int) -> list[tuple[Event, int]]:
    """What happens in one iteration, in time, and to which tiles.

    A stream with a part of an iteration in its lead reads the rest of a tile, then
    copies are issued, then it reads the beginning of the next tile.
    """
    parts = [e for e in ordered if e.lead.part and not e.fills]
    rest = [(event, now + event.lead.whole) for event in parts]
    return rest + [(e, now + e.lead.whole + int(e.lead.part)) for e in ordered]
