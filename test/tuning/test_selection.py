"""Which schedule is chosen: of a record, else of the learned or analytical model."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import numpy as np
import pytest
from tuning_cases import CUDA, PROBLEM, SIMULATED, TARGET, record, write_records

from alcop_mlir.errors import ConfigError
from alcop_mlir.schedule import Schedule
from alcop_mlir.tuning import models, records, selection
from alcop_mlir.tuning.problem import Problem
from alcop_mlir.tuning.search import Task
from alcop_mlir.tuning.space import enumerate_space

OTHER = Problem(256, 512, 1024)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "records.jsonl"


def test_without_records_the_analytical_model_chooses(path: Path) -> None:
    task = Task(PROBLEM, TARGET, enumerate_space(PROBLEM, TARGET))
    fastest = int(np.argmin(task.prediction.seconds))
    choice = selection.decide(PROBLEM, TARGET, records_path=path)
    assert choice.origin == "analytical model"
    assert choice.schedule == task.candidates.schedules[fastest]
    assert choice.sure is None
    assert selection.choose(PROBLEM, TARGET, records_path=path) == choice.schedule


def test_records_of_other_problems_train_a_model(path: Path) -> None:
    write_records(path, models.LEAST_RECORDS, CUDA, OTHER)
    choice = selection.decide(PROBLEM, TARGET, records_path=path)
    assert choice.origin == "learned model"
    assert choice.sure is not None
    assert choice.predicted[choice.ranking[0]] == choice.seconds
    assert sorted(choice.ranking) == list(range(len(choice.task.candidates)))


def test_the_fastest_record_of_the_problem_wins(path: Path) -> None:
    made = write_records(path, models.LEAST_RECORDS, CUDA)
    fastest = min(made, key=lambda one: one.seconds or 1.0)
    choice = selection.decide(PROBLEM, TARGET, records_path=path)
    assert (choice.origin, choice.schedule) == ("record", fastest.schedule)
    assert choice.seconds == fastest.seconds
    assert selection.choose(PROBLEM, TARGET, records_path=path) == fastest.schedule


def test_a_recorded_schedule_outside_the_space_counts_too(path: Path) -> None:
    odd = Schedule((64, 128, 128), (64, 64), (2, 2))
    records.append(path, [record(odd, 1e-9, CUDA)])
    choice = selection.decide(PROBLEM, TARGET, records_path=path)
    assert (choice.schedule, choice.seconds) == (odd, 1e-9)
    assert len(choice.predicted) == len(choice.ranking) == len(choice.task.candidates)


def test_simulated_records_do_not_choose_for_a_gpu(path: Path) -> None:
    write_records(path, models.LEAST_RECORDS, SIMULATED)
    choice = selection.decide(PROBLEM, TARGET, records_path=path, device="cuda")
    assert choice.origin == "analytical model"


def test_a_record_that_is_no_longer_legal_is_reported_and_not_used(path: Path) -> None:
    huge = Schedule((256, 256, 128), (64, 64), (8, 1))
    records.append(path, [record(huge, 1e-9, CUDA)])
    said: list[str] = []
    chosen = selection.choose(PROBLEM, TARGET, records_path=path, say=said.append)
    assert chosen != huge
    assert len(said) == 1
    assert said[0].startswith(
        "a recorded schedule is not used: schedule 'block=256,256"
    )


def test_damaged_records_are_reported(path: Path) -> None:
    path.write_text('{"schema": 7}\n{"torn')
    said: list[str] = []
    selection.choose(PROBLEM, TARGET, records_path=path, say=said.append)
    assert len(said) == 2
    assert "of schema 7 skipped" in said[1]


def test_a_problem_without_a_schedule_names_the_limit(path: Path) -> None:
    tiny = dataclasses.replace(TARGET, shared_bytes_per_block=100)
    with pytest.raises(ConfigError, match=r"no legal schedule .*has 100 per block"):
        selection.choose(PROBLEM, tiny, records_path=path)
