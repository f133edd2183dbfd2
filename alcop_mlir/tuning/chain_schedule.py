"""Chains as problems of the tuner, and their tiles as schedules.

A schedule of a chain is its tiles: rows of a block and of a warp, columns of scores,
slots of keys and values as shared stages, and parts of the columns as `split_k`. The
other parameters are 1, and block K is the row of a query, in whole fragments.

    ChainTiles(16, 4, 64, parts=2), k = 64
    block=64,64,64 warp=16,64 stages=2,1 split_k=2

What is legal, and what takes how long, `tuning/fused` knows.
"""

from __future__ import annotations

from alcop_mlir.errors import ConfigError
from alcop_mlir.resources import Resources
from alcop_mlir.schedule import Schedule
from alcop_mlir.target import MMA_F16_SHAPE, WARP_SIZE, Target
from alcop_mlir.tuning.fused import chain_tiles
from alcop_mlir.tuning.fused.chain_model import most_resident
from alcop_mlir.tuning.fused.chain_problem import (
    ChainSizes,
    ChainTiles,
    registers,
    shared_bytes,
)
from alcop_mlir.tuning.fused.chain_tiles import TilesError
from alcop_mlir.tuning.problem import CHAIN, Chain, Problem

_LAYOUT = "mk,nk"


def problem_of(sizes: ChainSizes, dtypes: tuple[str, str, str, str]) -> Problem | None:
    """The problem that records are of; None where a size is not known.

    dtypes: of queries and keys, of accumulators, of the result
    """
    if sizes.is_open or 0 in (sizes.batch, sizes.m, sizes.n, sizes.k, sizes.d):
        return None
    chain = Chain(sizes.d, sizes.first, sizes.last, sizes.of_rows)
    extents = sizes.m, sizes.n, sizes.k, sizes.batch
    return Problem(*extents, CHAIN, dtypes, _LAYOUT, chain=chain)


def sizes_of(problem: Problem) -> ChainSizes:
    """The sizes of a problem that is a chain."""
    chain = problem.chain
    assert chain is not None
    extents = problem.batch, problem.m, problem.n, problem.k, chain.d
    return ChainSizes(*extents, chain.first, chain.last, chain.of_rows)


def schedule_of(sizes: ChainSizes, tiles: ChainTiles, target: Target) -> Schedule:
    """The tiles as a schedule."""
    step = MMA_F16_SHAPE[2]
    return Schedule().changed(
        block=(tiles.block_rows, tiles.columns, -(-sizes.k // step) * step),
        warp=(tiles.rows, tiles.columns),
        stages=(chain_tiles.slots(sizes, tiles, target).count, 1),
        split_k=tiles.parts,
    )


def tiles_of(schedule: Schedule) -> ChainTiles:
    """The tiles that a schedule stands for."""
    rows, columns = schedule.warp
    return ChainTiles(rows, schedule.warps[0], columns, schedule.split_k)


def chosen(problem: Problem, target: Target) -> Schedule:
    """What is compiled where nothing is measured; ConfigError where no tiles fit."""
    sizes = sizes_of(problem)
    try:
        tiles = chain_tiles.chosen_tiles(sizes, target)
        tiles = chain_tiles.with_parts(tiles, sizes, target)
    except TilesError as error:
        raise ConfigError(f"{problem}: {error}") from None
    return schedule_of(sizes, tiles, target)


def check(problem: Problem, schedule: Schedule, target: Target) -> Resources:
    """What `schedule` costs; ConfigError where it is not of this chain, or no tiles."""
    sizes, tiles = sizes_of(problem), tiles_of(schedule)
    given = tiles.rows, tiles.warps, tiles.columns
    try:
        chain_tiles.checked_tiles(given, sizes, target)
        chain_tiles.with_parts(tiles, sizes, target, tiles.parts)
    except TilesError as error:
        raise ConfigError(f"schedule '{schedule}' of a chain: {error}") from None
    expected = schedule_of(sizes, tiles, target)
    if schedule != expected:
        raise ConfigError(
            f"schedule '{schedule}' is not of {problem}, expected '{expected}'"
        )
    cost = cost_of(sizes, tiles, target)
    if cost.blocks_per_sm == 0:
        raise ConfigError(
            f"schedule '{schedule}' of a chain: a block of {cost.threads} threads has "
            f"about {cost.registers_per_thread} registers of each, {target.name} has "
            f"{target.registers_per_sm}: fewer warps"
        )
    return cost


def cost_of(sizes: ChainSizes, tiles: ChainTiles, target: Target) -> Resources:
    """What a block has; of no blocks on an SM where registers do not suffice."""
    slots = chain_tiles.slots(sizes, tiles, target)
    return Resources(
        tiles.warps * WARP_SIZE,
        shared_bytes(sizes, tiles, slots.count),
        registers(sizes, tiles),
        most_resident(sizes, tiles, target, slots),
    )
