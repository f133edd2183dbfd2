"""The search: propose a batch, measure it, learn from it, again.

    for batch in search(task, strategy, measure, budget): ...

Stopping early, by Ctrl-C too, loses nothing: the caller has all that was measured. What
to propose is up to a strategy, how to measure up to the caller. Nothing is proposed
twice. The first batch comes in two halves: from few measurements much is learned.
"""

from __future__ import annotations

import math
import re
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Protocol

import numpy as np

from alcop_mlir.errors import ConfigError
from alcop_mlir.schedule import Schedule
from alcop_mlir.target import Target
from alcop_mlir.tuning.analytical import Prediction, predict
from alcop_mlir.tuning.candidates import Candidates, FloatArray, IntArray
from alcop_mlir.tuning.features import features
from alcop_mlir.tuning.problem import Problem

BATCH = 8
PATIENCE = 6  # batches without a better schedule before the search stops
BETTER = 0.995  # a schedule is better if it takes less than that part of the time


@dataclass(frozen=True)
class Budget:
    """When to stop: after so many trials, so many seconds; None is no limit."""

    trials: int | None = None
    seconds: float | None = None

    @classmethod
    def parse(cls, text: str) -> Budget:
        """From `64` (trials) or `120s` (seconds); ConfigError for anything else."""
        match = re.fullmatch(r"(\d+(?:\.\d+)?)(s?)", text)
        if match is None or (not match[2] and "." in match[1]):
            raise ConfigError(
                f"budget '{text}', expected trials (64) or seconds (120s)"
            )
        if float(match[1]) == 0:
            raise ConfigError(f"budget '{text}', expected more than nothing")
        if match[2]:
            return cls(seconds=float(match[1]))
        return cls(trials=int(match[1]))


@dataclass(frozen=True, eq=False)
class Task:
    """A problem on a target, its candidates, and their predictions."""

    problem: Problem
    target: Target
    candidates: Candidates

    @cached_property
    def prediction(self) -> Prediction:
        """The predictions of the analytical model, by row."""
        return predict(self.problem, self.candidates, self.target)

    @cached_property
    def features(self) -> FloatArray:
        """The features for a learned model, by row."""
        return features(self.problem, self.candidates, self.prediction)


@dataclass
class History:
    """What was tried, by row, in order; None where a trial failed."""

    seconds: dict[int, float | None] = field(default_factory=dict[int, float | None])

    @property
    def best(self) -> float:
        """Seconds of the fastest; infinity where none has a time."""
        return min(filter(None, self.seconds.values()), default=math.inf)

    def measured(self) -> tuple[IntArray, FloatArray]:
        """Rows and seconds of the trials that did not fail."""
        good = {row: value for row, value in self.seconds.items() if value is not None}
        return np.array([*good], np.int64), np.array([*good.values()])


class Strategy(Protocol):
    """Decides what to try next."""

    def propose(self, task: Task, history: History, count: int) -> Sequence[int]:
        """Rows to try next, best first; at most `count`, none that was tried."""
        ...


# The seconds of each schedule in the order they were measured; None where that failed.
Trials = Mapping[Schedule, float | None]
Measure = Callable[[Sequence[Schedule]], Trials]


def search(
    task: Task,
    strategy: Strategy,
    measure: Measure,
    budget: Budget,
    *,
    known: Trials | None = None,
    batch: int = BATCH,
    patience: int | None = PATIENCE,
    clock: Callable[[], float] = time.monotonic,
) -> Iterator[Trials]:
    """Measured batches, until the budget or space is used up or nothing gets better.

    known: measurements of earlier searches; learned from and not tried again
    patience: so many batches of trials without a better schedule stop it; None is no
        limit
    """
    rows = task.candidates.rows
    history = History({rows[s]: time for s, time in (known or {}).items() if s in rows})
    tried, since_better, start = 0, 0, clock()
    while patience is None or since_better < patience * batch:
        count = batch if len(history.seconds) >= batch else -(-batch // 2)
        if budget.trials is not None:
            count = min(count, budget.trials - tried)
        if budget.seconds is not None and clock() - start >= budget.seconds:
            return
        chosen = strategy.propose(task, history, count) if count > 0 else ()
        if not len(chosen):
            return
        before = history.best
        trials = measure([task.candidates.schedules[row] for row in chosen])
        history.seconds |= {rows[schedule]: time for schedule, time in trials.items()}
        tried += len(trials)
        since_better += len(trials)
        if history.best < BETTER * before:
            since_better = 0
        yield trials
