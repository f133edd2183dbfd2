"""Searches on a pool: who is asked, what is believed, and what is measured once."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest
from tuning_cases import CUDA, PROBLEM, TARGET, some_candidates

from alcop_mlir.errors import ConfigError
from alcop_mlir.measurement import pool, pool_address, pool_tasks, pool_workers
from alcop_mlir.measurement.journal import Journal, key
from alcop_mlir.measurement.operators import Operator
from alcop_mlir.measurement.pool import Asked, PoolMeasurer, Workers
from alcop_mlir.measurement.pool_tasks import Request
from alcop_mlir.schedule import Schedule
from alcop_mlir.tools import tune
from alcop_mlir.tuning import records
from alcop_mlir.tuning.records import Record

pytest.importorskip("distributed")

GPU = TARGET.device
ASKED = Asked("here:records", TARGET, "cuda", ("0.1.0", "abc"), 50, 60)
SCHEDULES = some_candidates(3).schedules
MATMUL = """
func.func @matmul(%A: memref<64x64xf16>, %B: memref<64x64xf16>, %C: memref<64x64xf32>) {
  linalg.matmul ins(%A, %B : memref<64x64xf16>, memref<64x64xf16>)
                outs(%C : memref<64x64xf32>)
  return
}
"""


@dataclass
class Future:
    """Of a task that ended at once."""

    answer: Any
    status: str = "finished"

    def done(self) -> bool:
        return True

    def result(self) -> Any:
        return self.answer

    def exception(self) -> Exception:
        return self.answer

    def __hash__(self) -> int:
        return id(self)


class Scheduler:
    """Answers as it is told to, one answer for each measurement, and counts these."""

    def __init__(self, answers: Sequence[Any], offered: Sequence[str] = ()):
        self.answers, self.tasks = list(answers), list[dict[str, Any]]()
        offered = offered or (pool_workers.measures(GPU),)
        self.workers = {
            f"tcp://{number}": {"resources": {one: 1.0}}
            for number, one in enumerate(offered)
        }

    def submit(self, function: Any, *_: Any, **how: Any) -> Future:
        assert how["retries"] == 0
        if function is pool_tasks.compile_bundle:
            return Future(b"a bundle")
        self.tasks.append(how)
        answer = self.answers.pop(0)
        return answer if isinstance(answer, Future) else Future(answer)

    def scheduler_info(self, n_workers: int) -> dict[str, Any]:
        assert n_workers == -1  # all of them
        return {"workers": self.workers}


def answer(schedule: Schedule, seconds: float = 1e-4, **other: Any) -> str:
    """Of a worker that measured it."""
    setting = replace(CUDA, **other)
    made = Record(PROBLEM, schedule, setting, records.now(), seconds)
    return records.lines([made]).decode()


def measured(
    answers: Sequence[Any], schedules: Sequence[Schedule] = SCHEDULES[:1]
) -> tuple[list[Any], list[str], Scheduler]:
    """The trials, what was said, and what was asked for."""
    said, scheduler = list[str](), Scheduler(answers)
    workers = Workers(scheduler, said.append)
    workers.look()
    operators = [Operator(PROBLEM, MATMUL)]
    one = PoolMeasurer(scheduler, workers, ASKED, GPU, operators, said.append)
    one.start(0, schedules)
    return list(one.finished()), said, scheduler


def test_a_record_is_believed_and_asked_for_by_name() -> None:
    trials, said, scheduler = measured([answer(SCHEDULES[0])])
    assert [trial.record.seconds for trial in trials] == [1e-4]
    assert said == []
    (how,) = scheduler.tasks
    assert how["resources"] == {f"alcop measure 0.1.0 {GPU}": 1}
    assert re.fullmatch(r"measure-[0-9a-f]{24}-0", how["key"])


@pytest.mark.parametrize(
    ("nonsense", "why"),
    [
        (17, "a worker answered int, not a record"),
        ("{", "a worker answered no record: no JSON"),
        (answer(SCHEDULES[1]), "a worker answered a record of something else"),
        (answer(SCHEDULES[0], 1e-12), "a worker answered 1e-12 s, impossibly"),
        (answer(SCHEDULES[0], gpu="NVIDIA H20"), "a record of sm_80 cuda NVIDIA H20"),
        (Future(RuntimeError("worker died"), "error"), "RuntimeError: worker died"),
    ],
)
def test_nonsense_is_one_line_and_measured_once_more(nonsense: Any, why: str) -> None:
    trials, said, scheduler = measured([nonsense, answer(SCHEDULES[0])])
    assert [trial.record.seconds for trial in trials] == [1e-4]
    (line,) = said
    assert line.startswith(f"'{SCHEDULES[0]}' is measured once more: ")
    assert why in line
    assert scheduler.tasks[0]["key"] != scheduler.tasks[1]["key"]


def test_what_is_always_nonsense_is_left_out_not_recorded() -> None:
    trials, said, _ = measured([17] * 4)
    assert [trial.record for trial in trials] == [None]
    assert said[-1].startswith(f"'{SCHEDULES[0]}' is left out: ")


def test_a_scheduler_that_is_gone_ends_the_search() -> None:
    with pytest.raises(
        ConfigError, match="scheduler is gone: what was measured is rec"
    ):
        measured([Future(None, "cancelled")])


def test_a_worker_that_is_gone_has_a_line() -> None:
    said, scheduler = list[str](), Scheduler([])
    workers = Workers(scheduler, said.append)
    workers.look()
    scheduler.workers.clear()
    workers.look()
    assert said == ["a worker is gone: tcp://0 (measure)"]


@pytest.mark.parametrize(
    ("offered", "picked"),
    [
        ([GPU, "NVIDIA H20"], GPU),
        (["NVIDIA H20"], "NVIDIA H20"),
        (["NVIDIA H20", "NVIDIA H200", "NVIDIA H20"], "2 of NVIDIA H20, 1 of NVIDIA"),
        (["simulated SM"], "1 of the simulated device"),
        ([], "there are none"),
    ],
)
def test_products_are_kept_apart(offered: list[str], picked: str) -> None:
    names = [pool_workers.measures(one) for one in offered]
    workers = Workers(Scheduler([], names or ["something else"]), print)
    if picked in offered:
        assert pool.pick_gpu(workers, "cuda", TARGET, 0) == picked
        return
    with pytest.raises(ConfigError, match=picked):
        pool.pick_gpu(workers, "cuda", TARGET, 0)


def test_workers_of_another_version_are_not_asked() -> None:
    workers = Workers(Scheduler([], [f"alcop measure 0.0.9 {GPU}"]), print)
    with pytest.raises(ConfigError, match="there are 1 of another version: ALCOP_GPU"):
        pool.pick_gpu(workers, "cuda", TARGET, 0)


def test_what_a_worker_measured_is_not_measured_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A worker that is killed before it answers has it in its journal."""
    calls: list[Schedule] = []

    def measure(asked: Request, made: Record, _: object) -> Record:
        calls.append(asked.schedule)
        return replace(made, seconds=1e-5)

    monkeypatch.setattr(pool_tasks, "_measured", measure)
    asked = replace(ASKED, device="simulated")
    text = asked.request(Operator(PROBLEM, ""), SCHEDULES[0]).text
    assert pool_tasks.measure(text, "") == pool_tasks.measure(text, "")
    assert len(calls) == 1
    name = ASKED.search
    assert records.parse(pool_tasks.recorded(name).encode(), "").records
    pool_tasks.forget(name)
    assert pool_tasks.recorded(name) == ""


