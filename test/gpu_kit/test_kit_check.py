"""The check, end to end, on a stand-in for the GPU whose kernels are emulated."""

from __future__ import annotations

import stat
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from fake_gpu import FakeGpu

from bench.gpu import check, probes, records
from bench.gpu.device import EmulatedDevice
from bench.gpu.records import Recorder
from bench.gpu.session import Session
from bench.gpu.supervise import DeviceLost

Make = Callable[..., Session]


def run(session: Session) -> list[records.Row]:
    """The rows of a check."""
    session.begin("check", "check")
    check.run(session)
    return records.read(session.records.path)


def of_kind(rows: list[records.Row], kind: str) -> list[records.Row]:
    return [row for row in rows if row["kind"] == kind]


def names_of(session: Session) -> set[str]:
    """The names of the kernels of one entry, which are those of all."""
    entry, _ = session.pairs("check")[0]
    bundle = session.kit.load(entry.spec)
    return {kernel.name for kernel in bundle.functions[0].kernels}


def test_everything_is_checked(session: Make) -> None:
    made = session()
    rows = run(made)
    assert records.exit_status(rows) == 0
    about = rows[0]
    assert about["device"]["gpu"] == "Fake GPU"
    assert {"time", "bundle", "command"} <= set(about)
    kernels = of_kind(rows, "kernel")
    assert len(kernels) == 2
    for row in kernels:
        assert 0 < row["error_float64"] <= row["tolerance"]
        assert 0 < row["cublas_error_float64"] <= row["tolerance"]
    assert len(of_kind(rows, "emulator")) == 2
    assert all(not row["hazards"] for row in of_kind(rows, "emulator"))
    assert len(of_kind(rows, "probe")) == len(probes.all_probes())
    (skipped,) = of_kind(rows, "skipped")
    assert skipped["count"] == 1
    assert "schedule" in skipped["reason"] or "warp" in skipped["reason"]
    about, golden = probes.read_golden(made.golden.read_text())
    assert about["gpu"] == "Fake GPU"
    assert set(golden) == {probe.name for probe in probes.all_probes()}


def test_rows_that_are_there_are_not_run_again(session: Make, gpu: FakeGpu) -> None:
    first = run(session())
    gpu.launches.clear()
    assert run(session()) == first
    assert not gpu.launches


def test_a_wrong_result_is_a_row_that_failed(
    session: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    def wrong(task: Any) -> Any:
        result, hazards = original(task)
        result[0, 0] += 1
        return result, hazards

    original = check.emulate
    monkeypatch.setattr(check, "emulate", wrong)
    rows = run(session(only="stages"))
    (row,) = of_kind(rows, "emulator")
    assert row["error"].startswith("differs by")
    assert row["differing"] == 1
    assert [r["ok"] for r in of_kind(rows, "kernel")] == [True]
    assert records.exit_status(rows) == 1


@pytest.mark.parametrize("value", [1e3, float("nan"), float("inf")])
def test_a_wrong_kernel_is_found(session: Make, gpu: FakeGpu, value: float) -> None:
    """Also one that leaves an element unwritten, which is NaN."""
    made = session(only="stages")
    gpu.spoilt = dict.fromkeys(names_of(made), value)
    rows = run(made)
    (row,) = of_kind(rows, "kernel")
    assert not row["ok"]
    assert row["error"].startswith("off by")
    assert row["cublas_error_float64"] <= row["tolerance"]
    assert not of_kind(rows, "emulator")[0]["ok"]
    assert records.exit_status(rows) == 1


def test_a_kernel_that_fails_leaves_the_others_alone(
    session: Make, gpu: FakeGpu
) -> None:
    made = session()
    gpu.faults = names_of(made)
    rows = run(made)
    assert [row["ok"] for row in of_kind(rows, "kernel")] == [False, False]
    assert "CUDA_ERROR_ILLEGAL_ADDRESS" in of_kind(rows, "kernel")[0]["error"]
    assert all(row["ok"] for row in of_kind(rows, "probe"))
    assert records.exit_status(rows) == 1


def test_a_fault_that_ends_the_process(session: Make, gpu: FakeGpu) -> None:
    """The row is recorded; the next process continues after it."""
    made = session(only="stages|types")
    gpu.fatal = names_of(made)
    with pytest.raises(DeviceLost):
        run(made)
    gpu.lost, gpu.fatal = False, set()
    rows = run(session(only="stages|types"))
    assert [row["ok"] for row in of_kind(rows, "kernel")] == [False, True]


def test_too_little_memory(session: Make, gpu: FakeGpu) -> None:
    gpu.free = 1000
    rows = run(session())
    for row in of_kind(rows, "kernel"):
        assert "GiB of GPU memory" in row["error"]
    assert records.exit_status(rows) == 1


def test_a_bundle_for_another_architecture(
    session: Make, monkeypatch: pytest.MonkeyPatch, gpu: FakeGpu
) -> None:
    monkeypatch.setattr(gpu.cuda.Device, "compute_capability", "75")
    rows = run(session())
    for row in of_kind(rows, "kernel"):
        assert "the bundle is for sm_80, this GPU is an sm_75" in row["error"]
    assert records.exit_status(rows) == 1


def test_no_time(session: Make) -> None:
    rows = run(session(seconds=0.0))
    left_out = of_kind(rows, "left out")
    assert [len(row["rows"]) for row in left_out] == [2, 1]  # kernels, programs
    assert not of_kind(rows, "kernel")


@pytest.mark.parametrize(("status", "ok"), [(0, True), (99, False)])
def test_the_sanitizer_is_asked(
    session: Make, tmp_path: Path, status: int, ok: bool
) -> None:
    tool = tmp_path / "compute-sanitizer"
    said = f"========= ERROR SUMMARY: {status} errors"
    tool.write_text(f"#!/bin/sh\necho '{said}'\nexit {status}\n")
    tool.chmod(tool.stat().st_mode | stat.S_IXUSR)
    rows = of_kind(run(session(sanitizer=lambda: str(tool))), "sanitizer")
    assert len(rows) == 4  # two kernels, two tools
    assert [row["ok"] for row in rows] == [ok] * 4
    assert {row["tool"] for row in rows} == {"memcheck", "racecheck"}
    assert rows[0]["summary"] == f"ERROR SUMMARY: {status} errors"


def test_without_a_sanitizer_that_is_said(session: Make) -> None:
    (row,) = of_kind(run(session(only="nothing")), "state")
    assert row["text"] == "no compute-sanitizer here"


def test_on_the_emulator_itself(bundle: Path, tmp_path: Path, session: Make) -> None:
    made = session()
    made.device = EmulatedDevice()
    made.records = Recorder(tmp_path / "emulated.jsonl")
    rows = run(made)
    assert records.exit_status(rows) == 0
    assert not of_kind(rows, "emulator")  # with itself
