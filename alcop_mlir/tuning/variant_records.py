"""What records say of kernels for open sizes.

The sizes that were measured are samples too. There a measured time counts instead of
the predicted one; predicted times of other kernels are multiplied by what the measured
ones took, in the median, over what was predicted for them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from alcop_mlir.schedule import Schedule
from alcop_mlir.tuning.open_problem import Samples
from alcop_mlir.tuning.problem import Problem
from alcop_mlir.tuning.records import Record
from alcop_mlir.tuning.space import FloatArray

Times = Mapping[Schedule, float]  # the least seconds of each


def by_size(recorded: Sequence[Record]) -> dict[Problem, Times]:
    """The times that were measured, by problem."""
    found: dict[Problem, dict[Schedule, float]] = {}
    for record in recorded:
        if record.seconds is not None:
            mine = found.setdefault(record.problem, {})
            least = mine.get(record.schedule, record.seconds)
            mine[record.schedule] = min(least, record.seconds)
    return {problem: times for problem, times in found.items()}


def with_sizes(samples: Samples, measured: Mapping[Problem, Times]) -> Samples:
    """`samples`, then the sizes that were measured, in order."""
    if not measured:
        return samples
    rows = [[one.batch, one.m, one.n, one.k] for one in measured]
    sizes = np.array(rows, np.int64)
    more = Samples.of(samples.problem, sizes)
    return Samples(
        samples.problem,
        np.concatenate([samples.sizes, sizes]),
        np.concatenate([samples.row_bytes, more.row_bytes]),
    )


def put(seconds: FloatArray, measured: Sequence[float | None]) -> None:
    """Write measured times over the predicted ones of a size, and scale the others."""
    known = {n: time for n, time in enumerate(measured) if time is not None}
    known = {n: time for n, time in known.items() if np.isfinite(seconds[n])}
    if not known:
        return
    seconds *= np.median([time / seconds[n] for n, time in known.items()])
    for number, time in known.items():
        seconds[number] = time
