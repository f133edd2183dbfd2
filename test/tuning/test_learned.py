"""Trained models: as scikit-learn predicts, without it; damaged caches are rebuilt."""

from __future__ import annotations

import hashlib
import io
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tuning_cases import CUDA, SIMULATED, TARGET, counted, write_records

from alcop_mlir.measurement.simulator import simulate
from alcop_mlir.tuning import learned, models, records, training
from alcop_mlir.tuning.candidates import Candidates
from alcop_mlir.tuning.features import NAMES
from alcop_mlir.tuning.problem import Problem
from alcop_mlir.tuning.space import check


@pytest.fixture
def known(tmp_path: Path) -> list[records.Record]:
    return write_records(tmp_path / "some.jsonl", models.LEAST_RECORDS)


def data(rows: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    generator = np.random.default_rng(rows)
    features = generator.normal(size=(rows, 7))
    values = np.sin(features[:, 0]) + features[:, 1] ** 2
    return features, values, generator.random(rows) + 0.1


def fit(*arguments: Any) -> learned.Forest:
    return training.to_arrays(training.regressor(*arguments))


@pytest.mark.parametrize("rows", [1, 5, 40, 300])
def test_predictions_are_those_of_scikit_learn(rows: int) -> None:
    theirs = training.regressor(*data(rows), seed=3, trees=16)
    ours = training.to_arrays(theirs)
    asked = np.random.default_rng(0).normal(size=(500, 7)) * 2
    mean, spread = ours.predict(asked)
    assert np.allclose(mean, theirs.predict(asked), rtol=1e-12, atol=0)
    each = np.stack([tree.predict(asked) for tree in theirs.estimators_], axis=1)
    assert np.array_equal(ours.trees(asked), each)
    assert np.allclose(spread, each.std(axis=1))


def test_the_same_seed_gives_the_same_forest() -> None:
    first, second, other = (fit(*data(50), seed, 8) for seed in (1, 1, 2))
    assert np.array_equal(first.threshold, second.threshold)
    assert not np.array_equal(first.threshold[:9], other.threshold[:9])


def test_a_stored_forest_comes_back(tmp_path: Path) -> None:
    forest = fit(*data(50), 0, 8)
    learned.store(forest, tmp_path / "m.bin", "key")
    again = learned.load(tmp_path / "m.bin", "key", 7)
    assert again is not None
    asked = data(20)[0]
    assert np.array_equal(again.trees(asked), forest.trees(asked))
    assert learned.load(tmp_path / "m.bin", "other key", 7) is None
    assert learned.load(tmp_path / "m.bin", "key", 8) is None
    assert learned.load(tmp_path / "missing.bin", "key", 7) is None


def test_damage_is_found_wherever_it_is(tmp_path: Path) -> None:
    path = tmp_path / "m.bin"
    learned.store(fit(*data(10), 0, 2), path, "key")
    whole = path.read_bytes()
    generator = np.random.default_rng(0)
    for place in generator.integers(0, len(whole), 200).tolist():
        broken = bytearray(whole)
        broken[place] ^= 0x55
        path.write_bytes(broken)
        assert learned.load(path, "key", 7) is None
    for size in (0, 1, len(whole) // 2, len(whole) - 1):
        path.write_bytes(whole[:size])
        assert learned.load(path, "key", 7) is None


def test_a_tree_that_walks_in_circles_is_refused(tmp_path: Path) -> None:
    forest = fit(*data(50), 0, 2)
    forest.left[0] = 0
    learned.store(forest, tmp_path / "m.bin", "key")
    assert learned.load(tmp_path / "m.bin", "key", 7) is None


def test_pickles_are_never_opened(tmp_path: Path) -> None:
    data = io.BytesIO()
    np.savez(data, roots=np.array([Boom()], dtype=object))
    digest = hashlib.sha256(b"key" + data.getvalue()).digest()
    (tmp_path / "m.bin").write_bytes(digest + data.getvalue())
    assert learned.load(tmp_path / "m.bin", "key", 7) is None


class Boom:
    """Unpickling it ends the test run."""

    def __reduce__(self) -> tuple[object, tuple[int]]:
        return sys.exit, (1,)


def test_too_few_records_give_no_model(known: list[records.Record]) -> None:
    assert models.load_or_train(counted(known[:-1]), "simulated", TARGET) == (None, ())


def test_records_of_another_device_give_no_model(known: list[records.Record]) -> None:
    assert models.load_or_train(counted(known, "cuda"), "cuda", TARGET) == (None, ())
    assert known[0].setting == SIMULATED != CUDA


def test_a_model_is_trained_once(
    known: list[records.Record], cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first, notes = models.load_or_train(counted(known), "simulated", TARGET)
    assert first is not None
    assert notes == ()
    (file,) = cache.iterdir()
    assert file.name == "model-simulated-sm_80.bin"
    monkeypatch.setattr(training, "train", None)
    again, _ = models.load_or_train(counted(known), "simulated", TARGET)
    assert again is not None
    asked = np.random.default_rng(0).normal(size=(50, len(NAMES)))
    assert np.array_equal(first.trees(asked), again.trees(asked))


def test_other_records_or_damage_make_it_train_again(
    known: list[records.Record], cache: Path
) -> None:
    models.load_or_train(counted(known), "simulated", TARGET)
    (file,) = cache.iterdir()
    first = file.read_bytes()
    models.load_or_train(counted([*known, known[0]]), "simulated", TARGET)
    assert file.read_bytes() != first
    file.write_bytes(first[: len(first) // 2])
    forest, notes = models.load_or_train(counted(known), "simulated", TARGET)
    assert forest is not None
    assert notes == ()
    assert file.read_bytes() == first


def test_a_cache_that_cannot_be_written_is_reported(
    known: list[records.Record], cache: Path
) -> None:
    cache.write_text("a file where the folder should be")
    forest, (note,) = models.load_or_train(counted(known), "simulated", TARGET)
    assert forest is not None
    assert "the trained model is not kept, it will be trained again: " in note


def test_shipped_records_train_in_seconds_and_choosing_is_light(cache: Path) -> None:
    """Two CPU seconds on a fast core. Choosing takes 1.2 million calls, or 0.3 s."""
    run = f"""
import sys, time
from alcop_mlir.target import find_target
from alcop_mlir.tuning import models, records, selection
from alcop_mlir.tuning.counted import count
assert "numpy" in sys.modules and "sklearn" not in sys.modules
from alcop_mlir.tuning.problem import Problem
target = find_target("{TARGET.name}")
known = count([models.shipped_book("simulated", target)], target, "simulated", None)
start = time.process_time()
assert models.load_or_train(known, "simulated", target)[0] is not None
trained = time.process_time() - start
assert trained < 10, trained
"""
    choose = f"""
import sys
from alcop_mlir.target import find_target
from alcop_mlir.tuning import selection
from alcop_mlir.tuning.problem import Problem
import numpy
calls = 0
def note(frame, event, argument):
    global calls
    calls += event in ("call", "c_call")
target = find_target("{TARGET.name}")
sys.setprofile(note)
chooser = selection.Chooser(target, device="simulated")
assert chooser.choose(Problem(1024, 2048, 512)).source == "learned model"
sys.setprofile(None)
assert calls < 2_000_000, calls
assert not [m for m in sys.modules if m.split(".")[0] in ("sklearn", "rich", "scipy")]
"""
    for program in (run, choose):
        done = subprocess.run([sys.executable, "-c", program], capture_output=True)
        assert done.returncode == 0, done.stderr.decode()


def test_shipped_records_are_what_is_simulated_now() -> None:
    """If not: python bench/bench_tuning.py --collect, into the file that is shipped."""
    by_problem: dict[Problem, list[records.Record]] = {}
    for one in models.shipped("simulated", TARGET):
        by_problem.setdefault(one.problem, []).append(one)
    assert len(by_problem) == 26
    for problem, mine in by_problem.items():
        schedules = [one.schedule for one in mine]
        costs = [check(problem, schedule, TARGET) for schedule in schedules]
        now = simulate(problem, Candidates(schedules, costs), TARGET)
        assert now == pytest.approx([one.seconds for one in mine])


def test_importing_the_package_is_light() -> None:
    program = "import sys, alcop_mlir.tuning; assert 'numpy' not in sys.modules"
    subprocess.run([sys.executable, "-c", program], check=True)
