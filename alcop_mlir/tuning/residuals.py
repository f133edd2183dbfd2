"""What measurements of some candidates say of all others: a Gaussian process.

It is of log(measured / predicted), whatever predicted. How far two candidates err alike
follows from how near their parameters are, and from what their time is made of: where
loads of fragments take longer than predicted, all that wait for them are slower. How
fast that falls off is not fitted to a search's few measurements: it was to times of
GPUs, see `LENGTHS`. Only how wrong the prediction is at all follows from them.

    belief = believe(Kernel(task), predicted, rows, seconds)
    mean, deviation = belief.expected(free)      of log(seconds)
    chosen = choose(belief, free, 8, generator)  which to measure together

NumPy alone; a step of a search takes some ten milliseconds.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

import numpy as np

from alcop_mlir.tuning.candidates import FloatArray, IntArray
from alcop_mlir.tuning.search import Task

# Doublings of a parameter until errors have little in common. Of tiles and shared
# stages by the largest likelihood of the times in AutoHeuristic's half that calibrates
# (bench/model_errors.py); of the rest, which do not vary there, estimates.
LENGTHS = {
    "block_m": 1.8,
    "block_n": 20.0,
    "block_k": 1.35,
    "warp_m": 2.5,
    "warp_n": 1.8,
    "shared_stages": 0.7,
    "register_stages": 0.5,
    "raster": 2.5,
    "split_k": 1.5,
    "sweeps": 2.0,
    "rectangle": 2.0,
    "cluster": 2.0,
    "turns": 2.0,
    "engine": 1.0,
}
# Standard deviations of log(measured / predicted), fitted likewise: of a candidate, of
# what no neighbour shares, as noise, and of each part, where it takes the whole time.
OF_CANDIDATE = 0.23
OF_NOISE = 0.03
OF_PARTS = {
    "launch": 2.7,
    "start": 0.6,
    "tensor cores": 0.3,
    "register loads": 0.1,
    "shared memory": 0.02,
    "issue": 0.5,  # an estimate, as all times are of mma.sync
    "synchronisation": 2.7,
    "narrow copies": 2.7,
    "cache lines": 2.6,
    "copies": 0.02,
    "dram": 0.2,
    "epilogue": 2.5,
    "adding up": 1.0,  # an estimate: Triton's kernels have none
    "power": 0.5,  # an estimate, as "issue"
}
# What errors on other GPUs say of these: the slope's mean and standard deviation. A
# forest of 130 problems on A100 and one on H100, asked for 220 of the other: 1.09, 0.40
# and 0.75, 0.35 (`bench/model_errors.py --elsewhere`).
ELSEWHERE = 0.9, 0.4
OF_PROBLEM = 2.0  # of all candidates of a problem together: no choice depends on it
# How wrong a prediction is, of that: the likeliest, once there are measurements.
SCALES = (0.25, 0.5, 1.0)
MOST = 192  # measurements, the fastest: what is far slower says little
SHORTLIST = 4096  # candidates, by prediction: the full space has ten times as many
_FARTHEST = 1.5  # of log(measured / predicted) from the median: more is an outlier
_POOL = 512  # candidates that are compared draw by draw
_DRAWS = 256
_POSITIVE = 1e-6  # of a variance: rounding must not make one negative
_TOGETHER = 64  # that are chosen so; more only by their own expectation


class Covariance(Protocol):
    """Of the errors of predictions, without what all candidates have in common."""

    def __call__(self, rows: IntArray, columns: IntArray) -> FloatArray:
        """Of candidates with others."""
        ...

    def variance(self, rows: IntArray) -> FloatArray:
        """Of each candidate by itself."""
        ...


class Kernel:
    """The covariance of a task's candidates, without what all have in common.

    elsewhere: log(measured / predicted) of each that records of other GPUs suggest
    """

    def __init__(self, task: Task, elsewhere: FloatArray | None = None):
        axis, prediction = task.candidates.axis, task.prediction
        self._places: FloatArray = np.stack(
            [np.log2(axis(name)) / length for name, length in LENGTHS.items()], axis=1
        )
        self._slopes: FloatArray = np.stack(
            [slope * prediction.parts[part] for part, slope in OF_PARTS.items()], axis=1
        )
        self._slopes /= prediction.seconds[:, None]
        if elsewhere is not None:
            own = ELSEWHERE[1] * elsewhere
            self._slopes = np.concatenate([self._slopes, own[:, None]], axis=1)

    def __call__(self, rows: IntArray, columns: IntArray) -> FloatArray:
        one, other = self._places[rows], self._places[columns]
        squares = (one**2).sum(axis=1)[:, None] + (other**2).sum(axis=1)
        apart = np.maximum(squares - 2 * one @ np.transpose(other), 0.0)
        alike = self._slopes[rows] @ np.transpose(self._slopes[columns])
        return OF_CANDIDATE**2 * np.exp(-apart / 2) + alike

    def variance(self, rows: IntArray) -> FloatArray:
        """Of each candidate by itself."""
        return OF_CANDIDATE**2 + (self._slopes[rows] ** 2).sum(axis=1)


class Belief:
    """What is expected of log(seconds) of all candidates; see `believe`.

    What all of a problem have in common counts after the first measurement only.
    best: log(seconds) of the fastest that was measured; infinity without any
    """

    def __init__(
        self,
        kernel: Covariance,
        scale: float,
        prior: FloatArray,
        rows: IntArray,
        logs: FloatArray,
    ):
        self._kernel, self._scale = kernel, scale
        self._prior, self._known = prior, rows
        self._common = OF_PROBLEM**2 if len(rows) else 0.0
        self.best = float(logs.min(initial=np.inf))
        covariance = self._shared(rows, rows)
        covariance[np.diag_indices(len(rows))] += OF_NOISE**2
        factor = _root(covariance)
        self._whiten = np.asarray(np.linalg.inv(factor), np.float64)
        errors = _without_outliers(logs - prior[rows])
        self._errors: FloatArray = self._whiten @ errors
        certain = np.log(factor.diagonal()).sum()
        self.likelihood = -float(self._errors @ self._errors / 2 + certain)

    def expected(self, rows: IntArray) -> tuple[FloatArray, FloatArray]:
        """Mean and standard deviation of each."""
        known = self._explained(rows)
        variance = self._scale**2 * self._kernel.variance(rows) + self._common
        variance = variance - (known**2).sum(axis=0)
        mean = self._prior[rows] + np.transpose(known) @ self._errors
        return mean, np.sqrt(np.maximum(variance, 0.0))

    def draws(
        self, rows: IntArray, count: int, generator: np.random.Generator
    ) -> FloatArray:
        """log(seconds) of these candidates (row) on as many devices (column)."""
        known = self._explained(rows)
        covariance = self._shared(rows, rows) - np.transpose(known) @ known
        covariance[np.diag_indices(len(rows))] += _POSITIVE
        mean = self._prior[rows] + np.transpose(known) @ self._errors
        noise = generator.normal(size=(len(rows), count))
        return mean[:, None] + _root(covariance) @ noise

    def _explained(self, rows: IntArray) -> FloatArray:
        """By measurement (row) and candidate (column)."""
        return self._whiten @ self._shared(self._known, rows)

    def _shared(self, rows: IntArray, columns: IntArray) -> FloatArray:
        return self._scale**2 * self._kernel(rows, columns) + self._common


def believe(
    kernel: Covariance,
    predicted: FloatArray,
    rows: IntArray,
    seconds: FloatArray,
    scale: float = 1.0,
) -> Belief:
    """What is expected of all candidates after these measurements, of any number.

    predicted: seconds, by candidate
    scale: how wrong predictions are where there are no measurements; see `SCALES`
    """
    kept = np.argsort(seconds, kind="stable")[:MOST]
    rows, logs, prior = rows[kept], np.log(seconds[kept]), np.log(predicted)
    scales = SCALES if len(rows) else (scale,)
    beliefs = [Belief(kernel, one, prior, rows, logs) for one in scales]
    return max(beliefs, key=lambda one: one.likelihood)


def _root(covariance: FloatArray) -> FloatArray:
    return np.asarray(np.linalg.cholesky(covariance), np.float64)


def _without_outliers(errors: FloatArray) -> FloatArray:
    """Errors, none farther from the median than any model's; one has few neighbours."""
    if not len(errors):
        return errors
    middle = np.median(errors)
    return np.minimum(np.maximum(errors, middle - _FARTHEST), middle + _FARTHEST)


