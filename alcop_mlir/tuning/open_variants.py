"""The few kernels of an open problem that lose least over the space of its sizes.

What counts is the time of the kernel that runs, over that of the fastest kernel of all
for the same size: the mean of its square over samples of sizes, of which those that
take longer weigh more. Squares, as few sizes that lose much are worse than many that
lose a little. A list of variants decides which one runs: kernels of aligned rows,
some for products of sizes up to a limit, or for K from one on, and one at the end that
is for all sizes.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cache
from itertools import combinations

import numpy as np

from alcop_mlir.errors import ConfigError
from alcop_mlir.schedule import Schedule
from alcop_mlir.target import Target
from alcop_mlir.tuning import code_size, decision_list, preference, variant_times
from alcop_mlir.tuning.candidates import BoolArray, Candidates, FloatArray, IntArray
from alcop_mlir.tuning.decision_list import Rule, Table
from alcop_mlir.tuning.open_kernels import MOST_OF_PARTS, Kernels, copies, families
from alcop_mlir.tuning.open_problem import OpenProblem, Samples, sample
from alcop_mlir.tuning.records import Record
from alcop_mlir.variants import DEFAULT_VARIANTS, ScheduleVariant, SizeLimit

_SAMPLES = 512
_POWER = 2  # of losses
_LOOKED_AT = 64  # of these, for which all kernels are predicted
_FASTEST = 3  # kernels of each of those that are predicted for all samples
_POOL = 96  # kernels to choose from, and short ones
_FOR_ALL = 16  # of those, at least, for all sizes
_NARROW = 1.15  # of time, of copies that are narrower than rows allow
_WORTH = 0.005 * _POWER  # of the mean, that one more variant must save: half a percent
_MOST_LOOPS = 3  # in a limit
_LEAST = 1e-6  # that one more kernel of the pool saves
_CODE = 3.0  # of all variants together, over that of one kernel for all sizes
_ONCE = 190.0  # lines: what a compile takes once, in their time (`code_size.py`)
SOURCE = "analytical model"
WITH_RECORDS = "records and analytical model"


@cache
def choose(
    problem: OpenProblem,
    target: Target,
    most: int,
    one: Schedule,
    recorded: tuple[Record, ...] = (),
) -> tuple[ScheduleVariant, ...]:
    """At most `most` variants, the same in each run; ConfigError without any.

    one: the kernel for all sizes that there would be without variants: their code
        together, and what is there once, is at most three times as long, by an
        estimate (`code_size.py`); where more than the default are asked for, as much
        more; not where only strides are open
    recorded: of sizes of the problem; together they weigh as much as all samples
    """
    measured = variant_times.by_size(recorded)
    drawn = sample(problem, _SAMPLES)
    samples = variant_times.with_sizes(drawn, measured)
    pool = Pool.of(problem, target, drawn, [record.schedule for record in recorded])
    seconds = pool.seconds(samples)
    weights = _weights(seconds.min(axis=1))
    for row, times in enumerate(measured.values(), len(drawn)):
        family = next(one for one in pool.families if one.fits(samples)[row])
        columns = [
            times.get(schedule) if kernels is family else None
            for kernels, schedule in pool.columns
        ]
        variant_times.put(seconds[row], columns)
        weights[row] = weights[: len(drawn)].sum() / len(measured)
    slowness = pool.slowness(samples, seconds)
    kept = _kept(slowness, pool)
    bounds = _bounds(problem.open_loops)
    table = Table(
        losses=slowness[:, kept] ** _POWER,
        for_all=pool.for_all[kept],
        levels=_levels(samples, bounds),
        weights=weights,
        costs=pool.lines[kept] / _most_lines(problem, one, most),
    )
    rules = decision_list.choose(table, most, _WORTH)
    some = pool.candidates.take(kept)
    for number in range(len(rules)):
        rules[number] = _most_frugal(some, table, rules, number)
    rules = decision_list.needed(table, rules)
    return tuple(
        pool.variant(
            kept[rule.column],
            [bounds[number].limit(level) for number, level in rule.limits],
            WITH_RECORDS if measured else SOURCE,
        )
        for rule in rules
    )


def _most_lines(problem: OpenProblem, one: Schedule, most: int) -> float:
    """Of the code of `most` variants; no end where all sizes are known.

    Then there are no more variants than ways to copy rows.
    """
    if not problem.open_loops:
        return math.inf
    alone = code_size.lines(one, problem.element_bytes, copies(problem, 1))
    together = _CODE * max(1.0, most / DEFAULT_VARIANTS)
    return together * (alone + _ONCE) - _ONCE


@dataclass(frozen=True, eq=False)
class Pool:
    """Kernels of several families."""

    families: Sequence[Kernels]

    @property
    def columns(self) -> list[tuple[Kernels, Schedule]]:
        """All kernels in order: the family and the schedule of each."""
        return [
            (kernels, schedule)
            for kernels in self.families
            for schedule in kernels.candidates.schedules
        ]

    @property
    def candidates(self) -> Candidates:
        """Of all columns."""
        every = [kernels.candidates for kernels in self.families]
        return Candidates(
            [schedule for one in every for schedule in one.schedules],
            [resources for one in every for resources in one.resources],
        )

    @property
    def for_all(self) -> BoolArray:
        """Which columns are for all sizes."""
        return np.array(
            [
                kernels.row_bytes == 1 and schedule.split_k == 1
                for kernels, schedule in self.columns
            ]
        )

    @property
    def lines(self) -> FloatArray:
        """Of code of each column, estimated."""
        return np.array(
            [
                code_size.lines(schedule, one.problem.element_bytes, one.copies)
                for one, schedule in self.columns
            ]
        )

    def seconds(self, samples: Samples) -> FloatArray:
        """Predicted; infinite where a kernel is not for a sample."""
        return np.concatenate([one.seconds(samples) for one in self.families], axis=1)

    def slowness(self, samples: Samples, seconds: FloatArray) -> FloatArray:
        """Of each sample and kernel: its time over the least, 1 at least.

        One that copies less at once than rows allow counts as 15 % slower than
        predicted: what narrow copies cost is not measured.
        """
        widths = np.concatenate(
            [np.full(len(one), sum(one.copies.at_once)) for one in self.families]
        )
        possible = np.where(np.isfinite(seconds), widths, 0).max(axis=1, keepdims=True)
        doubt = np.where(widths < possible, _NARROW, 1.0)
        return doubt * seconds / seconds.min(axis=1, keepdims=True)

    def variant(
        self, column: int, limits: Sequence[SizeLimit], source: str
    ) -> ScheduleVariant:
        """The kernel in `column`, for sizes within `limits`."""
        kernels, schedule = self.columns[column]
        if schedule.split_k > 1:
            limits = _with_parts(kernels.problem, limits)
        return ScheduleVariant(schedule, source, kernels.row_bytes, tuple(limits))

    @classmethod
    def of(
        cls,
        problem: OpenProblem,
        target: Target,
        samples: Samples,
        more: Sequence[Schedule] = (),
    ) -> Pool:
        """Those that are the fastest of their family for some of the samples, and more.

        more: schedules that are there wherever they are legal
        """
        some = samples.take(slice(None, None, max(1, len(samples) // _LOOKED_AT)))
        every = families(problem, target)
        if not len(every[-1]):
            raise ConfigError(f"no schedule for all sizes is legal on {target.name}")
        pools = [_fastest(kernels, some, more) for kernels in every if len(kernels)]
        return cls([kernels for kernels in pools if len(kernels)])


def _with_parts(
    problem: OpenProblem, limits: Sequence[SizeLimit]
) -> Sequence[SizeLimit]:
    """`limits`, and that C is as small as it has to be where K is in parts."""
    loops = "".join(loop for loop in "mn" if loop in problem.open_loops)
    known = math.prod(
        problem.ranges[loop][0] for loop in "mn" if loop not in problem.open_loops
    )
    most = MOST_OF_PARTS // known
    is_limited = any(
        {*loops} <= {*limit.loops} and limit.most <= most for limit in limits
    )
    if not loops or is_limited:
        return limits
    return [*(one for one in limits if one.loops != loops), SizeLimit(loops, most)]


def _fastest(kernels: Kernels, samples: Samples, more: Sequence[Schedule]) -> Kernels:
    seconds = kernels.seconds(samples)
    of_some = seconds[np.isfinite(seconds).any(axis=1)]
    schedules = kernels.candidates.schedules
    rows: list[int] = []
    # With the least K step too: its code is shorter, and that of all is limited.
    steps = kernels.candidates.axis("block_k")
    for some in (np.arange(len(steps)), np.flatnonzero(steps == steps.min())):
        best = np.argsort(of_some[:, some], axis=1)[:, :_FASTEST]
        rows += some[np.unique(best)].tolist()
    whole = np.flatnonzero([one.split_k == 1 for one in schedules])
    if not {*rows} & {*whole.tolist()}:  # of a long K all may be in parts
        rows += np.unique(whole[np.argsort(of_some[:, whole], axis=1)[:, :1]]).tolist()
    return kernels.of([*(schedules[row] for row in dict.fromkeys(rows)), *more])


def _weights(seconds: FloatArray) -> FloatArray:
    """1 for the size that takes the least, and 1 more for each doubling of its time."""
    return 1.0 + np.log2(seconds / seconds.min())


def _most_frugal(
    candidates: Candidates, table: Table, rules: Sequence[Rule], number: int
) -> Rule:
    """The rule of that number, with the most frugal of the kernels that are as good.

    And that there is room for in what all may cost.
    """
    rule = rules[number]
    others = [*rules[:number], *rules[number + 1 :]]
    alike = (table.is_there == table.is_there[:, [rule.column]]).all(axis=0)
    alike &= table.for_all == table.for_all[rule.column]
    alike &= np.isfinite(table.dues(others))
    alike[rule.column] = True
    columns = np.flatnonzero(alike)
    rows = table.decided(rules) == number
    losses = (table.weights[rows] @ table.losses[rows][:, columns]) ** (1 / _POWER)
    ranking = np.argsort(losses, kind="stable")
    first = preference.lead(candidates.take(columns), ranking, losses)[0]
    return replace(rule, column=int(columns[first]))


def _kept(slowness: FloatArray, pool: Pool) -> list[int]:
    """Columns for a list: those that cover all samples, and short ones that do.

    With the least K step code is short, and that of all together is limited.
    """
    kept = _cover(slowness, pool.for_all)
    steps = pool.candidates.axis("block_k")
    short = np.flatnonzero(steps == steps.min())
    if pool.for_all[short].any():
        kept += short[_cover(slowness[:, short], pool.for_all[short])].tolist()
    return sorted({*kept})


def _cover(slowness: FloatArray, for_all: BoolArray) -> list[int]:
    """Columns of which the fastest in each row is nearly the fastest of all."""
    safe = np.flatnonzero(for_all)
    by_mean = safe[np.argsort(slowness[:, safe].mean(axis=0), kind="stable")]
    kept = [*by_mean[:_FOR_ALL].tolist()]
    best = slowness[:, kept].min(axis=1)
    while len(kept) < _POOL:
        means = np.minimum(best[:, None], slowness).mean(axis=0)
        column = int(means.argmin())
        if means[column] >= best.mean() - _LEAST:
            break
        kept.append(column)
        best = np.minimum(best, slowness[:, column])
    return sorted(kept)


@dataclass(frozen=True)
class _Bound:
    """Sizes that multiply to what may be bounded: from above, or from below."""

    loops: str
    is_least: bool = False

    def levels(self, samples: Samples) -> IntArray:
        """Of each sample the least level that `limit` may have there."""
        mantissa, exponent = np.frexp(samples.product(self.loops))
        if self.is_least:
            return 1 - exponent
        return np.where(mantissa > 0.5, exponent, exponent - 1)

    def limit(self, level: int) -> SizeLimit:
        """That they multiply to 2**level at most, or 2**-level at least."""
        if self.is_least:
            return SizeLimit(self.loops, least=2**-level)
        return SizeLimit(self.loops, most=2**level)


def _bounds(loops: str) -> list[_Bound]:
    """Of each few sizes from above, of K from below: its parts pay where it is long."""
    counts = range(1, _MOST_LOOPS + 1)
    few = [_Bound("".join(some)) for n in counts for some in combinations(loops, n)]
    return [*few, *([_Bound("k", is_least=True)] if "k" in loops else [])]


def _levels(samples: Samples, bounds: Sequence[_Bound]) -> IntArray:
    """Of each sample and bound."""
    levels = np.zeros((len(samples), len(bounds)), np.int64)
    for column, bound in enumerate(bounds):
        levels[:, column] = bound.levels(samples)
    return levels
