"""Checks plans of pipelines by playing them: `check_plans(op)`.

For the IR between alcop-plan-pipelines and alcop-expand-pipelines. A loop that has
`alcop.pipeline` with streams is played for some iterations, as its plan says, on slots
that remember which tile they hold:

- each op that is named is there once, and is what the plan says
- every read finds the tile of its iteration in the slot where that must be
- no copy overwrites a tile that is read later
- what is filled under a condition that changes is read under it only
- what the address of an early op is computed from is not made by later ones, and what
  it reads is not written in the loop
- of the loop's own barriers those are named, and so left, that order other memory, and
  of its groups and waits those that other copies need
- where other ops run early, or in another order, all memory stays in order: `replay`
- buffers that have slots already have as many as their ring

It shares no code with the passes that make plans and execute them: how their rules are
put, as inequalities of leads and slots, is not known here.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from alcop_mlir.bindings import ir
from alcop_mlir.verifier.accesses import COPY, STORE, VIEWS, inside, touched
from alcop_mlir.verifier.conditions import unfilled
from alcop_mlir.verifier.dropped_groups import dropped_groups
from alcop_mlir.verifier.loop_order import overwritten, unordered
from alcop_mlir.verifier.replay import Step, is_reordered, replayed, with_unnamed
from alcop_mlir.verifier.violations import Violation

PLAN, NUMBER = "alcop.pipeline", "alcop.op"
_FILLS = (COPY, STORE)
_KEPT = "effect"  # the kind of an op that is run as it is
_IN_PLACE = (_KEPT, "store")
_LOOP = "loop"
# Ops that may run early whatever they are computed from: no memory, no effect.
_ARITHMETIC = ("arith.", "affine.", "index.", "math.")
_NO_ACCESS = VIEWS | {"memref.dim", "memref.view", "memref.alloc"}
_LOADS = frozenset(
    "memref.load vector.load vector.maskedload vector.transfer_read".split()
)
# Ops in which threads meet: one that runs early runs with others than before.
_MEETINGS = ("gpu.shuffle", "gpu.rotate", "gpu.subgroup_r", "gpu.subgroup_b", "gpu.b")
_MEETINGS += ("nvvm.shfl", "nvvm.redux", "nvvm.vote", "nvvm.match")


@dataclass(frozen=True)
class _Lead:
    """How early an op runs: iterations, and whether by a part of one more."""

    whole: int = 0
    part: bool = False


@dataclass(frozen=True)
class _Entry:
    """What a plan says of one op; `place` is its number in the order."""

    number: int
    name: str
    kind: str
    ring: int
    lead: _Lead
    place: int


@dataclass
class _Plan:
    """A plan as this file reads it."""

    loop: Any
    entries: list[_Entry]
    slots: list[int]
    last_in_flight: int


@dataclass(frozen=True)
class _Event:
    """In each iteration, `op` fills or reads the slots of `buffer`."""

    op: Any
    buffer: Any
    fills: bool
    ring: int
    lead: _Lead
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


def check_plans(op: ir.Operation) -> list[Violation]:
    """What is wrong with the plans of the loops in `op`; nothing is changed."""
    loops = [one for one in (op.operation, *inside(op.operation)) if _is_planned(one)]
    return [wrong for loop in loops for wrong in _check_loop(loop)]


def _is_planned(op: Any) -> bool:
    return op.name == "scf.for" and PLAN in op.attributes


def _check_loop(loop: ir.Operation) -> list[Violation]:
    parameters = _dictionary(loop.attributes[PLAN])
    if "streams" not in parameters:
        return []  # a user's short form: multi-buffer writes it out
    try:
        plan = _read(loop, parameters)
    except (KeyError, AttributeError, TypeError, IndexError) as error:
        return [Violation(loop, f"its plan cannot be read: {error!r}")]
    wrong, named = _named(plan)
    if wrong:
        return wrong
    events = list(_events(plan, named))
    late = [Violation(op, why) for op, why in _late(plan, named)]
    played = [*_wrong_slots(plan, events), *_played(plan, events)]
    return [*late, *played, *_unfilled(loop, events), *_unordered(plan, named, events)]


def _unfilled(loop: ir.Operation, events: list[_Event]) -> list[Violation]:
    """Reads of what an iteration may not have filled."""
    fills, reads = (
        [(event.op, event.buffer) for event in events if event.fills == kind]
        for kind in (True, False)
    )
    return list(unfilled(loop, fills, reads))


def _unordered(
    plan: _Plan, named: dict[Any, _Entry], events: list[_Event]
) -> Iterator[Violation]:
    """What the plan does in another order than the loop to memory that is no ring's."""
    rings = {event.buffer for event in events}
    in_place = {
        op
        for op, entry in named.items()
        if entry.kind in _IN_PLACE and entry.lead != _Lead()
    }
    early = {op for op, entry in named.items() if entry.lead != _Lead()} - in_place
    yield from overwritten(plan.loop, early, rings)
    own = [
        Step(op, entry.lead.whole + entry.lead.part)
        for op, entry in sorted(named.items(), key=lambda pair: pair[1].place)
        if op.parent.operation == plan.loop
    ]
    if in_place or is_reordered(own):
        slots = {event.buffer: plan.slots[event.ring] for event in events}
        yield from replayed(plan.loop, with_unnamed(plan.loop, own), slots)
        return
    if not rings:
        return  # all barriers stay
    kept = {op for op, entry in named.items() if entry.kind == _KEPT}
    fills = {op for op, entry in named.items() if entry.ring >= 0}
    yield from dropped_groups(plan.loop, fills, kept)
    at_start = not any(entry.lead.part for entry in named.values())
    yield from unordered(plan.loop, early, rings, kept, at_start)


