"""Which schedule is chosen: of a record, else of the learned or analytical model."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import numpy as np
import pytest
from tuning_cases import CUDA, PROBLEM, SIMULATED, TARGET, record, write_records

from alcop_mlir.errors import ConfigError
from alcop_mlir.schedule import Schedule
from alcop_mlir.target import find_target
from alcop_mlir.tuning import gpus, models, preference, records
from alcop_mlir.tuning.gpus import Gpu
from alcop_mlir.tuning.problem import Problem
from alcop_mlir.tuning.search import Task
from alcop_mlir.tuning.selection import Chooser
from alcop_mlir.tuning.space import FULL, enumerate_space

OTHER = Problem(256, 512, 1024)
OTHER_GPU = dataclasses.replace(CUDA, gpu="NVIDIA A30")
LOCAL = gpus.local  # which the fixture replaces
ODD = Schedule((64, 128, 128), (32, 32), (2, 2))  # not in the space


@pytest.fixture
def path() -> Path:
    return models.records_path()


def test_without_records_the_analytical_model_chooses() -> None:
    task = Task(PROBLEM, TARGET, enumerate_space(PROBLEM, TARGET))
    choice = Chooser(TARGET).choose(PROBLEM)
    assert choice.source == "analytical model"
    assert choice.seconds is not None
    assert choice.seconds <= preference.EQUAL * task.prediction.seconds.min()
    assert choice.sure is None


def test_records_of_other_problems_train_a_model(path: Path) -> None:
    write_records(path, models.LEAST_RECORDS, CUDA, OTHER)
    chooser = Chooser(TARGET)
    choice, ranking = chooser.choose(PROBLEM), chooser.ranking(PROBLEM)
    assert choice.source == "learned model"
    assert choice.sure is not None
    assert ranking.schedules[0] == choice.schedule
    assert ranking.predicted[ranking.rows[0]] == choice.seconds
    assert sorted(ranking.rows) == list(range(len(ranking.task.candidates)))


def test_the_fastest_record_of_the_problem_wins(path: Path) -> None:
    made = write_records(path, models.LEAST_RECORDS, CUDA)
    fastest = min(made, key=lambda one: one.seconds or 1.0)
    choice = Chooser(TARGET).choose(PROBLEM)
    assert (choice.source, choice.schedule) == ("record", fastest.schedule)
    assert choice.seconds == fastest.seconds


def test_a_recorded_schedule_outside_the_space_counts_too(path: Path) -> None:
    records.append(path, [record(ODD, 2e-6, CUDA)])
    chooser = Chooser(TARGET)
    choice = chooser.choose(PROBLEM)
    assert (choice.schedule, choice.seconds) == (ODD, 2e-6)
    ranking = chooser.ranking(PROBLEM).led_by(ODD)
    assert ranking.schedules[0] == ODD
    candidates = ranking.task.candidates
    assert len(ranking.predicted) == len(ranking.rows) == len(candidates)


def test_simulated_records_do_not_choose_for_a_gpu(path: Path) -> None:
    write_records(path, models.LEAST_RECORDS, SIMULATED)
    assert Chooser(TARGET).choose(PROBLEM).source == "analytical model"
    assert Chooser(TARGET, device="simulated").choose(PROBLEM).source == "record"


@pytest.mark.parametrize("name", ["sm_80", "sm_90a"])
def test_simulated_records_teach_nothing_about_a_gpu(
    path: Path, cache: Path, name: str
) -> None:
    """Neither the user's nor those shipped, nor a forest of them in the cache."""
    target = find_target(name)
    setting = dataclasses.replace(SIMULATED, target=name)
    write_records(path, models.LEAST_RECORDS, setting)
    simulated = Chooser(target, device="simulated")
    assert simulated.learned[0] is not None
    (kept,) = cache.glob("model-*")
    kept.rename(cache / f"model-cuda-{name}.bin")
    chooser = Chooser(target)
    assert chooser.learned == (None, ())
    assert chooser.choose(PROBLEM).source == "analytical model"


def test_a_forest_of_simulated_records_is_not_taken_for_one_of_a_gpu(
    path: Path, cache: Path
) -> None:
    """It lies where the GPU's would, and as many records of the GPU are there."""
    write_records(path, models.LEAST_RECORDS, SIMULATED)
    theirs, _ = Chooser(TARGET, device="simulated").learned
    (kept,) = cache.glob("model-*")
    kept.rename(cache / "model-cuda-sm_80.bin")
    write_records(path, models.LEAST_RECORDS, CUDA, OTHER)
    own, _ = Chooser(TARGET).learned
    assert theirs is not None
    assert own is not None
    assert not np.array_equal(own.value, theirs.value)


@pytest.mark.parametrize("gpu", ["NVIDIA A30", "", "NVIDIA A100-SXM4-80GB "])
def test_records_of_another_gpu_neither_choose_nor_teach(path: Path, gpu: str) -> None:
    setting = dataclasses.replace(CUDA, gpu=gpu)
    write_records(path, models.LEAST_RECORDS, setting)
    chooser = Chooser(TARGET)
    assert chooser.choose(PROBLEM).source == "analytical model"
    assert chooser.counted.notes == ()
    assert chooser.counted.left_out == (
        f"64 record(s) of {gpu or 'a GPU without a name'} do not count, only those of "
        "NVIDIA A100-SXM4-80GB",
    )


