"""How near choosers come to the best schedule, on a device that none of them knows.

    python bench/bench_choosing.py                       some operators, a part of each
    python bench/bench_choosing.py --all                 all, and the whole small space
    python bench/bench_choosing.py --first 13            the first 13, likewise
    python bench/bench_choosing.py --old CHECKOUT        an older model beside this one
    python bench/bench_choosing.py --real a100_mm.txt    AutoHeuristic's times instead
    python bench/bench_choosing.py --plot choosing.svg

The device is the yardstick (bench/yardstick), frozen, without code or numbers of the
model; measurements on it have 2 % of noise. The figure is the time of the best schedule
over the time of the one that is taken: geometric mean over operators, and the worst.
After 0 trials that is the compiler's choice, for a device without records; a search
that knows nothing draws one at random. Launches of empty kernels are left out.

Choosers: random; xgboost, with a rank loss, AutoTVM's way (extra `choosing`);
analytical, down the model's ranking; hybrid, what `alcop-tune` does without records;
told, the same with records of the other GPU of the yardstick (not by default).

AutoHeuristic's times have no licence, so that a user's own copy is read
(`real_times.py`). The half of the problems that no constant was calibrated on judges;
--half says which. Every row is stored in results/choosing.jsonl.
"""

from __future__ import annotations

import argparse
import functools
import json
import os
import subprocess
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import choosing_logs
import numpy as np
import real_times
import yardstick_device
from choosing_logs import Log
from choosing_strategies import RankLoss
from records import print_table, store

from alcop_mlir.errors import ConfigError, optional
from alcop_mlir.measurement.simulator import simulate
from alcop_mlir.schedule import Schedule
from alcop_mlir.target import find_target
from alcop_mlir.tuning import models, selection, strategies, training
from alcop_mlir.tuning.features import Samples
from alcop_mlir.tuning.learned import Forest
from alcop_mlir.tuning.search import Budget, Strategy, search

TRIALS = (0, 8, 10, 50)
CHOOSERS = ("random", "xgboost", "analytical", "hybrid")
_TOLD = 64  # schedules of each operator that the other GPU has records of
_OLD = ("analytical", "hybrid")
_GUIDED = ("analytical", "hybrid", "told")  # choose by the model before a trial
_SOME = (8, 500)  # operators, and candidates of each, without --all


def main(arguments: Sequence[str]) -> None:
    given = _parsed(arguments)
    logs = _logs(given)
    rows = [
        row for name in given.choosers.split(",") for row in evaluate(name, logs, given)
    ]
    if given.json:
        print(json.dumps(rows))
        return
    if given.old:
        rows += _old(given.old, arguments)
    print(f"raw records in {store('choosing', rows).name}")
    show_spreads(logs, bool(given.real))
    show_fractions(rows)
    if given.plot:
        plot(rows, given.plot)


def _parsed(arguments: Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=str(__doc__).partition("\n")[0])
    add = parser.add_argument
    add("--all", action="store_true", help="all operators, all candidates")
    add("--first", type=int, metavar="N", help="the first N operators, all candidates")
    add("--target", default="sm_80", choices=["sm_80", "sm_90"])
    add("--choosers", default=",".join(CHOOSERS), help="names, with commas between")
    add("--seeds", type=int, default=1, help="searches for each operator")
    add("--noise", type=float, default=0.02, help="standard deviation, of log(time)")
    add("--real", type=Path, nargs="+", help="tables of AutoHeuristic")
    add("--half", default=real_times.HELD_BACK)
    add("--problems", type=int, default=200, help="of each GPU, of --real")
    add("--old", type=Path, help="a checkout with another model")
    add("--plot", type=Path, help="an .svg or .png of the fractions")
    add("--json", action="store_true", help="rows only")
    return parser.parse_args(arguments)


def _logs(given: argparse.Namespace) -> list[Log]:
    if given.real:
        most = None if given.all else given.problems
        return choosing_logs.measured(given.real, given.half, most)
    target = find_target(given.target)
    machine = yardstick_device.MACHINES[given.target]
    most, count = (None, None) if given.all or given.first else _SOME
    with _Progress("simulated", given.json) as done:
        return choosing_logs.simulated(target, machine, most, count, done, given.first)


