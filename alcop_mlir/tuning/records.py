"""What was measured, one JSON object per line, only ever appended to.

    schema    1
    time      ISO 8601, UTC
    target    {name, device, driver}: "sm_80", the GPU model, the driver's version
    op, shape, dtypes, layout: see `problem.py`
    schedule  see `Schedule.to_dict`
    compiler  {version, hash}
    device    "cuda" or "simulated"
    ok        true, with seconds (median), spread and repeats
    error     instead of these: why there is no time

All but the measurement is the key. Several processes may append to one file: each holds
a lock for its lines. Readers skip and report a line that was torn (by a full disk or a
killed process), and what is appended after it starts on a new line; lines of another
schema are skipped and reported too. Nothing that was recorded is ever rewritten.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime, timezone
from pathlib import Path
from typing import IO, Annotated, Any

from alcop_mlir import codec, codec_forms, files, limits
from alcop_mlir.codec import open_ended, shared
from alcop_mlir.codec_forms import OneOf, Range, Written
from alcop_mlir.errors import ConfigError
from alcop_mlir.schedule import Schedule
from alcop_mlir.taps import Taps
from alcop_mlir.tuning.problem import Chain, Dtypes, Problem, Shape, StoredProblem

SCHEMA = 1
DEVICES = ("cuda", "simulated")
_MAX_LINE = 1 << 20  # bytes of a line; a record has some hundred
_Seconds = Annotated[float, Range(0, above=True)]
_Text = Annotated[str, Written]


@dataclass(frozen=True)
class Setting:
    """The device and the compiler of a measurement."""

    target: str
    device: str
    gpu: str = ""
    driver: str = ""
    compiler: str = ""
    compiler_hash: str = ""


@dataclass(frozen=True)
class Record:
    """One measurement; `seconds` is None where `error` says why."""

    problem: Problem
    schedule: Schedule
    setting: Setting
    time: str
    seconds: float | None
    error: str = ""
    spread: float = 0.0
    repeats: int = 1


@dataclass(frozen=True)
class Log:
    """The records of a file, and a line for each thing in it that was skipped."""

    records: tuple[Record, ...] = ()
    notes: tuple[str, ...] = ()


def now() -> str:
    """The time as records hold it."""
    return datetime.now(timezone.utc).isoformat(timespec="seconds")


def read(path: Path) -> Log:
    """All records at `path`; none where there is no such file. ConfigError if it cannot
    be read.
    """
    try:
        with path.open("rb") as file, files.locked(file.fileno(), exclusive=False):
            data = files.read_most(file, limits.RECORDS, f"'{path}'")
    except FileNotFoundError:
        return Log()
    except OSError as error:
        raise ConfigError(f"cannot read '{path}': {files.reason(error)}") from None
    return parse(data, str(path))


def parse(data: bytes, name: str) -> Log:
    """The records in `data`; notes refer to it as `name`."""
    found: list[Record] = []
    skipped: list[tuple[int, str]] = []
    schemas: dict[str, int] = {}
    for line in scan(data):
        if line.record is not None:
            found.append(line.record)
        elif line.schema:
            schemas[line.schema] = schemas.get(line.schema, 0) + 1
        else:
            skipped.append((line.number, line.error))
    return Log(tuple(found), notes(name, skipped, schemas.items()))


@dataclass(frozen=True)
class Line:
    """A line of a file of records: a record, of another schema, or in error.

    number, offset: counted from the start of what was scanned, lines from 1 on
    text: without the end of the line
    """

    number: int
    offset: int
    text: bytes
    record: Record | None = None
    schema: str = ""
    error: str = ""


def scan(data: bytes) -> Iterator[Line]:
    """All lines of `data` that are not blank."""
    offset = 0
    for number, line in enumerate(data.split(b"\n"), start=1):
        if line.strip():
            yield read_line(line, number, offset)
        offset += len(line) + 1


def read_line(text: bytes, number: int = 1, offset: int = 0) -> Line:
    """What one line is."""
    try:
        return Line(number, offset, text, from_json(codec.parse(text, _MAX_LINE)))
    except _OtherSchema as schema:
        return Line(number, offset, text, schema=str(schema))
    except ConfigError as error:
        return Line(number, offset, text, error=str(error))


def notes(
    name: str, skipped: Iterable[tuple[int, str]], schemas: Iterable[tuple[str, int]]
) -> tuple[str, ...]:
    """A line for each thing that was skipped in the file called `name`.

    skipped: numbers of lines, and why; schemas: how many lines have which other one
    """
    return (
        *(f"{name}:{number}: line skipped: {why}" for number, why in skipped),
        *(
            f"{name}: {count} record(s) of schema {schema} skipped, this version reads "
            f"{SCHEMA}"
            for schema, count in schemas
        ),
    )


def append(path: Path, records: Iterable[Record]) -> None:
    """Add `records` to the file at `path`, all or none.

    Raises ConfigError where they cannot be written; what the file held stays.
    """
    data = lines(records)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.open("ab+", buffering=0) as file:
            with files.locked(file.fileno(), exclusive=True):
                append_data(file, data)
    except OSError as error:
        raise not_written(path, error) from None


def lines(records: Iterable[Record]) -> bytes:
    """The lines of a file."""
    texts = (
        json.dumps(to_json(record), separators=(",", ":"), allow_nan=False)
        for record in records
    )
    return "".join(f"{text}\n" for text in texts).encode()


def not_written(path: Path, error: OSError) -> ConfigError:
    """Of a file that cannot be appended to."""
    why = f"{files.reason(error)}; what it holds is not touched"
    return ConfigError(f"cannot record to '{path}': {why}")


def append_data(file: IO[bytes], data: bytes) -> None:
    """Append `data` to the open file, or leave the file unchanged."""
    size = file.seek(0, os.SEEK_END)
    if size:
        file.seek(size - 1)
        if file.read(1) != b"\n":
            data = b"\n" + data  # a torn line stays by itself
    try:
        while data:
            data = data[file.write(data) :]
        os.fsync(file.fileno())
    except OSError:
        os.ftruncate(file.fileno(), size)
        raise


@shared
@open_ended
@dataclass(frozen=True)
class _Target:
    name: _Text = ""
    device: _Text = ""
    driver: _Text = ""


@shared
@open_ended
@dataclass(frozen=True)
class _Compiler:
    version: _Text = ""
    hash: _Text = ""


@open_ended
@dataclass(frozen=True, kw_only=True)
class _Line:
    """A record as it is stored: without what it does not say."""

    schema: int
    time: _Text = ""
    target: _Target
    op: str
    shape: Shape
    dtypes: Dtypes
    layout: str
    taps: Taps | None = None
    chain: Chain | None = None
    schedule: Schedule
    compiler: _Compiler
    device: Annotated[str, OneOf(DEVICES)]
    error: str | None = None
    ok: bool = False
    seconds: _Seconds | None = None
    spread: Annotated[float, Range(0)] | None = None
    repeats: Annotated[int, Range(1)] | None = None

    @property
    def stored(self) -> StoredProblem:
        """In the form of records."""
        shape, dtypes = self.shape, self.dtypes
        return StoredProblem(self.op, shape, dtypes, self.layout, self.taps, self.chain)

    def __post_init__(self) -> None:
        if self.error is None and not (self.ok and self.seconds):
            raise ConfigError("neither 'ok' with 'seconds' nor an 'error'")


def to_json(record: Record) -> dict[str, Any]:
    """The JSON object of `record`."""
    setting, is_ok = record.setting, record.seconds is not None
    line = _Line(
        schema=SCHEMA,
        time=record.time,
        target=_Target(setting.target, setting.gpu, setting.driver),
        **vars(record.problem.stored),
        schedule=record.schedule,
        compiler=_Compiler(setting.compiler, setting.compiler_hash),
        device=setting.device,
        error=None if is_ok else record.error,
        ok=is_ok,
        seconds=record.seconds,
        spread=record.spread if is_ok else None,
        repeats=record.repeats if is_ok else None,
    )
    return codec.encode(line)


def from_json(value: Any) -> Record:
    """The record of a JSON object; ConfigError says what is wrong in it."""
    schema = codec.schema_of(value)
    if schema != SCHEMA:
        raise _OtherSchema(codec_forms.shown(schema))
    line = codec.decode(_Line, value)
    target, compiler = line.target, line.compiler
    return Record(
        line.stored.problem,
        line.schedule,
        Setting(
            target.name,
            line.device,
            target.device,
            target.driver,
            compiler.version,
            compiler.hash,
        ),
        line.time,
        line.seconds if line.ok else None,
        line.error or "",
        line.spread or 0.0,
        1 if line.repeats is None else line.repeats,
    )


def measured(
    records: Iterable[Record], problem: Problem, setting: Setting
) -> dict[Schedule, float | None]:
    """The best time of each schedule measured on this setting; None if all failed."""
    known: dict[Schedule, float | None] = {}
    for record in records:
        if (record.problem, record.setting) == (problem.recorded, setting):
            both = known.get(record.schedule), record.seconds
            known[record.schedule] = min(filter(None, both), default=None)
    return known


def timed(records: Iterable[Record], device: str, target: str) -> list[Record]:
    """Those that did not fail, of any compiler on that device and target."""
    return [
        record
        for record in records
        if record.seconds is not None
        and (record.setting.device, record.setting.target) == (device, target)
    ]


def ranked(
    records: Iterable[Record], problem: Problem, target: str, device: str
) -> Sequence[Record]:
    """Measured records for the problem, fastest first, of any compiler."""
    every, wanted = timed(records, device, target), problem.recorded
    fitting = (record for record in every if record.problem == wanted)
    return sorted(fitting, key=lambda record: record.seconds or 0.0)


class _OtherSchema(Exception):
    """Carries the schema of a line that this version does not read."""
