"""The space of schedules for a problem on a target.

A candidate is legal by `resources.cost`, which the passes use too. Its tiles divide the
problem or go over the edge by an eighth at most; where no tile does, those that go over
the least are taken. Schedules that compile to the same kernel as another are left out:
more stages than there are steps to fill, and register stages without shared ones (the
barriers of an unpipelined loop forbid them).
"""

from __future__ import annotations

import contextlib
import functools
import itertools
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from alcop_mlir import resources
from alcop_mlir.element_types import EIGHT_BIT_FLOATS
from alcop_mlir.errors import ConfigError, check_known
from alcop_mlir.rectangles import Rectangles
from alcop_mlir.resources import Copies, Resources
from alcop_mlir.schedule import (
    MAX_REGISTER_STAGES,
    MAX_SHARED_STAGES,
    MMA,
    WGMMA,
    Schedule,
)
from alcop_mlir.taps import k_steps
from alcop_mlir.target import Target, mma_shape
from alcop_mlir.tuning import hardware, warpgroup_space
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

OVERHANG = 1 / 8  # of a size, by which tiles may exceed it


@dataclass(frozen=True)
class Space:
    """The values of each axis, before legality; sizes in elements."""

    name: str
    block: tuple[int, ...]
    block_k: tuple[int, ...]
    warp: tuple[int, ...]
    shared_stages: tuple[int, ...]
    register_stages: tuple[int, ...]
    raster: tuple[int, ...]
    split_k: tuple[int, ...]
    sweeps: tuple[int, ...]
    rectangle: tuple[int, ...]
    max_warps: int


SMALL = Space(
    name="small",
    block=(16, 32, 64, 128, 256),
    block_k=(16, 32, 64),
    warp=(16, 32, 64),
    shared_stages=(2, 3, 4, 6),
    register_stages=(1, 2),
    raster=(1, 8),
    split_k=(1, 2, 4, 8),
    sweeps=(1, 2, 4),
    rectangle=(1,),
    max_warps=8,
)
FULL = Space(
    name="full",
    block=(16, 32, 48, 64, 96, 128, 192, 256),
    block_k=(16, 32, 64, 128),
    warp=(16, 32, 48, 64, 96, 128),
    shared_stages=tuple(range(1, MAX_SHARED_STAGES + 1)),
    register_stages=tuple(range(1, MAX_REGISTER_STAGES + 1)),
    raster=(1, 4, 16),
    split_k=(1, 2, 3, 4, 6, 8, 16),
    sweeps=(1, 2, 3, 4, 6, 8, 16),
    rectangle=(1, 8, 16, 32),
    max_warps=32,
)
_SPACES = {space.name: space for space in (SMALL, FULL)}


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
        rows = [(*s.block, *s.warp, *s.stages, *_singles(s)) for s in self.schedules]
        return np.reshape(np.array(rows, np.int64), (-1, len(AXES)))

    @cached_property
    def costs(self) -> IntArray:
        """Threads, shared bytes, registers per thread, blocks per SM."""
        rows = [
            (c.threads, c.shared_bytes, c.registers_per_thread, c.blocks_per_sm)
            for c in self.resources
        ]
        return np.reshape(np.array(rows, np.int64), (-1, 4))

    @cached_property
    def rows(self) -> dict[Schedule, int]:
        """The row of each schedule."""
        return {schedule: row for row, schedule in enumerate(self.schedules)}

    @cached_property
    def tiles(self) -> IntArray:
        """A number for each row, the same for those with one tile and parts of K."""
        numbers: dict[object, int] = {}
        keys = [(s.block, s.warp, s.split_k) for s in self.schedules]
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
                costs[schedule] = _cost_as_given(problem, schedule, target)
        return cls([*costs], [*costs.values()])

    def take(self, rows: Sequence[int] | IntArray) -> Candidates:
        """Those at `rows`, in that order."""
        return Candidates(
            [self.schedules[row] for row in rows], [self.resources[row] for row in rows]
        )


def _singles(schedule: Schedule) -> tuple[int, ...]:
    numbers = schedule.raster, schedule.split_k, schedule.sweeps, schedule.rectangle
    return *numbers, schedule.cluster, schedule.turns, ENGINES[schedule.engine]


