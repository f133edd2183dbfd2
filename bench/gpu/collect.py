"""Times of many schedules at many shapes, for the learned model of the tuner.

Measurements go to the kit's own records as rows of kind `sample`, in a file that an
interrupted run continues. At the end they are added to the tuner's records, compressed;
see alcop_mlir/tuning/records.py for their format.
"""

from __future__ import annotations

import gzip
import json
import statistics
from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from alcop_mlir.errors import ConfigError
from alcop_mlir.schedule import Schedule
from alcop_mlir.tuning import records as tuning_records
from alcop_mlir.tuning.problem import Problem
from alcop_mlir.tuning.records import Record, Setting
from bench.gpu.benchmark import Competitor, Effort, rotation, spread, time_rounds
from bench.gpu.device import Arrays
from bench.gpu.operations import check_memory, row_key
from bench.gpu.pack import Entry
from bench.gpu.session import Session
from bench.gpu.spec import Shape

MOST_BYTES = 5 * 10**6  # of the compressed records: they are part of the package
AT_ONCE = 16  # kernels that take turns; more would overflow the GPU's queue
FULL = Effort(least_rounds=5, most_rounds=9, warm_up_rounds=1)
_SECONDS = 0.1  # of the kernels that take turns, if the least number of rounds allows


def run(session: Session, data: Path, effort: Effort = FULL) -> None:
    """All rows, while there is time; `data` is the file of earlier samples."""
    known = {_known(record) for record in read_data(data)}
    for shape, entries in _by_shape(session).items():
        if session.budget.left() == 0:
            break
        _measure_shape(session, shape, entries, known, effort)
    pairs = session.pairs("collect") + session.pairs("bench")
    session.records.left_out(_key(session, e, shape) for e, shape in pairs)


def merge(rows: Sequence[Mapping[str, Any]], data: Path) -> int:
    """Add the samples among `rows` to the file `data`; returns how many are new.

    Raises ConfigError where it would be too large: nothing is changed then.
    """
    before = read_data(data)
    present = set(map(_line, before))
    new = [line for line in map(_line, _samples(rows)) if line not in present]
    if not new:
        return 0
    text = "".join(f"{line}\n" for line in (*map(_line, before), *new))
    packed = gzip.compress(text.encode(), 9, mtime=0)
    if len(packed) > MOST_BYTES:
        raise ConfigError(
            f"'{data}' would have {len(packed)} bytes, at most {MOST_BYTES}: leave out "
            "records of older compilers"
        )
    data.parent.mkdir(parents=True, exist_ok=True)
    data.write_bytes(packed)
    return len(new)


def read_data(path: Path) -> tuple[Record, ...]:
    """The records in a compressed file; none where there is no file."""
    if not path.exists():
        return ()
    try:
        text = gzip.decompress(path.read_bytes())
    except (OSError, EOFError) as error:
        raise ConfigError(f"cannot read '{path}': {error}") from error
    return tuning_records.parse(text, str(path)).records


def data_file(target: str) -> Path:
    """Where the package keeps the records of a target's GPU."""
    root = Path(__file__).parents[2]
    return root / "alcop_mlir" / "tuning" / "data" / f"cuda-{target}.jsonl.gz"


def _by_shape(session: Session) -> dict[Shape, list[Entry]]:
    """Kernels by shape; the order of shapes is random, and the same each time.

    Whatever there is time for is then a fair sample.
    """
    found: dict[Shape, list[Entry]] = {}
    for entry, shape in session.pairs("collect") + session.pairs("bench"):
        found.setdefault(shape, []).append(entry)
    shapes = list(found)
    order = np.random.default_rng(0).permutation(len(shapes))
    return {shapes[i]: found[shapes[i]] for i in order}


