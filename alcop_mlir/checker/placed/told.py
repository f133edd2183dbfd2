"""Numbers that are told of turns: arrays along blocks in x, y and z, turns, threads."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from alcop_mlir.checker.logic.terms import Term
from alcop_mlir.checker.machine.state import State
from alcop_mlir.checker.placed.origins import is_turn

MOST_CLASSES = 64  # of blocks, or turns, that go ways of their own


class NotKnown(Exception):
    """Blocks and threads do not decide it."""


def of_all_turns(numbers: np.ndarray) -> np.ndarray:
    """Without the turns, where numbers are the same in all."""
    one = numbers[:, :, :, :1]
    return one if (numbers == one).all() else numbers


def turns_of(numbers: np.ndarray) -> list[np.ndarray]:
    """Turns in which numbers are the same; raises NotKnown where there are many."""
    each = [numbers[:, :, :, n].tobytes() for n in range(numbers.shape[3])]
    if len({*each}) > MOST_CLASSES:
        raise NotKnown
    return [np.array([e == one for e in each]) for one in dict.fromkeys(each)]


def numbered(turns: Sequence[int]) -> np.ndarray:
    """Numbers of turns."""
    return np.array(turns, np.uint64).reshape(1, 1, 1, -1, 1)


def restrict(state: State, turns: np.ndarray) -> None:
    """Only these turns go on."""
    told = state.data.told
    if turns.all():
        return
    (turn,) = (n for n in told if is_turn(n) and told[n].shape[3] > 1)
    for name, numbers in told.items():
        if numbers.shape[3] > 1:
            told[name] = of_all_turns(numbers[:, :, :, turns])
    low, high = int(told[turn].min()), int(told[turn].max())
    facts: list[Term] = [{turn: 1, "": -low}, {turn: -1, "": high}]
    state.facts += facts
    state.data.given += facts
