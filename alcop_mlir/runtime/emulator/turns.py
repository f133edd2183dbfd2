"""Which warps go on: what a schedule chooses, and that nobody waits for ever."""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Collection

from alcop_mlir.errors import EmulationError
from alcop_mlir.runtime.emulator.machine.cohort import Cohort

Picker = Callable[[list[Cohort]], Cohort]
SCHEDULES = ("lockstep", "ascending", "descending", "random")
# After so many spans other fronts than the lowest get their turn, each in turn for a
# while, and after as many in a row another cohort, so that a lane that spins on memory
# cannot keep away the one it waits for.
FAIR_TURN, FAIR_SPANS = 1024, 64


def front_of(fronts: Collection[int], turn: int) -> int:
    """Which of several fronts, told by their instructions, runs: mostly the lowest."""
    if turn % FAIR_TURN < FAIR_TURN - FAIR_SPANS:
        return min(fronts)
    return sorted(fronts)[-1 - turn // FAIR_TURN % len(fronts)]


def make_picker(schedule: str) -> Picker:
    """The choice among cohorts that can run. Raises `EmulationError` for a bad name."""
    found = re.fullmatch(r"(\w+)(?:\((\d{1,18})\))?", str(schedule))
    if (
        found is None
        or found[1] not in SCHEDULES
        or (found[2] and found[1] != "random")
    ):
        raise EmulationError(
            f"expected a schedule of lockstep, ascending, descending, random or "
            f"random(SEED), got {str(schedule)[:60]!r}"
        )
    if found[1] == "random":
        return random.Random(int(found[2] or 0)).choice
    if found[1] == "descending":
        return lambda cohorts: cohorts[-1]
    return lambda cohorts: cohorts[0]


class Turns:
    """The choice among cohorts that can run, by a picker."""

    def __init__(self, picker: Picker):
        self.picker = picker
        self.last: Cohort | None = None
        self.count = 0  # of turns in a row that it had
        self.tired: list[Cohort] = []  # who wait until no other can run

    def next(self, ready: list[Cohort]) -> Cohort:
        """Who goes on with its next span."""
        fresh = [cohort for cohort in ready if cohort not in self.tired]
        if not fresh:
            self.tired, fresh = [], ready
        chosen = self.picker(fresh)
        self.count = self.count + 1 if chosen is self.last else 1
        self.last = chosen
        if self.count == FAIR_TURN:
            self.count = 0
            self.tired.append(chosen)
        return chosen