def find_space(name: str) -> Space:
    """The space called `name`; ConfigError with the known names."""
    check_known("space", name, _SPACES)
    return _SPACES[name]


def check(problem: Problem, schedule: Schedule, target: Target) -> Resources:
    """What `schedule` costs; ConfigError where it does not fit type or target."""
    resources.check_k_step(schedule, problem.element_bytes, problem.dtypes[0])
    _check_split(problem, schedule)
    resources.check_sweeps(schedule, problem.k, problem.taps)
    resources.check_rectangle(schedule, problem.places)
    warpgroup_space.check(problem, schedule, target)
    return _cost_as_given(problem, schedule, target)


def enumerate_space(
    problem: Problem, target: Target, space: Space = SMALL
) -> Candidates:
    """All legal candidates; ConfigError that names the limit if there is none."""
    schedules: list[Schedule] = []
    costs: list[Resources] = []
    refusal = "no K step fits the type of its inputs"
    tiles = _tiles(problem, space) if _is_by_mma(problem, target) else ()
    size, copies = _copied(problem)
    registers = _register_stages(problem, space)
    slots = {k: _shared_stages(problem, space, k) for k in space.block_k}
    for block, warp in tiles:
        tile, blocks = Schedule(block, warp, (1, 1)), _blocks(problem, block)
        for register in registers:
            # Without shared stages barriers forbid those of registers.
            stages = [one for one in slots[block[2]] if one > 1 or register == 1]
            if not stages:
                continue
            least = tile.changed(stages=(stages[0], register))
            try:
                found = resources.costs_of_stages(least, stages, target, size, copies)
            except ConfigError as error:
                refusal = str(error)
                continue
            for shared, cost in zip(stages, found, strict=False):  # more need more
                schedule = least
                if shared != stages[0]:
                    schedule = tile.changed(stages=(shared, register))
                more = _variants(problem, schedule, cost, target, space, blocks)
                for one in (schedule, *more):
                    with contextlib.suppress(ConfigError):
                        # What gathers need depends on the raster too.
                        own = _cost(problem, one, target) if problem.gathered else cost
                        schedules.append(one)
                        costs.append(own)
    for one, cost in warpgroup_space.schedules(problem, target):
        schedules.append(one)
        costs.append(cost)
    if not schedules:
        raise ConfigError(
            f"no legal schedule for {problem} on {target.name}: {refusal}"
        )
    return Candidates(schedules, costs)


def _is_by_mma(problem: Problem, target: Target) -> bool:
    """Whether mma.sync multiplies its types, where wgmma may do so instead."""
    narrow = {*problem.dtypes[:2]} & {*EIGHT_BIT_FLOATS}
    return not target.has_wgmma or narrow <= {*target.multiplied}


def _cost(problem: Problem, schedule: Schedule, target: Target) -> Resources:
    size, copies = _copied(problem)
    return resources.cost(schedule, target, size, copies=copies)


def _cost_as_given(problem: Problem, schedule: Schedule, target: Target) -> Resources:
    return resources.cost_as_given(schedule, target, *_copied(problem))


@functools.cache  # schedules are many, their problems few
def _copied(problem: Problem) -> tuple[int, Copies]:
    return problem.element_bytes, problem.copies


