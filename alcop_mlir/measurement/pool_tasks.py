"""What a pool's workers do: functions of JSON text and bundles, which return the same.

A measurement is kept in a journal of the worker's machine before it is answered. So it
is not lost, nor done again, where the worker, the scheduler or the search that asked
ends: the next one asks for what is there first.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from alcop_mlir import codec, files, knobs
from alcop_mlir.measurement import devices, work
from alcop_mlir.measurement.journal import Journal, key
from alcop_mlir.measurement.measuring import Outcome, Pool
from alcop_mlir.measurement.work import CompileTask
from alcop_mlir.schedule import Schedule
from alcop_mlir.target import find_target
from alcop_mlir.tuning import records
from alcop_mlir.tuning.problem import Problem
from alcop_mlir.tuning.records import Record, Setting

_MOST = 1 << 28  # bytes of a request: MLIR text, which may hold constants
_MEASURES: dict[str, Callable[[Any], Any]] = {
    "simulated": work.simulate_candidate,
    "cuda": work.measure_candidate,
}
_children: dict[Callable[[Any], Any], Pool] = {}


@dataclass(frozen=True)
class Request:
    """A candidate to compile and to measure, as it is sent.

    search: names what asks, so that it finds again what was measured for it
    source: MLIR text; compiler: version and hash of what compiles it
    """

    search: str
    problem: Problem
    schedule: Schedule
    target: str
    device: str
    compiler: tuple[str, str]
    repeat: int
    limit: int
    source: str = ""

    @property
    def text(self) -> str:
        """As it is sent."""
        return json.dumps(codec.encode(self))

    @property
    def setting(self) -> Setting:
        """Of records that this machine makes."""
        target = find_target(self.target)
        if self.device == "simulated":
            return devices.simulated_setting(target)
        return devices.cuda_setting(target, self.compiler)


def compile_bundle(text: str) -> bytes | str:
    """The bundle; or why there is none."""
    asked = _read(text)
    with tempfile.TemporaryDirectory(prefix="alcop-tune-") as folder:
        path = Path(folder) / "bundle.zip"
        tf32 = asked.problem.dtypes[0] == "tf32"
        target = find_target(asked.target)
        chain = asked.problem.chain is not None
        task = CompileTask(asked.source, target, tf32, asked.schedule, path, chain)
        outcome = _in_child(work.compile_candidate, task, asked.limit)
        return outcome.error or path.read_bytes()


def measure(text: str, bundle: bytes | str) -> str:
    """The record, as a line of JSON: what is in the journal, else measured now.

    bundle: or why there is none; not needed on a device that is simulated
    """
    asked = _read(text)
    made = Record(asked.problem, asked.schedule, asked.setting, records.now(), None)
    journal = Journal(journal_path(asked.search))
    known = journal.refresh().get(key(made))
    if known is None:
        known = journal.append(_measured(asked, made, bundle))
    return records.lines([known]).decode()


def begin(search: str, device: str, limit: int) -> str:
    """Start the process that measures, for a search; what was `recorded` for it."""
    _child(_MEASURES[device], limit).start()
    return recorded(search)


def recorded(search: str) -> str:
    """All records that were made here for a search, a line each."""
    return records.lines(Journal(journal_path(search)).refresh().values()).decode()


def forget(search: str) -> None:
    """The search has all records that were made for it."""
    journal_path(search).unlink(missing_ok=True)


def journal_path(search: str) -> Path:
    """Where this machine keeps what is measured for a search."""
    digest = hashlib.sha256(search.encode()).hexdigest()[:16]
    return knobs.cache_dir() / "pool" / f"{digest}.jsonl"


def _read(text: str) -> Request:
    return codec.decode(Request, codec.parse(text.encode(), _MOST))


def _measured(asked: Request, made: Record, bundle: bytes | str) -> Record:
    if isinstance(bundle, str) and asked.device != "simulated":
        return replace(made, error=bundle)
    if asked.device == "simulated":
        outcome = _in_child(_MEASURES[asked.device], _task(asked), asked.limit)
        return replace(made, seconds=outcome.value, error=outcome.error)
    assert isinstance(bundle, bytes)
    with tempfile.TemporaryDirectory(prefix="alcop-tune-") as folder, _gpu_alone():
        path = Path(folder) / "bundle.zip"
        path.write_bytes(bundle)
        task = path, asked.repeat
        outcome = _in_child(_MEASURES[asked.device], task, asked.limit)
    return devices.with_timing(made, outcome.value, outcome.error)


def _task(asked: Request) -> tuple[Problem, Schedule, str]:
    return asked.problem, asked.schedule, asked.target


def _in_child(function: Callable[[Any], Any], task: Any, limit: int) -> Outcome:
    """Do the task in a child process; once more where that died for whatever reason."""
    pool = _child(function, limit)
    (outcome,) = pool.run([task])
    if outcome.has_died:
        (outcome,) = pool.run([task])
    return outcome


def _child(function: Callable[[Any], Any], limit: int) -> Pool:
    if function not in _children:
        _children[function] = Pool(function, 1, limit)
    return _children[function]


@contextlib.contextmanager
def _gpu_alone() -> Iterator[None]:
    """Hold the lock of the GPU that this process sees, among all of the machine."""
    visible = os.environ.get("CUDA_VISIBLE_DEVICES", "0").replace("/", "_")
    folder = knobs.cache_dir() / "pool"
    files.make_folder(folder)
    with (folder / f"gpu-{visible}.lock").open("ab") as file:
        with files.locked(file.fileno(), exclusive=True):
            yield
