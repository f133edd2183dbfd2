"""The search: no repeats, budgets, seeds, early stop, and what strategies are worth."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tuning_cases import simulated_times, task

from alcop_mlir.errors import ConfigError
from alcop_mlir.schedule import Schedule
from alcop_mlir.tuning import strategies
from alcop_mlir.tuning.search import Budget, search

TASK = task(60)
TIMES = simulated_times(TASK)


def measure(schedules: Sequence[Schedule]) -> dict[Schedule, float]:
    return {schedule: TIMES[schedule] for schedule in schedules}


def run(name: str, budget: Budget, seed: int = 0, **options) -> list[Schedule]:
    strategy = strategies.make(name, (), seed)
    batches = search(TASK, strategy, measure, budget, **options)
    return [schedule for batch in batches for schedule in batch]


@pytest.mark.parametrize("name", strategies.NAMES)
def test_all_are_tried_and_none_twice(name: str) -> None:
    tried = run(name, Budget(), patience=None)
    assert len(tried) == len(set(tried)) == 60


@pytest.mark.parametrize("name", strategies.NAMES)
def test_the_same_seed_proposes_the_same(name: str) -> None:
    budget = Budget(trials=20)
    assert run(name, budget, 5, patience=None) == run(name, budget, 5, patience=None)


def test_another_seed_proposes_something_else() -> None:
    budget = Budget(trials=20)
    for name in ("random", "learned", "hybrid"):
        assert run(name, budget, 1, patience=None) != run(
            name, budget, 2, patience=None
        )


@given(st.integers(1, 70), st.integers(1, 20), st.sampled_from(("random", "grid")))
def test_the_budget_of_trials_is_kept(trials, batch, name) -> None:
    tried = run(name, Budget(trials=trials), batch=batch, patience=None)
    assert len(tried) == min(trials, 60)


def test_the_budget_of_seconds_is_kept() -> None:
    now = iter(range(100))
    tried = run(
        "grid", Budget(seconds=3), patience=None, clock=lambda: float(next(now))
    )
    assert len(tried) == 4 + 4  # the first batch in two halves


def test_it_stops_when_nothing_gets_better() -> None:
    order = sorted(TIMES, key=lambda schedule: TIMES[schedule])
    rows = np.array([TASK.candidates.rows[schedule] for schedule in order])
    falling = strategies.Fixed(lambda _: rows)
    found = list(search(TASK, falling, measure, Budget(), batch=8, patience=2))
    assert [len(batch) for batch in found] == [4, 4, 8, 8]


def test_what_is_known_is_not_tried_again_but_learned_from() -> None:
    known = dict.fromkeys(list(TIMES)[:30])
    for number, schedule in enumerate(known):
        known[schedule] = TIMES[schedule] if number % 3 else None
    for name in strategies.NAMES:
        tried = run(name, Budget(), patience=None, known=known)
        assert set(tried) == set(TIMES) - set(known)


def test_failures_are_tried_once_and_do_not_end_the_search() -> None:
    for name in ("learned", "hybrid"):
        strategy = strategies.make(name)
        found = search(TASK, strategy, dict.fromkeys, Budget(), patience=None)
        tried = [schedule for batch in found for schedule in batch]
        assert len(tried) == len(set(tried)) == 60


def test_strategies_with_a_model_beat_those_without() -> None:
    big = task(600)
    times = simulated_times(big)

    def best(name: str, trials: int) -> float:
        strategy = strategies.make(name)
        batches = search(
            big,
            strategy,
            lambda tried: {one: times[one] for one in tried},
            Budget(trials=trials),
            patience=None,
        )
        return min(s or np.inf for batch in batches for s in batch.values())

    exhaustive = min(times.values())
    assert exhaustive / best("hybrid", 8) > 0.9
    assert exhaustive / best("hybrid", 40) > 0.98
    assert best("hybrid", 40) <= best("random", 40)


@pytest.mark.parametrize("text", ["0", "0s", "-3", "1.5", "soon", ""])
def test_wrong_budgets_are_refused(text: str) -> None:
    with pytest.raises(ConfigError, match=f"budget '{text}', expected"):
        Budget.parse(text)


def test_budgets_are_read() -> None:
    assert Budget.parse("64") == Budget(trials=64)
    assert Budget.parse("2.5s") == Budget(seconds=2.5)


def test_an_unknown_strategy_is_refused() -> None:
    with pytest.raises(ConfigError, match="unknown strategy 'luck', expected one of"):
        strategies.make("luck")
