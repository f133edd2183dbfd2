"""Own measurements correct predictions of candidates near them, and choose the next."""

from __future__ import annotations

import time

import numpy as np
import pytest
from tuning_cases import PROBLEM, TARGET, task

from alcop_mlir.tuning import residuals, strategies
from alcop_mlir.tuning.analytical import PARTS
from alcop_mlir.tuning.candidates import AXES
from alcop_mlir.tuning.residuals import Kernel, believe, choose
from alcop_mlir.tuning.search import Budget, Task, search
from alcop_mlir.tuning.space import enumerate_space

TASK = task(400)
PREDICTED = TASK.prediction.seconds
KERNEL = Kernel(TASK)
NONE = np.array([], np.int64)
# A GPU that is slower than the model says at short K steps.
SLOWER = np.where(TASK.candidates.axis("block_k") == 16, 1.6, 1.0) * PREDICTED


def rows_of(name: str, value: int) -> np.ndarray:
    return np.flatnonzero(TASK.candidates.axis(name) == value)


def test_every_parameter_and_part_has_its_numbers() -> None:
    assert tuple(residuals.LENGTHS) == AXES
    assert tuple(residuals.OF_PARTS) == PARTS


def test_what_is_measured_is_known_and_what_is_near_is_surer() -> None:
    some = np.arange(0, 400, 20)
    belief = believe(KERNEL, PREDICTED, some, SLOWER[some])
    mean, deviation = belief.expected(np.arange(400))
    assert np.abs(mean[some] - np.log(SLOWER[some])).max() < 0.12
    others = np.setdiff1d(np.arange(400), some)
    assert deviation[some].max() < np.median(deviation[others])


def test_others_with_the_same_fault_are_expected_to_be_slower_too() -> None:
    short, long = rows_of("block_k", 16), rows_of("block_k", 64)
    some = np.concatenate([short[::8], long[::8]])
    belief = believe(KERNEL, PREDICTED, some, SLOWER[some])
    mean, _ = belief.expected(np.arange(400))
    errors = mean - np.log(PREDICTED)
    untried = np.setdiff1d(short, some), np.setdiff1d(long, some)
    apart = np.median(errors[untried[0]]) - np.median(errors[untried[1]])
    assert apart == pytest.approx(np.log(1.6), abs=0.15)


def test_how_wrong_the_model_is_follows_from_the_measurements() -> None:
    some, generator = np.arange(0, 400, 10), np.random.default_rng(0)
    wild = PREDICTED * np.exp(0.3 * generator.normal(size=400))
    right = believe(KERNEL, PREDICTED, some, PREDICTED[some] * 3)
    wrong = believe(KERNEL, PREDICTED, some, wild[some])
    others = np.setdiff1d(np.arange(400), some)
    _, sure = right.expected(others)
    _, unsure = wrong.expected(others)
    assert np.median(sure) < 0.5 * np.median(unsure)


@pytest.mark.parametrize("factor", [1e-4, 1e4])
def test_an_outlier_does_not_bend_the_rest(factor: float) -> None:
    some = np.arange(0, 400, 10)
    seconds = PREDICTED[some].copy()
    seconds[7] *= factor
    belief = believe(KERNEL, PREDICTED, some, seconds)
    mean, _ = belief.expected(np.arange(400))
    errors = np.abs(mean - np.log(PREDICTED))
    assert np.median(errors) < 0.25
    assert errors.max() < 2.0


def test_a_batch_starts_with_what_the_compiler_takes_and_spreads() -> None:
    belief = believe(KERNEL, PREDICTED, NONE, np.array([]))
    generator = np.random.default_rng(0)
    chosen = choose(belief, np.arange(400), 8, generator, first=123)
    assert chosen[0] == 123
    assert len(set(chosen)) == 8
    best = np.argsort(PREDICTED)[:8]
    spread = len({tuple(TASK.candidates.table[row, :5]) for row in chosen})
    assert spread > len({tuple(TASK.candidates.table[row, :5]) for row in best})


def test_more_than_there_are_and_more_than_are_compared() -> None:
    belief = believe(KERNEL, PREDICTED, NONE, np.array([]))
    free = np.arange(100, 300)
    chosen = choose(belief, free, 1000, np.random.default_rng(0))
    assert sorted(chosen) == free.tolist()


def test_a_search_finds_what_the_model_has_wrong() -> None:
    """The model's favourites have short K steps on a GPU that is slow at these."""
    made = 0.5 * PREDICTED * np.where(TASK.candidates.axis("block_k") == 64, 0.5, 1.0)
    times = dict(zip(TASK.candidates.schedules, made.tolist(), strict=True))
    reached = {}
    for name in ("analytical", "hybrid"):
        found = search(
            TASK,
            strategies.make(name),
            lambda tried: {one: times[one] for one in tried},
            Budget(trials=12),
            patience=None,
        )
        reached[name] = made.min() / min(
            s or 1.0 for one in found for s in one.values()
        )
    assert reached["hybrid"] > 0.95
    assert reached["hybrid"] >= reached["analytical"]


def test_a_step_takes_less_than_a_second() -> None:
    """After more measurements than are learned from, of as many as are looked at."""
    big = Task(PROBLEM, TARGET, enumerate_space(PROBLEM, TARGET))
    predicted, kernel = big.prediction.seconds, Kernel(big)
    rows = np.argsort(predicted)[: residuals.MOST + 50]
    free = np.argsort(predicted)[len(rows) : residuals.SHORTLIST]
    start = time.process_time()
    belief = believe(kernel, predicted, rows, predicted[rows])
    assert len(choose(belief, free, 8, np.random.default_rng(0))) == 8
    assert time.process_time() - start < 1.0
