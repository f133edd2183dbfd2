"""What alcop-tune shows: progress, results, and why a schedule was chosen."""

from __future__ import annotations

import sys
import time
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from alcop_mlir.errors import ConfigError
from alcop_mlir.schedule import Decision, Schedule
from alcop_mlir.target import find_target, target_names
from alcop_mlir.tools.command_line import Rows, aligned, is_installed, seconds
from alcop_mlir.tuning.analytical import PARTS
from alcop_mlir.tuning.problem import Problem
from alcop_mlir.tuning.records import Record
from alcop_mlir.tuning.search import Budget, Trials
from alcop_mlir.tuning.selection import Chooser, Ranking

RUNNERS_UP = 5


class Progress(ExitStack):
    """Trials, the best so far, failures, time left: a bar on a terminal, else lines."""

    def __init__(self, budget: Budget, device: str, known: Trials):
        """`known` is what earlier searches measured."""
        super().__init__()
        self._budget, self._device, self._start = budget, device, time.monotonic()
        self.tried, self._failed = 0, 0
        timed = ((time, one) for one, time in known.items() if time is not None)
        self._best: tuple[float, Schedule] | None = min(timed, key=_first, default=None)
        self._bar: Any = None
        if sys.stdout.isatty() and is_installed("rich"):
            self._bar = self.enter_context(bar(budget))
            total = budget.seconds or budget.trials
            self._task = self._bar.add_task(self._text(), total=total)

    def add(self, record: Record) -> None:
        """Count one measurement."""
        self.tried += 1
        self._failed += record.seconds is None
        if record.seconds is not None:
            this = record.seconds, record.schedule
            self._best = min(self._best or this, this, key=_first)
        if self._bar is not None:
            done = self.tried
            if self._budget.seconds is not None:
                done = min(time.monotonic() - self._start, self._budget.seconds)
            self._bar.update(self._task, completed=done, description=self._text())

    def batch(self) -> None:
        """Between two batches: a line where there is no terminal."""
        if self._bar is None:
            print(f"{self.tried} tried: {self._text()}", flush=True)

    def _text(self) -> str:
        failed = f", {self._failed} failed" if self._failed else ""
        if self._best is None:
            return f"nothing yet{failed} ({self._device})"
        fastest, schedule = self._best
        return f"best {seconds(fastest)} {schedule}{failed} ({self._device})"


def bar(budget: Budget) -> Any:
    """A bar of trials, or of seconds, on a terminal."""
    from rich import progress

    count = [progress.MofNCompleteColumn()] if budget.seconds is None else []
    return progress.Progress(
        progress.TextColumn("{task.description}", markup=False),
        progress.BarColumn(),
        *count,
        progress.TimeRemainingColumn(),
    )


def _first(pair: tuple[float, Schedule]) -> float:
    return pair[0]


def decision_rows(decision: Decision) -> Rows:
    """A schedule, and where it is from."""
    yield "schedule", [str(decision.schedule)]
    sure = decision.sure
    off = "" if sure is None else f", which may be {sure:.0%} off"
    yield "from", [f"{decision.source}{off}"]


def choice_rows(decision: Decision, ranking: Ranking, device: str) -> Rows:
    """The parts of the time of what was decided, and the runners-up."""
    ranking = ranking.led_by(decision.schedule)
    task, prediction = ranking.task, ranking.task.prediction
    row = int(ranking.rows[0])
    taken = decision.seconds or float(ranking.predicted[row])
    rate = f"{task.problem.flops / taken / 1e12:.1f} TFLOP/s"
    no_gpu = f" ({device})" if device == "simulated" else ""
    yield "time", [f"{seconds(taken)} {_how(decision)}, {rate}{no_gpu}"]
    yield "limit", [prediction.limit(row)]
    total = float(prediction.seconds[row])
    values = {part: float(prediction.parts[part][row]) for part in PARTS}
    parts = [
        [part, seconds(value), f"{value / total:.0%}"]
        for part, value in values.items()
        if value > 0
    ]
    yield "latency", aligned([*parts, ["together", seconds(total), "analytical model"]])
    cost = task.candidates.resources[row]
    text = (
        f"{cost.threads} threads, {cost.shared_bytes} bytes shared, about "
        f"{cost.registers_per_thread} registers, {cost.blocks_per_sm} blocks per SM"
    )
    yield "resources", [text]
    best = ranking.rows[1 : RUNNERS_UP + 1].tolist()
    schedules = [str(task.candidates.schedules[other]) for other in best]
    times = [seconds(float(ranking.predicted[other])) for other in best]
    limits = map(prediction.limit, best)
    runners_up = [*zip(schedules, times, limits, strict=True)]
    yield "runners-up", aligned(runners_up)
    yield "space", [f"{len(task.candidates)} legal schedules"]


def compile_rows(chooser: Chooser, compiled: Decision) -> Rows:
    """What a compile takes, and whether it asks for the records of `chooser`."""
    unused = chooser.unused()
    lines = [f"{compiled.schedule}, from {compiled.source}"]
    if unused:
        lines += [f"no compile uses these records: {unused}"]
    else:
        used = f"{len(chooser.counted) or 'no'} records of {chooser.gpu}"
        lines += [f"with --target {chooser.target.name}, from {used}"]
    yield "compile", lines


def unused_lines(recorded: Iterable[Record], path: Path) -> Iterator[str]:
    """For records that no compile uses: how many, of which device, and why."""
    settings = (record.setting for record in recorded)
    places = Counter((one.target, one.device, one.gpu) for one in settings)
    for (target, device, gpu), count in places.items():
        why = "the target is unknown"
        if target in target_names():
            row = find_target(target)
            why = Chooser(row, path=path, device=device, gpu=gpu).unused()
        if why:
            where = f"{target}, {gpu or device}"
            yield f"no compile uses {count} of them ({where}): {why}"


def report_tables(recorded: Sequence[Record], path: Path) -> Iterator[tuple[str, Rows]]:
    """For each target in the records: what compiles take for their problems."""
    for name in dict.fromkeys(record.setting.target for record in recorded):
        chooser = Chooser(find_target(name))
        mine = [record for record in recorded if record.setting.target == name]
        yield f"compiled for {name} ({chooser.gpu})", _taken(chooser, mine, path)


def _taken(chooser: Chooser, recorded: Sequence[Record], path: Path) -> Rows:
    for problem in dict.fromkeys(record.problem for record in recorded):
        try:
            taken = chooser.choose(problem)
        except ConfigError as error:
            yield "problem", [f"{problem}: {error}"]
        else:
            yield "problem", [f"{problem}: {taken.schedule}, from {taken.source}"]
    yield "records", [f"{len(recorded)}", *unused_lines(recorded, path)]


def _how(decision: Decision) -> str:
    return "measured" if decision.source == "record" else "predicted"


def result_rows(
    problem: Problem, best: Record | None, before: Decision, records: str, tried: int
) -> Rows:
    """The result of a search, and how the choice before it compares."""
    if best is None or best.seconds is None:
        yield "best", [f"none: all of {tried} failed, see {records}"]
        return
    device = best.setting.device
    rate = problem.flops / best.seconds / 1e12
    yield "best", [str(best.schedule)]
    yield "time", [f"{seconds(best.seconds)}, {rate:.1f} TFLOP/s ({device})"]
    how = f"from {before.source}: {seconds(before.seconds or 0.0)} {_how(before)}"
    yield "before", [f"{before.schedule}, {how}"]
    yield "records", [records]
