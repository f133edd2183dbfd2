"""The analytical model against discrete-event simulations, and what both must obey."""

from __future__ import annotations

import dataclasses
import itertools
import time
from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tuning_cases import PROBLEM, TARGET, some_candidates

from alcop_mlir import hardware
from alcop_mlir.measurement.simulator import simulate
from alcop_mlir.schedule import Schedule
from alcop_mlir.taps import Taps
from alcop_mlir.target import find_target, target_names
from alcop_mlir.tuning.analytical import PARTS, pipe, predict
from alcop_mlir.tuning.candidates import Candidates
from alcop_mlir.tuning.problem import Problem
from alcop_mlir.tuning.space import FULL, check, enumerate_space
from alcop_mlir.tuning.traffic import grid


def loop_by_events(
    load: float, use: float, steps: int, stages: int, loops: int
) -> float:
    """Seconds of `loops` loops that share one unit, event by event.

    A load starts when its slot is free; any number run at once; one use runs at a time.
    """
    loaded = [[load] * min(stages, steps) for _ in range(loops)]
    done = [0] * loops
    free = 0.0
    while min(done) < steps:
        ready = [
            (loaded[n][done[n]], done[n], n) for n in range(loops) if done[n] < steps
        ]
        at, _, number = min(ready)
        free = max(free, at) + use
        done[number] += 1
        if len(loaded[number]) < steps:
            loaded[number].append(free + load)
    return free


def test_pipe_is_near_the_events() -> None:
    errors = []
    for stages, loops, steps, load in itertools.product(
        range(1, 7), (1, 2, 4), (24, 96), (0.25, 0.5, 1, 2, 3, 5, 8, 12, 20)
    ):
        wanted = loop_by_events(load, 1.0, steps, stages, loops)
        errors.append(abs(float(pipe(load, 1.0, steps, stages, loops)) / wanted - 1))
    assert np.mean(errors) < 0.015
    assert max(errors) < 0.2  # short loops with many slots, at the very boundary


@pytest.mark.parametrize(
    "problem",
    [
        Problem(1024, 1024, 1024),
        Problem(1024, 64, 2048),
        Problem(512, 512, 64, 12, "batch_matmul"),
    ],
    ids=str,
)
def test_the_model_is_near_the_simulated_sm(problem: Problem) -> None:
    candidates = some_candidates(300, problem)
    predicted = predict(problem, candidates, TARGET).seconds
    simulated = simulate(problem, candidates, TARGET)
    ratio = simulated / predicted
    # That device has latencies as measured with one load at a time, the model of many.
    assert 0.6 < np.median(ratio) < 1.3
    assert np.quantile(ratio, 0.9) / np.quantile(ratio, 0.1) < 2.0
    assert rank_correlation(predicted, simulated) > 0.75


def rank_correlation(first: np.ndarray, second: np.ndarray) -> float:
    ranks = np.array([np.argsort(np.argsort(values)) for values in (first, second)])
    centred = ranks - ranks.mean()
    return float(np.mean(centred[0] * centred[1]) / np.var(ranks[0]))


def test_ten_thousand_candidates_take_50_ms() -> None:
    candidates = enumerate_space(Problem(1024, 1024, 1024), TARGET, FULL)
    assert len(candidates) >= 10_000
    assert candidates.table.size + candidates.costs.size  # columns are made once
    spent = []
    for _ in range(5):
        start = time.perf_counter()
        predict(Problem(1024, 1024, 1024), candidates, TARGET)
        spent.append(time.perf_counter() - start)
    assert min(spent) * 10_000 / len(candidates) < 0.05


@given(
    st.sampled_from(target_names()).map(find_target),
    st.integers(1, 1024),
    st.integers(1, 1024),
    st.integers(1, 1024),
    st.integers(1, 4),
)
def test_parts_add_up_and_nothing_beats_the_hardware(target, m, n, k, batch) -> None:
    problem = Problem(m, n, k, batch, "batch_matmul")
    candidates = enumerate_space(problem, target)
    prediction = predict(problem, candidates, target)
    assert set(prediction.parts) == set(PARTS)
    total = sum(prediction.parts.values(), np.zeros(len(candidates)))
    assert np.allclose(total, prediction.seconds)
    assert all((part >= 0).all() for part in prediction.parts.values())
    assert np.isfinite(prediction.seconds).all()
    assert (problem.flops / prediction.seconds <= target.tensor_f16_flops).all()


