"""The search for schedules of all operators of a program, within one budget.

    for trial in search(operators, measurer, Budget(trials=500)): ...

The next batch is for the operator of which it promises most: the time that all its
contractions take, times the part of it that a batch is expected to save. That part is
the mean of what its last batch saved and of what is left down to the least time that
the GPU allows, over the batches that it had: the first ones save most. An operator is
done when six batches in a row bring nothing better, as in a search for one.

Batches are proposed while others are measured, as many as the measurer takes.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Protocol

from alcop_mlir.measurement.operators import Operator
from alcop_mlir.schedule import Decision, Schedule
from alcop_mlir.tuning.records import Record
from alcop_mlir.tuning.search import (
    BATCH,
    BETTER,
    PATIENCE,
    Budget,
    History,
    Strategy,
    Task,
    Trials,
)

_LEAST_ROOM = 0.01  # of a time, that is always thought to be left


@dataclass(frozen=True)
class Trial:
    """The end of a measurement of the operator `number`; None where it failed for
    reasons that say nothing of the schedule.
    """

    number: int
    schedule: Schedule
    record: Record | None


class Measurer(Protocol):
    """Measures schedules of operators, which it knows by number."""

    def wants_more(self) -> bool:
        """Whether it would measure what is started now soon."""
        ...

    def start(self, number: int, schedules: Sequence[Schedule]) -> None:
        """Have the schedules measured."""
        ...

    def finished(self) -> Iterator[Trial]:
        """What is measured by now, one at least of what was started."""
        ...


class OperatorSearch:
    """What is known of an operator, and what to try next.

    before: what is chosen without this search, which is tried first
    least: seconds; no schedule takes less
    strategy: makes the strategy when it is first needed
    """

    def __init__(
        self,
        operator: Operator,
        task: Task,
        before: Decision,
        least: float,
        strategy: Callable[[], Strategy],
        known: Trials | None = None,
    ):
        self.operator, self.task, self.before = operator, task, before
        self._least, self._make, self._strategy = least, strategy, None
        self.times: dict[Schedule, float | None] = dict(known or {})
        self.known = len(self.times)
        self.failed, self.ended = 0, 0
        self._pending: set[Schedule] = set()
        self._saved, self._since_better, self._is_exhausted = 0.0, 0, False
        self._at_batch = self.best

    @property
    def best(self) -> float:
        """Seconds of the fastest that was measured; infinity without one."""
        return min(filter(None, self.times.values()), default=math.inf)

    @property
    def seconds(self) -> float:
        """Of one contraction: measured, else predicted."""
        return self.best if self.best < math.inf else self.before.seconds or 0.0

    @property
    def measured_before(self) -> float | None:
        """The measured seconds of what was chosen without this search."""
        return self.times.get(self.before.schedule)

    @property
    def is_done(self) -> bool:
        """Whether nothing is tried any more."""
        return self._is_exhausted or self._since_better >= PATIENCE * BATCH

    def value(self) -> float:
        """Seconds that the next batch is expected to save, of all contractions."""
        room = max(_LEAST_ROOM, 1 - self._least / max(self.seconds, self._least))
        batches = (len(self.times) + len(self._pending)) // BATCH
        expected = (self._saved + room / (batches + 1)) / 2
        return self.operator.count * self.seconds * expected

    def propose(self, count: int) -> list[Schedule]:
        """What to measure next, at most `count`; nothing where all was tried."""
        rows, schedules = self.task.candidates.rows, self.task.candidates.schedules
        seconds = {rows[one]: at for one, at in self.times.items() if one in rows}
        seconds |= {rows[one]: None for one in self._pending}
        chosen: list[int] = []
        first = rows.get(self.before.schedule)
        if first is not None and first not in seconds:
            chosen, seconds = [first], seconds | {first: None}
        if count > len(chosen):
            self._strategy = self._strategy or self._make()
            left = count - len(chosen)
            chosen += self._strategy.propose(self.task, History(seconds), left)
        self._is_exhausted = not chosen
        found = [schedules[row] for row in chosen]
        self._pending.update(found)
        return found

    def add(self, schedule: Schedule, seconds: float | None) -> None:
        """Take the end of a measurement into account."""
        best = self.best
        self._pending.discard(schedule)
        self.times[schedule] = seconds
        self.failed += seconds is None
        self.ended += 1
        is_better = seconds is not None and seconds < BETTER * best
        self._since_better = 0 if is_better else self._since_better + 1
        if self.ended % BATCH == 0:
            had = self._at_batch if self._at_batch < math.inf else self.measured_before
            self._saved = 1 - self.best / had if had and self.best < had else 0.0
            self._at_batch = self.best


def search(
    searches: Sequence[OperatorSearch],
    measurer: Measurer,
    budget: Budget,
    clock: Callable[[], float] = time.monotonic,
) -> Iterator[Trial]:
    """Measurements as they end, until the budget is used up or nothing gets better.

    The caller stores a trial before it asks for the next one.
    """
    start, started, ended = clock(), 0, 0
    while True:
        while measurer.wants_more():
            left = BATCH if budget.trials is None else budget.trials - started
            late = budget.seconds is not None and clock() - start >= budget.seconds
            open_ones = [n for n, one in enumerate(searches) if not one.is_done]
            if left <= 0 or late or not open_ones:
                break
            number = max(open_ones, key=lambda one: searches[one].value())
            schedules = searches[number].propose(min(BATCH, left))
            if schedules:
                measurer.start(number, schedules)
                started += len(schedules)
        if started == ended:
            return
        for trial in measurer.finished():
            ended += 1
            record = trial.record
            searches[trial.number].add(
                trial.schedule, None if record is None else record.seconds
            )
            yield trial
