"""Choosers judged by what others measured on GPUs; the tables are in bench/measured.

    python bench/bench_measured.py                     the halves that judge
    python bench/bench_measured.py --half calibration
    python bench/bench_measured.py --old CHECKOUT      an older model beside this one

SGLang's table says which of 1,280 kernels of Triton's was the fastest for a matmul of
8 bits, not how fast any was. Shown is where that one stands in the order of
the analytical model: the share of problems of which it is among the best 10 % and 25 %,
and its rank in the median, as a share. At random these are 0.10, 0.25 and 0.50.

The benchmark hub has the time of each kernel of spaces that are not this compiler's:
convolutions and matmuls without tensor cores, whose parameters no model of ours
knows. They judge the search alone: fraction of the best after so many trials, geometric
mean of seeds. `residuals` is what `alcop-tune` searches with, of parameters alone;
`xgboost` has a rank loss, AutoTVM's way (extra `choosing`).

Every row is stored in results/measured.jsonl.
"""

from __future__ import annotations

import argparse
import functools
import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import measured_times
import numpy as np
from choosing_strategies import ranks
from measured_times import SGLANG_SPACE, FloatArray, MeasuredSpace
from real_times import CALIBRATION, HELD_BACK
from records import print_table, store

from alcop_mlir.errors import ConfigError
from alcop_mlir.target import find_target
from alcop_mlir.tuning import residuals
from alcop_mlir.tuning.analytical import predict
from alcop_mlir.tuning.candidates import Candidates, IntArray
from alcop_mlir.tuning.problem import Problem

TRIALS = (8, 10, 50)
BATCH = 8
LIMITS = (0.10, 0.25)
# Rows of the table of SGLang: M from, to.
_GROUPS = ((1, 16), (17, 64), (65, 512), (513, 4096))
_DOUBLINGS = 2.0  # of a parameter until errors have little in common, an estimate
Chooser = Callable[[MeasuredSpace, int], FloatArray]


def main(arguments: Sequence[str]) -> None:
    """The command."""
    parser = argparse.ArgumentParser(description=str(__doc__).partition("\n")[0])
    add = parser.add_argument
    add("--half", default=HELD_BACK, choices=[CALIBRATION, HELD_BACK])
    add("--seeds", type=int, default=8, help="searches in each space")
    add("--old", type=Path, help="a checkout with another model")
    add("--json", action="store_true", help="rows of SGLang's only")
    given = parser.parse_args(arguments)
    rows = [*of_best(given.half)]
    if given.json:
        print(json.dumps(rows))
        return
    _show_best(rows, "the model")
    if given.old:
        _show_best(_old(given.old, arguments), "the old model")
    searched = [*of_spaces(given.half, given.seeds)]
    _show_spaces(searched)
    print(f"raw records in {store('measured', [*rows, *searched]).name}")


def of_best(half: str) -> Iterator[dict[str, Any]]:
    """A row for each problem: the rank of what was the fastest, from 0 to 1."""
    for one in measured_times.best(half):
        candidates, numbers = _candidates(one.problem.dtypes, one.target)
        row = numbers.get(one.chosen)
        common = {"device": one.device, "m": one.problem.m}
        if row is None:  # needs more than this compiler gives a block
            yield {**common, "rank": None}
            continue
        times = _seconds(one.problem, candidates, one.target)
        before = (times < times[row]).mean() + (times == times[row]).mean() / 2
        yield {**common, "rank": float(before)}


def _seconds(problem: Problem, candidates: Candidates, target: str) -> FloatArray:
    return predict(problem, candidates, find_target(target)).seconds


@functools.cache
def _candidates(
    dtypes: tuple[str, str, str, str], target: str
) -> tuple[Candidates, dict[tuple[int, ...], int]]:
    """The legal part of `SGLANG_SPACE`, and the row of each of its kernels."""
    found = {one: measured_times.schedule(one) for one in SGLANG_SPACE}
    made = Problem(16, 16, 128, dtypes=dtypes, layout="mk,nk")
    schedules = dict.fromkeys(one for one in found.values() if one is not None)
    legal = Candidates.legal(schedules, made, find_target(target))
    rows = legal.rows
    return legal, {one: rows[s] for one, s in found.items() if s in rows}


def _show_best(rows: Sequence[dict[str, Any]], name: str) -> None:
    print(f"SGLang's fastest kernels, by {name}: in our best 10 %, 25 %; median rank")
    table: list[list[object]] = []
    for device in measured_times.TARGETS:
        for first, last in _GROUPS:
            mine = [r for r in rows if r["device"] == device]
            table.append(_line(device, f"{first}..{last}", mine, first, last))
    table.append(_line("all", "", rows, 1, 1 << 30))
    print_table(["", "M", "problems", "10 %", "25 %", "median", "too large"], table)