# -- the reader ----------------------------------------------------------------------


def _dictionary(attribute: Any) -> dict[str, Any]:
    parameters = getattr(attribute, "parameters", attribute).maybe_downcast()
    if not isinstance(parameters, ir.DictAttr):
        return {}
    return {named.name: named.attr.maybe_downcast() for named in parameters}


def _read(loop: ir.Operation, parameters: dict[str, Any]) -> _Plan:
    leads: dict[str, _Lead] = {}
    in_flight = 0
    for item in parameters["streams"]:
        stream = _dictionary(item)
        steps = _number(stream, "steps")
        leads[stream["name"].value] = _Lead(_number(stream, "lead"), steps > 0)
        in_flight = _number(stream, "in_flight")
    entries = [
        _Entry(
            _number(op, "op"),
            op["name"].value,
            op["kind"].value,
            _number(op, "ring", -1),
            leads[op["stream"].value],
            place,
        )
        for place, op in enumerate(map(_dictionary, parameters.get("ops", [])))
    ]
    rings = map(_dictionary, parameters.get("rings", []))
    slots = [_number(ring, "slots") for ring in rings]
    if min(slots, default=1) < 1:
        raise TypeError(f"{min(slots)} slots")
    return _Plan(loop, entries, slots, in_flight)


def _number(fields: dict[str, Any], name: str, default: int = 0) -> int:
    value = fields[name].value if name in fields else default
    if type(value) is not int:
        raise TypeError(f"{name} is {value}")
    return value


def _named(plan: _Plan) -> tuple[list[Violation], dict[Any, _Entry]]:
    """The ops that the plan names; what is wrong with numbers and names."""
    entries = {entry.number: entry for entry in plan.entries}
    if len(entries) != len(plan.entries):
        return [Violation(plan.loop, "its plan names an op twice")], {}
    found: dict[int, Any] = {}
    wrong: list[Violation] = []
    for op in inside(plan.loop):
        if NUMBER not in op.attributes or not _is_of(op, plan.loop, found):
            continue
        number = op.attributes[NUMBER].value
        if number in found:
            wrong.append(Violation(op, f"is numbered {number}, as another op"))
        elif number not in entries:
            wrong.append(Violation(op, f"is numbered {number}, which no plan names"))
        elif entries[number].name != op.name:
            wrong.append(Violation(op, f"is planned as '{entries[number].name}'"))
        found[number] = op
    wrong += [
        Violation(plan.loop, f"its plan names op {number}, which is not there")
        for number in entries
        if number not in found
    ]
    return wrong, {op: entries[number] for number, op in found.items() if not wrong}


def _is_of(op: ir.Operation, loop: ir.Operation, found: dict[int, Any]) -> bool:
    """Whether `op` is in the loop's block, or in that of a loop that the plan names."""
    parent = op.parent.operation
    return parent == loop or (parent.name == "scf.for" and parent in found.values())


# -- what the address of an early op needs -------------------------------------------


def _late(plan: _Plan, named: dict[Any, _Entry]) -> Iterator[tuple[Any, str]]:
    """Early ops that use what is made later, or is no arithmetic."""
    for op, entry in named.items():
        if entry.lead == _Lead():
            continue
        for maker in _makers(plan.loop, op):
            if entry.kind in _IN_PLACE and _is_in(maker, op):
                continue  # it runs with the op: see `replay`
            own = named[maker].lead if maker in named else _Lead()
            if (own.whole, own.part) < (entry.lead.whole, entry.lead.part):
                yield op, f"runs early, and uses what '{maker.name}' makes later"


