"""Workers that crash, hang or refuse do not harm the search."""

from __future__ import annotations

import os
import signal
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from tuning_cases import CUDA, PROBLEM, TARGET, some_candidates

from alcop_mlir.errors import ConfigError, LaunchError
from alcop_mlir.measurement import devices, exchange
from alcop_mlir.measurement.devices import Cuda
from alcop_mlir.measurement.exchange import Package
from alcop_mlir.measurement.measuring import Outcome, Pool
from alcop_mlir.runtime.measure import Timing
from alcop_mlir.schedule import Schedule
from alcop_mlir.tuning.records import Record


def work(task: Any) -> Any:
    """What the task names."""
    match task:
        case "hang":
            time.sleep(600)
        case "crash":
            os.kill(os.getpid(), signal.SIGSEGV)
        case "raise":
            raise KeyError("a bug of ours")
        case "refuse":
            raise LaunchError("wrong result")
        case "exit":
            print("the last words", file=sys.stderr)
            sys.stderr.flush()
            os._exit(3)
    return [task, task]


def test_every_task_has_its_outcome() -> None:
    tasks = ["hang", 1, "crash", 2, "refuse", 3, "exit", "raise", 4]
    with Pool(work, workers=2, limit=2.0) as pool:
        outcomes = {outcome.number: outcome for outcome in pool.run(tasks)}
        again = list(pool.run([5]))
    assert set(outcomes) == set(range(len(tasks)))
    errors = {tasks[n]: o.error for n, o in outcomes.items() if o.error}
    assert errors == {
        "hang": "took too long, and was stopped",
        "crash": "the process died (SIGSEGV)",
        "refuse": "wrong result",
        "exit": "the process died (exit status 3): the last words",
        "raise": "the process died (exit status 1): KeyError: 'a bug of ours'",
    }
    for number in (1, 3, 5, 8):
        assert outcomes[number].value == [tasks[number]] * 2
    assert again == [Outcome(0, [5, 5])]


def test_workers_may_be_started_before_there_is_something_to_do(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with Pool(work, workers=1, limit=60.0) as pool:
        pool.start()
        monkeypatch.setattr("alcop_mlir.measurement.measuring._serve", never_ready)
        assert list(pool.run([5])) == [Outcome(0, [5, 5])]


def test_nothing_to_do_starts_nothing() -> None:
    with Pool(work, workers=2, limit=1.0) as pool:
        assert list(pool.run([])) == []


def test_workers_that_do_not_start_are_an_error(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("alcop_mlir.measurement.measuring._serve", never_ready)
    with Pool(work, workers=1, limit=1.0) as pool:
        pool.start()
        with pytest.raises(ConfigError, match=r"do not start: .*exit status 7"):
            list(pool.run([1]))


def never_ready(*_: Any) -> None:
    """Instead of a worker."""
    os._exit(7)


def test_candidates_travel_in_one_file(tmp_path: Path) -> None:
    schedules = some_candidates(3).schedules
    package = Package(
        PROBLEM,
        TARGET,
        ("0.1.0", "abc"),
        [(s, b"zip %d" % n) for n, s in enumerate(schedules)],
    )
    path = tmp_path / "c.zip"
    exchange.save(package, path)
    assert exchange.load(path) == package


def test_what_is_no_file_of_candidates_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "c.zip"
    with pytest.raises(ConfigError, match=r"cannot read .*No such file"):
        exchange.load(path)
    path.write_bytes(b"no archive")
    with pytest.raises(ConfigError, match=r"is no file of candidates: no zip archive"):
        exchange.load(path)
    exchange.save(Package(PROBLEM, TARGET, ("", ""), []), path)
    whole = path.read_bytes()
    path.write_bytes(whole.replace(b"candidates.json", b"candidatez.json"))
    with pytest.raises(ConfigError, match="no file of candidates"):
        exchange.load(path)


def measure_by_file(task: tuple[Path, int]) -> Timing:
    """Instead of a GPU: fails for one file, and gets slower with every call."""
    path, repeat = task
    if path.name == "000001.zip":
        raise LaunchError("wrong result: relative error of 'arg2' is 1.0e+00")
    calls = path.parent / "calls"
    count = int(calls.read_text()) if calls.exists() else 0
    calls.write_text(str(count + 1))
    assert path.stat().st_size > 1000
    return Timing((1e-5 * (1 + count),) * repeat)


def test_a_gpu_is_measured_in_processes_of_their_own(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    pytest.importorskip("torch_mlir", exc_type=ImportError)
    source = """
    func.func @f(%A: memref<512x512xf16>, %B: memref<512x512xf16>,
                 %C: memref<512x512xf32>) {
      linalg.matmul ins(%A, %B : memref<512x512xf16>, memref<512x512xf16>)
                    outs(%C : memref<512x512xf32>)
      return
    }"""
    schedules = [
        *some_candidates(3).schedules,
        Schedule((256, 256, 128), (64, 64), (8, 1)),
    ]
    said: list[str] = []
    found: list[Record] = []
    monkeypatch.setattr(devices, "measure_candidate", measure_by_file)
    limits = 2, 60.0, 50
    with Cuda(PROBLEM, TARGET, CUDA, *limits, said.append, source) as device:
        found += device.measure(schedules)
        assert said == []
        found += device.measure(schedules[:1])
    errors = {record.schedule: record.error for record in found[:4] if record.error}
    assert set(errors) == {schedules[1], schedules[3]}
    assert errors[schedules[1]].startswith("wrong result")
    assert "bytes of shared memory" in errors[schedules[3]]
    assert all(record.setting == CUDA for record in found)
    assert found[-1].repeats == 50
    assert len(found) == 5
    assert said == ["the GPU drifts: the first schedule now takes +200%"]
