"""Candidates: legal schedules for a problem, what each costs, and both as columns.

Of a space most schedules are only compared as numbers, by models: `Listed` makes one
where it is asked for.
"""

from __future__ import annotations

import contextlib
import functools
import itertools
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import overload

import numpy as np
import numpy.typing as npt

from alcop_mlir import resources
from alcop_mlir.errors import ConfigError
from alcop_mlir.resources import Copies, Resources
from alcop_mlir.schedule import MMA, WGMMA, Schedule
from alcop_mlir.target import Target
from alcop_mlir.tuning import chain_schedule
from alcop_mlir.tuning.problem import Problem

FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.int64]
BoolArray = npt.NDArray[np.bool_]

ENGINES = {MMA: 1, WGMMA: 2}
# The integers of a schedule, in this order.
AXES = (
    "block_m",
    "block_n",
    "block_k",
    "warp_m",
    "warp_n",
    "shared_stages",
    "register_stages",
    "raster",
    "split_k",
    "sweeps",
    "rectangle",
    "cluster",
    "turns",
    "engine",
)

# Of these, those that schedules of one tile differ in: stages, and what follows.
_VARIED = slice(5, 11)
_REST = AXES[7:11]


class Listed(Sequence[Schedule]):
    """Schedules of which each is made when it is asked for, and of most only numbers.

    rows: the integers of each, as in `AXES`
    """

    def __init__(self) -> None:
        self.rows: list[tuple[int, ...]] = []
        self._made: list[tuple[Schedule, bool]] = []  # or one with the same tile

    def add(self, schedule: Schedule) -> None:
        """One that is there."""
        self.rows.append(_numbers(schedule))
        self._made.append((schedule, True))

    def add_like(self, tile: Schedule, *values: int) -> None:
        """One with the tile of another, and the values of `_VARIED`."""
        self.rows.append((*tile.block, *tile.warp, *values, 1, 1, ENGINES[MMA]))
        self._made.append((tile, False))

    def __len__(self) -> int:
        return len(self.rows)

    @overload
    def __getitem__(self, index: int) -> Schedule: ...
    @overload
    def __getitem__(self, index: slice) -> list[Schedule]: ...
    def __getitem__(self, index: int | slice) -> Schedule | list[Schedule]:
        if isinstance(index, slice):
            return [self[row] for row in range(len(self))[index]]
        schedule, is_made = self._made[index]
        if not is_made:
            shared, register, *rest = self.rows[index][_VARIED]
            values = dict(zip(_REST, rest, strict=True))
            schedule = schedule.changed(stages=(shared, register), **values)
            self._made[index] = schedule, True
        return schedule


@dataclass(frozen=True, eq=False)
class Candidates:
    """Legal schedules, and what each costs, by row; columns for arithmetic on all."""

    schedules: Sequence[Schedule]
    resources: Sequence[Resources]

    def __len__(self) -> int:
        return len(self.schedules)

    @cached_property
    def table(self) -> IntArray:
        """One row per schedule, one column per name in `AXES`."""
        if isinstance(self.schedules, Listed):
            rows = self.schedules.rows
        else:
            rows = [_numbers(one) for one in self.schedules]
        flat = itertools.chain.from_iterable(rows)
        return np.reshape(np.fromiter(flat, np.int64), (-1, len(AXES)))

    @cached_property
    def costs(self) -> IntArray:
        """Threads, shared bytes, registers per thread, blocks per SM."""
        numbers = (
            (c.threads, c.shared_bytes, c.registers_per_thread, c.blocks_per_sm)
            for c in self.resources
        )
        flat = itertools.chain.from_iterable(numbers)
        return np.reshape(np.fromiter(flat, np.int64), (-1, 4))

    @cached_property
    def rows(self) -> dict[Schedule, int]:
        """The row of each schedule."""
        return {schedule: row for row, schedule in enumerate(self.schedules)}

    @cached_property
    def tiles(self) -> IntArray:
        """A number for each row, the same for those with one tile and parts of K."""
        numbers: dict[object, int] = {}
        parts = AXES.index("split_k")
        keys = [(*row[:5], row[parts]) for row in self.table.tolist()]
        return np.array(
            [numbers.setdefault(key, len(numbers)) for key in keys], np.int64
        )

    def axis(self, name: str) -> FloatArray:
        """Column `name` of `AXES`."""
        return self.table[:, AXES.index(name)].astype(np.float64)

    @classmethod
    def legal(
        cls, schedules: Iterable[Schedule], problem: Problem, target: Target
    ) -> Candidates:
        """Those of `schedules` that fit; others may be recorded under other limits."""
        costs: dict[Schedule, Resources] = {}
        for schedule in schedules:
            with contextlib.suppress(ConfigError):
                costs[schedule] = cost_as_given(problem, schedule, target)
        return cls([*costs], [*costs.values()])

    def take(self, rows: Sequence[int] | IntArray) -> Candidates:
        """Those at `rows`, in that order."""
        return Candidates(
            [self.schedules[row] for row in rows], [self.resources[row] for row in rows]
        )


def _numbers(schedule: Schedule) -> tuple[int, ...]:
    one = schedule
    rest = one.sweeps, one.rectangle, one.cluster, one.turns, ENGINES[one.engine]
    return *one.block, *one.warp, *one.stages, one.raster, one.split_k, *rest


def cost(problem: Problem, schedule: Schedule, target: Target) -> Resources:
    """What `schedule` costs; ConfigError where it does not fit."""
    size, copies = copied(problem)
    return resources.cost(schedule, target, size, copies=copies)


def cost_as_given(problem: Problem, schedule: Schedule, target: Target) -> Resources:
    """As `resources.cost_as_given`."""
    if problem.chain is not None:
        return chain_schedule.check(problem, schedule, target)
    return resources.cost_as_given(schedule, target, *copied(problem))


@functools.cache  # schedules are many, their problems few
def copied(problem: Problem) -> tuple[int, Copies]:
    """Bytes of an element, and how it is copied."""
    return problem.element_bytes, problem.copies
