"""Which kernels a contraction with open sizes gets, and which of them runs."""

from __future__ import annotations

import itertools
import subprocess
import sys
import time
from dataclasses import replace

import numpy as np
import pytest
from tuning_cases import CUDA, TARGET, record

from alcop_mlir import resources, schedule_checks
from alcop_mlir.errors import ConfigError
from alcop_mlir.resources import Copies
from alcop_mlir.schedule import Schedule
from alcop_mlir.target import find_target
from alcop_mlir.tuning import code_size, models, open_variants, records
from alcop_mlir.tuning.analytical import predict
from alcop_mlir.tuning.candidates import Candidates
from alcop_mlir.tuning.decision_list import Rule, Table, choose
from alcop_mlir.tuning.open_kernels import MOST_OF_PARTS, copies, families
from alcop_mlir.tuning.open_problem import LOOPS, OpenProblem, from_points, sample
from alcop_mlir.tuning.open_variants import Pool
from alcop_mlir.tuning.records import Record
from alcop_mlir.tuning.selection import Chooser
from alcop_mlir.tuning.space import enumerate_space
from alcop_mlir.tuning.variant_times import conditions, fastest, samples_of, times
from alcop_mlir.variants import (
    NO_MOST,
    ScheduleVariant,
    SizeLimit,
    check_variants,
)

F16 = OpenProblem()
TF32 = OpenProblem(dtypes=("tf32", "tf32", "f32", "f32"))
S8 = OpenProblem(dtypes=("i8", "i8", "i32", "i32"), layout="mk,nk")
ROWS_OF_4096 = OpenProblem(n=(4096, 4096), k=(4096, 4096), row_bytes=(16, 16))
BATCHED = OpenProblem(batch=(1, 1024), op="batch_matmul", layout="bmk,bkn")
PROBLEMS = (F16, TF32, S8, ROWS_OF_4096, BATCHED, OpenProblem(m=(1, 64)))
NAMES = ("f16", "tf32", "s8", "rows of 4096", "batched", "small M")


