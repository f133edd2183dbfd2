"""How near few trials of a search come to the best of all schedules.

Replays exhaustive logs, so that strategies compare without measuring again. On the
simulated device each operator of `shapes/` that the compiler supports is simulated with
every schedule of a space: that shows that the search works, not that the model is
right. The launch, which no schedule changes, is left out of simulated fractions. Logs
of a GPU are given with --log, and get a table of their own.

    python bench/bench_tuning.py                     the simulated device
    python bench/bench_tuning.py --log RECORDS.jsonl what a GPU measured
    python bench/bench_tuning.py --collect FILE.gz   the records that are shipped

For the analytical and the hybrid strategy, the figure after 0 trials is that of the
compiler's choice: the most frugal of the schedules that the model cannot tell apart.

A learned model never sees the operator that it is judged by: it is trained on the
shipped records of all others (with --log, on the others of the log). Every trial is
stored in results/tuning-DEVICE.jsonl.
"""

from __future__ import annotations

import argparse
import dataclasses
import gzip
import json
import time
from collections.abc import Iterable, Sequence
from pathlib import Path

import numpy as np
from records import store

from alcop_mlir import hardware
from alcop_mlir.errors import ConfigError
from alcop_mlir.measurement.devices import Simulated
from alcop_mlir.measurement.simulator import simulate
from alcop_mlir.schedule import Schedule
from alcop_mlir.target import Target, find_target
from alcop_mlir.tuning import (
    models,
    records,
    selection,
    strategies,
    training,
)
from alcop_mlir.tuning.candidates import Candidates
from alcop_mlir.tuning.features import Samples
from alcop_mlir.tuning.problem import Problem
from alcop_mlir.tuning.records import Record
from alcop_mlir.tuning.search import Budget, Task, search
from alcop_mlir.tuning.space import check, enumerate_space, find_space

HERE = Path(__file__).parent
TRIALS = (0, 8, 10, 50)
LEAST_LOGGED = 100  # candidates of a problem in an exhaustive log
COLLECTED = (32, 24)  # shipped records of each operator: searched, drawn


@dataclasses.dataclass(frozen=True)
class Log:
    """Every candidate's time for one problem.

    launch: seconds in each of them that no schedule changes, left out of fractions
    """

    task: Task
    seconds: dict[Schedule, float]
    launch: float = 0.0

    def measure(self, schedules: Sequence[Schedule]) -> dict[Schedule, float]:
        """The logged times of `schedules`, as a device would measure them."""
        return {schedule: self.seconds[schedule] for schedule in schedules}


def main() -> None:
    given = arguments()
    target = find_target(given.target)
    if given.log is None:
        device = "simulated"
        logs = simulated_logs(target, given.space)
        others = models.samples_of(models.shipped(device, target), device, target)
    else:
        device = "cuda"
        recorded = records.read(given.log).records
        logs = recorded_logs(recorded, target, device)
        others = models.samples_of(recorded, device, target)
    if given.collect:
        collect(logs, given.collect)
        return
    for log in logs:
        assert len(log.task.features)  # computed here, not in the first one's time
    print(f"device {device}, {target.name}: {len(logs)} operators")
    rows = [
        row
        for name in given.strategies.split(",")
        for row in evaluate(name, logs, others, given.seeds)
    ]
    print(f"raw records in {store(f'tuning-{device}', rows).name}")
    print_tables(rows, logs)


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=str(__doc__).partition("\n")[0])
    parser.add_argument("--target", default="sm_80")
    parser.add_argument("--space", default="small")
    parser.add_argument("--log", type=Path)
    parser.add_argument("--collect", type=Path)
    parser.add_argument("--seeds", type=int, default=1)
    parser.add_argument("--strategies", default=",".join(strategies.NAMES))
    return parser.parse_args()


def operators() -> list[Problem]:
    """The operators of `shapes/` that the compiler supports."""
    shapes = json.loads((HERE / "shapes" / "alcop_operators.json").read_text())
    batched = shapes["batch_matmul"]["rows"]
    return [
        *(Problem(*row) for row in shapes["matmul"]["rows"]),
        *(Problem(m, n, k, b, "batch_matmul") for b, m, n, k in batched),
    ]


def simulated_logs(target: Target, space: str) -> list[Log]:
    start = time.perf_counter()
    logs = []
    for problem in operators():
        candidates = enumerate_space(problem, target, find_space(space))
        seconds = simulate(problem, candidates, target).tolist()
        times = dict(zip(candidates.schedules, seconds, strict=True))
        task = Task(problem, target, candidates)
        logs.append(Log(task, times, hardware.LAUNCH / target.clock_hz))
    spent = time.perf_counter() - start
    total = sum(len(log.seconds) for log in logs)
    print(f"{total} candidates of the {space} space simulated in {spent:.1f} s")
    return logs