def _makers(loop: ir.Operation, op: ir.Operation) -> list[Any]:
    """Ops in `loop` that are no arithmetic, of which `op` uses results, now or later.

    What a copy moves is loaded with it: that load is not one of them.
    """
    pending, copying = [*_used(op)], op
    if op.name in ("memref.store", "vector.store", "vector.transfer_write"):
        moved = op.operands[0].owner
        if not isinstance(moved, ir.Block):
            # An scf.if chooses between what it loads and zero.
            copying = moved.operation
            pending = [*list(op.operands)[1:], *_used(copying)]
    seen: set[Any] = set()
    makers: list[Any] = [one for one in inside(copying) if _is_address(one)]
    while pending:
        value = pending.pop()
        if value in seen:
            continue
        seen.add(value)
        owner = value.owner
        if isinstance(owner, ir.Block):
            pending += _carried(loop, value, owner)
            continue
        maker = owner.operation
        if not _is_in(maker, loop):
            continue
        is_plain = maker.name.startswith(_ARITHMETIC) or maker.name in _NO_ACCESS
        has_effects = len(maker.regions) and not _is_plain_choice(maker)
        is_kept = has_effects or NUMBER in maker.attributes
        is_kept = is_kept or maker.name.startswith(_MEETINGS)
        if not is_plain and (maker.name in _LOADS or is_kept):
            makers.append(maker)
        else:
            pending += _used(maker)
    return makers


def _is_plain_choice(op: ir.Operation) -> bool:
    """Whether `op` is an scf.if that holds arithmetic only."""
    return op.name == "scf.if" and all(
        inner.name.startswith(_ARITHMETIC) or inner.name in ("scf.if", "scf.yield")
        for inner in inside(op)
    )


def _is_address(load: ir.Operation) -> bool:
    """Whether an op in a branch loads something else than what is copied."""
    return load.name in _LOADS and any(
        use.owner.operation.name != "scf.yield"
        and not (use.operand_number == 0 and use.owner.operation.name.endswith("store"))
        and not use.owner.operation.name.endswith("transfer_write")
        for use in load.results[0].uses
    )


def _used(op: ir.Operation) -> Iterator[Any]:
    """What an op uses; of one with regions, the memrefs and indices of its own."""
    yield from op.operands
    for inner in inside(op):
        for number, value in enumerate(inner.operands):
            is_moved = number == 0 and inner.name.endswith(("store", "transfer_write"))
            owner = value.owner
            is_inner = not isinstance(owner, ir.Block) and _is_in(owner.operation, op)
            if not is_moved and not is_inner:
                yield value


def _carried(loop: ir.Operation, value: ir.Value, block: ir.Block) -> list[Any]:
    """What a loop-carried value started from and becomes."""
    holder = block.owner.operation
    number = value.arg_number - 1
    if number < 0 or holder.name != "scf.for":
        return []
    if holder != loop and not _is_in(holder, loop):
        return []
    last = list(block.operations)[-1].operation
    start = [] if holder == loop else [holder.operands[3 + number]]
    return [last.operands[number], *start]


def _is_in(op: ir.Operation, loop: ir.Operation) -> bool:
    parent = op.parent
    while parent is not None:
        if parent.operation == loop:
            return True
        parent = parent.operation.parent
    return False


# -- slots ---------------------------------------------------------------------------


def _events(plan: _Plan, named: dict[Any, _Entry]) -> Iterator[_Event]:
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
            yield _Event(
                op,
                buffer,
                kind in _FILLS,
                rings[buffer],
                _Lead() if entry is None else entry.lead,
                unnamed if entry is None else entry.place,
            )


def _around(
    op: ir.Operation, loop: ir.Operation, named: dict[Any, _Entry]
) -> _Entry | None:
    """What the plan says of the copy around `op`: one under conditions, or in loops."""
    parent = op.parent.operation
    while parent != loop:
        if parent in named and named[parent].kind != _LOOP:
            return named[parent]
        parent = parent.parent.operation
    return None


def _wrong_slots(plan: _Plan, events: list[_Event]) -> Iterator[Violation]:
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


def _played(plan: _Plan, events: list[_Event]) -> Iterator[Violation]:
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
            late = tile - (plan.last_in_flight if event.lead == _Lead() else 0)
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


def _in_time(ordered: list[_Event], now: int) -> list[tuple[_Event, int]]:
    """What happens in one iteration, in time, and to which tiles.

    A stream with a part of an iteration in its lead reads the rest of a tile, then
    copies are issued, then it reads the beginning of the next tile.
    """
    parts = [e for e in ordered if e.lead.part and not e.fills]
    rest = [(event, now + event.lead.whole) for event in parts]
    return rest + [(e, now + e.lead.whole + int(e.lead.part)) for e in ordered]
