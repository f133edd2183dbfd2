"""The space: every candidate is legal, and a sample of them compiles."""

from __future__ import annotations

import dataclasses

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tuning_cases import PROBLEM, TARGET, sample, some_candidates

from alcop_mlir import resources
from alcop_mlir.errors import ConfigError
from alcop_mlir.rectangles import Rectangles
from alcop_mlir.resources import Copies
from alcop_mlir.schedule import Schedule
from alcop_mlir.taps import Taps
from alcop_mlir.target import find_target, target_names
from alcop_mlir.tuning import preference, selection, traffic
from alcop_mlir.tuning.analytical import predict
from alcop_mlir.tuning.candidates import AXES, Candidates
from alcop_mlir.tuning.problem import Problem
from alcop_mlir.tuning.search import Task
from alcop_mlir.tuning.space import FULL, SMALL, check, enumerate_space, find_space

SIZE = st.integers(1, 640)
TARGETS = st.sampled_from(target_names()).map(find_target)


@given(SIZE, SIZE, SIZE, TARGETS, st.sampled_from((SMALL, FULL)))
@settings(max_examples=settings().max_examples // 2)
def test_every_candidate_is_legal(m, n, k, target, space) -> None:
    problem = Problem(m, n, k)
    candidates = enumerate_space(problem, target, space)
    assert len(set(candidates.schedules)) == len(candidates)
    for schedule, cost in zip(
        candidates.schedules[:200], candidates.resources[:200], strict=True
    ):
        assert check(problem, schedule, target) == cost
        assert resources.cost(schedule, target, copies=problem.copies) == cost
        assert schedule.stages[0] <= -(-k // schedule.block[2])
        assert schedule.stages[1] <= -(-k // 16)


def test_tiles_of_rows_that_are_not_aligned_leave_registers_for_their_copies() -> None:
    target = find_target("sm_80")
    large = Schedule.parse("block=128,128,32 warp=64,64 stages=4,2")
    for size, widths in ((4096, (16, 16)), (4094, (4, 4)), (4095, (2, 2))):
        problem = Problem(size, size, size)
        assert problem.copies == Copies(widths)
        is_wide = widths == (16, 16)
        candidates = enumerate_space(problem, target)
        assert (large in candidates.rows) == is_wide
        # A record, or what a user asks for, is legal.
        assert check(problem, large, target) == resources.cost(large, target)
    apart = Problem(4095, 4095, 4095, row_bytes=(16, 4))
    assert apart.copies == Copies((16, 4))
    assert apart.recorded == Problem(4095, 4095, 4095)
    assert Problem(64, 64, 4095, layout="km,nk").copies == Copies((16, 2))


def test_columns_are_the_schedules() -> None:
    candidates = some_candidates(20)
    for row, schedule in enumerate(candidates.schedules):
        values = [*schedule.block, *schedule.warp, *schedule.stages]
        values += [
            schedule.raster,
            schedule.split_k,
            schedule.sweeps,
            schedule.rectangle,
            schedule.cluster,
            schedule.turns,
            1,  # mma
        ]
        assert [candidates.axis(name)[row] for name in AXES] == values


SPLITTING = dataclasses.replace(SMALL, split_k=(1, 2, 3, 8))


@given(SIZE, SIZE, st.integers(1, 200), st.booleans())
def test_orders_and_parts_where_they_can_help(m, n, k, batched) -> None:
    """Groups of rows where not all blocks run at once, parts of K where they do."""
    op = "batch_matmul" if batched else "matmul"
    problem = Problem(16 * m, 16 * n, 16 * k, op=op)
    found = enumerate_space(problem, TARGET, SPLITTING)
    for schedule, cost in zip(found.schedules, found.resources, strict=True):
        rows, columns = (
            -(-size // tile)
            for size, tile in zip(problem.sizes, schedule.block[:2], strict=False)
        )
        at_once = cost.blocks_per_sm * TARGET.sms
        if schedule.raster > 1:
            assert rows * columns > at_once
            assert schedule.raster <= rows
            assert columns > 1
        if schedule.split_k > 1:
            assert not batched
            assert rows * columns * schedule.split_k <= at_once
            part = problem.k // schedule.split_k
            assert part * schedule.split_k == problem.k
            assert part % 8 == 0  # 16 bytes of f16
            assert -(-part // schedule.block[2]) >= schedule.stages[0]


def test_a_split_that_does_not_fit_is_refused() -> None:
    schedule = Schedule((64, 64, 32), (32, 32), (2, 1), split_k=3)
    with pytest.raises(ConfigError, match="K is 512, expected a multiple of 24"):
        check(PROBLEM, schedule, TARGET)
    with pytest.raises(ConfigError, match="the contraction has a batch"):
        check(Problem(64, 64, 96, 2, "batch_matmul"), schedule, TARGET)
    check(Problem(64, 64, 96), schedule, TARGET)


def test_tiles_hardly_go_over_the_edge() -> None:
    def tiles(m: int, n: int, k: int, axis: int) -> set[int]:
        found = enumerate_space(Problem(m, n, k), TARGET)
        return {schedule.block[axis] for schedule in found.schedules}

    assert tiles(1000, 512, 512, 0) == {16, 32, 64, 128, 256}
    assert tiles(100, 512, 512, 0) == {16}  # 112; the others 128
    assert tiles(7, 512, 512, 0) == {16}
    assert tiles(512, 80, 512, 1) == {16}
    assert tiles(512, 512, 24, 2) == {16, 32}


def test_a_target_that_is_too_small_is_named() -> None:
    tiny = dataclasses.replace(TARGET, shared_bytes_per_block=100)
    with pytest.raises(
        ConfigError, match=r"no legal schedule for matmul 512x512x512 f16"
    ):
        enumerate_space(PROBLEM, tiny)
    with pytest.raises(
        ConfigError, match=r"has 100 per block: fewer stages or a smaller"
    ):
        enumerate_space(PROBLEM, tiny)


def test_a_k_step_that_does_not_fit_the_type_is_refused() -> None:
    bytes_in = Problem(64, 64, 64, dtypes=("i8", "i8", "i32", "i32"))
    with pytest.raises(
        ConfigError, match="K step of 16, expected a multiple of 32 for i8"
    ):
        check(bytes_in, Schedule((64, 64, 16), (32, 32), (2, 1)), TARGET)
    found = enumerate_space(bytes_in, TARGET)
    assert {schedule.block[2] for schedule in found.schedules} == {32, 64}


def test_an_unknown_space_is_refused() -> None:
    with pytest.raises(
        ConfigError, match="unknown space 'huge', expected one of small"
    ):
        find_space("huge")


@pytest.mark.parametrize(
    ("members", "message"),
    [
        ({"m": 0}, "problem.m: expected an integer of 1 or more, got 0"),
        ({"op": "conv"}, 'problem.op: expected one of .*, got "conv"'),
        (
            {"dtypes": ("f16", "f16", "f32", "f8")},
            r'problem.dtypes\[3\]: expected one of .*, got "f8"',
        ),
        ({"taps": ("A", 9, 1)}, "problem.taps: expected an object or null"),
    ],
)
def test_absurd_problems_are_refused(members, message) -> None:
    with pytest.raises(ConfigError, match=message):
        Problem(**{"m": 16, "n": 16, "k": 16, **members})


def test_steps_hardly_go_over_the_end_of_a_tap() -> None:
    """Of 24 channels in 9 taps: 9 steps of 32, or 18 of 16, not 216 / 32 of them."""
    problem = Problem(256, 256, 9 * 24, taps=Taps("A", 9, 1))
    steps = {one.block[2]: one.stages[0] for one in space_of(problem)}
    assert {*steps} == {16, 32}
    whole = Problem(256, 256, 9 * 64, taps=Taps("A", 9, 1))
    assert {one.block[2] for one in space_of(whole)} == {16, 32, 64}
    few = Problem(256, 256, 3 * 16, taps=Taps("A", 3, 1))
    assert max(one.stages[0] for one in space_of(few)) == 3


def space_of(problem: Problem) -> list[Schedule]:
    return [*enumerate_space(problem, TARGET).schedules]


def test_sweeps_where_l2_does_not_keep_the_images() -> None:
    """As many as give whole steps of a tap's channels; never with parts of K."""
    small, large = (
        Problem(rows, 128, 9 * 96, taps=Taps("A", 9, 1)) for rows in (4096, 1 << 18)
    )
    assert {one.sweeps for one in space_of(small)} == {1}
    assert {(one.sweeps, one.block[2]) for one in space_of(large)} == (
        {(1, 16), (2, 16), (1, 32)}
    )
    matmul = dataclasses.replace(large, taps=None)
    assert {one.sweeps for one in space_of(matmul)} == {1}


@pytest.mark.parametrize(
    ("taps", "more", "message"),
    [
        (None, "", "has no windows of several taps: leave sweeps out"),
        (Taps("A", 1, 1), "", "has no windows of several taps: leave sweeps out"),
        (Taps("A", 9, 1), " split_k=3", "K is split: leave one of the two out"),
        (Taps("A", 9, 1), "", r"a tap has 96 channels, expected 64\*n"),
    ],
)
def test_sweeps_that_do_not_fit_are_refused(taps, more, message) -> None:
    schedule = Schedule.parse(f"block=64,64,32 warp=32,32 stages=3,2 sweeps=2{more}")
    with pytest.raises(ConfigError, match=message):
        check(Problem(128, 128, 9 * 96, taps=taps), schedule, TARGET)


IMAGES = Problem(4 * 56 * 56, 64, 9 * 64, taps=Taps("A", 9, 1), places=(56, 56))
TURNING = dataclasses.replace(SMALL, rectangle=FULL.rectangle)


def test_rectangles_where_they_hardly_go_over_the_edge() -> None:
    """Of 56 x 56 places 8x8 divide the sides; 8x16 exceed them by a seventh."""
    found = enumerate_space(IMAGES, TARGET, TURNING)
    wide = {(one.block[0], one.rectangle) for one in found.schedules}
    assert {one for one in wide if one[1] > 1} == {(16, 8), (32, 8), (64, 8)}
    assert {one.rectangle for one in space_of(IMAGES)} == {1}
    # No record is of a size of images.
    assert IMAGES.recorded == dataclasses.replace(IMAGES, places=None)
    found = enumerate_space(IMAGES.recorded, TARGET, TURNING)
    assert {one.rectangle for one in found.schedules} == {1}


@pytest.mark.parametrize("side", [56, 64])
def test_no_rectangle_is_better_than_rows(side: int) -> None:
    """As taps come from L2, and images from DRAM once; ties are for rows."""
    images = dataclasses.replace(IMAGES, m=4 * side * side, places=(side, side))
    found = enumerate_space(images, TARGET, TURNING)
    seconds = predict(images, found, TARGET).seconds
    for row, schedule in enumerate(found.schedules):
        rows = found.rows[dataclasses.replace(schedule, rectangle=1)]
        assert seconds[rows] <= seconds[row]
    ranking = preference.order(found, seconds)
    first = preference.lead(found, ranking, seconds)[0]
    assert found.schedules[first].rectangle == 1
    assert (found.axis("rectangle") > 1).any()


@pytest.mark.parametrize("places", [(56, 56), (55, 50), (9, 7)])
def test_blocks_with_rectangles_are_counted(places: tuple[int, int]) -> None:
    m = 6 * places[0] * places[1]
    problem = Problem(m, 64, 576, taps=Taps("A", 9, 1), places=places)
    some = [
        Schedule((64, 64, 32), (32, 32), (3, 2), rectangle=one) for one in (1, 4, 8, 64)
    ]
    costs = [check(problem, one, TARGET) for one in some]
    grid = traffic.grid(problem, Candidates(some, costs), TARGET)
    orders = [Rectangles(places, one.sides).numbers(m) // 64 for one in some[1:]]
    assert [*grid.blocks] == [-(-m // 64), *orders]
    assert grid.read_bytes == pytest.approx(problem.input_bytes)


def test_rectangles_that_do_not_fit_are_refused() -> None:
    schedule = Schedule((64, 64, 32), (32, 32), (3, 2), rectangle=8)
    check(IMAGES, schedule, TARGET)
    with pytest.raises(ConfigError, match="the rows of A are no windows of several"):
        check(Problem(4096, 64, 576), schedule, TARGET)


@pytest.mark.parametrize("operand", ["A", "B"])
def test_pixels_are_read_once(operand: str) -> None:
    """From memory, all taps of a pixel; the windows of a stride beside each other."""
    m, n, k = 4096, 4096, 9 * 64
    candidates = enumerate_space(Problem(m, n, k), TARGET)
    for fresh in (1, 4):
        taps = Taps(operand, 9, fresh)
        grid = traffic.grid(Problem(m, n, k, taps=taps), candidates, TARGET)
        windows, others = (m, n) if operand == "A" else (n, m)
        assert grid.read_bytes.min() == 2 * (windows * 64 * fresh + others * k)


def test_problems_come_back_from_records() -> None:
    problem = Problem(128, 64, 32, 3, "batch_matmul", layout="bmk,bkn")
    assert Problem.from_record(problem.to_record()) == problem
    assert "taps" not in problem.to_record()
    windows = dataclasses.replace(problem, taps=Taps("A", 2, 1))
    assert Problem.from_record(windows.to_record()) == windows != problem
    with pytest.raises(ConfigError, match=r"shape: expected an object, got \[1, 2\]"):
        Problem.from_record({**problem.to_record(), "shape": [1, 2]})


@pytest.mark.parametrize("size", [256, 2048], ids=["parts", "orders"])
def test_a_sample_compiles(size: int) -> None:
    """Nothing that is proposed fails to compile, whatever axis it is on."""
    compiler = pytest.importorskip(
        "alcop_mlir.compilation.compiler", exc_type=ImportError
    )
    from alcop_mlir.compilation import inputs

    problem = Problem(size, size, 512)
    source = inputs.read_text(_MATMUL.format(size=size))
    full = enumerate_space(problem, TARGET, FULL)
    some = sample(full, 7, seed=1).schedules
    assert {s.raster > 1 for s in some} == {size == 2048, False}
    assert {s.split_k > 1 for s in some} == {size == 256, False}
    for schedule in some:
        options = compiler.Options(TARGET, schedule, use_ptxas=False)
        bundle = compiler.compile_source(source, options)
        kernels = bundle.functions[0].kernels
        assert kernels[0].schedule == schedule
        assert len(kernels) == 1 + (schedule.split_k > 1)


_MATMUL = """
func.func @matmul(%A: memref<{size}x512xf16>, %B: memref<512x{size}xf16>,
                  %C: memref<{size}x{size}xf32>) {{
  linalg.matmul ins(%A, %B : memref<{size}x512xf16>, memref<512x{size}xf16>)
                outs(%C : memref<{size}x{size}xf32>)
  return
}}
"""


def test_of_most_candidates_no_schedule_is_made(monkeypatch) -> None:
    candidates = enumerate_space(PROBLEM, TARGET)
    made: list[dict[str, object]] = []
    real = Schedule.changed

    def counted(one: Schedule, **members: object) -> Schedule:
        made.append(members)
        return real(one, **members)

    monkeypatch.setattr(Schedule, "changed", counted)
    task = Task(PROBLEM, TARGET, candidates)
    ranking, _, _ = selection.ranked(task, None)
    assert candidates.schedules[ranking[0]] == candidates.schedules[ranking[0]]
    assert len(made) < len(candidates) / 10
    again = Candidates([*candidates.schedules], candidates.resources)
    assert (again.table == candidates.table).all()