def choose(
    belief: Belief,
    free: IntArray,
    count: int,
    generator: np.random.Generator,
    first: int | None = None,
) -> Sequence[int]:
    """Rows of `free` to measure together, best first.

    Devices are drawn from the belief. Each row is the one that, of what was measured
    and is chosen already, leaves the fastest on average over them: those that are fast
    where the others are slow.

    first: the row to begin with; None is the one that follows from this
    """
    mean, deviation = belief.expected(free)
    ranking = free[np.argsort(mean - deviation, kind="stable")]
    pool = ranking[:_POOL]
    if first is not None and first not in pool:
        pool = np.append(pool[:-1], first)
    drawn = belief.draws(pool, _DRAWS, generator)
    best, chosen = np.full(_DRAWS, belief.best), list[int]()
    for _ in range(min(count, _TOGETHER, len(pool))):
        expected = np.minimum(drawn, best).mean(axis=1)
        expected[chosen] = np.inf
        at = int(expected.argmin())
        if first is not None and not chosen:
            at = int(np.flatnonzero(pool == first)[0])
        chosen.append(at)
        best = np.minimum(best, drawn[at])
    rows = pool[chosen]
    others = ranking[~np.isin(ranking, rows)]
    return np.concatenate([rows, others])[:count].tolist()