def _measure_shape(
    session: Session,
    shape: Shape,
    entries: Sequence[Entry],
    known: set[tuple[Any, ...]],
    effort: Effort,
) -> None:
    by_problem: dict[Problem, list[Entry]] = {}
    for entry in entries:
        if _key(session, entry, shape) not in session.records.done:
            by_problem.setdefault(entry.spec.problem(shape), []).append(entry)
    for problem, mine in by_problem.items():
        key = f"arrays {problem} {problem.layout}"
        with session.row("arrays", key) as row:
            row["pending"] = True
            check_memory(session.device, problem, sets=2)
            count = rotation(session.device, problem)
            sets = [session.pool.operands(problem) for _ in range(count)]
            for first in range(0, len(mine), AT_ONCE):
                some = mine[first : first + AT_ONCE]
                if session.budget.left() > 0:
                    _measure_some(session, problem, shape, some, sets, known, effort)


def _measure_some(
    session: Session,
    problem: Problem,
    shape: Shape,
    entries: Sequence[Entry],
    sets: Sequence[Arrays],
    known: set[tuple[Any, ...]],
    effort: Effort,
) -> None:
    setting = _setting(session)
    ready: list[Competitor] = []
    for entry in entries:
        key = _key(session, entry, shape)
        if not session.records.start("sample", key):
            continue
        about = _about(problem, entry.spec.schedule, setting)
        with session.row("sample", key, **about) as row:
            loaded = session.load(entry.spec)
            about["schedule"] = loaded.schedule
            if _known(_record(about, 1.0)) in known:
                row.update(ok=True, measured_before=True)
                continue
            loaded.call(*sets[0])
            session.device.wait()  # a fault is this kernel's
            ready.append(Competitor("", key, about, partial(_call, loaded.call)))
            row["pending"] = True
    if not ready:
        return
    time_rounds(session.device, ready, sets, effort, _SECONDS)
    for one in ready:
        session.records.add(
            "sample",
            one.key,
            ok=True,
            **one.about,
            seconds=statistics.median(one.times),
            spread=spread(one.times),
            rounds=len(one.times),
        )


def _call(program: Any, arrays: Arrays) -> None:
    program(*arrays)


def _setting(session: Session) -> Setting:
    about, kit = session.device.about(), session.kit
    return Setting(
        target=kit.target,
        device="cuda" if session.device.name == "cuda" else "simulated",
        gpu=str(about["gpu"]),
        driver=str(about.get("driver", "")),
        compiler=kit.compiler.removeprefix("alcop_mlir "),
        compiler_hash=kit.compiler_hash,
    )


def _about(problem: Problem, schedule: str, setting: Setting) -> dict[str, Any]:
    return {
        "problem": problem.to_record(),
        "schedule": schedule,
        "setting": vars(setting),
        "time": tuning_records.now(),
    }


def _samples(rows: Iterable[Mapping[str, Any]]) -> list[Record]:
    """The tuner's records of the rows of kind `sample`."""
    found = []
    for row in rows:
        if (
            row["kind"] != "sample"
            or row.get("measured_before")
            or "problem" not in row
        ):
            continue
        if not row.get("schedule"):
            continue  # the compiler's own choice, which failed before it was known
        found.append(_record(row, row.get("seconds"), row.get("error", "")))
    return found


def _record(row: Mapping[str, Any], seconds: float | None, error: str = "") -> Record:
    return Record(
        Problem.from_record(row["problem"]),
        Schedule.parse(row["schedule"]),
        Setting(**row["setting"]),
        str(row.get("time", "")),
        seconds,
        error,
        float(row.get("spread", 0.0)),
        int(row.get("rounds", 1)),
    )


def _known(record: Record) -> tuple[Any, ...]:
    """The key by which two measurements are the same."""
    return record.problem, record.schedule, record.setting


def _line(record: Record) -> str:
    return json.dumps(tuning_records.to_json(record), separators=(",", ":"))


def _key(session: Session, entry: Entry, shape: Shape) -> str:
    return f"{row_key('sample', entry.spec, shape)} {session.kit.compiler_hash}"