def test_a_candidate_that_does_not_compile_is_recorded() -> None:
    asked = replace(ASKED, search="other")
    text = asked.request(Operator(PROBLEM, ""), SCHEDULES[0]).text
    found = json.loads(pool_tasks.measure(text, "it does not compile"))
    assert found["error"] == "it does not compile"


@pytest.mark.parametrize(
    ("text", "plain", "expected"),
    [
        ("localhost:8786", False, "tcp://localhost:8786"),
        ("tcp://127.0.0.1:1", False, "tcp://127.0.0.1:1"),
        ("tcp://far:8786", True, "tcp://far:8786"),
        ("tcp://far:8786", False, "'tcp://far:8786' is another machine, to which"),
        ("far:8786", False, "'tls://far:8786' needs certificates: --pool-tls DIR"),
        ("tls://localhost:1", False, "'tls://localhost:1' needs certificates"),
        ("far", False, "'far' is no address of a scheduler, expected as in tls://"),
        ("tcp://far:99999", False, "'tcp://far:99999' is no address of a scheduler"),
        ("http://far:1", False, "'http://far:1' is no address of a scheduler"),
    ],
)
def test_only_this_machine_is_talked_to_unencrypted(
    text: str, plain: bool, expected: str
) -> None:
    if expected.startswith("tcp"):
        assert pool_address.parse(text, None, plain).text == expected
        return
    with pytest.raises(ConfigError, match=re.escape(expected)):
        pool_address.parse(text, None, plain)


