"""Which states of mbarriers and slots are alike.

This file does not depend on MLIR.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Sequence

from alcop_mlir.verifier.rings.records import Clock
from alcop_mlir.verifier.rings.state import State

_FAR = 2  # phases: who knows that much less of an mbarrier may not use it


def key(state: State, alive: Sequence[int]) -> Hashable:
    """Equal for states from which the same follows, for processes that go on.

    Only orders of times of one process matter, and parities of phases: times are
    replaced by their ranks, and phases by how long ago they have ended.
    """
    ranks = [
        {time: rank for rank, time in enumerate(sorted(set(times)))}
        for times in zip(*_all_times(state, alive), strict=True)
    ]

    def ranked(clock: Clock) -> tuple[int, ...]:
        return tuple(rank[time] for rank, time in zip(ranks, clock, strict=True))

    first = len(state.clocks)
    mbarriers = tuple(
        (
            one.count,
            one.ended % 2,
            one.pending,
            one.expected,
            one.landed,
            ranked(one.clock),
            ranked(one.done),
            tuple((p, ranks[p][time]) for p, (time, _) in sorted(one.passed.items())),
            tuple((p, one.ended - n) for p, n in sorted(one.waiting.items())),
            tuple(
                min(one.ended - state.clocks[p][first + number], _FAR) for p in alive
            ),
            ranks[first + number][one.ended],
            (one.made[0], ranks[one.made[0]][one.made[1]], one.fenced),
            tuple((p, ranks[p][time]) for p, (time, _) in sorted(one.far.items())),
        )
        for number, one in enumerate(state.mbarriers)
    )
    slots = tuple(
        (
            slot,
            state.fills[slot[0]] - one.number,
            (one.phase[0], ranks[first + one.phase[0]][one.phase[1]]),
            state.mbarriers[one.phase[0]].ended - one.phase[1] < 0,
            one.parts if state.mbarriers[one.phase[0]].ended < one.phase[1] else (),
            tuple((p, ranks[p][time]) for p, time in sorted(one.read.items())),
            one.used,
        )
        for slot, one in sorted(state.slots.items(), key=lambda pair: pair[0])
    )
    readers = tuple(
        (
            tuple(slots for slots, _ in state.readers[p].groups),
            state.readers[p].open,
            tuple(
                (buffer, state.fills[buffer] - number)
                for buffer, number in sorted(state.readers[p].latest.items())
            ),
        )
        for p in alive
    )
    clocks = tuple(ranked(state.clocks[p]) for p in alive)
    return mbarriers, slots, readers, clocks


def _all_times(state: State, alive: Sequence[int]) -> Iterator[Clock]:
    """All times that are compared, as clocks; 0 where there is none."""
    first = len(state.clocks)
    yield from (state.clocks[p] for p in alive)
    yield [0] * first + [one.ended for one in state.mbarriers]
    for one in state.mbarriers:
        yield one.clock
        yield one.done
        yield _only(state, dict([one.made]))
        yield _only(state, {p: time for p, (time, _) in one.passed.items()})
        yield _only(state, {p: time for p, (time, _) in one.far.items()})
    for slot in state.slots.values():
        yield _only(state, slot.read)
        yield _only(state, {first + slot.phase[0]: slot.phase[1]})


def _only(state: State, times: dict[int, int]) -> Clock:
    clock = [0] * (len(state.clocks) + len(state.mbarriers))
    for place, time in times.items():
        clock[place] = time
    return clock
