"""Choose the schedule for a problem that comes without one.

The first available of: the fastest record of this problem on this kind of device; the
best by the learned model, if there are records to learn from; the best by the
analytical model.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from alcop_mlir.errors import ConfigError
from alcop_mlir.schedule import Schedule
from alcop_mlir.target import Target
from alcop_mlir.tuning import models, preference, records
from alcop_mlir.tuning.learned import Forest
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

_ASKED = 512  # best by the analytical model, which the learned one predicts


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
    say: takes a line for each note, such as records that were skipped
    """
    recorded, notes = _recorded(problem, target, records_path, device)
    chosen, more = _fastest(problem, target, recorded, device)
    if chosen is None:
        chosen = _by_model(problem, target, recorded, device, SMALL)
        more = (*more, *chosen.notes)
    for note in (*notes, *more):
        if say is not None:
            say(note)
    return chosen.schedule


def decide(
    problem: Problem,
    target: Target,
    *,
    records_path: Path | None = None,
    device: str = "cuda",
    space: Space = SMALL,
) -> Choice:
    """Like `choose`, but with the reasons."""
    recorded, notes = _recorded(problem, target, records_path, device)
    choice = _by_model(problem, target, recorded, device, space)
    fastest, more = _fastest(problem, target, recorded, device)
    choice = replace(choice, notes=(*notes, *more, *choice.notes))
    if fastest is None:
        return choice
    task = _with(choice.task, fastest.schedule)
    row = task.candidates.rows[fastest.schedule]
    predicted = np.concatenate([choice.predicted, task.prediction.seconds[-1:]])
    return replace(
        choice,
        schedule=fastest.schedule,
        origin="record",
        seconds=fastest.seconds or 0.0,
        sure=None,
        task=task,
        ranking=np.concatenate([[row], choice.ranking[choice.ranking != row]]),
        predicted=predicted[: len(task.candidates)],
    )


def _recorded(
    problem: Problem, target: Target, path: Path | None, device: str
) -> tuple[tuple[Record, ...], tuple[str, ...]]:
    """The user's records, then those shipped; notes on the former."""
    log = records.read(path or models.records_path())
    return (*log.records, *models.shipped(device, target)), log.notes


def _fastest(
    problem: Problem, target: Target, recorded: tuple[Record, ...], device: str
) -> tuple[Record | None, tuple[str, ...]]:
    """The fastest record that is still legal; notes on those faster."""
    notes: list[str] = []
    for record in records.ranked(recorded, problem, target.name, device):
        try:
            check(problem, record.schedule, target)
        except ConfigError as error:
            notes.append(f"a recorded schedule is not used: {error}")
            continue
        return record, tuple(notes)
    return None, tuple(notes)


def _by_model(
    problem: Problem,
    target: Target,
    recorded: tuple[Record, ...],
    device: str,
    space: Space,
) -> Choice:
    task = Task(problem, target, enumerate_space(problem, target, space))
    forest, notes = models.load_or_train(recorded, device, target)
    ranking, predicted, sure = ranked(task, forest)
    best = int(ranking[0])
    return Choice(
        task.candidates.schedules[best],
        "analytical model" if forest is None else "learned model",
        float(predicted[best]),
        sure,
        notes,
        task,
        ranking,
        predicted,
    )


def ranked(
    task: Task, forest: Forest | None
) -> tuple[IntArray, FloatArray, float | None]:
    """Rows, best first; seconds of each; the forest's uncertainty about the best."""
    predicted = task.prediction.seconds
    ranking = preference.order(task.candidates, predicted)
    if forest is None:
        return preference.lead(task.candidates, ranking, predicted), predicted, None
    asked, others = ranking[:_ASKED], ranking[_ASKED:]
    mean, spread = forest.predict(task.features[asked])
    corrected: FloatArray = np.array(predicted)
    # The others keep their order, after those that the forest predicts.
    corrected[others] *= np.exp(mean.max())
    corrected[asked] *= np.exp(mean)
    best = asked[np.argsort(corrected[asked], kind="stable")]
    ranking = preference.lead(
        task.candidates, np.concatenate([best, others]), corrected
    )
    sure = float(spread[np.flatnonzero(asked == ranking[0])[0]])
    return ranking, corrected, sure


def _with(task: Task, schedule: Schedule) -> Task:
    """The task with `schedule` among its candidates."""
    if schedule in task.candidates.rows:
        return task
    cost = check(task.problem, schedule, task.target)
    known = task.candidates
    more = Candidates([*known.schedules, schedule], [*known.resources, cost])
    return replace(task, candidates=more)