def _line(
    device: str, sizes: str, rows: Sequence[dict[str, Any]], first: int, last: int
) -> list[object]:
    mine = [row["rank"] for row in rows if first <= row["m"] <= last]
    known = [one for one in mine if one is not None]
    shares = measured_times.shares(known, LIMITS)
    cells = [f"{share:.2f}" for share in (*shares, float(np.median(known)))]
    return [device, sizes, len(known), *cells, len(mine) - len(known)]


def of_spaces(half: str, seeds: int) -> Iterator[dict[str, Any]]:
    """A row for each space, chooser and seed: fractions of the best."""
    choosers: dict[str, Chooser] = {
        "random": _random,
        "xgboost": _by_ranks,
        "residuals": _by_residuals,
    }
    for space in measured_times.spaces(half):
        for name, chooser in choosers.items():
            for seed in range(seeds):
                taken = chooser(space, seed)
                row = {"space": space.name, "chooser": name, "seed": seed}
                for count in TRIALS:
                    fastest = taken[:count].min()
                    row[f"after {count}"] = float(space.milliseconds.min() / fastest)
                yield row


def _random(space: MeasuredSpace, seed: int) -> FloatArray:
    """Milliseconds of what is tried, in that order; so do the others."""
    generator = np.random.default_rng(seed)
    return space.milliseconds[generator.permutation(len(space.milliseconds))]


def _by_ranks(space: MeasuredSpace, seed: int) -> FloatArray:
    generator = np.random.default_rng(seed)
    tried = generator.permutation(len(space.milliseconds))[:BATCH].tolist()
    places = _places(space)
    while len(tried) < max(TRIALS):
        times = space.milliseconds[tried]
        free = _free(space, tried)
        score = ranks(places[tried], times.min() / times, places[free])
        tried += free[np.argsort(-score, kind="stable")][:BATCH].tolist()
    return space.milliseconds[tried]


def _by_residuals(space: MeasuredSpace, seed: int) -> FloatArray:
    """What is predicted is the same for all: the first batch is spread by variance."""
    generator = np.random.default_rng(seed)
    kernel, tried = _Parameters(_places(space)), list[int]()
    alike = np.ones(len(space.milliseconds))
    while len(tried) < max(TRIALS):
        free = generator.permutation(_free(space, tried))[: residuals.SHORTLIST]
        known = np.array(tried, np.int64)
        belief = residuals.believe(kernel, alike, known, space.milliseconds[known])
        tried += residuals.choose(belief, free, BATCH, generator)
    return space.milliseconds[tried]


class _Parameters:
    """Of kernels of which parameters are known, and nothing else."""

    def __init__(self, places: FloatArray):
        self._places = places / _DOUBLINGS

    def __call__(self, rows: IntArray, columns: IntArray) -> FloatArray:
        one, other = self._places[rows], self._places[columns]
        squares = (one**2).sum(axis=1)[:, None] + (other**2).sum(axis=1)
        apart = np.maximum(squares - 2 * one @ np.transpose(other), 0.0)
        return np.exp(-apart / 2)

    def variance(self, rows: IntArray) -> FloatArray:
        return np.ones(len(rows))


def _places(space: MeasuredSpace) -> FloatArray:
    """Doublings of each parameter; of 0 or 1 their number."""
    columns = space.parameters
    are_flags = columns.min(axis=0) == 0
    return np.where(are_flags, columns, np.log2(np.maximum(columns, 1)))


def _free(space: MeasuredSpace, tried: Sequence[int]) -> IntArray:
    free = np.ones(len(space.milliseconds), np.bool_)
    free[[*tried]] = False
    return np.flatnonzero(free)


def _show_spaces(rows: Sequence[dict[str, Any]]) -> None:
    print("\nspaces of the benchmark hub: best / taken, geometric mean of seeds")
    keys = dict.fromkeys((row["space"], row["chooser"]) for row in rows)
    table: list[list[object]] = []
    for space, chooser in keys:
        mine = [r for r in rows if (r["space"], r["chooser"]) == (space, chooser)]
        table.append([space, chooser, *_means(mine)])
    for chooser in dict.fromkeys(row["chooser"] for row in rows):
        mine = [row for row in rows if row["chooser"] == chooser]
        table.append(["all", chooser, *_means(mine)])
    print_table(["", "", *(f"after {count}" for count in TRIALS)], table)


def _means(rows: Sequence[dict[str, Any]]) -> list[str]:
    logs = [np.log([row[f"after {count}"] for row in rows]) for count in TRIALS]
    return [f"{np.exp(one.mean()):.3f}" for one in logs]


def _old(checkout: Path, arguments: Sequence[str]) -> list[dict[str, Any]]:
    """The rows of SGLang's problems by the model of another checkout."""
    path = os.pathsep.join([str(checkout), os.environ.get("PYTHONPATH", "")])
    done = subprocess.run(
        [sys.executable, __file__, *arguments, "--json"],
        env={**os.environ, "PYTHONPATH": path},
        stdout=subprocess.PIPE,
        text=True,
        check=True,
    )
    return json.loads(done.stdout)


if __name__ == "__main__":
    try:
        main(sys.argv[1:])
    except ConfigError as error:
        raise SystemExit(f"error: {error}") from None
