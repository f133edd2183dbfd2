"""What alcop-tune shows: progress, results, and why a schedule was chosen."""

from __future__ import annotations

import sys
import time
from contextlib import ExitStack
from typing import Any

from alcop_mlir.tools.command_line import Rows, aligned, is_installed, seconds
from alcop_mlir.tuning.analytical import PARTS
from alcop_mlir.tuning.records import Record
from alcop_mlir.tuning.search import Budget
from alcop_mlir.tuning.selection import Choice

RUNNERS_UP = 5


class Progress(ExitStack):
    """Trials, the best so far, failures, time left: a bar on a terminal, else lines."""

    def __init__(self, budget: Budget, device: str):
        super().__init__()
        self._budget, self._device, self._start = budget, device, time.monotonic()
        self.tried, self._failed = 0, 0
        self._best: Record | None = None
        self._bar: Any = None
        if sys.stdout.isatty() and is_installed("rich"):
            self._bar = self.enter_context(_bar(budget))
            total = budget.seconds or budget.trials
            self._task = self._bar.add_task(self._text(), total=total)

    def add(self, record: Record) -> None:
        """Count one measurement."""
        self.tried += 1
        self._failed += record.seconds is None
        if record.seconds is not None:
            self._best = min(self._best or record, record, key=_seconds)
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
        fastest = seconds(_seconds(self._best))
        return f"best {fastest} {self._best.schedule}{failed} ({self._device})"


def _bar(budget: Budget) -> Any:
    from rich import progress

    count = [progress.MofNCompleteColumn()] if budget.seconds is None else []
    return progress.Progress(
        progress.TextColumn("{task.description}", markup=False),
        progress.BarColumn(),
        *count,
        progress.TimeRemainingColumn(),
    )


def _seconds(record: Record) -> float:
    """Of a measurement that did not fail."""
    assert record.seconds is not None
    return record.seconds


def choice_rows(choice: Choice, device: str) -> Rows:
    """The choice, the parts of its time, and the runners-up."""
    task, prediction = choice.task, choice.task.prediction
    row = task.candidates.rows[choice.schedule]
    yield "schedule", [str(choice.schedule)]
    sure = f", which may be {choice.sure:.0%} off" if choice.sure is not None else ""
    yield "from", [f"{choice.origin}{sure}"]
    rate = f"{task.problem.flops / choice.seconds / 1e12:.1f} TFLOP/s ({device})"
    yield "time", [f"{seconds(choice.seconds)} {_how(choice)}, {rate}"]
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
    best = choice.ranking[1 : RUNNERS_UP + 1].tolist()
    schedules = [str(task.candidates.schedules[other]) for other in best]
    times = [seconds(float(choice.predicted[other])) for other in best]
    limits = map(prediction.limit, best)
    runners_up = [*zip(schedules, times, limits, strict=True)]
    yield "runners-up", aligned(runners_up)
    yield "space", [f"{len(task.candidates)} legal schedules"]


def _how(choice: Choice) -> str:
    return "measured" if choice.origin == "record" else "predicted"


def result_rows(best: Record | None, choice: Choice, records: str, tried: int) -> Rows:
    """The result of a search, and how the model's own choice compares."""
    if best is None or best.seconds is None:
        yield "best", [f"none: all of {tried} failed, see {records}"]
        return
    device = best.setting.device
    rate = choice.task.problem.flops / best.seconds / 1e12
    yield "best", [str(best.schedule)]
    yield "time", [f"{seconds(best.seconds)}, {rate:.1f} TFLOP/s ({device})"]
    how = f"by {choice.origin}: {seconds(choice.seconds)} {_how(choice)}"
    yield "untuned", [f"{choice.schedule}, {how}"]
    yield "records", [records]
