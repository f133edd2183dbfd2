"""Collecting: samples in the tuner's own format, compressed, resumable."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from fake_gpu import FakeGpu
from tiny_kernels import SHAPE, tiny

from alcop_mlir.errors import ConfigError
from alcop_mlir.schedule import Schedule
from bench.gpu import collect, records
from bench.gpu.benchmark import QUICK
from bench.gpu.session import Session

Make = Callable[..., Session]


def run(session: Session, data: Path) -> list[records.Row]:
    """The rows of a collection."""
    session.begin("collect", "collect")
    collect.run(session, data, QUICK)
    return records.read(session.records.path)


def test_samples_become_records_of_the_tuner(session: Make, tmp_path: Path) -> None:
    data = tmp_path / "data" / "cuda-sm_80.jsonl.gz"
    made = session()
    rows = run(made, data)
    assert records.exit_status(rows) == 0
    assert collect.merge(rows, data) == 3
    found = collect.read_data(data)
    assert {record.schedule for record in found} == {
        Schedule.parse(tiny(stages).schedule) for stages in ("2,2", "2,1", "1,1")
    }
    for record in found:
        assert record.problem.sizes == (*SHAPE[1:], 1)
        assert record.seconds is not None
        assert record.setting.target == "sm_80"
        assert record.setting.device == "cuda"
        assert record.setting.gpu == "Fake GPU"
        assert record.setting.compiler_hash == made.kit.compiler_hash
        assert record.time
    stored = data.read_bytes()
    assert collect.merge(rows, data) == 0
    assert data.read_bytes() == stored


def test_what_was_collected_is_not_measured_again(
    session: Make, tmp_path: Path, gpu: FakeGpu
) -> None:
    data = tmp_path / "data.jsonl.gz"
    made = session()
    collect.merge(run(made, data), data)
    made.records.path.unlink()
    gpu.launches.clear()
    rows = run(session(), data)
    assert all(row["measured_before"] for row in rows if row["kind"] == "sample")
    assert not gpu.launches
    assert collect.merge(rows, data) == 0


def test_a_schedule_that_fails_is_recorded(
    session: Make, tmp_path: Path, gpu: FakeGpu
) -> None:
    data = tmp_path / "data.jsonl.gz"
    made = session(only="paper")
    bundle = made.kit.load(tiny("2,1"))
    gpu.faults |= {kernel.name for kernel in bundle.functions[0].kernels}
    rows = run(made, data)
    assert records.exit_status(rows) == 1
    collect.merge(rows, data)
    failed = [record for record in collect.read_data(data) if record.seconds is None]
    assert failed
    assert "CUDA_ERROR_ILLEGAL_ADDRESS" in failed[0].error


def test_records_stay_small(
    session: Make, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    data = tmp_path / "data.jsonl.gz"
    rows = run(session(), data)
    monkeypatch.setattr(collect, "MOST_BYTES", 100)
    with pytest.raises(ConfigError, match="at most 100"):
        collect.merge(rows, data)
    assert not data.exists()


def test_no_time(session: Make, tmp_path: Path) -> None:
    rows = run(session(seconds=0.0), tmp_path / "none.gz")
    (left_out,) = (row for row in rows if row["kind"] == "left out")
    assert len(left_out["rows"]) == 3


def test_damaged_data_is_an_error(tmp_path: Path) -> None:
    path = tmp_path / "data.jsonl.gz"
    path.write_bytes(b"no gzip")
    with pytest.raises(ConfigError, match="cannot read"):
        collect.read_data(path)


def test_a_row_of_a_dead_process_is_no_sample(tmp_path: Path) -> None:
    row: dict[str, Any] = {"kind": "sample", "key": "x", "ok": False, "error": "died"}
    assert collect.merge([row], tmp_path / "data.jsonl.gz") == 0
