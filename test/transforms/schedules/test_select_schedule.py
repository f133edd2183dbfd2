"""The default of alcop-select-schedule: what holds for every shape and target."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from alcop_mlir import resources
from alcop_mlir.analysis.linalg.contractions import Contraction
from alcop_mlir.errors import ConfigError
from alcop_mlir.target import find_target, target_names
from alcop_mlir.transforms.schedules.default_schedule import default_schedule
from alcop_mlir.transforms.schedules.modelled import (
    open_problem_of,
    plain_problem_of,
)
from alcop_mlir.transforms.schedules.select_schedule import SelectSchedule
from alcop_mlir.tuning.open_problem import LARGEST_BATCH

CHUNK = 8  # f16 elements of one 16-byte copy
TARGETS = st.sampled_from(target_names()).map(find_target)
SIZE = st.none() | st.integers(0, 4800)


def contraction(m: int | None, n: int | None, k: int | None) -> Contraction:
    return Contraction(
        op=None,
        m=m,
        n=n,
        k=k,
        batches=(),
        lhs="mk",
        rhs="kn",
        out_loops="mn",
        swapped=False,
        lhs_type="f16",
        rhs_type="f16",
        out_type="f32",
    )


@given(SIZE, SIZE, SIZE, TARGETS)
def test_fits_and_keeps_every_thread_copying(m, n, k, target) -> None:
    schedule = default_schedule(contraction(m, n, k), target)
    block_m, block_n, block_k = schedule.block
    resources.cost(schedule, target)
    assert schedule.stages[0] <= max(1, -(-(k or 0) // block_k)) or k is None
    for rows in (block_m, block_n):
        assert rows * block_k % (schedule.threads * CHUNK) == 0


@given(st.integers(0, 9), st.integers(0, 9), st.integers(0, 9), TARGETS)
def test_whole_tiles_of_large_products(m, n, k, target) -> None:
    """What 128x128x32 divides, and fills the GPU, gets that tile and no other."""
    sizes = (1024 + 128 * m, 4096 + 128 * n, 32 + 32 * k)
    assert default_schedule(contraction(*sizes), target).block == (128, 128, 32)


def test_small_tiles_for_what_is_narrow() -> None:
    """Work beyond the edges of C costs as much as within."""
    target = find_target("sm_80")
    assert default_schedule(contraction(1, 8192, 4096), target).block == (16, 64, 32)
    assert default_schedule(contraction(8192, 8, 4096), target).block == (64, 16, 32)
    assert default_schedule(contraction(1000, 1000, 1000), target).block[0] >= 64
    assert default_schedule(contraction(None, None, None), target).block[:2] == (
        128,
        128,
    )


@given(SIZE, SIZE, SIZE, TARGETS)
def test_orders_and_parts_keep_within_the_target(m, n, k, target) -> None:
    """Groups of rows where not all blocks run at once; parts for idle SMs only."""
    given = contraction(m, n, k)
    schedule = default_schedule(given, target)
    rows, columns = (
        -(-(8192 if size is None else size) // tile)
        for size, tile in zip((m, n), schedule.block[:2], strict=True)
    )
    at_once = resources.cost(schedule, target).blocks_per_sm * target.sms
    assert (schedule.raster > 1) == (rows * columns > at_once and rows > 1 < columns)
    if schedule.split_k > 1:
        assert rows * columns * schedule.split_k <= target.sms
        assert k is not None
        assert k // schedule.split_k >= 1024


def test_wide_elements_in_memory_wait_in_one_stage_of_registers() -> None:
    """f16 multiplied, f32 in A, and in both: a smaller tile where one is too much."""
    target = find_target("sm_80")
    large = contraction(4096, 4096, 4096)
    one = default_schedule(replace(large, stored=(4, 2)), target)
    assert (one.block[:2], one.stages[1]) == ((128, 128), 1)
    both = default_schedule(replace(large, stored=(4, 4)), target)
    assert (both.block[:2], both.stages[1]) == ((128, 64), 2)


def test_wrong_options() -> None:
    with pytest.raises(ConfigError, match="unknown target 'sm_1'"):
        SelectSchedule(target="sm_1")
    with pytest.raises(ConfigError, match="schedule: cannot read 'nonsense'"):
        SelectSchedule(schedule="nonsense")
    with pytest.raises(ConfigError, match="variants=17, expected 1 to 16"):
        SelectSchedule(variants=17)


def test_several_batch_loops_are_one_to_the_models() -> None:
    one = contraction(64, 48, 32)
    heads = replace(one, batches=(("b", 2), ("c", 3)), lhs="bmck", rhs="ckn")
    batch = replace(one, batches=(("b", 6),), lhs="bmk", rhs="bkn")
    assert plain_problem_of(heads) == plain_problem_of(batch)
    opened = replace(heads, batches=(("b", None), ("c", 3)))
    found = open_problem_of(replace(opened, size_ranges=(("b", (2, 8)),)))
    assert found is not None
    assert (found.batch, found.layout) == ((6, 24), "bmk,bkn")
    any_size = open_problem_of(opened)
    assert any_size is not None
    assert any_size.batch == (3, LARGEST_BATCH)
