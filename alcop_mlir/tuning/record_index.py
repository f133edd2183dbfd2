"""What is where in a file of records, so that few of its lines are decoded.

An index has a row for each record: where its line is, of which group, and its seconds.
A group is the records of one problem on one GPU:

    settings  target, device and GPU of records
    kinds     op, dtypes, layout and taps of problems, as JSON
    groups    setting, kind and sizes of a problem, and what it computes and moves
    entries   offset, length, group and seconds (0 where it failed) of a record

With these go what was skipped, and for each setting a digest of its lines that have a
time. `extended` adds lines that were appended: those before are not read again.
"""

from __future__ import annotations

import functools
import hashlib
import json
import zlib
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from alcop_mlir.target import Target
from alcop_mlir.tuning import gpus, records
from alcop_mlir.tuning.candidates import FloatArray, IntArray
from alcop_mlir.tuning.problem import Problem
from alcop_mlir.tuning.records import Record

# Another number where other lines are records, or mean something else.
_MAGIC = b"alcop record index 2\n"
_CHECKSUM_BYTES = 4
_TYPES = {"offset": "<i8", "seconds": "<f8", "length": "<i4", "group": "<i4"}
_SIZES = ("m", "n", "k", "batch")
_KEY = ["setting", "kind", *_SIZES]  # of a group
GROUP = np.dtype(
    [("setting", "<i4"), ("kind", "<i4"), *((name, "<i8") for name in _SIZES)]
    + [("flops", "<f8"), ("moved", "<f8"), ("element_bytes", "<f8")]
)


@dataclass(frozen=True)
class Setting:
    """What decides whether a record counts."""

    target: str
    device: str
    gpu: str


@dataclass(frozen=True, eq=False)
class Entries:
    """Columns of the table of records, in the order of the file."""

    offset: npt.NDArray[np.int64]
    seconds: FloatArray
    length: npt.NDArray[np.int32]
    group: npt.NDArray[np.int32]

    def __len__(self) -> int:
        return len(self.offset)

    @classmethod
    def of(cls, rows: Sequence[tuple[float, ...]]) -> Entries:
        """With these rows, each of offset, seconds, length and group."""
        columns = zip(*rows, strict=True) if rows else [()] * len(_TYPES)
        return cls(*map(np.array, columns, _TYPES.values()))

    def followed_by(self, more: Entries) -> Entries:
        """With the rows of others behind."""
        pairs = ((getattr(self, name), getattr(more, name)) for name in _TYPES)
        return Entries(*map(np.concatenate, pairs))


@dataclass(frozen=True, eq=False)
class Index:
    """See the module.

    end, lines, crc: bytes and lines that it is of, and their checksum
    identity: of the file, where these are all of it; see `record_book.py`
    digests: one for each setting
    skipped: number of each line that is no record, and why
    schemas: others than ours, and how many lines have each
    """

    end: int = 0
    lines: int = 0
    crc: int = 0
    identity: tuple[int, ...] = ()
    settings: tuple[Setting, ...] = ()
    kinds: tuple[str, ...] = ()
    digests: tuple[str, ...] = ()
    skipped: tuple[tuple[int, str], ...] = ()
    schemas: tuple[tuple[str, int], ...] = ()
    groups: npt.NDArray[Any] = field(default_factory=lambda: np.zeros(0, GROUP))
    entries: Entries = field(default_factory=lambda: Entries.of(()))

    def notes(self, name: str) -> tuple[str, ...]:
        """A line for each thing that was skipped in the file called `name`."""
        return records.notes(name, self.skipped, self.schemas)

    def groups_of(self, problem: Problem) -> IntArray:
        """Those of this problem, one for each setting that it has records of."""
        kind = _kind(problem)
        if kind not in self.kinds:
            return np.zeros(0, np.int64)
        found = self.groups["kind"] == self.kinds.index(kind)
        for name, size in zip(_SIZES, problem.sizes, strict=True):
            found &= self.groups[name] == size
        return np.flatnonzero(found)

    def problem(self, group: int) -> Problem:
        """That the records of the group are of."""
        row = self.groups[group]
        m, n, k, batch = (int(row[name]) for name in _SIZES)
        shape = {"M": m, "N": n, "K": k, "batch": batch}
        return Problem.from_record(
            {**json.loads(self.kinds[int(row["kind"])]), "shape": shape}
        )

    def fits(self, row: int, record: Record) -> bool:
        """Whether that entry is of this record."""
        group = self.groups[self.entries.group[row]]
        sizes = tuple(int(group[name]) for name in _SIZES)
        return (
            self.settings[int(group["setting"])] == setting_of(record)
            and self.kinds[int(group["kind"])] == _kind(record.problem)
            and sizes == record.problem.sizes
            and float(self.entries.seconds[row]) == (record.seconds or 0.0)
        )


def setting_of(record: Record) -> Setting:
    """Of one record."""
    setting = record.setting
    return Setting(setting.target, setting.device, setting.gpu)


