"""Which variant runs at given sizes, and how near its time is to the best there is.

Sizes that were measured are samples too. There a measured time counts instead of the
predicted one; predicted times of other kernels are multiplied by what the measured
ones took, in the median, over what was predicted for them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from alcop_mlir import resources, schedule_checks
from alcop_mlir.schedule import Schedule
from alcop_mlir.target import Target
from alcop_mlir.tuning.candidates import BoolArray, Candidates, FloatArray, IntArray
from alcop_mlir.tuning.open_kernels import Kernels, copies, families
from alcop_mlir.tuning.open_problem import LOOPS, OpenProblem, Samples
from alcop_mlir.tuning.problem import Problem
from alcop_mlir.tuning.records import Record
from alcop_mlir.variants import NO_MOST, ScheduleVariant, SizeLimit

Times = Mapping[Schedule, float]  # the least seconds of each


@dataclass(frozen=True, eq=False)
class VariantTimes:
    """Of samples (rows) and variants (columns).

    seconds: predicted, whether or not a variant may run
    holds: whether its conditions hold
    """

    seconds: FloatArray
    holds: BoolArray

    @property
    def runs(self) -> IntArray:
        """The number of the variant that runs at each sample."""
        return self.holds.argmax(axis=1)

    @property
    def taken(self) -> FloatArray:
        """Seconds of the variant that runs."""
        return np.take_along_axis(self.seconds, self.runs[:, None], axis=1)[:, 0]


def times(
    problem: OpenProblem,
    target: Target,
    variants: Sequence[ScheduleVariant],
    samples: Samples,
) -> VariantTimes:
    """The predicted times; ConfigError where a variant does not fit the target."""
    kernels = [_kernel(problem, target, variant) for variant in variants]
    seconds = [one.prediction(samples).seconds[:, 0] for one in kernels]
    holds = np.ones((len(samples), len(variants)), np.bool_)
    for number, variant in enumerate(variants):
        for condition in conditions(variant, problem.element_bytes):
            holds[:, number] &= condition.holds(samples)
    return VariantTimes(np.stack(seconds, axis=1), holds)


@dataclass(frozen=True)
class Condition:
    """What a variant asks of sizes, in words, and for which samples it holds."""

    text: str
    holds: Callable[[Samples], BoolArray]

    def __str__(self) -> str:
        return self.text


def conditions(variant: ScheduleVariant, element_bytes: int) -> list[Condition]:
    """All that a variant asks; of elements of A and B with so many bytes."""
    found: list[Condition] = []
    if (row := variant.row_bytes) > 1:
        text = f"rows of A, B and C are multiples of {row} bytes"
        found.append(Condition(text, lambda some: some.row_bytes % row == 0))
    for limit in variant.limits:
        found += _limited(limit)
    if variant.schedule.split_k > 1:
        part = schedule_checks.split_step(variant.schedule, element_bytes)
        text = f"K is a multiple of {part}"
        found.append(Condition(text, lambda some: some.product("k") % part == 0))
    return found


def _limited(limit: SizeLimit) -> Iterator[Condition]:
    loops, least, most = limit.loops, limit.least, limit.most
    name = " * ".join("batch" if loop == "b" else loop.upper() for loop in loops)
    if least:
        yield Condition(f"{name} >= {least}", lambda some: some.product(loops) >= least)
    if most < NO_MOST:
        yield Condition(f"{name} <= {most}", lambda some: some.product(loops) <= most)


def fastest(
    problem: OpenProblem, target: Target, samples: Samples
) -> tuple[FloatArray, list[Schedule]]:
    """Of all kernels, for each sample alone: the least seconds, and the schedule."""
    every = [kernels for kernels in families(problem, target) if len(kernels)]
    schedules = [one for kernels in every for one in kernels.candidates.schedules]
    seconds = np.concatenate([kernels.seconds(samples) for kernels in every], axis=1)
    best = seconds.argmin(axis=1)
    return seconds.min(axis=1), [schedules[column] for column in best.tolist()]


def samples_of(problem: OpenProblem, sizes: Sequence[dict[str, int]]) -> Samples:
    """Samples of these sizes, by loop; those of known loops may be left out."""
    known = {loop: low for loop, (low, _) in problem.ranges.items()}
    rows = [[(known | some)[loop] for loop in LOOPS] for some in sizes]
    return Samples.of(problem, np.array(rows, np.int64))


def _kernel(problem: OpenProblem, target: Target, variant: ScheduleVariant) -> Kernels:
    copied = copies(problem, variant.row_bytes)
    schedule, size = variant.schedule, problem.element_bytes
    cost = resources.cost_as_given(schedule, target, size, copied)
    candidates = Candidates([schedule], [cost])
    return Kernels(problem, target, variant.row_bytes, copied, candidates)


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
