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

from alcop_mlir import hardware, resources, schedule_checks
from alcop_mlir.element_types import EIGHT_BIT_FLOATS
from alcop_mlir.errors import ConfigError, check_known
from alcop_mlir.rectangles import Rectangles
from alcop_mlir.resources import Resources
from alcop_mlir.schedule import (
    MAX_REGISTER_STAGES,
    MAX_SHARED_STAGES,
    Schedule,
)
from alcop_mlir.taps import k_steps
from alcop_mlir.target import Target, mma_shape
from alcop_mlir.tuning import chain_schedule, chain_space, warpgroup_space
from alcop_mlir.tuning.candidates import Candidates, Listed, copied, cost, cost_as_given
from alcop_mlir.tuning.problem import Problem

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


def find_space(name: str) -> Space:
    """The space called `name`; ConfigError with the known names."""
    check_known("space", name, _SPACES)
    return _SPACES[name]


def check(problem: Problem, schedule: Schedule, target: Target) -> Resources:
    """What `schedule` costs; ConfigError where it does not fit type or target."""
    if problem.chain is not None:
        return chain_schedule.check(problem, schedule, target)
    schedule_checks.check_k_step(schedule, problem.element_bytes, problem.dtypes[0])
    _check_split(problem, schedule)
    schedule_checks.check_sweeps(schedule, problem.k, problem.taps)
    schedule_checks.check_rectangle(schedule, problem.places)
    warpgroup_space.check(problem, schedule, target)
    return cost_as_given(problem, schedule, target)


def enumerate_space(
    problem: Problem, target: Target, space: Space = SMALL
) -> Candidates:
    """All legal candidates; ConfigError that names the limit if there is none.

    space: of contractions; a chain has few schedules
    """
    if problem.chain is not None:
        return chain_space.candidates(problem, target)
    schedules, costs = Listed(), list[Resources]()
    refusal = "no K step fits the type of its inputs"
    tiles = _tiles(problem, space) if _is_by_mma(problem, target) else ()
    size, copies = copied(problem)
    registers = _register_stages(problem, space)
    slots = {k: _shared_stages(problem, space, k) for k in space.block_k}
    variants = functools.cache(_Variants(problem, target, space).of)  # warps share them
    for block, warp in tiles:
        tile = Schedule().changed(block=block, warp=warp)
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
            for shared, needed in zip(stages, found, strict=False):  # more need more
                for values in variants(block, shared, needed.blocks_per_sm):
                    schedules.add_like(least, shared, register, *values)
                    costs.append(needed)
    if problem.gathered:
        schedules, costs = _gathered(problem, schedules, target)
    for one, needed in warpgroup_space.schedules(problem, target):
        schedules.add(one)
        costs.append(needed)
    if not schedules:
        raise ConfigError(
            f"no legal schedule for {problem} on {target.name}: {refusal}"
        )
    return Candidates(schedules, costs)


def _gathered(
    problem: Problem, schedules: Iterable[Schedule], target: Target
) -> tuple[Listed, list[Resources]]:
    """Those that are legal, with their costs: what gathers need depends on rasters."""
    found, costs = Listed(), list[Resources]()
    for one in schedules:
        with contextlib.suppress(ConfigError):
            costs.append(cost(problem, one, target))
            found.add(one)
    return found, costs


def _is_by_mma(problem: Problem, target: Target) -> bool:
    """Whether mma.sync multiplies its types, where wgmma may do so instead."""
    narrow = {*problem.dtypes[:2]} & {*EIGHT_BIT_FLOATS}
    return not target.has_wgmma or narrow <= {*target.multiplied}


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


class _Variants:
    """Rasters, parts of K, sweeps and rectangles for the tiles of a problem.

    What is legal depends on one extent of a tile, so that each is looked at once.
    """

    def __init__(self, problem: Problem, target: Target, space: Space):
        self._problem, self._target, self._space = problem, target, space
        self._parts = {k: self._split(k) for k in space.block_k}
        self._sweeps = {k: self._swept(k) for k in space.block_k}
        self._widths = {m: self._turned(m) for m in space.block}

    def of(
        self, block: tuple[int, int, int], stages: int, blocks_per_sm: int
    ) -> list[tuple[int, int, int, int]]:
        """Raster, parts, sweeps and rectangle of each; first of that without any."""
        rows, columns, blocks = _blocks(self._problem, block)
        at_once = blocks_per_sm * self._target.sms
        found = [(1, 1, 1, 1)]
        if blocks > at_once:
            rasters = (one for one in self._space.raster if 1 < one <= rows)
            found += [(one, 1, 1, 1) for one in rasters if columns > 1]
        else:
            parts, most = self._parts[block[2]], at_once // blocks
            found += [
                (1, one, 1, 1)
                for one, steps in parts
                if one <= most and stages <= steps
            ]
        turned = [
            (raster, 1, 1, width)
            for width in self._widths[block[0]]
            for raster, one, _, _ in found
            if one == 1
        ]
        return [*found, *((1, 1, one, 1) for one in self._sweeps[block[2]]), *turned]

    def _split(self, block_k: int) -> list[tuple[int, int]]:
        """Parts that are legal and hardly over the edge, and the steps of each."""
        problem, found = self._problem, list[tuple[int, int]]()
        for one in self._space.split_k:
            length = problem.k // one
            steps = -(-length // block_k)
            if problem.taps is not None:
                steps = k_steps(problem.k, block_k, problem.taps) // one
            elif steps * block_k > length * (1 + OVERHANG):
                continue
            schedule = _with_step(block_k).changed(split_k=one)
            with contextlib.suppress(ConfigError):
                _check_split(problem, schedule)
                found += [(one, steps)] if one > 1 else []
        return found

    def _swept(self, block_k: int) -> list[int]:
        """Legal numbers of sweeps, where L2 does not keep the images anyway."""
        problem, found = self._problem, list[int]()
        kept = hardware.L2_KEPT * self._target.l2_bytes
        if problem.taps is None or problem.input_bytes <= kept:
            return found
        for one in self._space.sweeps:
            schedule = _with_step(block_k).changed(sweeps=one)
            with contextlib.suppress(ConfigError):
                schedule_checks.check_sweeps(schedule, problem.k, problem.taps)
                found += [one] if one > 1 else []
        return found

    def _turned(self, block_m: int) -> list[int]:
        """The widths of rectangles that hardly go over the edges of images."""
        wide = [one for one in self._space.rectangle if 1 < one <= block_m]
        return [one for one in wide if _fills(self._problem, block_m, one)]


def _with_step(block_k: int) -> Schedule:
    return Schedule().changed(block=(*Schedule().block[:2], block_k))


def _fills(problem: Problem, block_m: int, width: int) -> bool:
    """Whether rectangles of so many places hardly go over the edges of images."""
    if problem.places is None or block_m % width:
        return False
    order = Rectangles(problem.places, (block_m // width, width))
    return order.numbers(problem.m) <= problem.m * (1 + OVERHANG)


def _check_split(problem: Problem, schedule: Schedule) -> None:
    size, is_batched = problem.element_bytes, problem.is_batched
    schedule_checks.check_split(schedule, problem.k, size, is_batched, problem.taps)


def _shared_stages(problem: Problem, space: Space, block_k: int) -> list[int]:
    steps = k_steps(problem.k, block_k, problem.taps)
    return [stages for stages in space.shared_stages if stages <= steps] or [1]


def _register_stages(problem: Problem, space: Space) -> list[int]:
    steps = k_steps(problem.k, mma_shape(problem.element_bytes)[2], problem.taps)
    return [stages for stages in space.register_stages if stages <= steps]