def _tiles(
    problem: Problem, space: Space
) -> Iterator[tuple[tuple[int, int, int], tuple[int, int]]]:
    """Block and warp tiles for the problem, small first."""
    step = mma_shape(problem.element_bytes)[2]
    blocks_k = _near(problem.run, [size for size in space.block_k if size % step == 0])
    blocks = _near(problem.m, space.block), _near(problem.n, space.block)
    for m, n in itertools.product(*blocks):
        for warp_m, warp_n in itertools.product(space.warp, space.warp):
            if m % warp_m or n % warp_n:
                continue
            if (m // warp_m) * (n // warp_n) > space.max_warps:
                continue
            for k in blocks_k:
                yield (m, n, k), (warp_m, warp_n)


def _near(size: int, tiles: Sequence[int]) -> list[int]:
    """The tiles that cover `size` without much beyond its edge."""
    over = {tile: -(-size // tile) * tile / size - 1 for tile in tiles}
    most = max(OVERHANG, min(over.values(), default=0.0))
    return [tile for tile in tiles if over[tile] <= most]


def _blocks(problem: Problem, block: tuple[int, int, int]) -> tuple[int, int, int]:
    """How many rows and columns of blocks, and blocks in all."""
    rows, columns = -(-problem.m // block[0]), -(-problem.n // block[1])
    return rows, columns, rows * columns * problem.batch


def _variants(
    problem: Problem,
    schedule: Schedule,
    cost: Resources,
    target: Target,
    space: Space,
    grid: tuple[int, int, int],
) -> list[Schedule]:
    """`schedule` with other rasters, parts of K, sweeps, and rectangles."""
    rows, columns, blocks = grid
    at_once = cost.blocks_per_sm * target.sms
    if blocks > at_once:
        more = [
            schedule.changed(raster=one)
            for one in space.raster
            if 1 < one <= rows and columns > 1
        ]
    else:
        parts = [one for one in space.split_k if 1 < one <= at_once // blocks]
        fitting = (one for one in parts if _splits(problem, schedule, one))
        some = (schedule.changed(split_k=one) for one in fitting)
        more = [one for one in some if _is_split(problem, one)]
    if problem.taps is None and problem.places is None:
        return more
    swept = _swept(problem, schedule, target, space)
    wide = (one for one in space.rectangle if 1 < one <= schedule.block[0])
    turned = [
        one.changed(rectangle=width)
        for width in wide
        for one in (schedule, *more)
        if one.split_k == 1 and _fills(problem, schedule.block[0], width)
    ]
    return [*more, *swept, *turned]


def _splits(problem: Problem, schedule: Schedule, parts: int) -> bool:
    """Whether the parts are hardly over the edge, and as long as the pipeline."""
    length = problem.k // parts
    steps = -(-length // schedule.block[2])
    if problem.taps is not None:
        steps = k_steps(problem.k, schedule.block[2], problem.taps) // parts
    elif steps * schedule.block[2] > length * (1 + OVERHANG):
        return False
    return schedule.stages[0] <= steps


def _is_split(problem: Problem, schedule: Schedule) -> bool:
    """Whether its parts are legal."""
    size, is_batched = problem.element_bytes, problem.is_batched
    refused = resources.split_refusal(
        schedule, problem.k, size, is_batched, problem.taps
    )
    return not refused


def _swept(
    problem: Problem, schedule: Schedule, target: Target, space: Space
) -> list[Schedule]:
    """With the legal numbers of sweeps, where L2 does not keep the images anyway."""
    if problem.taps is None:
        return []
    if problem.input_bytes <= hardware.L2_KEPT * target.l2_bytes:
        return []
    some = (schedule.changed(sweeps=one) for one in space.sweeps if one > 1)
    return [one for one in some if _is_swept(problem, one)]


def _is_swept(problem: Problem, schedule: Schedule) -> bool:
    """Whether its sweeps are legal."""
    with contextlib.suppress(ConfigError):
        resources.check_sweeps(schedule, problem.k, problem.taps)
        return True
    return False


def _fills(problem: Problem, block_m: int, width: int) -> bool:
    """Whether rectangles of so many places hardly go over the edges of images."""
    if problem.places is None or block_m % width:
        return False
    order = Rectangles(problem.places, (block_m // width, width))
    return order.numbers(problem.m) <= problem.m * (1 + OVERHANG)


def _check_split(problem: Problem, schedule: Schedule) -> None:
    size, is_batched = problem.element_bytes, problem.is_batched
    resources.check_split(schedule, problem.k, size, is_batched, problem.taps)


def _shared_stages(problem: Problem, space: Space, block_k: int) -> list[int]:
    steps = k_steps(problem.k, block_k, problem.taps)
    return [stages for stages in space.shared_stages if stages <= steps] or [1]


def _register_stages(problem: Problem, space: Space) -> list[int]:
    steps = k_steps(problem.k, mma_shape(problem.element_bytes)[2], problem.taps)
    return [stages for stages in space.register_stages if stages <= steps]
