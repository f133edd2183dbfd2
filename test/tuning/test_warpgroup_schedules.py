"""Schedules for wgmma in the tuner: their space, their model, the simulated device."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from alcop_mlir import hardware
from alcop_mlir.errors import ConfigError
from alcop_mlir.measurement.simulator import simulate
from alcop_mlir.schedule import WGMMA, Schedule
from alcop_mlir.target import find_target
from alcop_mlir.tuning import (
    preference,
    traffic,
    warpgroup_model,
    warpgroup_space,
)
from alcop_mlir.tuning.analytical import Prediction, predict
from alcop_mlir.tuning.candidates import ENGINES, Candidates
from alcop_mlir.tuning.problem import Problem
from alcop_mlir.tuning.space import check, enumerate_space

TARGET = find_target("sm_90a")
HALVES = ("f16", "f16", "f32", "f16")
LARGE = Problem(4096, 4096, 4096, dtypes=HALVES, layout="mk,nk")
COOPERATIVE = "block=128,256,64 warp=16,256 stages=4,2 engine=wgmma"


def candidates(problem: Problem, *texts: str) -> Candidates:
    schedules = [Schedule.parse(text) for text in texts]
    return Candidates(schedules, [check(problem, one, TARGET) for one in schedules])


def predicted(problem: Problem, *texts: str) -> Prediction:
    return predict(problem, candidates(problem, *texts), TARGET)


def by_wgmma(problem: Problem) -> Candidates:
    found = dict(warpgroup_space.schedules(problem, TARGET))
    return Candidates([*found], [*found.values()])


def test_both_engines_are_in_the_space() -> None:
    engines = {one.engine for one in enumerate_space(LARGE, TARGET).schedules}
    assert engines == {"mma", "wgmma"}
    chosen = by_wgmma(LARGE)
    assert len(set(chosen.schedules)) == len(chosen)
    for axis in ("cluster", "turns", "raster", "shared_stages"):
        assert len(set(chosen.axis(axis).tolist())) > 1, axis
    for target in ("sm_80", "sm_90"):
        others = enumerate_space(LARGE, find_target(target)).schedules
        assert {one.engine for one in others} == {"mma"}


TF32 = ("tf32", "tf32", "f32", "f32")
BYTES = ("f8E4M3FN", "f8E4M3FN", "f32", "f32")
MIXED = ("f8E4M3FN", "f8E5M2", "f32", "f32")


@pytest.mark.parametrize(
    ("change", "fits"),
    [
        ({"layout": "mk,kn"}, True),
        ({"dtypes": TF32}, True),
        ({"dtypes": TF32, "layout": "mk,kn"}, False),
        ({"dtypes": MIXED}, True),
        ({"n": 4100, "layout": "mk,kn"}, False),  # rows of 8200 bytes
        ({"n": 4100}, True),
        ({"k": 160}, False),
        ({"m": 31}, False),
        ({"has_roles": False}, False),
    ],
)
def test_what_wgmma_multiplies(change: dict[str, object], fits: bool) -> None:
    problem = replace(LARGE, **change)
    assert bool(len(by_wgmma(problem))) == fits


def test_floats_of_eight_bits_are_for_wgmma_alone() -> None:
    """By mma.sync this target multiplies them as f16, which is another problem."""
    found = enumerate_space(replace(LARGE, dtypes=BYTES), TARGET).schedules
    assert {one.engine for one in found} == {WGMMA}


def test_what_does_not_fit_is_refused() -> None:
    for problem, message in (
        (replace(LARGE, has_roles=False), "is for wgmma, which does not multiply"),
        (replace(LARGE, m=128), "has clusters of 2 blocks along M, where M=128 has 1"),
    ):
        with pytest.raises(ConfigError, match=message):
            check(problem, Schedule.parse(f"{COOPERATIVE} cluster=2"), TARGET)


def test_a_little_better_is_no_reason_for_the_other_engine() -> None:
    """No model was measured beside the other one's."""
    small = replace(LARGE, m=64, n=64, k=2048)
    found = enumerate_space(small, TARGET)
    seconds = predict(small, found, TARGET).seconds
    by_wgmma_row = found.axis("engine") == ENGINES[WGMMA]
    assert seconds[by_wgmma_row].min() > 1.2 * seconds.min()
    first = preference.lead(found, preference.order(found, seconds), seconds)[0]
    assert found.schedules[int(first)].engine == WGMMA
    # Of one that is much faster it is.
    seconds = np.where(by_wgmma_row, 2.0, 1.0) * seconds
    first = preference.lead(found, preference.order(found, seconds), seconds)[0]
    assert found.schedules[int(first)].engine == "mma"


