"""Sizes of tiles of a chain: those that a model of its time likes best.

Of tiles that fit, the model (`tuning/fused/chain_model.py`) says how long the kernel
takes with each. Among those within 4 % of the best, as models are wrong by more, the
largest are taken: they read keys and values less often. Where a block goes over a part
of the columns only, another kernel merges what parts leave; that has to gain a quarter.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace
from typing import cast

from alcop_mlir.target import MMA_F16_SHAPE, WARP_SIZE, Target
from alcop_mlir.tuning.fused.chain_model import ChainTime, Slots, predict
from alcop_mlir.tuning.fused.chain_problem import (
    HELD_HEAD,
    ChainSizes,
    ChainTiles,
    column_tiles,
    shared_bytes,
)

_ROWS = MMA_F16_SHAPE[0]  # of a fragment, the least that a warp has
# Each warp has 16 rows: with 32 of heads of 64 registers spill.
_WARPS = (8, 4, 2)
# Columns of weights in a tile: a warp holds 16 rows of them, and of accumulators of a
# head, in up to 255 registers of a thread. With 64 columns and heads of 192 ptxas 13.5
# spills up to 676 bytes, with 128 and a mask up to 8 of heads of 80 and 424 of those of
# 96; none of heads of 16 to 64, and of 128.
_COLUMNS = (128, 64, 32)
_SPILLED_HEADS = range(65, 128)  # with 128 columns
_TIE = 1.04  # of the best time, as of contractions
# Of a merge: the model is some 0.2 off where it was not fitted.
_LEAST_GAIN = 1.25
# What tiles are chosen for where a size is known at run time only: more than a few, and
# no multiple of a tile, so that the last one has buffers of its own. Ours.
OPEN_EXTENT = 1000
# The merge is one op that reads all parts. Ours: its code grows with them.
MOST_PARTS = 32


class TilesError(Exception):
    """Why no tiles are possible."""


def chosen_tiles(
    sizes: ChainSizes, target: Target, given_parts: object = 0
) -> ChainTiles:
    """The tiles of a chain on this target, in one part; TilesError where none fit.

    given_parts: if any tiles are so many along the columns, these are taken only
    """
    possible = [*possible_tiles(sizes, target)]
    if not possible:
        raise TilesError(_does_not_fit(sizes, _smallest(sizes), target))
    if isinstance(given_parts, int):
        many = [one for one in possible if column_tiles(sizes, one) >= given_parts]
        possible = many or possible
    timed = {one: _inside(sizes, one, target) for one in possible}
    least = min(timed.values())
    near = [one for one, time in timed.items() if time <= _TIE * least]
    return max(near, key=lambda one: (one.warps * one.columns, one.warps))


def checked_tiles(given: object, sizes: ChainSizes, target: Target) -> ChainTiles:
    """Tiles that a mark or an option has; TilesError where they are not possible."""
    several = isinstance(given, (list, tuple))
    numbers = cast("list[object]", [*given] if several else [given])
    whole = [one for one in numbers if isinstance(one, int) and one > 0]
    if len(whole) != len(numbers) or len(whole) != 3:
        raise TilesError(
            f"tiles are {numbers}, expected rows of a warp, warps and columns"
        )
    tiles = ChainTiles(*whole)
    if tiles.rows % _ROWS or tiles.columns % _ROWS:
        raise TilesError(
            f"tiles have {tiles.rows} rows of a warp and {tiles.columns} columns, "
            f"expected multiples of {_ROWS}"
        )
    if tiles.warps * WARP_SIZE > target.threads_per_block:
        raise TilesError(
            f"tiles have {tiles.warps} warps, expected "
            f"{target.threads_per_block // WARP_SIZE} at most on {target.name}"
        )
    if shared_bytes(sizes, tiles, 1) > target.shared_bytes_per_block:
        raise TilesError(_does_not_fit(sizes, tiles, target))
    return tiles


def with_parts(
    tiles: ChainTiles, sizes: ChainSizes, target: Target, given: object = 0
) -> ChainTiles:
    """The tiles with so many parts, or as many as are worth a merge; TilesError."""
    count = column_tiles(sizes, tiles)
    most = 1 if sizes.is_open else max(min(count, MOST_PARTS), 1)
    if not isinstance(given, int) or not 0 <= given <= most:
        why = f"a block goes over {count} tiles of {tiles.columns} columns"
        if sizes.is_open:
            why = "a size is known at run time only"
        raise TilesError(f"has {given} parts, expected 1 to {most}: {why}")
    return replace(tiles, parts=given or _chosen_parts(sizes, tiles, target))


def would_split(sizes: ChainSizes, tiles: ChainTiles, target: Target) -> bool:
    """Whether columns would be in parts if all sizes were known, and OPEN_EXTENT."""
    known = replace(sizes, is_open=False)
    return sizes.is_open and _chosen_parts(known, tiles, target) > 1


def slots(sizes: ChainSizes, tiles: ChainTiles, target: Target) -> Slots:
    """Of keys and values: 2 where they fit, so that a copy runs beside arithmetic."""
    needed = shared_bytes(sizes, tiles, 2 + _of_masked(sizes))
    if needed <= target.shared_bytes_per_block:
        return Slots(2, 1)
    return Slots(1 + _of_masked(sizes), 0)


def _of_masked(sizes: ChainSizes) -> int:
    """Buffers of the loop over tiles with a mask, beside those of whole tiles.

    Loops in turn share their slots, but that is found out after these are planned.
    """
    return 0 if sizes.last is None else 1


def _chosen_parts(sizes: ChainSizes, tiles: ChainTiles, target: Target) -> int:
    """The fewest that take about the least time; 1 where a merge gains little."""
    times = {
        parts: _seconds(sizes, replace(tiles, parts=parts), target)
        for parts in possible_parts(sizes, tiles)
    }
    least = min(times.values())
    if times[1] <= _LEAST_GAIN * least:
        return 1
    return min(parts for parts, time in times.items() if time <= _TIE * least)


def _inside(sizes: ChainSizes, tiles: ChainTiles, target: Target) -> float:
    """Predicted seconds without the launch, which is the same for all tiles."""
    time = predicted(sizes, tiles, target)
    return math.inf if time is None else time.seconds - time.parts["launch"]


def _seconds(sizes: ChainSizes, tiles: ChainTiles, target: Target) -> float:
    """Predicted; infinite where registers of an SM are too few."""
    time = predicted(sizes, tiles, target)
    return math.inf if time is None else time.seconds


def predicted(sizes: ChainSizes, tiles: ChainTiles, target: Target) -> ChainTime | None:
    """The time with as many slots as fit; None where registers of an SM are too few."""
    return predict(sizes, tiles, target, slots(sizes, tiles, target))


def possible_parts(sizes: ChainSizes, tiles: ChainTiles) -> list[int]:
    """1, and numbers of parts of which none is empty; one for each length of a part."""
    if sizes.is_open:
        return [1]
    count = column_tiles(sizes, tiles)
    lengths = {-(-count // parts) for parts in range(1, min(count, MOST_PARTS) + 1)}
    return sorted({1, *(-(-count // length) for length in lengths)})


def possible_tiles(sizes: ChainSizes, target: Target) -> Iterator[ChainTiles]:
    """Tiles that fit a block, with rows for each warp.

    There are two along the columns, if these are not few: one is copied while the
    other is used.
    """
    needed = -(-sizes.m // _ROWS)
    for warps in {min(most, needed) for most in _WARPS}:
        for columns in _possible_columns(sizes):
            tiles = ChainTiles(_ROWS, warps, columns)
            is_alone = columns > _COLUMNS[-1] and 2 * columns > sizes.n
            needed_bytes = shared_bytes(sizes, tiles, 1 + _of_masked(sizes))
            fits = needed_bytes <= target.shared_bytes_per_block
            if fits and not is_alone:
                yield tiles


def _possible_columns(sizes: ChainSizes) -> tuple[int, ...]:
    """Of tiles whose kernels spill no registers."""
    if sizes.d > HELD_HEAD:
        return _COLUMNS[2:]
    return _COLUMNS[1:] if sizes.d in _SPILLED_HEADS else _COLUMNS


def _smallest(sizes: ChainSizes) -> ChainTiles:
    needed = -(-sizes.m // _ROWS)
    return ChainTiles(_ROWS, min(_WARPS[-1], needed), _COLUMNS[-1])


def _does_not_fit(sizes: ChainSizes, tiles: ChainTiles, target: Target) -> str:
    return (
        f"tiles of {tiles.block_rows} rows and {tiles.columns} columns, of "
        f"{sizes.k} and {sizes.d} elements, need {shared_bytes(sizes, tiles, 1)} bytes "
        f"of shared memory, {target.name} has {target.shared_bytes_per_block}"
    )