class _Progress:
    """A bar on a terminal; lines are of no use elsewhere."""

    def __init__(self, what: str, quiet: bool, total: int | None = None):
        progress: Any = optional("rich.progress", "a bar needs rich", "tuning")
        console: Any = optional("rich.console", "a bar needs rich", "tuning")
        shown = console.Console(stderr=True, quiet=quiet)
        self._bar = progress.Progress(console=shown, transient=True)
        self._task = self._bar.add_task(what, total=total)

    def __enter__(self) -> Any:
        self._bar.start()
        return self.step

    def __exit__(self, *_: object) -> None:
        self._bar.stop()

    def step(self, what: str) -> None:
        """One more is done."""
        self._bar.update(self._task, advance=1, description=what)


def evaluate(
    name: str, logs: Sequence[Log], given: argparse.Namespace
) -> list[dict[str, Any]]:
    """A row for each log and seed: the fraction of the best after so many trials."""
    rows: list[dict[str, Any]] = []
    with _Progress(name, given.json, len(logs)) as done:
        for log in logs:
            for seed in range(given.seeds):
                taken = [trial(name, log, seed, given.noise, n) for n in TRIALS]
                row = {"chooser": name, "problem": str(log.task.problem), "seed": seed}
                row["target"] = log.task.target.name
                for count, seconds in zip(TRIALS, taken, strict=True):
                    row[f"after {count}"] = float(log.seconds.min() / seconds)
                rows.append(row)
            done(f"{name}: {log.task.problem}")
    return rows


def trial(name: str, log: Log, seed: int, noise: float, count: int) -> float:
    """Seconds of the schedule that is taken after `count` trials."""
    if count == 0 and name in _GUIDED:
        ranking, _, _ = selection.ranked(log.task, None)
        return float(log.seconds[ranking[0]])
    budget = Budget(trials=max(1, count))
    measure = _Measure(log, seed, noise)
    strategy = _strategy(name, log.task.target.name, seed)
    found = search(log.task, strategy, measure, budget, patience=None)
    for _ in found:
        pass
    return float(log.seconds[min(measure.seen, key=lambda row: measure.seen[row])])


class _Measure:
    """The device: logged times with noise. `seen`: what was measured, by row."""

    def __init__(self, log: Log, seed: int, noise: float):
        generator = np.random.default_rng([seed, 1])
        factors = np.exp(noise * generator.normal(size=len(log.seconds)))
        self._log, self._times = log, (log.seconds + log.launch) * factors
        self.seen: dict[int, float] = {}

    def __call__(self, schedules: Sequence[Schedule]) -> dict[Schedule, float]:
        rows = [self._log.task.candidates.rows[one] for one in schedules]
        self.seen |= {row: float(self._times[row]) for row in rows}
        return {s: self.seen[row] for s, row in zip(schedules, rows, strict=True)}


def _strategy(name: str, target: str, seed: int) -> Strategy:
    if name == "xgboost":
        return RankLoss(seed)
    if name == "told":
        elsewhere = _elsewhere("sm_90" if target == "sm_80" else "sm_80")
        return strategies.make("hybrid", seed=seed, elsewhere=elsewhere)
    return strategies.make(name, seed=seed)


@functools.cache
def _elsewhere(name: str) -> Forest:
    """A model of times of all operators on the yardstick's GPU of that target."""
    machine = yardstick_device.MACHINES[name]
    with _Progress(f"simulated {name}", False) as done:
        logs = choosing_logs.simulated(find_target(name), machine, None, _TOLD, done)
    samples = [
        models.compared(
            Samples(log.task.features, log.task.prediction.seconds, log.seconds)
        )
        for log in logs
    ]
    return training.train(None, samples)


