"""Which states of mbarriers and slots are alike, and what processes know in each.

What one process knows of another is only ever compared with times that are kept: of
reads of slots, of waits for the last phase, of their init; and of phases with the last
two, and with those in which slots were filled. So for each that knows something, and
each of these, one bit says all.

This file does not depend on MLIR.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Sequence

from alcop_mlir.verifier.rings.records import Clock, Filled, Mbarrier
from alcop_mlir.verifier.rings.state import State


def key(state: State, alive: Sequence[int]) -> Hashable:
    """What is the same of states that are alike but for what processes know."""
    mbarriers = tuple(_mbarrier(one) for one in state.mbarriers)
    slots = tuple((slot, _slot(state, slot[0], one)) for slot, one in _slots(state))
    return mbarriers, slots, tuple(_reader(state, process) for process in alive)


def knowledge(state: State, alive: Sequence[int]) -> int:
    """What processes know, and what they will learn of mbarriers, as bits.

    With more of them set the same is right: whatever is checked is that something is
    known.
    """
    times = list(_times(state))
    bits = 0
    for clock in _clocks(state, alive):
        for place, time in times:
            bits = 2 * bits + (clock is None or clock[place] >= time)
    return bits


def _clocks(state: State, alive: Sequence[int]) -> Iterator[Clock | None]:
    """Of processes and mbarriers; None where nobody will learn from it."""
    for process in alive:
        yield state.clocks[process]
    for number, one in enumerate(state.mbarriers):
        place = len(state.clocks) + number
        yield one.clock
        is_news = any(state.clocks[process][place] < one.ended for process in alive)
        yield one.done if is_news else None


def _times(state: State) -> Iterator[tuple[int, int]]:
    """Where in a clock, and from which time on."""
    first = len(state.clocks)
    for number, one in enumerate(state.mbarriers):
        yield one.made
        yield first + number, one.ended - 1
        yield first + number, one.ended
        for process, (time, _) in (
            *sorted(one.passed.items()),
            *sorted(one.far.items()),
        ):
            yield process, time
    proxy = first + len(state.mbarriers)
    for _, one in _slots(state):
        if one.phase[0] >= 0:
            yield first + one.phase[0], one.phase[1]
        yield from sorted(one.read.items())
        for process, time in sorted(one.written.items()):
            yield process, time
            yield proxy + process, time


def _slots(state: State) -> list[tuple[tuple[int, int], Filled]]:
    return sorted(state.slots.items(), key=lambda pair: pair[0])


def _mbarrier(one: Mbarrier) -> Hashable:
    return (
        (one.count, one.ended % 2, one.pending, one.expected, one.landed),
        tuple(sorted(one.passed)),
        tuple((process, one.ended - n) for process, n in sorted(one.waiting.items())),
        (one.made[0], one.fenced),
        tuple(sorted(one.far)),
    )


def _slot(state: State, buffer: int, one: Filled) -> Hashable:
    number, ended = one.phase
    if number < 0:
        return tuple(sorted(one.read)), tuple(sorted(one.written))
    is_landing = state.mbarriers[number].ended < ended
    return (
        _order(state, buffer, one.number),
        (number, min(state.mbarriers[number].ended - ended, 2)),
        one.parts if is_landing else None,
        tuple(sorted(one.read)),
        one.used,
    )


def _order(state: State, buffer: int, fill: int) -> int:
    """How many slots of a buffer were not filled later than that."""
    return sum(
        one.number <= fill for (owner, _), one in state.slots.items() if owner == buffer
    )


def _reader(state: State, process: int) -> Hashable:
    reader = state.readers[process]
    latest = sorted(reader.latest.items())
    return (
        tuple(slots for slots, _ in reader.groups),
        reader.open,
        (reader.stores, reader.fenced, reader.touched),
        tuple((buffer, _order(state, buffer, fill)) for buffer, fill in latest),
    )
