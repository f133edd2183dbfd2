"""Schedules for wgmma of a problem, on targets that have it.

Of a few tiles, each with as many stages as fit and with one less; with blocks along M
in groups; in clusters of two; with K in parts where blocks leave SMs idle; and with two
warpgroups that take tiles in turn, where a tile is that of one.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from dataclasses import replace

from alcop_mlir import resources, schedule_checks
from alcop_mlir.element_types import EIGHT_BIT_FLOATS
from alcop_mlir.errors import ConfigError
from alcop_mlir.resources import Resources
from alcop_mlir.schedule import CHOSEN_RASTER, PINGPONG, WGMMA, Schedule
from alcop_mlir.target import CP_ASYNC_BYTES, WARPGROUP, WGMMA_M, Target
from alcop_mlir.tuning.problem import Problem

# (block M, block N), rows of a warp; in order of preference.
TILES = (
    ((128, 256), 16),
    ((256, 128), 32),
    ((128, 192), 16),
    ((192, 128), 16),
    ((128, 128), 16),
    ((64, 256), 16),
    ((64, 128), 16),  # wider wgmma read less of shared memory
    ((128, 64), 16),
    ((64, 64), 16),
)
STEP_BYTES = 128  # of a row along K: the widest swizzle
LEAST_STEPS = 3  # of K: fewer fill no ring
ACROSS_K = ("f16", "bf16")  # that wgmma transposes: PTX ISA, wgmma.mma_async
# Groups of wgmma in flight, and one more: of one alone the next waits for its end.
_IN_FLIGHT = 2
_STAGES = (8, 7, 6, 5, 4, 3)
_DEPTHS = 2  # of the stages that fit
_RASTERS = (CHOSEN_RASTER, 2 * CHOSEN_RASTER)
_IN_TURN = 128 * 128  # elements of C: 128 registers of each thread
_PARTS_OF_K = (2, 4, 8)
_LEAST_PART = 1024
_ALONE = 2  # warpgroups that compute and leave no room for another block


def fits(problem: Problem, target: Target) -> bool:
    """Whether warpgroups may multiply it, and TMA copy its tiles."""
    a, b = problem.dtypes[:2]
    rows = problem.row_bytes or problem.dense_row_bytes
    along_k = all(loops.endswith("k") for loops in problem.layout.split(","))
    return (
        target.has_wgmma
        and problem.has_roles
        and problem.taps is None
        and (a == b or {a, b} <= {*EIGHT_BIT_FLOATS})
        and (along_k or a in ACROSS_K)
        and min(rows) >= max(CP_ASYNC_BYTES)
        and problem.k >= LEAST_STEPS * step_of(problem.element_bytes)
    )


def step_of(element_bytes: int) -> int:
    """Elements of a K step."""
    return STEP_BYTES // element_bytes


def check(problem: Problem, schedule: Schedule, target: Target) -> None:
    """ConfigError where a schedule is for wgmma, and the problem is not."""
    if schedule.engine != WGMMA:
        return
    if target.has_wgmma and not fits(problem, target):
        raise ConfigError(
            f"schedule '{schedule}' is for wgmma, which does not multiply {problem} as "
            "memory holds it"
        )
    schedule_checks.check_cluster(schedule, problem.m)


def schedules(problem: Problem, target: Target) -> Iterator[tuple[Schedule, Resources]]:
    """Those that are legal, and what each costs; none where it does not fit."""
    if not fits(problem, target):
        return
    for tile, rows in TILES:
        for schedule in _with_tile(problem, target, tile, rows):
            for one in _variants(problem, schedule, target):
                with contextlib.suppress(ConfigError):
                    schedule_checks.check_cluster(one, problem.m)
                    yield one, resources.cost(one, target, problem.element_bytes)


def is_persistent(schedule: Schedule, blocks: int, target: Target) -> bool:
    """Whether blocks go through several tiles: see alcop-make-persistent."""
    warps = schedule.warps[0] * schedule.turns
    return warps >= _ALONE * WARPGROUP and blocks > target.sms


def _with_tile(
    problem: Problem, target: Target, tile: tuple[int, int], rows: int
) -> Iterator[Schedule]:
    """With as many stages as fit, and with less."""
    if any(
        2 * size < extent for size, extent in zip(problem.sizes, tile, strict=False)
    ):
        return  # most of the tile would lie beyond C
    if rows * WARPGROUP > WGMMA_M and not _has_rows_along_k(problem):
        return
    step = step_of(problem.element_bytes)
    steps = -(-problem.k // step)
    found = 0
    for stages in _STAGES:
        if stages > steps or found == _DEPTHS:
            continue
        one = Schedule(
            (*tile, step), (rows, tile[1]), (stages, _IN_FLIGHT), engine=WGMMA
        )
        with contextlib.suppress(ConfigError):
            resources.cost(one, target, problem.element_bytes)
            found += 1
            yield one


def _has_rows_along_k(problem: Problem) -> bool:
    """Whether warps may have more than 16 rows: groups of 8 are apart only there."""
    return problem.layout.split(",")[0].endswith("k")


def _variants(
    problem: Problem, schedule: Schedule, target: Target
) -> Iterator[Schedule]:
    rows, blocks = -(-problem.m // schedule.block[0]), _blocks(problem, schedule)
    turned = _in_turn(problem, schedule)
    for one in [schedule, *([turned] if turned else [])]:
        if one.turns > 1 and not is_persistent(one, blocks, target):
            continue
        rasters = {min(raster, rows) for raster in (1, *_RASTERS)}
        for raster in sorted(rasters):
            yield replace(one, raster=raster)
            yield replace(one, raster=raster, cluster=2)
    if problem.is_batched or blocks >= target.sms / 2:
        return
    for parts in _PARTS_OF_K:
        is_whole = problem.k % (parts * schedule.block[2]) == 0
        is_long = problem.k >= parts * _LEAST_PART
        if is_whole and is_long and blocks * parts <= target.sms:
            yield replace(schedule, split_k=parts)


def _blocks(problem: Problem, schedule: Schedule) -> int:
    rows, columns = schedule.block[:2]
    return -(-problem.m // rows) * -(-problem.n // columns) * problem.batch


def _in_turn(problem: Problem, schedule: Schedule) -> Schedule | None:
    """A tile of one warpgroup by two in turn; None where it is none.

    An accumulator has as many registers as in a tile of two warpgroups twice as large.
    """
    rows, columns, _ = schedule.block
    repeats = rows // WGMMA_M
    if rows * columns != _IN_TURN or (repeats > 1 and not _has_rows_along_k(problem)):
        return None
    warp = (repeats * WGMMA_M // WARPGROUP, columns)
    return replace(schedule, warp=warp, mode=PINGPONG)
