"""Checking multi-kernel functions, on a stand-in for the GPU that emulates kernels."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from fake_gpu import FakeGpu
from tiny_kernels import PROGRAM

from bench.gpu import check, check_programs, records
from bench.gpu.lists import program_items
from bench.gpu.session import Session
from bench.gpu.spec import PROGRAMS, Spec

Make = Callable[..., Session]


def run(session: Session) -> list[records.Row]:
    """The rows about programs."""
    session.begin("check", "check")
    check.run(session)
    return [r for r in records.read(session.records.path) if "program" in r["kind"]]


def kernels_of(session: Session) -> set[str]:
    (function,) = session.kit.load(PROGRAM).functions
    return {kernel.name for kernel in function.kernels}


def test_a_program_is_checked(session: Make) -> None:
    device, emulated = run(session(only="program"))
    assert device["ok"], device
    assert 0 < device["error_float64"] <= device["tolerance"]
    assert len(device["kernels"]) == 2
    assert emulated["ok"], emulated
    assert emulated["differences"] == {"arg2": 0.0}


@pytest.mark.parametrize("value", [1e3, float("nan")])
def test_a_wrong_program_is_found(session: Make, gpu: FakeGpu, value: float) -> None:
    made = session(only="program")
    gpu.spoilt = dict.fromkeys(kernels_of(made), value)
    device, emulated = run(made)
    assert not device["ok"]
    assert device["error"].startswith("off by")
    assert not emulated["ok"]
    assert emulated["error"].startswith("differs")


def test_hazards_of_a_program_are_reported(
    session: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    def racing(task: Any) -> Any:
        arrays, _ = original(task)
        return arrays, "two warps write one element"

    original = check_programs.emulate
    monkeypatch.setattr(check_programs, "emulate", racing)
    device, emulated = run(session(only="program"))
    assert device["ok"]
    assert emulated["error"] == "two warps write one element"


def test_no_time_for_programs(session: Make) -> None:
    made = session(seconds=0.0, only="program")
    assert not run(made)
    (left_out,) = [
        row for row in records.read(made.records.path) if row["kind"] == "left out"
    ]
    assert left_out["rows"] == [f"program {PROGRAM.key}"]


def test_all_programs_are_in_the_list() -> None:
    listed = {item.spec.program for item in program_items("sm_90")}
    assert listed == {path.stem for path in PROGRAMS.glob("*.mlir")}


def test_a_program_is_named_after_its_text(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Any
) -> None:
    text = (PROGRAMS / "rows_f32.mlir").read_text()
    (tmp_path / "rows_f32.mlir").write_text(f"{text}\n")
    before = Spec(program="rows_f32").key
    monkeypatch.setattr("bench.gpu.spec.PROGRAMS", tmp_path)
    assert Spec(program="rows_f32").key != before
