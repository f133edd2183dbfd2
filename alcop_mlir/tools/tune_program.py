"""alcop-tune for a file with several contractions, or for a pool of machines.

What it prints: a line for each batch, or a bar, and a table of operators in the end.
"""

from __future__ import annotations

import math
import sys
import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from typing import Any

import numpy as np

from alcop_mlir.measurement.journal import Journal
from alcop_mlir.measurement.operators import Program
from alcop_mlir.measurement.program_search import (
    Measurer,
    OperatorSearch,
    Trial,
    search,
)
from alcop_mlir.tools.command_line import Rows, aligned, is_installed, seconds
from alcop_mlir.tools.tune_show import bar
from alcop_mlir.tuning import gpus, strategies
from alcop_mlir.tuning.features import Samples
from alcop_mlir.tuning.problem import Problem
from alcop_mlir.tuning.search import BATCH, Budget, Strategy, Task, Trials
from alcop_mlir.tuning.selection import COMPILED_FOR, Chooser
from alcop_mlir.tuning.space import Space, enumerate_space


def make_searches(
    given: Any,
    program: Program,
    chooser: Chooser,
    space: Space,
    known: Callable[[Problem], Trials],
) -> list[OperatorSearch]:
    """A search for each operator of the program; `known` is what was measured before.

    A strategy starts from records of other problems, and from what the searches for
    other operators of the program have measured by then.
    """
    target, found = chooser.target, list[OperatorSearch]()
    gpu = chooser.gpu if chooser.device == COMPILED_FOR else target.device

    elsewhere = chooser.elsewhere[0] if given.strategy == "hybrid" else None

    def strategy(problem: Problem) -> Strategy:
        if problem.chain is not None:  # whose models have other errors
            return strategies.make(given.strategy, seed=given.seed)
        others = chooser.samples()
        own = [one for one in found if one.task.problem.chain is None]
        others |= {one.task.problem.recorded: _samples(one) for one in own}
        others.pop(problem.recorded, None)
        some = [one for one in others.values() if len(one.seconds)]
        forest = chooser.learned[0]
        return strategies.make(given.strategy, some, given.seed, forest, elsewhere)

    for operator in program.operators:
        problem = operator.problem
        task = Task(problem, target, enumerate_space(problem, target, space))
        least = gpus.least_seconds(problem, target, gpu)
        before = chooser.choose(problem)
        times = known(problem)
        make = lambda problem=problem: strategy(problem)
        found.append(OperatorSearch(operator, task, before, least, make, times))
    return found


def title(
    searches: Sequence[OperatorSearch], name: str, chooser: Chooser, space: Space
) -> str:
    """What is searched for: the program, its operators, the space."""
    legal = sum(len(one.task.candidates) for one in searches)
    several = len(searches)
    chains = sum(
        one.operator.count for one in searches if one.task.problem.chain is not None
    )
    others = sum(one.operator.count for one in searches) - chains
    counts = {"contraction": others, "chain": chains}
    what = " and ".join(
        f"{number} {name}{'s' if number > 1 else ''}"
        for name, number in counts.items()
        if number
    )
    return (
        f"{name} on {chooser.target.name} ({chooser.device}): {what} of "
        f"{several} operator{'s' if several > 1 else ''}, {space.name} space, {legal} "
        "legal schedules"
    )


def run(
    searches: Sequence[OperatorSearch],
    measurer: Measurer,
    budget: Budget,
    journal: Journal,
    device: str,
) -> Rows:
    """Search, storing each record at once; the rows of the table of what came of it."""
    with ProgramProgress(searches, budget, device) as progress:
        try:
            for trial in search(searches, measurer, budget):
                if trial.record is not None:
                    journal.append(trial.record)
                progress.add(trial)
        except KeyboardInterrupt:
            print(
                f"note: stopped: what was measured is in {journal.path}, the same "
                "command goes on",
                file=sys.stderr,
            )
            raise
    known = sum(one.known for one in searches)
    yield "trials", [f"{progress.tried} tried, {known} known before ({device})"]
    yield from result_rows(searches)
    yield "records", [str(journal.path)]


class ProgramProgress(ExitStack):
    """Trials and the operator that had the last: a bar on a terminal, else lines."""

    def __init__(self, searches: Sequence[OperatorSearch], budget: Budget, device: str):
        super().__init__()
        self._searches, self._budget, self._device = searches, budget, device
        self.tried, self._start, self._bar = 0, time.monotonic(), None
        if sys.stdout.isatty() and is_installed("rich"):
            self._bar = self.enter_context(bar(budget))
            total = budget.seconds or budget.trials
            self._task = self._bar.add_task("nothing yet", total=total)

    def add(self, trial: Trial) -> None:
        """Count a measurement; a line for every eighth of an operator."""
        self.tried += 1
        one = self._searches[trial.number]
        if self._bar is not None:
            done = self.tried
            if self._budget.seconds is not None:
                done = min(time.monotonic() - self._start, self._budget.seconds)
            self._bar.update(self._task, completed=done, description=self._text(one))
        elif one.ended % BATCH == 0 or self.tried == self._budget.trials:
            print(f"{self.tried} tried: {self._text(one)}", flush=True)

    def _text(self, one: OperatorSearch) -> str:
        failed = f", {one.failed} failed" if one.failed else ""
        best = f"best {seconds(one.best)}" if one.best < math.inf else "nothing yet"
        tried = len(one.times)
        return f"{one.operator.problem}: {best} of {tried}{failed} ({self._device})"


def result_rows(searches: Sequence[OperatorSearch]) -> Rows:
    """Operators by their share of the time before, and how much less they take now.

    A time that was not measured is the model's.
    """
    before = [one.measured_before or one.before.seconds or 0.0 for one in searches]
    after = [
        min(was, one.best) if one.measured_before else min(one.best, one.seconds)
        for was, one in zip(before, searches, strict=True)
    ]
    counts = [one.operator.count for one in searches]
    was, now = (
        sum(count * one for count, one in zip(counts, times, strict=True))
        for times in (before, after)
    )
    order = sorted(range(len(searches)), key=lambda n: -counts[n] * before[n])
    rows = [["share", "operator", "tried", "before", "after", "", "schedule"]]
    for number in order:
        one = searches[number]
        rows.append(
            [
                f"{counts[number] * before[number] / was:.0%}",
                f"{counts[number]} x {one.operator.problem}",
                f"{len(one.times)}",
                _shown(before[number], one.measured_before),
                _shown(after[number], one.best < math.inf),
                f"{before[number] / after[number]:.2f}x",
                str(_best(one)),
            ]
        )
    yield "operators", aligned(rows, right=(0, 2))
    yield "program", [f"{seconds(was)} before, {seconds(now)} after: {was / now:.2f}x"]


def _best(one: OperatorSearch) -> Any:
    times = {schedule: at for schedule, at in one.times.items() if at is not None}
    return min(times, key=lambda schedule: times[schedule], default=one.before.schedule)


def _shown(time: float, is_measured: object) -> str:
    return seconds(time) if is_measured else f"{seconds(time)} predicted"


def _samples(one: OperatorSearch) -> Samples:
    """What the search for an operator has measured."""
    rows = one.task.candidates.rows
    times = {rows[s]: at for s, at in one.times.items() if at is not None and s in rows}
    at = [*times]
    return Samples(
        one.task.features[at],
        one.task.prediction.seconds[at],
        np.array([*times.values()], np.float64),
    )
