"""What records of other GPUs say: where a search begins, and no more."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from tuning_cases import CUDA, PROBLEM, TARGET, record, task, write_records

from alcop_mlir.target import TARGETS, find_target
from alcop_mlir.tuning import models, records, strategies, training
from alcop_mlir.tuning import record_book as book
from alcop_mlir.tuning.candidates import FloatArray
from alcop_mlir.tuning.counted import count_elsewhere
from alcop_mlir.tuning.features import Samples
from alcop_mlir.tuning.learned import Forest
from alcop_mlir.tuning.problem import Problem
from alcop_mlir.tuning.records import Record
from alcop_mlir.tuning.search import Budget, History, Strategy, Task, search
from alcop_mlir.tuning.selection import Chooser

H20 = replace(CUDA, target="sm_90", gpu="NVIDIA H20")
A30 = replace(CUDA, gpu="NVIDIA A30")
OTHER = Problem(512, 768, 1024)


def strange(one: Task) -> FloatArray:
    """Seconds on GPUs that are slow with few stages, which no model expects."""
    few = one.candidates.axis("shared_stages") <= 3
    return one.prediction.seconds * np.where(few, 2.0, 1.0) * 3.0


def learned_on(seconds: FloatArray, one: Task) -> Forest:
    said = models.compared(Samples(one.features, one.prediction.seconds, seconds))
    return training.train(None, [said])


def tried(one: Task, strategy: Strategy, seconds: FloatArray, count: int) -> FloatArray:
    """Seconds of what a search tries, in that order."""
    seen: list[float] = []

    def measure(schedules: list[object]) -> dict[object, float]:
        found = {s: float(seconds[one.candidates.rows[s]]) for s in schedules}  # type: ignore[index]
        seen.extend(found.values())
        return found

    for _ in search(one, strategy, measure, Budget(trials=count), patience=None):  # type: ignore[arg-type]
        pass
    return np.array(seen)


def known(*some: Record) -> dict[str, list[str]]:
    """The GPUs that are learned from, by target, for one called as `TARGET`'s."""
    read = book.of_data(records.lines(some), "some records")
    found = count_elsewhere([read], TARGETS, "cuda", TARGET.device)
    return {t.name: [r.setting.gpu for r in one.records] for t, one in found.items()}


def test_records_of_other_gpus_and_targets_are_found() -> None:
    schedule = task(1).candidates.schedules[0]
    own, a30, h20 = (record(schedule, 1e-3, one) for one in (CUDA, A30, H20))
    failed = record(schedule, None, A30)
    cannot_be = record(schedule, 1e-12, A30)
    assert known(own, a30, h20, failed, cannot_be) == {
        "sm_80": ["NVIDIA A30"],
        "sm_90": ["NVIDIA H20"],
    }
    assert known(own) == {}


def test_how_fast_the_other_gpu_is_says_nothing() -> None:
    some = task(64)
    twice = Samples(some.features, some.prediction.seconds, strange(some) * 2)
    once = Samples(some.features, some.prediction.seconds, strange(some))
    np.testing.assert_allclose(
        models.compared(twice).seconds, models.compared(once).seconds
    )


def test_a_search_begins_with_what_other_gpus_say() -> None:
    other, mine = task(512, OTHER), task(512)
    elsewhere = learned_on(strange(other), other)
    seconds = strange(mine)
    plain = tried(mine, strategies.make("hybrid"), seconds, 8)
    told = tried(mine, strategies.make("hybrid", elsewhere=elsewhere), seconds, 8)
    assert told[0] == plain[0], "the first is what the compiler takes"
    assert np.median(told[1:]) < np.median(plain[1:])
    assert told.min() == seconds.min()


@pytest.mark.parametrize("count", [1, 3, 8])
def test_each_is_proposed_once(count: int) -> None:
    """Half by what other GPUs say, and the compiler's choice among them."""
    other, mine = task(512, OTHER), task(512, Problem(1024, 1024, 1024))
    elsewhere = learned_on(strange(other), other)
    for seed in range(8):
        plain = strategies.make("hybrid", seed=seed)
        told = strategies.make("hybrid", seed=seed, elsewhere=elsewhere)
        proposed = told.propose(mine, History(), count)
        assert len({*proposed}) == len(proposed) == count
        assert proposed[0] == plain.propose(mine, History(), count)[0]


def test_a_search_forgets_what_is_wrong_here() -> None:
    other, mine = task(512, OTHER), task(512)
    elsewhere = learned_on(strange(other), other)
    many = mine.candidates.axis("shared_stages") > 3
    seconds = mine.prediction.seconds * np.where(many, 2.0, 1.0)
    told = tried(mine, strategies.make("hybrid", elsewhere=elsewhere), seconds, 24)
    assert told.min() <= 1.02 * seconds.min()


def test_no_schedule_is_chosen_by_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ALCOP_CACHE_DIR", str(tmp_path))
    before = Chooser(TARGET).choose(PROBLEM)
    write_records(models.records_path(), 80, A30, OTHER)
    chooser = Chooser(TARGET)
    forest, notes = chooser.elsewhere
    assert forest is not None
    assert notes == ("the search begins with what 80 records of other GPUs say",)
    after = chooser.choose(PROBLEM)
    assert (after.schedule, after.source) == (before.schedule, before.source)


def test_few_records_say_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ALCOP_CACHE_DIR", str(tmp_path))
    write_records(models.records_path(), models.LEAST_RECORDS - 1, H20, OTHER)
    assert Chooser(TARGET).elsewhere == (None, ())
    assert Chooser(find_target("sm_90"), device="simulated").elsewhere == (None, ())