def _old(checkout: Path, arguments: Sequence[str]) -> list[dict[str, Any]]:
    """The rows of the model in another checkout, whose choosers are called `old`.

    By its own script, as modules may have moved; ConfigError where its yardstick is
    another one.
    """
    script, here = checkout.resolve() / "bench" / Path(__file__).name, Path(__file__)
    for file in sorted(here.parent.glob("yardstick/*.py")):
        other = script.parent / "yardstick" / file.name
        if not other.exists() or other.read_bytes() != file.read_bytes():
            raise ConfigError(f"'{checkout}' has another yardstick: '{other}'")
    command = [sys.executable, str(script), *arguments, "--json"]
    command += ["--choosers", ",".join(_OLD)]
    path = os.pathsep.join([str(checkout), os.environ.get("PYTHONPATH", "")])
    done = subprocess.run(
        command,
        env={**os.environ, "PYTHONPATH": path},
        stdout=subprocess.PIPE,
        text=True,
        check=True,
    )
    rows = json.loads(done.stdout)
    return [{**row, "chooser": f"old {row['chooser']}"} for row in rows]


def show_spreads(logs: Sequence[Log], real: bool) -> None:
    """How far predictions are from these times, within a problem."""
    kinds = {
        "model": lambda log: log.task.prediction.seconds,
        "device simulated": lambda log: simulate(
            log.task.problem, log.task.candidates, log.task.target
        ),
    }
    if real:
        kinds["yardstick"] = lambda log: _on_yardstick(log)
    for target in sorted({log.task.target.name for log in logs}):
        mine = [log for log in logs if log.task.target.name == target]
        times = "measured times" if real else "the yardstick"
        print(f"spread of log({times} / ...), {target}, {len(mine)} problems:")
        for name, seconds in kinds.items():
            pairs = [(log.seconds + log.launch, seconds(log)) for log in mine]
            print(f"  {name:18} {choosing_logs.spread(pairs):.2f}")


def _on_yardstick(log: Log) -> np.ndarray:
    task = log.task
    machine = yardstick_device.MACHINES[task.target.name]
    times = yardstick_device.seconds(task.problem, task.candidates.schedules, machine)
    return np.array(times) + machine.launch


def show_fractions(rows: Sequence[dict[str, Any]]) -> None:
    """A table for each target."""
    for target in sorted({row["target"] for row in rows}):
        mine = [row for row in rows if row["target"] == target]
        problems = len({row["problem"] for row in mine})
        print(
            f"\n{target}, {problems} problems: geometric mean (worst) of best / taken"
        )
        table = [
            [name, *(_cell(mine, name, count) for count in TRIALS)]
            for name in _names(mine)
        ]
        print_table(["", *(f"after {count}" for count in TRIALS)], table)


def _names(rows: Iterable[dict[str, Any]]) -> list[str]:
    return list(dict.fromkeys(row["chooser"] for row in rows))


def _fractions(rows: Iterable[dict[str, Any]], name: str, count: int) -> np.ndarray:
    return np.array([r[f"after {count}"] for r in rows if r["chooser"] == name])


def _cell(rows: Sequence[dict[str, Any]], name: str, count: int) -> str:
    values = _fractions(rows, name, count)
    return f"{np.exp(np.log(values).mean()):.3f} ({values.min():.3f})"


def plot(rows: Sequence[dict[str, Any]], path: Path) -> None:
    """A line for each chooser."""
    pyplot: Any = optional("matplotlib.pyplot", "pictures need matplotlib", "plots")
    figure, axes = pyplot.subplots(figsize=(6, 4))
    for name in _names(rows):
        means = [np.exp(np.log(_fractions(rows, name, n)).mean()) for n in TRIALS]
        axes.plot(range(len(TRIALS)), means, marker="o", label=name)
    axes.set_xticks(range(len(TRIALS)), [str(count) for count in TRIALS])
    axes.set_xlabel("trials")
    axes.set_ylabel("best / taken, geometric mean")
    axes.grid(alpha=0.3)
    axes.legend()
    figure.savefig(path, bbox_inches="tight")


if __name__ == "__main__":
    try:
        main(sys.argv[1:])
    except ConfigError as error:
        raise SystemExit(f"error: {error}") from None