def extended(index: Index, data: bytes) -> tuple[Index, dict[int, Record]]:
    """The index with what follows in the file, and its records by offset."""
    builder = _Builder(index)
    found: dict[int, Record] = {}
    skipped, schemas = list(index.skipped), dict(index.schemas)
    for line in records.scan(data):
        number, offset = index.lines + line.number, index.end + line.offset
        if line.schema:
            schemas[line.schema] = schemas.get(line.schema, 0) + 1
        elif line.record is None:
            skipped.append((number, line.error))
        else:
            found[offset] = line.record
            builder.add(line.record, offset, line.text)
    return replace(
        builder.index(),
        end=index.end + len(data),
        lines=index.lines + data.count(b"\n"),
        crc=zlib.crc32(data, index.crc),
        identity=(),
        skipped=tuple(skipped),
        schemas=tuple(schemas.items()),
    ), found


class _Builder:
    """Adds records to the tables of an index."""

    def __init__(self, index: Index):
        self._old = index
        self._settings = {one: n for n, one in enumerate(index.settings)}
        self._kinds = {one: n for n, one in enumerate(index.kinds)}
        self._digests = [bytes.fromhex(one) for one in index.digests]
        keys = index.groups[["setting", "kind", *_SIZES]].tolist()
        self._groups: dict[tuple[int, ...], int] = {
            one: n for n, one in enumerate(keys)
        }
        self._of_record: dict[tuple[Setting, Problem], int] = {}
        self._new_groups: list[tuple[float, ...]] = []
        self._entries: list[tuple[float, ...]] = []

    def add(self, record: Record, offset: int, line: bytes) -> None:
        """A record, and the line that it is stored in."""
        key = setting_of(record), record.problem
        if key not in self._of_record:
            self._of_record[key] = self._group(*key)
        group = self._of_record[key]
        self._entries.append((offset, record.seconds or 0.0, len(line), group))
        if record.seconds is not None:
            number = self._settings[key[0]]
            self._digests[number] = _digest(self._digests[number] + line)

    def index(self) -> Index:
        """The index with all that was added."""
        groups = np.array(self._new_groups, GROUP)
        return replace(
            self._old,
            settings=tuple(self._settings),
            kinds=tuple(self._kinds),
            digests=tuple(one.hex() for one in self._digests),
            groups=np.concatenate([self._old.groups, groups]),
            entries=self._old.entries.followed_by(Entries.of(self._entries)),
        )

    def _group(self, setting: Setting, problem: Problem) -> int:
        if setting not in self._settings:
            self._settings[setting] = len(self._settings)
            self._digests.append(b"")
        kind = self._kinds.setdefault(_kind(problem), len(self._kinds))
        key = self._settings[setting], kind, *problem.sizes
        if key not in self._groups:
            self._groups[key] = len(self._groups)
            work = gpus.work(problem)
            self._new_groups.append((*key, *work))
        return self._groups[key]


def encode(index: Index) -> bytes:
    """To be stored; `decode` is the other way."""
    rows = len(index.groups), len(index.entries)
    plain = index.end, index.lines, index.crc, index.identity
    settings = [(one.target, one.device, one.gpu) for one in index.settings]
    texts = settings, index.kinds, index.digests, index.skipped, index.schemas
    text = json.dumps((rows, *plain, *texts), separators=(",", ":")).encode()
    columns = (getattr(index.entries, name) for name in _TYPES)
    tables = b"".join(one.tobytes() for one in (index.groups, *columns))
    body = len(text).to_bytes(8, "little") + text + tables
    return _MAGIC + _checksum(body) + body


def decode(data: bytes) -> Index | None:
    """The index of these bytes; None where they are damaged, or none at all."""
    start = len(_MAGIC) + _CHECKSUM_BYTES
    body = memoryview(data)[start:]
    if data[:start] != _MAGIC + _checksum(body):
        return None
    at = 8 + int.from_bytes(body[:8], "little")
    rows, end, lines, crc, identity, *texts = json.loads(bytes(body[8:at]))
    settings, kinds, digests, skipped, schemas = texts
    groups = np.frombuffer(body, GROUP, rows[0], at)
    at += groups.nbytes
    columns: list[npt.NDArray[Any]] = []
    for kind in _TYPES.values():
        columns.append(np.frombuffer(body, kind, rows[1], at))
        at += columns[-1].nbytes
    return Index(
        *(end, lines, crc, tuple(identity)),
        settings=tuple(Setting(*one) for one in settings),
        kinds=tuple(kinds),
        digests=tuple(digests),
        skipped=tuple((number, why) for number, why in skipped),
        schemas=tuple((schema, count) for schema, count in schemas),
        groups=groups,
        entries=Entries(*columns),
    )


def _checksum(data: bytes | memoryview) -> bytes:
    """Against damage, in a third of the time of a hash: it is asked each time."""
    return zlib.crc32(data).to_bytes(_CHECKSUM_BYTES, "little")


def _digest(data: bytes) -> bytes:
    return hashlib.sha256(data).digest()


@functools.cache  # records are many, their problems few
def _kind(problem: Problem) -> str:
    members = problem.to_record()
    del members["shape"]
    return json.dumps(members)


def least_seconds(index: Index, target: Target, gpu: str) -> FloatArray:
    """Of each group; see `gpus.least_seconds`."""
    groups = index.groups
    work = groups["flops"], groups["moved"], groups["element_bytes"]
    return gpus.least(*work, target, gpu)