def one_of(problem: OpenProblem) -> Schedule:
    """The kernel without variants, as `default_schedule` has it."""
    if copies(problem, 1).are_narrow:
        return Schedule((64, 64, 64 // problem.element_bytes), (32, 32), (4, 2))
    return Schedule((128, 128, 64 // problem.element_bytes), (64, 64), (4, 2))


def variants_of(problem: OpenProblem, most: int = 4) -> tuple[ScheduleVariant, ...]:
    return open_variants.choose(problem, TARGET, most, one_of(problem))


def lines_of(problem: OpenProblem, schedule: Schedule, row_bytes: int) -> float:
    return code_size.lines(schedule, problem.element_bytes, copies(problem, row_bytes))


@pytest.mark.parametrize(
    "problem",
    [
        *(replace(F16, layout=layout) for layout in ("mk,kn", "mk,nk", "km,kn")),
        TF32,
        S8,
    ],
    ids=("nn", "nt", "tn", "tf32", "s8"),
)
def test_code_of_all_is_three_times_that_of_one(problem: OpenProblem) -> None:
    """What is there once, as long as 190 lines, counts on both sides."""
    one = lines_of(problem, one_of(problem), 1)
    found = variants_of(problem)
    assert len(found) == 4
    kernels = {(variant.schedule, variant.row_bytes) for variant in found}
    together = sum(lines_of(problem, *kernel) for kernel in kernels)
    assert 190 + together <= 3 * (190 + one)


def test_more_than_the_default_may_have_more_code() -> None:
    small = Schedule((64, 64, 32), (64, 32), (2, 2))
    one = lines_of(ROWS_OF_4096, small, 1)
    found: dict[int, float] = {}
    for most in (2, 4, 8):
        every = open_variants.choose(ROWS_OF_4096, TARGET, most, small)
        assert len(every) == 1 or every[-1].schedule != every[-2].schedule
        kernels = {variant.schedule for variant in every}
        lines = [lines_of(ROWS_OF_4096, kernel, 1) for kernel in kernels]
        found[most] = (190 + sum(lines)) / (190 + one)
    assert max(found[2], found[4]) <= 3
    assert found[4] < found[8] <= 6


@pytest.mark.parametrize("problem", PROBLEMS, ids=NAMES)
def test_each_is_legal_and_the_last_is_for_all_sizes(problem: OpenProblem) -> None:
    found = variants_of(problem)
    check_variants(found)
    assert 1 <= len(found) <= 4
    for variant in found:
        schedule = variant.schedule
        copied = copies(problem, variant.row_bytes)
        resources.cost(schedule, TARGET, problem.element_bytes, copies=copied)
        schedule_checks.check_k_step(schedule, problem.element_bytes, problem.dtypes[0])
        assert schedule.split_k == 1 or problem.op == "matmul"
        assert not copied.are_narrow or schedule.split_k == 1
        for limit in variant.limits:
            assert {*limit.loops} <= {*problem.open_loops}


def test_one_is_for_all_sizes_though_parts_of_k_are_faster() -> None:
    """A long K and few columns: for each sample the fastest has K in parts."""
    problem = OpenProblem(m=(1, 16), n=(32, 32), k=(18816, 18816), row_bytes=(16, 16))
    found = variants_of(problem)
    check_variants(found)
    assert max(one.schedule.split_k for one in found) > 1
    assert found[-1].schedule.split_k == 1


@pytest.mark.parametrize("name", ["sm_86", "sm_90"])
def test_all_targets_have_variants(name: str) -> None:
    found = open_variants.choose(F16, find_target(name), 2, one_of(F16))
    assert [variant.row_bytes == 1 for variant in found][-1]


def test_aligned_rows_are_asked_for_only_where_that_may_fail() -> None:
    assert {variant.row_bytes for variant in variants_of(ROWS_OF_4096)} == {1}
    assert 16 in {variant.row_bytes for variant in variants_of(F16)}
    # Rows of f32 are multiples of 4 bytes, and so no kernel asks for that.
    assert {one.row_bytes for one in families(TF32, TARGET)} == {16, 1}
    assert [copies(TF32, one).at_once for one in (16, 1)] == [(16, 16), (4, 4)]
    widths = [copies(F16, one).at_once for one in (16, 4, 1)]
    assert widths == [(16, 16), (4, 4), (2, 2)]


def test_no_aligned_kernel_where_rows_never_are() -> None:
    odd = OpenProblem(k=(4095, 4095), layout="mk,nk")
    assert {variant.row_bytes for variant in variants_of(odd)} == {1}


def test_rows_that_are_known_are_not_asked_about() -> None:
    """Those of A are of an odd length; those of B may be aligned."""
    half = OpenProblem(k=(4095, 4095))
    assert [copies(half, one).at_once for one in (16, 4, 1)] == [
        (2, 16),
        (2, 4),
        (2, 2),
    ]
    assert 16 in {variant.row_bytes for variant in variants_of(half)}
    even = replace(half, k=(4094, 4094), row_bytes=(4, 1))
    assert [copies(even, one).at_once for one in (16, 1)] == [(4, 16), (4, 2)]


def test_known_sizes_with_open_strides() -> None:
    """Their length does not count, only strides do; the sizes have no limits."""
    apart = OpenProblem((500, 500), (301, 301), (511, 511), open_strides="ABC")
    found = variants_of(apart)
    assert [variant.row_bytes for variant in found] == [16, 4, 1]
    assert not any(variant.limits for variant in found)
    assert copies(apart, 16).at_once == (16, 16)
    one = replace(apart, open_strides="B", row_bytes=(2, 1))
    assert [copies(one, asked).at_once for asked in (16, 4, 1)] == [
        (2, 16),
        (2, 4),
        (2, 2),
    ]


def test_both_sides_of_every_limit() -> None:
    """At a limit a variant runs, one beyond it does not."""
    tried = 0
    orders: set[bool] = set()
    for problem in (F16, TF32, S8, ROWS_OF_4096):
        found = variants_of(problem)
        for number, variant in enumerate(found):
            for limit in variant.limits:
                loop = limit.loops[0]
                known = {one: low for one, (low, _) in problem.ranges.items()}
                is_most = limit.most < NO_MOST
                border = limit.most if is_most else limit.least
                inside = known | {loop: border}
                outside = known | {loop: border + (1 if is_most else -1)}
                both = samples_of(problem, [inside, outside])
                asked = conditions(variant, problem.element_bytes)
                text = f"{'<=' if is_most else '>='} {border}"
                (own,) = [one for one in asked if text in str(one)]
                assert own.holds(both).tolist() == [True, False]
                decided = times(problem, TARGET, found, both)
                assert not decided.holds[1, number]
                orders.add(is_most)
                tried += 1
    assert tried > 4
    assert orders == {True, False}


def test_parts_of_k_are_for_whole_parts_only() -> None:
    problem = OpenProblem(m=(1, 64), n=(64, 1024), k=(4096, 16384))
    found = variants_of(problem)
    split = [number for number, one in enumerate(found) if one.schedule.split_k > 1]
    assert split
    for number in split:
        part = found[number].schedule.split_k * 8
        sizes = [{"m": 1, "n": 64, "k": part * 64 + more} for more in (0, 8)]
        held = times(problem, TARGET, found, samples_of(problem, sizes)).holds
        assert not held[1, number] or part == 8


@pytest.mark.parametrize(
    ("sizes", "limits", "expected"),
    [
        ({}, [SizeLimit("k", least=512)], [SizeLimit("mn", MOST_OF_PARTS)]),
        ({}, [SizeLimit("mn", 2**30)], [SizeLimit("mn", MOST_OF_PARTS)]),
        ({}, [SizeLimit("mn", 2**18)], []),
        ({"n": (64, 64)}, [], [SizeLimit("m", MOST_OF_PARTS // 64)]),
        ({"m": (64, 64), "n": (64, 64)}, [], []),
    ],
)
def test_parts_of_k_are_for_small_outputs_only(
    sizes: dict[str, tuple[int, int]],
    limits: list[SizeLimit],
    expected: list[SizeLimit],
) -> None:
    """All parts are in memory at once, and large outputs have blocks enough."""
    problem = replace(F16, **sizes)
    kernels = families(problem, TARGET)[0]
    number, schedule = next(
        (number, one)
        for number, one in enumerate(kernels.candidates.schedules)
        if one.split_k > 1
    )
    found = Pool([kernels]).variant(number, limits, "")
    assert found.schedule == schedule
    kept = [one for one in limits if one.most <= MOST_OF_PARTS or one.least]
    assert [*found.limits] == [*kept, *expected]
    samples = samples_of(F16, [{"m": 2**10, "n": n, "k": 8192} for n in (2**10, 2**11)])
    assert families(F16, TARGET)[0].of([schedule]).holds(samples).tolist() == [
        [True],
        [False],
    ]


def test_aligned_rows_run_wide_copies_where_there_are_many() -> None:
    large = [{"m": n, "n": n, "k": n} for n in (1024, 4096, 16384)]
    # Larger tiles of s8 are more code than there is room for beside the others.
    for problem, most in ((F16, 1.25), (TF32, 1.25), (S8, 1.65)):
        found, samples = variants_of(problem), samples_of(problem, large)
        decided = times(problem, TARGET, found, samples)
        assert {found[number].row_bytes for number in decided.runs.tolist()} == {16}
        best, _ = fastest(problem, TARGET, samples)
        assert (decided.taken < most * best).all()


def test_elements_are_loaded_a_step_early_where_registers_have_stages() -> None:
    problem = F16.at(1, 512, 512, 8192)
    kernels = [
        Schedule((64, 64, 32), (32, 32), (shared, registers))
        for shared, registers in ((4, 1), (2, 2), (4, 2))
    ]
    candidates = Candidates.legal(kernels, problem, TARGET)
    found = predict(problem, candidates, TARGET, Copies((2, 2))).parts["copies"]
    assert 0 < found[2] == found[1] < found[0]


def test_more_variants_lose_less_and_few_lose_little() -> None:
    """Over other sizes than those that they were chosen for."""
    points = np.random.default_rng(3).uniform(size=(300, 4))
    samples = from_points(F16, points, np.arange(300))
    best, _ = fastest(F16, TARGET, samples)
    means: list[float] = []
    for most in (1, 2, 4):
        taken = times(F16, TARGET, variants_of(F16, most), samples).taken
        means.append(float((taken / best).mean()))
        assert (taken >= best * 0.999).all()
    assert means == sorted(means, reverse=True)
    assert means[-1] < 1.3 < 1.6 < means[0]


def test_the_same_in_each_process() -> None:
    one = one_of(F16)
    program = (
        "from alcop_mlir.tuning import open_variants as v, open_problem as p\n"
        "from alcop_mlir.target import find_target\n"
        "from alcop_mlir.schedule import Schedule as s\n"
        f"print(v.choose(p.OpenProblem(), find_target('sm_80'), 4, s.parse('{one}')))"
    )
    found = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    assert found.stdout.strip() == str(variants_of(F16))


def test_a_choice_is_fast_and_made_once() -> None:
    """About a second on a fast core; ten times as long is another method."""
    open_variants.choose.cache_clear()
    start = time.process_time()
    first = variants_of(F16)
    assert time.process_time() - start < 10
    assert variants_of(F16) is first


def test_samples_are_in_their_ranges_and_of_all_kinds() -> None:
    problem = OpenProblem(m=(3, 70), n=(64, 64), k=(100, 9000))
    found = sample(problem, 256)
    for number, loop in enumerate(LOOPS):
        low, high = problem.ranges[loop]
        sizes = found.sizes[:, number]
        assert low <= sizes.min() <= sizes.max() <= high
    words = found.row_bytes & -found.row_bytes
    assert {2, 4, 16} <= {*words.tolist()}
    promised = sample(OpenProblem(row_bytes=(16, 16)), 256)
    assert (promised.sizes[:, 2:] * 2 % 16 == 0).all()


def test_a_table_of_sizes_is_predicted_as_each_alone() -> None:
    sizes = [{"m": 512, "n": 1024, "k": 512}, {"m": 64, "n": 4096, "k": 1024}]
    samples = samples_of(F16, sizes)
    problem = F16.at(1, **sizes[0])
    candidates = enumerate_space(problem, TARGET)
    together = predict(samples.problems, candidates, TARGET)
    for row, one in enumerate(sizes):
        alone = predict(F16.at(1, **one), candidates, TARGET)
        assert np.allclose(together.seconds[row], alone.seconds)
        parts = [part[row] for part in together.parts.values()]
        assert np.allclose(np.sum(parts, axis=0), alone.seconds)


def test_narrow_copies_take_longer() -> None:
    problem = F16.at(1, 4096, 4096, 4096)
    candidates = enumerate_space(problem, TARGET)
    by_width = [
        predict(problem, candidates, TARGET, Copies((n, n))).seconds for n in (16, 4, 2)
    ]
    for wide, narrow in itertools.pairwise(by_width):
        assert (wide < narrow).all()


def test_a_warp_copies_by_the_units_of_its_sub_core() -> None:
    """A block of one warp has a quarter of the units, so that five take as eight do."""
    found: list[float] = []
    for blocks in (4, 5, 8):  # on each SM
        problem = F16.at(1, 16, 16 * blocks * TARGET.sms, 4096)
        (kernel,) = families(F16, TARGET)[1:2]
        alone = kernel.of([Schedule((16, 16, 64), (16, 16), (4, 2))])
        assert alone.copies == Copies((4, 4))
        sizes = [{"m": problem.m, "n": problem.n, "k": problem.k}]
        parts = alone.prediction(samples_of(F16, sizes)).parts
        found.append(float(parts["narrow copies"][0, 0]))
    assert found[1] == found[2] == 2 * found[0]


def test_few_aligned_rows_run_wide_copies() -> None:
    """Although narrow ones would do for sizes that are not aligned, too."""
    found = variants_of(F16)
    few = [{"m": m, "n": 4096, "k": 4096} for m in (1, 17, 32)]
    samples = samples_of(F16, few)
    decided = times(F16, TARGET, found, samples)
    assert {found[number].row_bytes for number in decided.runs.tolist()} == {16}
    best, _ = fastest(F16, TARGET, samples)
    assert (decided.taken < 1.25 * best).all()


def test_a_target_without_room_has_no_variants() -> None:
    tiny = replace(TARGET, shared_bytes_per_block=64)
    with pytest.raises(ConfigError, match="no schedule for all sizes is legal"):
        open_variants.choose(F16, tiny, 4, one_of(F16))


def best_list(table: Table, most: int) -> float:
    """The least value of all lists with `most` rules of one limit, by trying all."""
    columns = range(table.losses.shape[1])
    limits = [(0, int(value)) for value in np.unique(table.levels)]
    rules = [Rule(c, limit) for c in columns for limit in [(), *[(x,) for x in limits]]]
    lasts = [Rule(c) for c in columns if table.for_all[c]]
    return min(
        table.value([*some, last])
        for some in itertools.product(rules, repeat=most - 1)
        for last in lasts
    )


def test_lists_are_nearly_the_best_of_all() -> None:
    generator = np.random.default_rng(0)
    for _ in range(5):
        losses = 1.0 + generator.exponential(size=(24, 4))
        losses[generator.uniform(size=(24, 4)) < 0.2] = np.inf
        losses[:, 0] = 1.0 + generator.exponential(size=24)
        levels = generator.integers(0, 6, size=(24, 1))
        free = Table(losses, np.arange(4) == 0, levels, np.ones(24), np.zeros(4))
        costly = replace(free, costs=np.array([0.3, 0.5, 0.6, 0.3]))
        for table, most in ((free, 1.03), (costly, 1.05)):
            found = choose(table, 3)
            assert table.value(found) <= best_list(table, 3) * most
            assert np.isfinite(table.loss(found)).all()
            assert table.cost(found) <= 1
        assert free.mean(choose(free, 3)) <= costly.mean(choose(costly, 3))


def test_what_nothing_can_keep_within_is_as_cheap_as_can_be() -> None:
    losses = np.array([[1.0, 2.0, 1.0]])
    every = np.array([True, True, False])
    costs = np.array([3.0, 2.0, 0.1])
    table = Table(losses, every, np.zeros((1, 1), np.int64), np.ones(1), costs)
    assert choose(table, 1) == [Rule(1)]


def test_words_that_are_not_along_k_are_loaded_one_by_one() -> None:
    for layout, count in (("mk,nk", 0), ("mk,kn", 1), ("km,nk", 1), ("km,kn", 2)):
        problem = replace(TF32, layout=layout)
        assert copies(problem, 16).word_loads == count
        assert problem.at(1, 8, 8, 8).copies.word_loads == min(count, 1)
        assert copies(replace(F16, layout=layout), 16).word_loads == 0


def test_what_was_measured_counts() -> None:
    """A schedule of no model's, at sizes where others were measured as predicted."""
    odd = Schedule((64, 128, 128), (32, 32), (2, 2))
    recorded: list[Record] = []
    for m in (1024, 2048, 4096):
        problem = ROWS_OF_4096.at(1, m, 4096, 4096)
        known = enumerate_space(problem, TARGET).take([0, 100, 200])
        seconds = predict(problem, known, TARGET).seconds.tolist()
        for schedule, time_of in zip(known.schedules, seconds, strict=True):
            recorded.append(record(schedule, 3 * time_of, CUDA, problem))
        recorded.append(record(odd, 0.1 * min(seconds), CUDA, problem))
    one = one_of(ROWS_OF_4096)
    chosen = open_variants.choose(ROWS_OF_4096, TARGET, 3, one, tuple(recorded))
    assert odd in {variant.schedule for variant in chosen}
    assert {variant.source for variant in chosen} == {"records and analytical model"}


def test_records_of_these_sizes_reach_the_choice() -> None:
    problem = ROWS_OF_4096.at(1, 1024, 4096, 4096)
    other = replace(problem, n=2048)
    some = enumerate_space(problem, TARGET).schedules[0]
    for of, source in ((other, "analytical model"), (problem, "records and")):
        records.append(models.records_path(), [record(some, 1e-3, CUDA, of)])
        found = Chooser(TARGET).variants(ROWS_OF_4096, 2, one_of(ROWS_OF_4096))
        assert all(one.source.startswith(source) for one in found)
