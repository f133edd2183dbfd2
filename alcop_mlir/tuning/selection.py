"""The schedule for a problem that nobody gave one for.

The first that there is: the fastest record of this problem on this kind of device; what
the learned model likes best, where there are records to learn from; what the analytical
model likes best.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from alcop_mlir.errors import ConfigError
from alcop_mlir.schedule import Schedule
from alcop_mlir.target import Target
from alcop_mlir.tuning import models, records
from alcop_mlir.tuning.problem import Problem
from alcop_mlir.tuning.records import Record
from alcop_mlir.tuning.search import Task
from alcop_mlir.tuning.space import (
    SMALL,
    Candidates,
    FloatArray,
    IntArray,
    Space,
    check,
    enumerate_space,
)

# Predictions closer than this are one to the models. Among such schedules the one with
# fewest parts of K is taken, which need memory of their own; then the deepest pipeline,
# up to these stages, and the largest tile; then groups of rows, up to this many: memory
# is slower at times than the model says, and these need less of it.
_EQUAL = 1.03
_DEEP = (4, 2)
_GROUP = 8
_ASKED = 512  # favourites of the analytical model that the learned one is asked about


@dataclass(frozen=True, eq=False)
class Choice:
    """A schedule, and why it was chosen.

    origin: "record", "learned model" or "analytical model"
    seconds: measured for a record, else predicted
    sure: standard deviation of log(seconds) by the learned model, None without one
    task, ranking: the candidates, the schedule among them, and their rows, best first
    predicted: seconds of each row
    """

    schedule: Schedule
    origin: str
    seconds: float
    sure: float | None
    notes: tuple[str, ...]
    task: Task
    ranking: IntArray
    predicted: FloatArray


def choose(
    problem: Problem,
    target: Target,
    *,
    records_path: Path | None = None,
    device: str = "cuda",
    say: Callable[[str], None] | None = None,
) -> Schedule:
    """The schedule to compile `problem` with; ConfigError where no schedule is legal.

    records_path: file of records; None is the user's own
    device: whose records count
    say: takes a line for each thing worth telling, such as records that were skipped
    """
    recorded, notes = _recorded(problem, target, records_path, device)
    fastest, more = _fastest(problem, target, recorded, device)
    if fastest is None:
        choice = _by_model(problem, target, recorded, device, SMALL)
        fastest, more = choice.schedule, (*more, *choice.notes)
    for note in (*notes, *more):
        if say is not None:
            say(note)
    return fastest


def decide(
    problem: Problem,
    target: Target,
    *,
    records_path: Path | None = None,
    device: str = "cuda",
    space: Space = SMALL,
) -> Choice:
    """As `choose`, with the reasons."""
    recorded, notes = _recorded(problem, target, records_path, device)
    choice = _by_model(problem, target, recorded, device, space)
    fastest, more = _fastest(problem, target, recorded, device)
    notes = (*notes, *more, *choice.notes)
    task, row = choice.task, choice.ranking[0]
    if fastest is None:
        origin, seconds, sure = choice.origin, choice.seconds, choice.sure
    else:
        origin, sure = "record", None
        seconds = next(
            record.seconds or 0.0
            for record in records.ranked(recorded, problem, target.name, device)
            if record.schedule == fastest
        )
        task = _with(task, fastest)
        row = task.candidates.rows[fastest]
    schedule = task.candidates.schedules[row]
    ranking = np.concatenate([[row], choice.ranking[choice.ranking != row]])
    predicted = np.concatenate([choice.predicted, task.prediction.seconds[-1:]])
    predicted = predicted[: len(task.candidates)]
    return Choice(schedule, origin, seconds, sure, notes, task, ranking, predicted)


def _recorded(
    problem: Problem, target: Target, path: Path | None, device: str
) -> tuple[tuple[Record, ...], tuple[str, ...]]:
    """The user's records, then those shipped; notes on the former."""
    log = records.read(path or models.records_path())
    return (*log.records, *models.shipped(device, target)), log.notes


def _fastest(
    problem: Problem, target: Target, recorded: tuple[Record, ...], device: str
) -> tuple[Schedule | None, tuple[str, ...]]:
    """The schedule of the fastest record that is still legal; notes on those faster."""
    notes: list[str] = []
    for record in records.ranked(recorded, problem, target.name, device):
        try:
            check(problem, record.schedule, target)
        except ConfigError as error:
            notes.append(f"a recorded schedule is not used: {error}")
            continue
        return record.schedule, tuple(notes)
    return None, tuple(notes)


def _by_model(
    problem: Problem,
    target: Target,
    recorded: tuple[Record, ...],
    device: str,
    space: Space,
) -> Choice:
    task = Task(problem, target, enumerate_space(problem, target, space))
    predicted = task.prediction.seconds
    ranking = np.argsort(predicted, kind="stable")
    forest, notes = models.load_or_train(recorded, device, target)
    if forest is None:
        best = int(ranking[0])
        origin, sure = "analytical model", None
    else:
        asked = ranking[:_ASKED]
        mean, spread = forest.predict(task.features[asked])
        corrected: FloatArray = np.array(predicted)
        # The others keep their place behind those that were asked about.
        corrected[ranking[_ASKED:]] *= np.exp(mean.max())
        corrected[asked] *= np.exp(mean)
        order = np.argsort(corrected[asked], kind="stable")
        ranking = np.concatenate([asked[order], ranking[_ASKED:]])
        predicted, best = corrected, int(ranking[0])
        origin, sure = "learned model", float(spread[order[0]])
    ranking = _deepest_first(task.candidates.schedules, ranking, predicted)
    best = int(ranking[0])
    return Choice(
        task.candidates.schedules[best],
        origin,
        float(predicted[best]),
        sure,
        notes,
        task,
        ranking,
        predicted,
    )


def _deepest_first(
    schedules: Sequence[Schedule], ranking: IntArray, predicted: FloatArray
) -> IntArray:
    """`ranking`, led by the deepest pipeline, of the largest tile, that is as good."""
    as_good: list[int] = [
        row for row in ranking if predicted[row] <= _EQUAL * predicted[ranking[0]]
    ]
    # max takes the first of equals: the best predicted.
    first = max(as_good, key=lambda row: _frugality(schedules[row]))
    return np.concatenate([[first], ranking[ranking != first]])


def _frugality(schedule: Schedule) -> tuple[int, int, int, int]:
    """The more of it, the less a schedule needs of memory's speed and size."""
    stages = zip(schedule.stages, _DEEP, strict=True)
    depth = sum(min(given, most) for given, most in stages)
    group = min(schedule.raster, _GROUP)
    return -schedule.split_k, depth, math.prod(schedule.block), group


def _with(task: Task, schedule: Schedule) -> Task:
    """The task with `schedule` among its candidates."""
    if schedule in task.candidates.rows:
        return task
    cost = check(task.problem, schedule, task.target)
    candidates = task.candidates
    return Task(
        task.problem,
        task.target,
        Candidates([*candidates.schedules, schedule], [*candidates.resources, cost]),
    )
