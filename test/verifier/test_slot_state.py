"""Slots after either of two ways: the worse of both counts."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from alcop_mlir.verifier.slot_state import State

SLOT, OTHER = (0, 0), (0, 1)


def filled(state: State) -> None:
    state.copy_into(SLOT)
    state.commit()
    state.wait(0)


def copied(state: State) -> None:
    state.copy_into(SLOT)


def refilled(state: State) -> None:
    filled(state)
    state.barrier()


def nothing(state: State) -> None:
    pass


def landed(state: State) -> None:
    """The open group is committed, and waited for: what was copied has landed."""
    state.commit()
    state.wait(0)


def read(state: State) -> str:
    return state.read(SLOT)


def joined(one: Callable[[State], None], other: Callable[[State], None]) -> State:
    """After a fill and a barrier, one of two ways; the first goes on."""
    before = State()
    refilled(before)
    ways = before, before.clone()
    one(ways[0])
    other(ways[1])
    ways[0].join(ways[1])
    return ways[0]


BOTH = [False, True]


@pytest.mark.parametrize("is_swapped", BOTH)
def test_what_one_way_filled_needs_a_barrier(is_swapped: bool) -> None:
    ways = (nothing, filled) if is_swapped else (filled, nothing)
    state = joined(*ways)
    assert "no barrier since its copies landed" in read(state)


@pytest.mark.parametrize("is_swapped", BOTH)
def test_what_one_way_copies_is_in_the_next_group(is_swapped: bool) -> None:
    state = joined(*((nothing, copied) if is_swapped else (copied, nothing)))
    assert "in flight" in state.clone().read(SLOT)
    landed(state)
    state.barrier()
    assert read(state) == ""


@pytest.mark.parametrize("is_swapped", BOTH)
def test_a_wait_of_one_way_is_for_its_slots(is_swapped: bool) -> None:
    """Either slot may have been waited for last: both may be read."""

    def wait_for(slot: tuple[int, int]) -> Callable[[State], None]:
        def wait(state: State) -> None:
            state.copy_into(slot)
            group = state.commit()
            state.wait(0)
            state.name_awaited(group)
            state.barrier()

        return wait

    slots = (OTHER, SLOT) if is_swapped else (SLOT, OTHER)
    state = joined(*map(wait_for, slots))
    assert read(state) == ""
