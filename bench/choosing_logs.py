"""Times of many schedules of a problem, for judging who chooses: simulated or measured.

Of the yardstick they are kept in results/, under its version and machine, so that each
schedule is simulated once. Of GPUs they come from tables that a user has.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt
import real_times
import yardstick
import yardstick_device
from bench_tuning import operators
from records import RESULTS
from yardstick.machines import Machine

from alcop_mlir import resources
from alcop_mlir.errors import ConfigError
from alcop_mlir.schedule import Schedule
from alcop_mlir.target import Target, find_target
from alcop_mlir.tuning.candidates import Candidates
from alcop_mlir.tuning.problem import Problem
from alcop_mlir.tuning.search import Task
from alcop_mlir.tuning.space import enumerate_space

FloatArray = npt.NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Log:
    """The seconds of each candidate of a task, by row.

    launch: seconds that each takes longer, whatever the schedule; not in `seconds`
    """

    task: Task
    seconds: FloatArray
    launch: float = 0.0


def simulated(
    target: Target,
    machine: Machine,
    most: int | None,
    count: int | None,
    report: Callable[[str], None],
    first: int | None = None,
) -> list[Log]:
    """Logs of the operators of `shapes/` on the yardstick.

    most: operators, evenly spread over all; None is all
    count: candidates of each, drawn at random; None is the whole small space
    first: operators to take these from; None is all
    """
    problems = operators()[:first]
    if most is not None:
        problems = problems[:: -(-len(problems) // most)]
    return [_simulated(one, target, machine, count, report) for one in problems]


def _simulated(
    problem: Problem,
    target: Target,
    machine: Machine,
    count: int | None,
    report: Callable[[str], None],
) -> Log:
    candidates = enumerate_space(problem, target)
    if count is not None and count < len(candidates):
        generator = np.random.default_rng(0)
        rows = generator.choice(len(candidates), count, replace=False)
        candidates = candidates.take(np.sort(rows))
    known = _Kept(problem, machine)
    missing = [one for one in candidates.schedules if str(one) not in known.times]
    for one in missing:
        (time,) = yardstick_device.seconds(problem, [one], machine)
        known.times[str(one)] = time
    if missing:
        known.store()
    report(str(problem))
    times = np.array([known.times[str(one)] for one in candidates.schedules])
    return Log(Task(problem, target, candidates), times, machine.launch)


class _Kept:
    """The simulated times of one problem, by the text of each schedule."""

    def __init__(self, problem: Problem, machine: Machine):
        name = hashlib.sha256(repr(problem).encode()).hexdigest()[:16]
        folder = RESULTS / f"yardstick-{yardstick.VERSION}-{machine.name}"
        self._path = folder / f"{name}.json"
        self.times: dict[str, float] = {}
        if self._path.exists():
            self.times = json.loads(self._path.read_text())

    def store(self) -> None:
        """Write all; results/ is in no commit."""
        self._path.parent.mkdir(parents=True, exist_ok=True)
        (RESULTS / ".gitignore").write_text("*\n")
        self._path.write_text(json.dumps(self.times))


def measured(paths: Iterable[Path], half: str, most: int | None) -> list[Log]:
    """Logs of AutoHeuristic's times; see `real_times`.

    half: of the problems
    most: problems of each target, drawn at random; None is all
    """
    logs: list[Log] = []
    times = real_times.of_half(real_times.read(paths), half)
    for target in sorted({one.target for one in times}):
        mine = [one for one in times if one.target == target]
        order = np.random.default_rng(0).permutation(len(mine))[:most]
        found = (_measured(mine[row]) for row in order.tolist())
        logs += [log for log in found if log is not None]
    return logs


def _measured(times: real_times.Times) -> Log | None:
    """Of the schedules that this compiler has registers and memory for; None if few."""
    problem, target = times.problem, find_target(times.target)
    known: dict[Schedule, resources.Resources] = {}
    for one in times.milliseconds:
        try:
            known[one] = resources.cost_as_given(
                one, target, problem.element_bytes, problem.copies
            )
        except ConfigError:
            continue
    if len(known) < real_times.LEAST:
        return None
    candidates = Candidates([*known], [*known.values()])
    seconds = [times.milliseconds[one] * 1e-3 for one in known]
    return Log(Task(problem, target, candidates), np.array(seconds))


def spread(pairs: Sequence[tuple[FloatArray, FloatArray]]) -> float:
    """Standard deviation of log(first / second) within problems.

    pairs: seconds of one problem's schedules, twice. What all of a problem's schedules
        have in common does not count: no choice depends on it.
    """
    ratios = [np.log(first / second) for first, second in pairs]
    return float(np.std(np.concatenate([one - np.median(one) for one in ratios])))
