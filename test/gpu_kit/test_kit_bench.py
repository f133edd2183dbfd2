"""Benchmark, report and plots, end to end; the stand-in's times mean nothing."""

from __future__ import annotations

import json
import math
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from fake_gpu import FakeGpu
from tiny_kernels import ROOT, SHAPE

from alcop_mlir.errors import ConfigError
from alcop_mlir.tuning.problem import Problem
from bench.gpu import benchmark, operations, plots, records, report
from bench.gpu.benchmark import QUICK
from bench.gpu.cuda_device import CudaDevice
from bench.gpu.device import EmulatedDevice, Pool, storage
from bench.gpu.session import Session
from bench.gpu.spec import LAYOUTS, Spec

Make = Callable[..., Session]
ABOUT = {
    "kind": "run",
    "key": "run",
    "command": "bench",
    "time": "2026-01-02T03:04:05+00:00",
    "device": {"gpu": "H200", "driver": "580.1"},
    "bundle": {"compiler": "alcop_mlir 0", "hash": "abc", "target": "sm_90"},
}


def run(session: Session) -> list[records.Row]:
    """The rows of a benchmark."""
    session.begin("bench", "bench")
    benchmark.run(session, QUICK)
    return records.read(session.records.path)


def time_row(role: str, seconds: float, group: str = "paper", m: int = 64) -> Any:
    problem = Problem(m, 64, 64)
    return {
        "kind": "time",
        "key": f"time {problem} {role} {seconds}",
        "ok": True,
        "group": group,
        "role": role,
        "schedule": f"schedule of {role}",
        "problem": str(problem),
        **problem.to_record(),
        "seconds": seconds,
        "bytes": 1000,
        "tflops": 0.0,
    }


def write(path: Path, rows: list[Any]) -> Path:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


@pytest.fixture
def measured(tmp_path: Path) -> report.Run:
    """Two shapes of the paper, one of another group."""
    rows = [
        ABOUT,
        {"kind": "ceiling", "key": "a", "ok": True, "what": "mma.sync f16"}
        | {"tflops": 600.0},
        {"kind": "ceiling", "key": "b", "ok": True, "what": "copy"}
        | {"bytes_per_second": 4e12},
        {"kind": "drift", "key": "c", "ok": True, "seconds": 1.0},
        {"kind": "drift", "key": "d", "ok": True, "seconds": 1.1},
        *(time_row("cuBLAS", 1.0), time_row("model", 2.0), time_row("S,2", 1.6)),
        *(time_row("1,1", 3.2), time_row("Triton", 0.8), time_row("2,1", 4.0)),
        *(time_row("cuBLAS", 1.0, m=128), time_row("S,2", 0.4, m=128)),
        time_row("1,1", 0.5, m=128),
        *(
            time_row("cuBLAS", 1.0, "llama", m=256),
            time_row("model", 4.0, "llama", 256),
        ),
    ]
    return report.load(write(tmp_path / "bench.jsonl", rows))


def test_everything_is_measured(session: Make, tmp_path: Path) -> None:
    made = session()
    rows = run(made)
    assert records.exit_status(rows) == 0
    times = {row["role"]: row for row in rows if row["kind"] == "time"}
    assert set(times) == {"cuBLAS", "S,2", "2,1", "1,1"}
    for row in times.values():
        assert row["seconds"] > 0
        assert row["tflops"] == 2 * math.prod(SHAPE) / row["seconds"] / 1e12
        assert row["group"] == "paper"
    assert times["S,2"]["schedule"] == "block=16,32,16 warp=16,16 stages=2,2"
    assert {row["what"] for row in rows if row["kind"] == "ceiling"} == {
        "mma.sync f16",
        "mma.sync bf16",
        "copy",
    }
    text = report.markdown(report.load(made.records.path))
    assert "Fake GPU" in text
    assert "| the paper's, both | 1 |" in text