@given(st.integers(0, 10_000), st.sampled_from((1, 3, 16, 48)))
@settings(max_examples=settings().max_examples // 3)
def test_the_simulation_does_not_depend_on_its_neighbours(seed, tiles) -> None:
    problem = Problem(128, 128, 64 * tiles)
    candidates = some_candidates(5, problem, seed)
    together = simulate(problem, candidates, TARGET)
    for row in range(len(candidates)):
        alone = simulate(problem, candidates.take([row]), TARGET)
        assert alone[0] == pytest.approx(together[row])
    best = TARGET.tensor_f16_flops
    assert (problem.flops / together <= best).all()


def test_long_loops_are_extrapolated_as_they_repeat() -> None:
    short, long = Problem(128, 128, 4096), Problem(128, 128, 8192)
    candidates = _unsplit(some_candidates(60, short))
    launch = simulate(Problem(128, 128, 64), _first(candidates), TARGET)
    growth = simulate(long, candidates, TARGET) / simulate(short, candidates, TARGET)
    assert (growth > 1.5).all()
    assert (growth < 2.01).all()
    assert launch[0] > 0


def _unsplit(candidates: Candidates) -> Candidates:
    rows = [r for r, s in enumerate(candidates.schedules) if s.split_k == 1]
    return candidates.take(rows)


def _first(candidates: Candidates) -> Candidates:
    rows = [r for r, s in enumerate(candidates.schedules) if 64 % s.block[2] == 0]
    return candidates.take(rows[:1])


def test_deeper_pipelines_help_where_latency_shows() -> None:
    candidates = enumerate_space(PROBLEM, TARGET)
    rows = {s: r for s, r in candidates.rows.items() if s.block == (64, 64, 32)}
    times = simulate(PROBLEM, candidates, TARGET)
    pairs = [
        (times[row], times[candidates.rows[deeper]])
        for schedule, row in rows.items()
        if schedule.stages[0] == 2 and schedule.split_k == 1
        for deeper in [dataclasses.replace(schedule, stages=(4, schedule.stages[1]))]
        if deeper in candidates.rows
    ]
    assert pairs
    assert all(deep <= shallow * 1.001 for shallow, deep in pairs)


@pytest.mark.parametrize("raster", [1, 4, 8])
@pytest.mark.parametrize(
    ("problem", "block"),
    [
        (Problem(4096, 4096, 1024), (128, 128, 32)),
        (Problem(8192, 2048, 1024), (128, 256, 32)),
        (Problem(3000, 5000, 1024), (128, 128, 32)),
    ],
    ids=str,
)
def test_what_a_wave_reads_is_near_a_count(problem, block, raster) -> None:
    """Rows of A and columns of B of the blocks that run together, one by one."""
    schedule = Schedule(block, (64, 64), (3, 2), raster=raster)
    cost = check(problem, schedule, TARGET)
    candidates = Candidates([schedule], [cost])
    modelled = grid(problem, candidates, TARGET)
    order = tiles_in_order(problem, schedule)
    at_once = cost.blocks_per_sm * TARGET.sms
    waves = [order[n : n + at_once] for n in range(0, len(order), at_once)]
    read = [
        len({row for row, _ in wave}) * block[0]
        + len({column for _, column in wave}) * block[1]
        for wave in waves[: len(order) // at_once]
    ]
    counted = np.mean(read) * problem.k * problem.element_bytes
    assert modelled.wave_bytes[0] == pytest.approx(counted, rel=0.25)


def tiles_in_order(problem: Problem, schedule: Schedule) -> list[tuple[int, int]]:
    """Row and column of the tile of each block, as the compiler numbers them."""
    rows, columns = (
        -(-problem.m // schedule.block[0]),
        -(-problem.n // schedule.block[1]),
    )
    return [
        (row, column)
        for first in range(0, rows, schedule.raster)
        for column in range(columns)
        for row in range(first, min(first + schedule.raster, rows))
    ]


SWEPT = (2, 32, 32, 128)  # images N x H x W x C


@pytest.mark.parametrize(("sweeps", "reads"), [(1, 9), (2, 1), (4, 1)])
def test_what_sweeps_read_is_near_a_count(sweeps: int, reads: int) -> None:
    """From DRAM, of pixels: once for each tap, or once where L2 keeps a sweep's."""
    n, h, w, c = SWEPT
    target = dataclasses.replace(TARGET, sms=16, l2_bytes=400 * 1024)
    problem = Problem(n * h * w, 128, 9 * c, taps=Taps("A", 9, 1))
    schedule = Schedule((128, 128, 32), (64, 64), (3, 2), sweeps=sweeps)
    candidates = Candidates([schedule], [check(problem, schedule, target)])
    (modelled,) = grid(problem, candidates, target).read_bytes
    filters = 128 * problem.k * 2
    assert modelled == reads * n * h * w * c * 2 + filters
    room = int(hardware.L2_KEPT * target.l2_bytes)
    assert modelled == pytest.approx(read_by_a_wave(schedule, room), rel=0.1)


def read_by_a_wave(schedule: Schedule, room: int) -> int:
    """Bytes from DRAM of blocks in step, for all places, by an L2 of so many bytes.

    It keeps what was used last.
    """
    n, h, w, c = SWEPT
    kept: dict[object, int] = {}
    used = missed = 0
    for sweep, tap, step in product(
        range(schedule.sweeps), range(9), range(c // schedule.sweeps // 32)
    ):
        channels = sweep * (c // schedule.sweeps // 32) + step
        pixels = (
            (image, y + tap // 3 - 1, x + tap % 3 - 1, channels)
            for image, y, x in product(range(n), range(h), range(w))
        )
        inside = (p for p in pixels if 0 <= p[1] < h and 0 <= p[2] < w)
        for piece, size in [((tap, channels), 128 * 64), *((p, 64) for p in inside)]:
            found = kept.pop(piece, 0)
            used, missed = used + size - found, missed + size - found
            kept[piece] = size
            while used > room:
                used -= kept.pop(next(iter(kept)))
    return missed


def test_groups_of_rows_read_less() -> None:
    """A wave's blocks form a rectangle, not a few long rows."""
    problem = Problem(8192, 8192, 8192)
    some = [
        Schedule((128, 128, 32), (64, 64), (3, 2), raster=raster)
        for raster in (1, 8, 16)
    ]
    candidates = Candidates(some, [check(problem, one, TARGET) for one in some])
    plain, eight, sixteen = grid(problem, candidates, TARGET).read_bytes
    assert sixteen < eight < 0.75 * plain
    seconds = predict(problem, candidates, TARGET).seconds
    assert (seconds[1:] <= seconds[0]).all()


def test_parts_of_k_fill_a_gpu_that_few_tiles_do_not() -> None:
    """Both models prefer split-K for a large K, and not for a small one."""
    for k, better in ((16384, True), (256, False)):
        problem = Problem(128, 128, k)
        some = [
            Schedule((64, 64, 32), (32, 32), (4, 2), split_k=parts) for parts in (1, 2)
        ]
        candidates = Candidates(some, [check(problem, one, TARGET) for one in some])
        for seconds in (
            predict(problem, candidates, TARGET).seconds,
            simulate(problem, candidates, TARGET),
        ):
            assert (seconds[1] < seconds[0]) == better


@pytest.mark.parametrize(
    ("layout", "lines"),
    [
        # Of A and B: 128 rows of 32 bytes and 16 of 256; 128 rows of 128 and 64 of 256.
        ("mk,kn", (128 + 2 * 16, 128 + 2 * 64)),
        ("mk,nk", (2 * 128, 2 * 128)),
        ("km,kn", (2 * 2 * 16, 2 * 2 * 64)),
    ],
)
def test_cache_lines_of_copies_counted_by_hand(layout: str, lines) -> None:
    problem = Problem(4096, 4096, 4096, layout=layout)
    some = [Schedule((128, 128, k), (64, 64), (2, 1)) for k in (16, 64)]
    candidates = Candidates(some, [check(problem, one, TARGET) for one in some])
    modelled = grid(problem, candidates, TARGET)
    assert (modelled.resident == 2).all()
    waves = 1024 // (2 * TARGET.sms) * 2 + 2  # blocks, one after the other on an SM
    found = predict(problem, candidates, TARGET).parts["cache lines"]
    for seconds, count, steps in zip(found, lines, modelled.steps, strict=True):
        cycles = waves * steps * count * hardware.LINE
        assert seconds == pytest.approx(cycles / TARGET.clock_hz)


def test_small_k_steps_and_two_slots_cost_what_gpus_say() -> None:
    """More than arithmetic does; measured on A100 and H100, see docs/tuning.md."""
    problem = Problem(4096, 4096, 4096, layout="mk,nk")
    some = [
        Schedule((128, 128, k), (64, 64), (shared, 2))
        for k, shared in ((16, 4), (32, 4), (32, 2), (64, 3))
    ]
    candidates = Candidates(some, [check(problem, one, TARGET) for one in some])
    small, middle, two, large = predict(problem, candidates, TARGET).seconds
    assert small > 1.15 * middle
    assert two > 1.03 * middle
    assert large < middle


def test_parts_that_l2_does_not_keep_go_through_dram() -> None:
    problem = Problem(4096, 4096, 4096)
    schedule = Schedule((128, 128, 32), (64, 64), (3, 2), split_k=2)
    candidates = Candidates([schedule], [check(problem, schedule, TARGET)])
    prediction = predict(problem, candidates, TARGET)
    parts = 2 * 4096 * 4096 * 4
    least = (parts + 4096 * 4096 * 4) / TARGET.dram_bytes_per_second
    assert prediction.parts["adding up"][0] >= least
