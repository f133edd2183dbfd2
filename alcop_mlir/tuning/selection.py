"""Choose the schedule for a problem that comes without one.

The first available of: the fastest record of this problem on this GPU; the best by the
learned model, if there are records of this GPU to learn from; the best by the
analytical model. All that choose do it by a `Chooser`, so that all choose the same.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import TypeVar

import numpy as np

from alcop_mlir.errors import ConfigError
from alcop_mlir.schedule import Decision, Schedule
from alcop_mlir.target import TARGETS, Target
from alcop_mlir.tuning import (
    chain_schedule,
    gpus,
    models,
    open_variants,
    preference,
    records,
)
from alcop_mlir.tuning import counted as counting
from alcop_mlir.tuning import record_book as book
from alcop_mlir.tuning.candidates import Candidates, FloatArray, IntArray
from alcop_mlir.tuning.counted import Counted
from alcop_mlir.tuning.features import Samples
from alcop_mlir.tuning.learned import Forest
from alcop_mlir.tuning.open_problem import OpenProblem
from alcop_mlir.tuning.problem import Problem
from alcop_mlir.tuning.record_book import ChangedError
from alcop_mlir.tuning.records import Record
from alcop_mlir.tuning.search import Task
from alcop_mlir.tuning.space import SMALL, Space, check, enumerate_space
from alcop_mlir.variants import ScheduleVariant

COMPILED_FOR = "cuda"  # the device whose records the compiler chooses by
T = TypeVar("T")
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
        """The records that count, found when first asked for."""
        return self._count(anew=False)

    def _count(self, anew: bool) -> Counted:
        try:
            mine = book.consult(self.path, anew)
        except ConfigError as error:
            mine = replace(
                book.of_data(b"", ""), notes=(f"{error}: no record is used",)
            )
        books = [mine, models.shipped_book(self.device, self.target)]
        gpu = (lambda: self.gpu) if self.device == COMPILED_FOR else None
        return counting.count(books, self.target, self.device, gpu)

    def _ask(self, question: Callable[[Counted], T]) -> T:
        """The answer by the records; all are read where the file is another one now."""
        try:
            return question(self.counted)
        except ChangedError:
            self.counted = self._count(anew=True)
            return question(self.counted)

    def best_record(self, problem: Problem) -> tuple[Record | None, tuple[str, ...]]:
        """The fastest record that is legal and credible; notes on those faster."""
        notes: list[str] = []
        found = self._ask(lambda known: known.of(problem))
        ranked = records.ranked(found, problem, self.target.name, self.device)
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
        if problem.chain is not None:
            return self._of_chain(problem, notes)
        ranking, (forest, more) = self.ranking(problem), self.learned
        best = int(ranking.rows[0])
        return Decision(
            ranking.task.candidates.schedules[best],
            "analytical model" if forest is None else "learned model",
            (*notes, *more),
            float(ranking.predicted[best]),
            ranking.sure,
        )

    def _of_chain(self, problem: Problem, notes: tuple[str, ...]) -> Decision:
        schedule = chain_schedule.chosen(problem, self.target)
        one = Candidates([schedule], [check(problem, schedule, self.target)])
        (seconds,) = Task(problem, self.target, one).prediction.seconds.tolist()
        return Decision(schedule, "analytical model", notes, seconds)

    def ranking(self, problem: Problem) -> Ranking:
        """All candidates, by the model; ConfigError where none is legal."""
        if problem not in self._rankings:
            space = enumerate_space(problem, self.target, self.space)
            task = Task(problem, self.target, space)
            forest = self.learned[0] if problem.chain is None else None
            self._rankings[problem] = Ranking(task, *ranked(task, forest))
        return self._rankings[problem]

    def variants(
        self, problem: OpenProblem, most: int, one: Schedule
    ) -> tuple[ScheduleVariant, ...]:
        """The kernels for open sizes; ConfigError where no schedule is legal.

        one: the kernel without variants, see `open_variants.choose`
        """
        mine = self._ask(lambda known: known.covered(problem))
        return open_variants.choose(problem, self.target, most, one, mine)

    @cached_property
    def learned(self) -> tuple[Forest | None, tuple[str, ...]]:
        """The learned model, None where there are too few records; and notes."""
        return self._ask(
            lambda known: models.load_or_train(known, self.device, self.target)
        )

    @cached_property
    def elsewhere(self) -> tuple[Forest | None, tuple[str, ...]]:
        """What records of other GPUs say, None where there are few; and notes.

        For searches: no schedule is chosen by it.
        """
        if self.device != COMPILED_FOR:
            return None, ()
        return self._ask(lambda _: self._learned_elsewhere())

    def _learned_elsewhere(self) -> tuple[Forest | None, tuple[str, ...]]:
        books = [book for book, _ in self.counted.parts[:1]]  # the user's own
        known = counting.count_elsewhere(books, TARGETS, self.device, self.gpu)
        return models.train_elsewhere(known, self.device)

    def samples(self) -> dict[Problem, Samples]:
        """What a model is fitted to, by problem."""
        return self._ask(lambda known: models.samples(known, self.device, self.target))

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
    known = spread[asked == ranking[0]]  # of what it was not asked it is least sure
    return ranking, corrected, float(known[0] if len(known) else spread.max())


def _with(task: Task, schedule: Schedule) -> Task:
    """The task with `schedule` among its candidates."""
    if schedule in task.candidates.rows:
        return task
    cost = check(task.problem, schedule, task.target)
    known = task.candidates
    more = Candidates([*known.schedules, schedule], [*known.resources, cost])
    return replace(task, candidates=more)