def test_certificates_that_are_none(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"cannot read '.*ca\.pem': No such file"):
        pool_address.parse("tls://far:1", tmp_path, False)
    for name in ("ca.pem", "cert.pem", "key.pem"):
        (tmp_path / name).write_text("no certificate")
    with pytest.raises(ConfigError, match="no certificates in "):
        pool_address.parse("tls://far:1", tmp_path, False)
    with pytest.raises(ConfigError, match="is not encrypted, --pool-tls is for tls"):
        pool_address.parse("tcp://localhost:1", tmp_path, False)


@pytest.fixture
def file(tmp_path: Path) -> str:
    path = tmp_path / "matmul.mlir"
    path.write_text(MATMUL)
    return str(path)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--pool", "localhost:1"], "no scheduler answers at 'tcp://localhost:1' with"),
        (
            ["--pool", "model.mlir"],
            "'model.mlir' is no address; FILE goes first",
        ),
        (["--pool", "--export", "c.zip"], "--export and --pool are not for one call"),
        (["--pool", "--budget", "0"], "budget '0', expected more than nothing"),
        (["--pool", "--device", "cuda"], "no CUDA device"),
        (
            ["--simulated-devices", "0"],
            "argument --simulated-devices: expected 1 or mo",
        ),
    ],
)
def test_one_line_for_each_error(
    file: str,
    options: list[str],
    message: str,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    pytest.importorskip("torch_mlir", exc_type=ImportError)
    monkeypatch.setattr(pool, "CONNECT_LIMIT", 1)
    assert tune.main([file, *options]) == 1
    said = capsys.readouterr().err
    assert said.startswith(f"error: {message}")
    assert said.count("\n") == 1


def test_a_search_on_two_devices_of_this_machine(
    file: str, cache: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    pytest.importorskip("torch_mlir", exc_type=ImportError)
    options = ["--device", "simulated", "--simulated-devices", "2", "--target", "sm_90"]
    how = ["--strategy", "analytical", "--budget", "9"]
    assert tune.main([file, "--pool", *options, *how]) == 0
    said = capsys.readouterr()
    assert "pool: 2 measuring (simulated SM), 0 compiling workers\n" in said.out
    assert "9 tried, 0 known before (simulated SM)" in said.out
    assert said.err == ""
    path = cache / "records.jsonl"
    found = records.read(path).records
    assert len({key(one) for one in found}) == len(found) == 9
    assert len(Journal(path).refresh()) == 9
    assert not list((cache / "pool").glob("*.jsonl"))  # it is all recorded