def test_a_wrong_kernel_is_no_competitor(
    session: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    original = operations.distance
    calls = iter([1.0])

    def distance(*given: Any) -> float:
        return next(calls, None) or original(*given)

    monkeypatch.setattr(operations, "distance", distance)
    rows = run(session())
    (failed,) = records.failures(rows)
    assert failed["error"].startswith("off from cuBLAS by 1.00e+00")
    assert len([r for r in rows if r["kind"] == "time" and r["ok"]]) == 3
    assert records.exit_status(rows) == 1


def test_too_little_memory(session: Make, gpu: FakeGpu) -> None:
    gpu.free = 1000
    rows = run(session())
    assert "GiB of GPU memory" in next(
        row["error"] for row in rows if row["kind"] == "shape"
    )


def test_no_time(session: Make) -> None:
    rows = run(session(seconds=0.0))
    assert not [row for row in rows if row["kind"] == "time"]
    (left_out,) = (row for row in rows if row["kind"] == "left out")
    assert len(left_out["rows"]) == 1


def test_sets_of_arrays_do_not_fit_the_cache() -> None:
    device = EmulatedDevice(cache_bytes=10**6)
    problem = Problem(128, 128, 128)  # 131072 bytes
    assert benchmark.rotation(device, problem) == 17
    assert benchmark.rotation(device, Problem(4096, 4096, 64)) == 2


def test_calls_take_turns_with_the_arrays() -> None:
    seen: list[tuple[str, Any]] = []
    competitors = [
        benchmark.Competitor(
            name, name, {}, lambda a, name=name: seen.append((name, a))
        )
        for name in ("one", "two")
    ]
    device = EmulatedDevice()
    sets: list[Any] = [(0,), (1,), (2,)]
    effort = benchmark.Effort(least_rounds=2, most_rounds=2, warm_up_rounds=0)
    benchmark.time_rounds(device, competitors, sets, effort, 0.0)
    assert all(len(one.times) == 2 for one in competitors)
    numbers = [arrays[0] for _, arrays in seen]
    assert numbers == [i % 3 for i in range(len(seen))]
    assert seen[0][0] == "one"


@pytest.mark.parametrize("layout", LAYOUTS.values())
@pytest.mark.parametrize("batch", [1, 3])
@pytest.mark.parametrize(("operand", "out"), [("f16", "f32"), ("bf16", "f32")])
def test_cublas_is_asked_for_the_right_matmul(
    gpu: FakeGpu, layout: str, batch: int, operand: str, out: str
) -> None:
    """Column-major, with the operands swapped."""
    op = "matmul" if batch == 1 else "batch_matmul"
    spec = Spec(op, operand=operand, out=out, layout=layout)
    problem = spec.problem((batch, 24, 40, 16))
    device = CudaDevice(gpu)
    arrays = Pool(device, 4999).operands(problem)
    assert operations.errors(device, problem, arrays) == [float("inf")]
    device.library(problem)(arrays)
    (error,) = operations.errors(device, problem, arrays)
    assert error <= operations.tolerance(problem)


def test_a_round_that_was_late_is_taken_again(gpu: FakeGpu) -> None:
    """After a longer delay; the last try counts in any case, and is counted."""
    device = CudaDevice(gpu)
    calls: list[int] = []
    assert len(device.seconds([lambda: calls.append(1)] * 3)) == 3
    assert (len(calls), gpu.launches.count("delay"), device.late_rounds) == (3, 1, 0)
    gpu.late = 2
    device.seconds([lambda: calls.append(1)])
    assert (len(calls), gpu.launches.count("delay"), device.late_rounds) == (6, 4, 0)
    gpu.late = 100
    device.seconds([lambda: calls.append(1)])
    assert (len(calls), device.late_rounds) == (10, 1)


def test_random_numbers_differ_from_array_to_array() -> None:
    pool = Pool(EmulatedDevice(), 101)
    first, second, blank = pool.operands(Problem(16, 16, 16))
    assert not np.array_equal(first, second)
    assert np.abs(first).max() <= 1
    assert first.min() < -0.5 < 0.5 < first.max()
    assert np.isnan(blank).all()
    assert storage("bf16") == np.uint16


def test_the_numbers_of_a_report(measured: report.Run) -> None:
    one, _, other = measured.shapes
    assert one.ours == 1.6
    assert one.schedule == "schedule of S,2"
    assert report.ratio(one.ours, one.seconds("cuBLAS")) == 1 / 1.6
    assert report.geomean([2.0, 8.0, None]) == pytest.approx(4.0)
    assert report.geomean([]) is None
    assert other.seconds("1,1") is None
    text = report.markdown(measured)
    # ours / cuBLAS: 1 / 1.6 and 1 / 0.4; pipelined: 3.2 / 1.6 and 0.5 / 0.4
    assert "| the paper's, both | 2 | 1.25 | 0.50 | 0.50 | 1.58 | 2.00 |" in text
    assert "changed by 10.0% during the run" in text
    assert "mma.sync f16 in the same run: 600 TFLOP/s." in text
    assert "| matmul 64x64x64 f16->f32 | 1.00 | 0.80 |  | 2.00 |" in text
    assert "H200; driver 580.1" in text


def test_a_page_is_written_between_its_marks(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text(f"before\n{report.BEGIN}\nold\n{report.END}\nafter\n")
    report.write_into(page, "new\n")
    expected = f"before\n{report.BEGIN}\n\nnew\n\n{report.END}\nafter\n"
    assert page.read_text() == expected
    page.write_text("no marks")
    with pytest.raises(ConfigError, match="has no lines"):
        report.write_into(page, "new")


def test_the_page_of_the_docs_has_marks(tmp_path: Path) -> None:
    page = tmp_path / "performance.md"
    page.write_text((ROOT / "docs" / "performance.md").read_text())
    report.write_into(page, "measured")
    assert "Nothing yet" not in page.read_text()
    assert "## The kit" in page.read_text()


def test_other_records_are_no_benchmark(tmp_path: Path) -> None:
    path = write(tmp_path / "check.jsonl", [ABOUT | {"command": "check"}])
    with pytest.raises(ConfigError, match="holds no benchmark"):
        report.load(path)


def test_plots_are_drawn(measured: report.Run, tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    paths = plots.draw(measured, tmp_path, "bench")
    assert sorted(path.name for path in paths) == [
        "bench-ratios.png",
        "bench-ratios.svg",
        "bench-roofline.png",
        "bench-roofline.svg",
    ]
    first = {path.name: path.read_bytes() for path in paths}
    assert all(first.values())
    plots.draw(measured, tmp_path, "bench")
    assert {path.name: path.read_bytes() for path in paths} == first


class StandInForTriton:
    """A competitor that is cuBLAS's equal, or wrong, or refuses."""

    failures = (RuntimeError,)

    def __init__(self, device: CudaDevice, trouble: str = ""):
        self.device, self.trouble = device, trouble

    def tuned(self, device: Any, problem: Problem, sets: Any) -> Any:
        if self.trouble == "refuses":
            raise RuntimeError("out of resource")

        def call(arrays: Any) -> None:
            device.library(problem)(arrays)
            if self.trouble == "is wrong":
                arrays[2][...] = 3.0

        return call, "block=1"


@pytest.mark.parametrize(
    ("trouble", "said"),
    [
        ("", None),
        ("refuses", "RuntimeError: out of resource"),
        ("is wrong", "off from cuBLAS by"),
    ],
)
def test_triton_is_a_competitor_where_it_works(
    session: Make, monkeypatch: pytest.MonkeyPatch, trouble: str, said: str | None
) -> None:
    made = session()
    stand_in = StandInForTriton(made.device, trouble)  # type: ignore[arg-type]
    monkeypatch.setattr(benchmark, "_triton", lambda session: stand_in)
    (row,) = (row for row in run(made) if row.get("role") == "Triton")
    assert row["ok"] == (said is None)
    if said is not None:
        assert row["error"].startswith(said)


def test_without_triton_a_line_says_so(
    session: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    command = [sys.executable, "-c", "import no_such_package"]
    original = subprocess.run
    monkeypatch.setattr(
        subprocess, "run", lambda given, **options: original(command, **options)
    )
    (row,) = (row for row in run(session()) if row["key"] == "triton")
    assert "No module named 'no_such_package'" in row["text"]
