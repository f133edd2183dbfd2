"""Choose the schedule for a problem that comes without one.

The first available of: the fastest record of this problem on this GPU; the best by the
learned model, if there are records of this GPU to learn from; the best by the
analytical model. All that choose do it by a `Chooser`, so that all choose the same.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path

import numpy as np

from alcop_mlir.errors import ConfigError
from alcop_mlir.schedule import Decision, Schedule
from alcop_mlir.target import Target
from alcop_mlir.tuning import (
    gpus,
    models,
    open_variants,
    preference,
    records,
)
from alcop_mlir.tuning.learned import Forest
from alcop_mlir.tuning.open_problem import OpenProblem
from alcop_mlir.tuning.problem import Problem
from alcop_mlir.tuning.records import Log, Record
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
from alcop_mlir.variants import ScheduleVariant

COMPILED_FOR = "cuda"  # the device whose records the compiler chooses by
_ASKED = 512  # best by the analytical model, which the learned one predicts


@dataclass(frozen=True, eq=False)
class Ranking:
    """All candidates for a problem.

    rows: of the candidates, best first
    predicted: seconds of each row
    sure: standard deviation of log(seconds) of the best by the learned model, None
        without one
    """

    task: Task
    rows: IntArray
    predicted: FloatArray
    sure: float | None

    @property
    def schedules(self) -> list[Schedule]:
        """Best first."""
        return [self.task.candidates.schedules[row] for row in self.rows.tolist()]

    def led_by(self, schedule: Schedule) -> Ranking:
        """With `schedule` first, which may be of another space."""
        task = _with(self.task, schedule)
        row = task.candidates.rows[schedule]
        predicted = np.concatenate([self.predicted, task.prediction.seconds[-1:]])
        rows = np.concatenate([[row], self.rows[self.rows != row]])
        return Ranking(task, rows, predicted[: len(task.candidates)], self.sure)


@dataclass(frozen=True)
class Counted:
    """The records that count: the user's, then those shipped, without failures.

    notes:    a line for each thing in the records that is damaged or impossible
    left_out: a line for the records of each other GPU
    """

    records: tuple[Record, ...]
    notes: tuple[str, ...]
    left_out: tuple[str, ...]


class Chooser:
    """Chooses for one target; reads the records once, when first needed.

    path: file of records; None is the user's own
    device, gpu: whose records count; None is the GPU that is compiled for
    """

    def __init__(
        self,
        target: Target,
        *,
        path: Path | None = None,
        device: str = COMPILED_FOR,
        gpu: str | None = None,
        space: Space = SMALL,
    ):
        self.target, self.device, self.space = target, device, space
        self.path = path or models.records_path()
        self._gpu, self._rankings = gpu, dict[Problem, Ranking]()

    @cached_property
    def gpu(self) -> str:
        """The GPU whose records count; "" on a device that is no GPU."""
        if self.device != COMPILED_FOR:
            return ""
        return gpus.compiled_for(self.target) if self._gpu is None else self._gpu

    @cached_property
    def counted(self) -> Counted:
        """The records that count, read when first asked for."""
        try:
            log = records.read(self.path)
        except ConfigError as error:
            log = Log(notes=(f"{error}: no record is used",))
        found = [*log.records, *models.shipped(self.device, self.target)]
        mine = records.timed(found, self.device, self.target.name)
        left_out: tuple[str, ...] = ()
        if self.device == COMPILED_FOR and mine:
            others = Counter(r.setting.gpu for r in mine if r.setting.gpu != self.gpu)
            mine = [r for r in mine if self.gpu and r.setting.gpu == self.gpu]
            left_out = tuple(
                f"{count} record(s) of {gpu or 'a GPU without a name'} do not count, "
                f"only those of {self.gpu or 'a GPU with a name'}"
                for gpu, count in others.items()
            )
        possible = [r for r in mine if self._is_possible(r)]
        notes = _impossible([r for r in mine if not self._is_possible(r)])
        return Counted(tuple(possible), (*log.notes, *notes), left_out)

    def best_record(self, problem: Problem) -> tuple[Record | None, tuple[str, ...]]:
        """The fastest record that is legal and credible; notes on those faster."""
        notes: list[str] = []
        ranked = records.ranked(
            self.counted.records, problem, self.target.name, self.device
        )
        known = models.typical(ranked)
        seconds = {one: record.seconds or 0.0 for one, record in known.items()}
        wrong = models.outliers(problem, self.target, seconds)
        for record in sorted(known.values(), key=lambda one: one.seconds or 0.0):
            if record.schedule in wrong:
                notes.append(
                    f"a recorded time is not used: {record.seconds:.3g} s for "
                    f"{record.schedule}, at {record.time or 'no time'}, is "
                    f"{models.TOO_FAST:g} times faster than others suggest"
                )
                continue
            try:
                check(problem, record.schedule, self.target)
            except ConfigError as error:
                notes.append(f"a recorded schedule is not used: {error}")
                continue
            return record, tuple(notes)
        return None, tuple(notes)

    def choose(self, problem: Problem) -> Decision:
        """The schedule for `problem`; ConfigError where none is legal."""
        record, notes = self.best_record(problem)
        if record is not None:
            return Decision(record.schedule, "record", notes, record.seconds)
        ranking, (forest, more) = self.ranking(problem), self.learned
        best = int(ranking.rows[0])
        return Decision(
            ranking.task.candidates.schedules[best],
            "analytical model" if forest is None else "learned model",
            (*notes, *more),
            float(ranking.predicted[best]),
            ranking.sure,
        )

    def ranking(self, problem: Problem) -> Ranking:
        """All candidates, by the model; ConfigError where none is legal."""
        if problem not in self._rankings:
            space = enumerate_space(problem, self.target, self.space)
            task = Task(problem, self.target, space)
            self._rankings[problem] = Ranking(task, *ranked(task, self.learned[0]))
        return self._rankings[problem]

    def variants(
        self, problem: OpenProblem, most: int, one: Schedule
    ) -> tuple[ScheduleVariant, ...]:
        """The kernels for open sizes; ConfigError where no schedule is legal.

        one: the kernel without variants, see `open_variants.choose`
        """
        mine = tuple(r for r in self.counted.records if problem.covers(r.problem))
        return open_variants.choose(problem, self.target, most, one, mine)

    @cached_property
    def learned(self) -> tuple[Forest | None, tuple[str, ...]]:
        """The learned model, None where there are too few records; and notes."""
        return models.load_or_train(self.counted.records, self.device, self.target)

    def unused(self) -> str:
        """Why no compile asks for these records, or all of this; "" where it does."""
        if self.device != COMPILED_FOR:
            return f"{self.device} times are of no GPU"
        if self.path.absolute() != models.records_path().absolute():
            return f"it reads {models.records_path()}"
        if self.gpu != gpus.compiled_for(self.target):
            made_on = self.gpu or "a GPU without a name"
            return f"for {self.target.name} it counts records of " + (
                f"{gpus.compiled_for(self.target)} only, not of {made_on}"
            )
        if self.space != SMALL:
            return f"it looks in the {SMALL.name} space"
        return ""

    def _is_possible(self, record: Record) -> bool:
        least = gpus.least_seconds(record.problem, self.target, self.gpu)
        return (record.seconds or 0.0) >= least


def _impossible(found: Sequence[Record]) -> tuple[str, ...]:
    """A line that names the first, if there is one."""
    if not found:
        return ()
    first = found[0]
    return (
        f"{len(found)} recorded time(s) are impossible and not used: "
        f"{first.seconds:.3g} s for {first.problem}, at {first.time or 'no time'}",
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
