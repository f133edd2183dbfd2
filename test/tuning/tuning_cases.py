"""What the tests of the tuner share: a small problem and its candidates."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import numpy as np

from alcop_mlir.measurement.simulator import simulate
from alcop_mlir.schedule import Schedule
from alcop_mlir.target import find_target
from alcop_mlir.tuning import record_book as book
from alcop_mlir.tuning import records
from alcop_mlir.tuning.candidates import Candidates
from alcop_mlir.tuning.counted import Counted, count
from alcop_mlir.tuning.problem import Problem
from alcop_mlir.tuning.records import Record, Setting
from alcop_mlir.tuning.search import Task
from alcop_mlir.tuning.space import enumerate_space

TARGET = find_target("sm_80")
PROBLEM = Problem(512, 512, 512)
SIMULATED = Setting("sm_80", "simulated", "simulated SM", "", "0.1.0", "abc")
CUDA = Setting("sm_80", "cuda", TARGET.device, "1.0", "0.1.0", "abc")


def some_candidates(
    count: int, problem: Problem = PROBLEM, seed: int = 0
) -> Candidates:
    """`count` candidates of the small space."""
    return sample(enumerate_space(problem, TARGET), count, seed)


def sample(candidates: Candidates, count: int, seed: int = 0) -> Candidates:
    """`count` random candidates; each at most once."""
    generator = np.random.default_rng(seed)
    return candidates.take(generator.choice(len(candidates), count, replace=False))


def task(count: int, problem: Problem = PROBLEM) -> Task:
    """A task of `count` candidates."""
    return Task(problem, TARGET, some_candidates(count, problem))


def simulated_times(task: Task) -> dict[Schedule, float]:
    """The simulated seconds of every candidate."""
    seconds = simulate(task.problem, task.candidates, task.target).tolist()
    return dict(zip(task.candidates.schedules, seconds, strict=True))


def record(
    schedule: Schedule,
    seconds: float | None = 1e-5,
    setting: Setting = SIMULATED,
    problem: Problem = PROBLEM,
) -> Record:
    """A record as `alcop-tune` would write it."""
    error = "" if seconds is not None else "it failed"
    time = "2026-01-01T00:00:00+00:00"
    return Record(problem, schedule, setting, time, seconds, error)


def counted(known: Iterable[Record], device: str = "simulated") -> Counted:
    """Those of `known` that count on a device."""
    read = book.of_data(records.lines(known), "some records")
    gpu = (lambda: TARGET.device) if device == "cuda" else None
    return count([read], TARGET, device, gpu)


def write_records(
    path: Path, count: int, setting: Setting = SIMULATED, problem: Problem = PROBLEM
) -> list[Record]:
    """`count` records with the analytical model's times, half of them doubled."""
    chosen = Task(problem, TARGET, some_candidates(count, problem))
    seconds = chosen.prediction.seconds * np.where(np.arange(count) % 2, 2.0, 1.0)
    made = [
        record(schedule, value, setting, problem)
        for schedule, value in zip(
            chosen.candidates.schedules, seconds.tolist(), strict=True
        )
    ]
    records.append(path, made)
    return made
