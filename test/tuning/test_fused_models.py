"""Models of chains and of rows: what they must say, and what was measured."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

sys.path.append(str(Path(__file__).resolve().parents[2] / "bench"))

import bench_measured_kernels
import measured_kernels
from real_times import CALIBRATION, HELD_BACK

from alcop_mlir.target import TARGETS, Target, find_target
from alcop_mlir.tuning.fused import chain_model, row_model
from alcop_mlir.tuning.fused.chain_model import Slots
from alcop_mlir.tuning.fused.chain_problem import (
    ChainSizes,
    ChainTiles,
    column_tiles,
    mean_column_tiles,
)
from alcop_mlir.tuning.fused.row_model import RowWork

A100 = find_target("sm_80")
HEADS = ChainSizes(batch=128, m=1024, n=1024, k=64, d=64)
TILES = ChainTiles(16, 8, 64)


def seconds(
    sizes: ChainSizes, tiles: ChainTiles = TILES, target: Target = A100
) -> float:
    time = chain_model.predict(sizes, tiles, target)
    assert time is not None
    return time.seconds


@pytest.mark.parametrize("target", TARGETS, ids=lambda one: one.name)
def test_parts_of_a_chain_add_up_and_none_is_negative(target: Target) -> None:
    for sizes in (HEADS, replace(HEADS, last=0), replace(HEADS, batch=1, m=16)):
        for parts in (1, 4):
            tiles = replace(TILES, warps=min(8, sizes.m // 16), parts=parts)
            time = chain_model.predict(sizes, tiles, target)
            assert time is not None
            assert tuple(time.parts) == chain_model.PARTS
            assert min(time.parts.values()) >= 0
            assert time.seconds == pytest.approx(sum(time.parts.values()))
            assert (time.parts["merge"] > 0) == (parts > 1)
            assert time.seconds > sizes.flops / 4 / target.tensor_f16_flops / parts


def test_a_chain_takes_longer_the_more_it_computes() -> None:
    once = seconds(HEADS)
    assert seconds(replace(HEADS, batch=256)) > 1.8 * once
    assert seconds(replace(HEADS, n=2048)) > 1.8 * once
    assert seconds(replace(HEADS, k=128, d=128)) > 1.3 * once
    assert seconds(replace(HEADS, extra=6.0)) > 1.1 * once
    assert seconds(replace(HEADS, of_rows=0)) < 0.8 * once
    assert once / 2 < seconds(replace(HEADS, last=0)) < 0.8 * once


def test_one_slot_shows_the_latency_of_copies() -> None:
    alone = chain_model.predict(HEADS, TILES, A100, Slots(1, 0))
    ahead = chain_model.predict(HEADS, TILES, A100, Slots(2, 1))
    assert alone is not None
    assert ahead is not None
    assert alone.parts["copies"] > ahead.parts["copies"]


def test_blocks_that_do_not_fit_have_no_time() -> None:
    wide = replace(HEADS, k=1024, d=1024)
    assert chain_model.predict(wide, TILES, A100) is None
    many = ChainTiles(16, 32, 128)  # 1024 threads with 200 registers each
    assert chain_model.predict(HEADS, many, A100) is None


@pytest.mark.parametrize("bounds", [{}, {"last": 7}, {"first": -90, "last": 70}])
def test_the_mean_of_tiles_is_that_of_all_blocks(bounds: dict[str, int]) -> None:
    sizes = replace(HEADS, m=200, n=500, **bounds)
    tiles = ChainTiles(16, 2, 32)
    seen = []
    for row in range(0, sizes.m, tiles.block_rows):
        last_row = min(row + tiles.block_rows, sizes.m) - 1
        columns = [
            column
            for column in range(sizes.n)
            if column - last_row <= bounds.get("last", sizes.n)
            and column - row >= bounds.get("first", -sizes.n)
        ]
        seen.append(len({column // tiles.columns for column in columns}))
    assert mean_column_tiles(sizes, tiles) == pytest.approx(np.mean(seen))
    assert mean_column_tiles(sizes, tiles) <= column_tiles(sizes, tiles)


def test_tables_of_attention_are_split_once() -> None:
    for gpu, counts in (("A100", (27, 26)), ("H100", (39, 36))):
        halves = [
            measured_kernels.attention(gpu, half) for half in (CALIBRATION, HELD_BACK)
        ]
        assert tuple(map(len, halves)) == counts
        assert len(measured_kernels.attention(gpu)) == sum(counts)
        for one in halves[0] + halves[1]:
            assert one.kernel in measured_kernels.ATTENTION_SPACE


def test_times_of_attention_are_near_what_was_measured() -> None:
    """Of the half that the model was not fitted to, on A100."""
    rows = [*bench_measured_kernels.of_attention("A100", HELD_BACK)]
    errors = np.log([row["predicted"] / row["measured"] for row in rows])
    assert abs(errors.mean()) < 0.03
    assert errors.std() < 0.08
    ranks = [row["rank"] for row in rows]
    assert np.median(ranks) < 0.1  # at random 0.5


def test_times_of_rows_are_near_what_was_measured() -> None:
    """Of none of them anything was fitted."""
    rows = [*bench_measured_kernels.of_rows()]
    launched = [row for row in rows if row["what"] == "rows"]
    errors = np.log([row["predicted"] / row["measured"] for row in launched])
    assert len(launched) == 34
    assert abs(errors.mean()) < 0.1
    assert errors.std() < 0.2


@pytest.mark.parametrize("target", TARGETS, ids=lambda one: one.name)
def test_many_rows_take_the_time_of_memory(target: Target) -> None:
    work = RowWork(65536, 1024, 2 * 4 * 65536 * 1024, reductions=2)
    time = row_model.predict(work, 32, 256, target)
    assert tuple(time.parts) == row_model.PARTS
    least = work.moved_bytes / target.dram_bytes_per_second
    assert least < time.seconds < 1.5 * least
    few = row_model.predict(replace(work, rows=1, moved_bytes=8192), 32, 32, target)
    assert few.parts["launch"] > few.seconds / 2


def test_few_rows_on_few_sms_move_slower() -> None:
    work = RowWork(64, 4096, 2 * 4 * 64 * 4096, reductions=2)
    together, apart = (
        row_model.predict(work, 32, threads, A100) for threads in (256, 32)
    )
    assert apart.parts["moving"] < together.parts["moving"] / 2