def test_parts_are_the_whole() -> None:
    found = predict(LARGE, by_wgmma(LARGE), TARGET)
    total = sum(found.parts.values(), np.zeros(len(found.seconds)))
    np.testing.assert_allclose(total, found.seconds)
    assert all((part >= 0).all() for part in found.parts.values())


def test_a_k_step_is_as_in_the_arithmetic_of_the_hardware() -> None:
    """1024 cycles for 128x256x64; 80 bytes a cycle are read, and 48 written."""
    some = candidates(LARGE, COOPERATIVE)
    grid = traffic.grid(LARGE, some, TARGET)
    step = warpgroup_model.k_step(LARGE, some, TARGET, grid, np.ones(1))
    cycles = {name: float(time[0]) * TARGET.clock_hz for name, time in step.items()}
    assert cycles["tensor"] == pytest.approx(1024)
    assert cycles["shared"] == pytest.approx(1024)
    # 8 warps that multiply on 4 schedulers: 2 * (31 + 3 * 4), and one that copies.
    assert cycles["issue"] == pytest.approx(86 + hardware.COPY_ISSUE)


def test_clusters_take_less_of_l2_and_of_power() -> None:
    """Blocks alone read 6336 bytes a cycle from L2, more than it has."""
    texts = COOPERATIVE, f"{COOPERATIVE} cluster=2"
    found = predicted(LARGE, *texts)
    assert [found.limit(row) for row in (0, 1)] == ["copies", "power"]
    assert found.seconds[1] < found.seconds[0]
    some = candidates(LARGE, *texts)
    grid = traffic.grid(LARGE, some, TARGET)
    alone, together = warpgroup_model.power(LARGE, some, TARGET, grid)
    assert 1.01 < alone / together < 1.06  # measured: 1.028


def test_a_store_in_turn_is_hidden() -> None:
    short = replace(LARGE, k=256)
    tile = "block=128,128,64 stages=6,2 engine=wgmma"
    found = predicted(short, f"{tile} warp=16,128", f"{tile} warp=32,128 mode=pingpong")
    assert found.parts["epilogue"][1] < found.parts["epilogue"][0] / 2


def test_the_next_wgmma_waits_where_none_is_in_flight() -> None:
    found = predicted(LARGE, COOPERATIVE, COOPERATIVE.replace("4,2", "4,1"))
    assert found.parts["synchronisation"][0] == 0
    assert found.parts["synchronisation"][1] > 0
    # Of a few tiles, which power does not limit.
    few = replace(LARGE, m=1024, n=1024)
    texts = COOPERATIVE, COOPERATIVE.replace("4,2", "4,1")
    simulated = simulate(few, candidates(few, *texts), TARGET)
    assert simulated[1] > simulated[0]


def test_few_slots_wait_for_copies() -> None:
    deep, flat = COOPERATIVE, COOPERATIVE.replace("4,2", "2,2")
    found = predicted(LARGE, deep, flat)
    assert found.parts["copies"][1] > found.parts["copies"][0]
    simulated = simulate(LARGE, candidates(LARGE, deep, flat), TARGET)
    assert simulated[1] > simulated[0]


@pytest.mark.parametrize(
    "sizes",
    [(8192, 8192, 8192), (1024, 1024, 1024), (4096, 4096, 256), (256, 256, 16384)],
)
def test_the_model_chooses_well_on_the_simulated_device(
    sizes: tuple[int, int, int],
) -> None:
    problem = replace(LARGE, **dict(zip("mnk", sizes, strict=True)))
    found = by_wgmma(problem)
    modelled = predict(problem, found, TARGET).seconds
    simulated = simulate(problem, found, TARGET)
    assert simulated[int(modelled.argmin())] < 1.03 * simulated.min()
    assert np.std(np.log(modelled / simulated)) < 0.3