def test_the_gpu_is_this_machines_where_it_is_of_the_target(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_records(path, 1, OTHER_GPU)
    assert Chooser(TARGET).choose(PROBLEM).source == "analytical model"
    monkeypatch.setattr(gpus, "local", lambda: Gpu("NVIDIA A30", "1.0", 80))
    assert Chooser(TARGET).choose(PROBLEM).source == "record"
    assert gpus.compiled_for(find_target("sm_90")) == "NVIDIA H200"
    monkeypatch.setattr(gpus, "local", lambda: Gpu("NVIDIA B300", "1.0", 103))
    assert gpus.compiled_for(find_target("sm_90")) == "NVIDIA H200"
    assert gpus.compiled_for(find_target("sm_100")) == "NVIDIA B300"
    assert Chooser(TARGET).choose(PROBLEM).source == "analytical model"
    monkeypatch.setenv("ALCOP_GPU", "NVIDIA A30")
    assert Chooser(TARGET).choose(PROBLEM).source == "record"


@pytest.mark.parametrize(
    ("printed", "found"),
    [
        ("NVIDIA H20, 550.54.15, 9.0", Gpu("NVIDIA H20", "550.54.15", 90)),
        ("NVIDIA H20, 550.54.15, [N/A]", Gpu("NVIDIA H20", "550.54.15", 0)),
        ("No devices were found", None),
        ("", None),
    ],
)
def test_the_driver_says_which_gpu_is_the_first(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, printed: str, found: Gpu | None
) -> None:
    """That of `CUDA_VISIBLE_DEVICES`."""
    tool = tmp_path / "nvidia-smi"
    tool.write_text(f"#!/bin/sh\n[ $4 = 3 ] && echo '{printed}'\n")
    tool.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "3,1")
    assert LOCAL.__wrapped__() == found
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "2")
    assert LOCAL.__wrapped__() is None
    monkeypatch.setenv("PATH", "")
    assert LOCAL.__wrapped__() is None


def test_all_gpus_that_cuda_may_use_have_a_name_for_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tool = tmp_path / "nvidia-smi"
    lines = [f"NVIDIA {name}, 1.0, 9.0" for name in ("H20", "H200")]
    one, two = (f"echo '{line}'" for line in lines)
    tool.write_text(f"#!/bin/sh\n[ $4 ] || {one}\n[ $4 ] && [ $4 != 3 ] || {two}\n")
    tool.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    for asked, numbers in (("", ["0", "1"]), ("5,3", ["3"])):
        monkeypatch.setenv("CUDA_VISIBLE_DEVICES", asked)
        found = gpus.visible()
        assert [number for number, _ in found] == numbers
        assert found[-1][1] == Gpu("NVIDIA H200", "1.0", 90)


def test_the_gpu_of_this_machine_is_asked_for_once_there_are_records(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It costs a process."""

    def asked() -> Gpu:
        raise AssertionError

    monkeypatch.setattr(gpus, "local", asked)
    write_records(path, 1, SIMULATED)
    Chooser(TARGET).choose(PROBLEM)


@pytest.mark.parametrize("seconds", [1e-9, 8e-7])
def test_a_time_that_no_gpu_can_reach_decides_nothing(
    path: Path, seconds: float
) -> None:
    """512 cubed takes an A100 0.86 us of multiplications."""
    possible = record(ODD, 2e-6, CUDA)
    (slow,) = write_records(path, 1, CUDA)
    records.append(path, [record(slow.schedule, seconds, CUDA), possible])
    chooser = Chooser(TARGET)
    assert chooser.choose(PROBLEM).schedule == ODD
    (note,) = chooser.counted.notes
    assert note == (
        f"1 recorded time(s) are impossible and not used: {seconds:.3g} s for matmul "
        "512x512x512 f16->f32, at 2026-01-01T00:00:00+00:00"
    )


def test_other_gpus_of_a_target_may_be_faster_than_its_row() -> None:
    own = gpus.least_seconds(PROBLEM, TARGET, TARGET.device)
    other = gpus.least_seconds(PROBLEM, TARGET, "NVIDIA A30")
    assert 2e-7 < other < own < 1e-6


def test_a_record_that_is_no_longer_legal_is_reported_and_not_used(path: Path) -> None:
    huge = Schedule((256, 256, 128), (64, 64), (8, 1))
    records.append(path, [record(huge, 2e-6, CUDA)])
    choice = Chooser(TARGET).choose(PROBLEM)
    assert choice.schedule != huge
    (note,) = choice.notes
    assert note.startswith("a recorded schedule is not used: schedule 'block=256,256")


def test_damaged_records_are_reported(path: Path) -> None:
    path.parent.mkdir()
    path.write_text('{"schema": 7}\n{"torn')
    notes = Chooser(TARGET).counted.notes
    assert len(notes) == 2
    assert "of schema 7 skipped" in notes[1]


def test_records_that_cannot_be_read_are_reported(path: Path) -> None:
    path.mkdir(parents=True)
    chooser = Chooser(TARGET)
    assert chooser.choose(PROBLEM).source == "analytical model"
    assert chooser.counted.notes == (
        f"cannot read '{path}': Is a directory: no record is used",
    )


def test_a_problem_without_a_schedule_names_the_limit() -> None:
    tiny = dataclasses.replace(TARGET, shared_bytes_per_block=100)
    with pytest.raises(ConfigError, match=r"no legal schedule .*has 100 per block"):
        Chooser(tiny).choose(PROBLEM)


def test_whose_records_no_compile_uses(tmp_path: Path) -> None:
    def why(**options: object) -> str:
        return Chooser(TARGET, **options).unused()  # type: ignore[arg-type]

    assert why() == why(gpu=TARGET.device) == ""
    assert why(device="simulated") == "simulated times are of no GPU"
    assert why(path=tmp_path / "own") == f"it reads {models.records_path()}"
    assert why(gpu="NVIDIA A30") == (
        "for sm_80 it counts records of NVIDIA A100-SXM4-80GB only, not of NVIDIA A30"
    )
    assert why(space=FULL) == "it looks in the small space"
