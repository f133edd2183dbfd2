"""The default of alcop-select-schedule: what holds for every shape and target."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from alcop_mlir import resources
from alcop_mlir.analysis.contractions import Contraction
from alcop_mlir.errors import ConfigError
from alcop_mlir.target import find_target, target_names
from alcop_mlir.transforms.select_schedule import SelectSchedule, default_schedule

CHUNK = 8  # f16 elements of one 16-byte copy
TARGETS = st.sampled_from(target_names()).map(find_target)
SIZE = st.integers(1, 300).map(lambda blocks: 16 * blocks)


def product(m: int, n: int, k: int) -> Contraction:
    return Contraction(None, m, n, k, "mk", "kn", False, "f16", "f16", "f32")


@given(SIZE, SIZE, SIZE, TARGETS)
def test_divides_fits_and_keeps_every_thread_copying(m, n, k, target) -> None:
    schedule = default_schedule(product(m, n, k), target)
    assert schedule is not None
    block_m, block_n, block_k = schedule.block
    assert (m % block_m, n % block_n, k % block_k) == (0, 0, 0)
    resources.cost(schedule, target)
    assert schedule.stages[0] <= k // block_k
    assert schedule.stages[1] <= k // 16
    for rows in (block_m, block_n):
        assert rows * block_k % (schedule.threads * CHUNK) == 0


@given(st.integers(1, 512), st.integers(1, 512), st.integers(1, 512), TARGETS)
def test_gives_up_exactly_where_no_tile_divides(m, n, k, target) -> None:
    schedule = default_schedule(product(m, n, k), target)
    assert (schedule is None) == any(size % 16 for size in (m, n, k))


def test_wrong_options() -> None:
    with pytest.raises(ConfigError, match="unknown target 'sm_1'"):
        SelectSchedule(target="sm_1")
    with pytest.raises(ConfigError, match="schedule: cannot read 'nonsense'"):
        SelectSchedule(schedule="nonsense")
