"""How the model errs on GPUs: the numbers of `tuning/residuals.py`, from measurements.

    python bench/model_errors.py a100_mm.txt h100_mm.txt

Reads a user's copy of AutoHeuristic's tables (`real_times.py`), the half that
calibrates, and prints the numbers under which what was measured is the likeliest: over
how many doublings of a parameter errors are alike, how large they are, and how much of
an error goes with each part of the predicted time. A gradient by differences climbs
from what `residuals.py` has; a number that does not matter in these times stays.

    python bench/model_errors.py --elsewhere a100_mm.txt h100_mm.txt

prints what the errors on one GPU say of those on another: a forest of problems on one
is asked for each problem on the other, within which the slope of the errors over what
it says is computed; and the fraction of the best chosen with it, without a trial.
"""

from __future__ import annotations

import argparse
import itertools
from collections.abc import Sequence
from pathlib import Path

import choosing_logs
import numpy as np
import numpy.typing as npt
import real_times
from choosing_logs import Log

from alcop_mlir.errors import ConfigError
from alcop_mlir.tuning import models, residuals, training
from alcop_mlir.tuning.analytical import PARTS
from alcop_mlir.tuning.features import Samples

FloatArray = npt.NDArray[np.float64]
_LEAST, _MOST = 0.02, 20.0  # of a number
_STEPS, _RATE, _DIFFERENCE = 60, 0.1, 1e-3


class Errors:
    """Log(measured / predicted) of one problem's schedules, and what it may go by."""

    def __init__(self, log: Log):
        task = log.task
        places = np.log2(
            np.stack([task.candidates.axis(name) for name in residuals.LENGTHS], axis=1)
        )
        self.apart = (places[:, None] - places) ** 2
        parts = [task.prediction.parts[part] for part in PARTS]
        self.shares = np.stack(parts, axis=1) / task.prediction.seconds[:, None]
        self.errors = np.log(log.seconds / task.prediction.seconds)

    def unlikely(self, numbers: FloatArray) -> float:
        """Minus the log of the likelihood."""
        lengths, (own, noise), parts = np.split(
            numbers, [len(residuals.LENGTHS), -len(residuals.OF_PARTS)]
        )
        shared = own**2 * np.exp(-(self.apart @ lengths**-2) / 2)
        shared += (self.shares * parts**2) @ self.shares.T + residuals.OF_PROBLEM**2
        shared[np.diag_indices(len(shared))] += noise**2
        factor = np.linalg.cholesky(shared)
        white = np.linalg.solve(factor, self.errors)
        return float(white @ white / 2 + np.log(np.diag(factor)).sum())


def fit(problems: Sequence[Errors], numbers: FloatArray) -> FloatArray:
    """Numbers that are likelier, by Adam on their logarithms."""
    logs, mean, square = np.log(numbers), np.zeros_like(numbers), np.zeros_like(numbers)
    for step in range(1, _STEPS + 1):
        slope = _slope(problems, logs)
        mean, square = 0.9 * mean + 0.1 * slope, 0.99 * square + 0.01 * slope**2
        far = (mean / (1 - 0.9**step)) / (np.sqrt(square / (1 - 0.99**step)) + 1e-6)
        logs = np.clip(logs - _RATE * far, np.log(_LEAST), np.log(_MOST))
    return np.exp(logs)


def _slope(problems: Sequence[Errors], logs: FloatArray) -> FloatArray:
    found = np.zeros_like(logs)
    here = total(problems, logs)
    for place in range(len(logs)):
        moved = logs.copy()
        moved[place] += _DIFFERENCE
        found[place] = (total(problems, moved) - here) / _DIFFERENCE
    return found


def total(problems: Sequence[Errors], logs: FloatArray) -> float:
    """The mean over problems."""
    return float(np.mean([one.unlikely(np.exp(logs)) for one in problems]))


def elsewhere(logs: Sequence[Log]) -> None:
    """Prints slopes, and fractions of the best, from each GPU to each other one."""
    for one, other in itertools.permutations(sorted({_name(log) for log in logs}), 2):
        forest = training.train(None, [_samples(g) for g in logs if _name(g) == one])
        mine = [log for log in logs if _name(log) == other]
        errors = [np.log(_samples(log).seconds / _predicted(log)) for log in mine]
        said = [forest.predict(log.task.features)[0] for log in mine]
        some = [(x, y) for x, y in zip(said, errors, strict=True) if x.std() > 1e-3]
        slopes = [np.polyfit(x, y, 1)[0] for x, y in some]
        print(
            f"{one} says of {len(slopes)} problems on {other}: "
            f"slope {np.mean(slopes):.2f}, deviation {np.std(slopes):.2f}"
        )
        for slope in (0.0, 0.5, 1.0):
            taken = [
                log.seconds.min()
                / log.seconds[int((np.log(_predicted(log)) + slope * x).argmin())]
                for log, x in zip(mine, said, strict=True)
            ]
            print(
                f"  {slope:.1f} of it: {np.exp(np.log(taken).mean()):.3f} of the best"
            )


def _name(log: Log) -> str:
    return log.task.target.name


def _predicted(log: Log) -> FloatArray:
    return log.task.prediction.seconds


def _samples(log: Log) -> Samples:
    return models.compared(Samples(log.task.features, _predicted(log), log.seconds))


def main() -> None:
    parser = argparse.ArgumentParser(description=str(__doc__).partition("\n")[0])
    parser.add_argument("tables", type=Path, nargs="+")
    parser.add_argument("--problems", type=int, default=50, help="of each GPU")
    parser.add_argument("--elsewhere", action="store_true", help="of other GPUs")
    given = parser.parse_args()
    logs = choosing_logs.measured(given.tables, real_times.CALIBRATION, given.problems)
    if given.elsewhere:
        elsewhere(logs)
        return
    names = [*residuals.LENGTHS, "a candidate", "noise", *residuals.OF_PARTS]
    known = np.array(
        [
            *residuals.LENGTHS.values(),
            residuals.OF_CANDIDATE,
            residuals.OF_NOISE,
            *residuals.OF_PARTS.values(),
        ]
    )
    problems = [Errors(log) for log in logs]
    found = fit(problems, known)
    before, after = (total(problems, np.log(one)) for one in (known, found))
    print(
        f"{len(problems)} problems; -log(likelihood) {before:.2f}, fitted {after:.2f}"
    )
    for name, old, new in zip(names, known, found, strict=True):
        print(f"  {name:18} {old:6.2f}  {new:6.2f}")


if __name__ == "__main__":
    try:
        main()
    except ConfigError as error:
        raise SystemExit(f"error: {error}") from None