def recorded_logs(recorded: Iterable[Record], target: Target, device: str) -> list[Log]:
    times: dict[Problem, dict[Schedule, float]] = {}
    for record in recorded:
        kind = (record.setting.target, record.setting.device)
        if record.seconds is not None and kind == (target.name, device):
            times.setdefault(record.problem, {})[record.schedule] = record.seconds
    logs = []
    for problem, mine in times.items():
        if len(mine) < LEAST_LOGGED:
            continue
        costs = [check(problem, schedule, target) for schedule in mine]
        candidates = Candidates(list(mine), costs)
        logs.append(Log(Task(problem, target, candidates), mine))
    if not logs:
        raise SystemExit(f"error: no problem with {LEAST_LOGGED} records or more")
    return logs


def evaluate(
    name: str, logs: Sequence[Log], others: dict[Problem, Samples], seeds: int
) -> list[dict[str, object]]:
    """One row per operator and seed: fraction of exhaustive after so many trials."""
    rows = []
    start = time.perf_counter()
    for log in logs:
        problem = log.task.problem
        apart = [some for other, some in others.items() if other != problem]
        for seed in range(seeds if name in ("random", "learned", "hybrid") else 1):
            strategy = strategies.make(name, apart, seed)
            found = trials(log, strategy, max(TRIALS))
            best = min(log.seconds.values())
            so_far = (best - log.launch) / (np.minimum.accumulate(found) - log.launch)
            row = {
                "strategy": name,
                "problem": str(problem),
                "seed": seed,
                "candidates": len(log.seconds),
                "best": best,
                "trials": found,
            }
            for count in TRIALS:
                row[f"after {count}"] = float(
                    so_far[min(max(count, 1), len(found)) - 1]
                )
            if name in ("analytical", "hybrid"):
                taken = untuned(log, apart if name == "hybrid" else (), seed)
                row["after 0"] = (best - log.launch) / (taken - log.launch)
            rows.append(row)
    print(f"  {name}: {time.perf_counter() - start:.1f} s")
    return rows


def untuned(log: Log, others: Sequence[Samples], seed: int) -> float:
    """Seconds of the compiler's choice without a measurement."""
    forest = training.train(None, others, seed) if others else None
    ranking, _, _ = selection.ranked(log.task, forest)
    return log.seconds[log.task.candidates.schedules[ranking[0]]]


def trials(log: Log, strategy: strategies.Strategy, count: int) -> list[float]:
    """Seconds of each trial, in order."""
    found = search(log.task, strategy, log.measure, Budget(trials=count), patience=None)
    return [one or np.inf for batch in found for one in batch.values()]


def collect(logs: Sequence[Log], path: Path) -> None:
    """Store what a search without a learned model measures, and some random records."""
    searched, drawn = COLLECTED
    lines = []
    for log in logs:
        task = log.task
        strategy = strategies.make("hybrid")
        budget = Budget(trials=searched)
        batches = search(task, strategy, log.measure, budget, patience=None)
        chosen = [schedule for batch in batches for schedule in batch]
        generator = np.random.default_rng(0)
        rows = generator.choice(len(task.candidates), drawn, replace=False)
        chosen += [task.candidates.schedules[row] for row in rows]
        setting = Simulated(task.problem, task.target).setting
        for one in dict.fromkeys(chosen):
            found = Record(task.problem, one, setting, records.now(), log.seconds[one])
            lines.append(json.dumps(records.to_json(found), separators=(",", ":")))
    data = "".join(f"{line}\n" for line in lines).encode()
    path.write_bytes(gzip.compress(data, mtime=0))


def print_tables(rows: Sequence[dict[str, object]], logs: Sequence[Log]) -> None:
    """Geometric mean and worst per strategy, then each operator."""
    names = list(dict.fromkeys(str(row["strategy"]) for row in rows))
    columns = [f"after {count}" for count in TRIALS]
    print("\nfraction of exhaustive: geometric mean (worst)")
    print(f"{'':12}" + "".join(f"{column:>16}" for column in columns))
    for name in names:
        cells = []
        for column in columns:
            values = values_of(rows, name, column)
            mean = float(np.exp(np.log(values).mean()))
            cells.append(f"{f'{mean:.3f} ({values.min():.3f})':>16}")
        print(f"{name:12}" + "".join(cells))
    shown = [name for name in ("analytical", "hybrid") if name in names]
    print("\n" + f"{'operator':42}{'size':>6}{'best us':>10}", end="")
    print(
        "".join(
            f"{name} {c.removeprefix('after ')}".rjust(15)
            for name in shown
            for c in columns
        )
    )
    for log in logs:
        problem = str(log.task.problem)
        best = min(log.seconds.values()) * 1e6
        print(f"{problem:42}{len(log.seconds):6}{best:10.2f}", end="")
        for name in shown:
            for column in columns:
                mine = [row for row in rows if row["problem"] == problem]
                print(f"{values_of(mine, name, column).mean():15.3f}", end="")
        print()


def values_of(rows: Iterable[dict[str, object]], name: str, column: str) -> np.ndarray:
    return np.array([row[column] for row in rows if row["strategy"] == name])


if __name__ == "__main__":
    try:
        main()
    except ConfigError as error:
        raise SystemExit(f"error: {error}") from None
