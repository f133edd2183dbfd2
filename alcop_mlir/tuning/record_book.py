"""A file of records, consulted by an index in the cache directory.

    book = consult(path)     which lines there are: all are decoded the first time only
    book.records(rows)       decodes these lines

The index is used where the file is the one that it is of: the same file, of the same
size, not written to since; or one that begins with the very bytes that it is of, and
has more. Those are decoded, and the index is extended. Else all is read, as it is
without an index; so a damaged one, or one that cannot be written, costs time alone. It
is written whole, under another name first, so that processes may do so at once.
"""

from __future__ import annotations

import hashlib
import os
import stat
import time
import zlib
from dataclasses import dataclass, replace
from pathlib import Path
from typing import IO

import numpy as np

from alcop_mlir import files, knobs, limits
from alcop_mlir.errors import ConfigError
from alcop_mlir.tuning import record_index as indices
from alcop_mlir.tuning import records
from alcop_mlir.tuning.candidates import IntArray
from alcop_mlir.tuning.record_index import Index
from alcop_mlir.tuning.records import Record

LEAST_BYTES = 1 << 16  # of a file with an index: decoding fewer takes no longer
# Nanoseconds: two writes within one tick of a disk's clock leave the same time.
_SETTLED = 10**9
_FEW = 256  # lines that are read one by one, not with all between them


class ChangedError(Exception):
    """The file is no longer what the index is of."""


@dataclass(frozen=True, eq=False)
class Book:
    """What a file holds: its index, and the records that were decoded for that.

    notes: a line for each thing that was skipped, or about the index
    """

    name: str
    index: Index
    notes: tuple[str, ...]
    _decoded: dict[int, Record]
    _path: Path | None = None
    _status: os.stat_result | None = None

    def records(self, rows: IntArray | None = None) -> list[Record]:
        """Those of some entries of the index, in their order, or all; ChangedError
        where they are not there.
        """
        entries = self.index.entries
        rows = np.arange(len(entries)) if rows is None else rows
        offsets: list[int] = entries.offset[rows].tolist()
        missing = [at not in self._decoded for at in offsets]
        if any(missing):
            self._decode(rows[missing])
        return [self._decoded[at] for at in offsets]

    def _decode(self, rows: IntArray) -> None:
        offsets: list[int] = self.index.entries.offset[rows].tolist()
        lengths: list[int] = self.index.entries.length[rows].tolist()
        lines = self._lines([*zip(offsets, lengths, strict=True)])
        for row, at, line in zip(rows.tolist(), offsets, lines, strict=True):
            record = records.read_line(line).record
            if record is None or not self.index.fits(row, record):
                raise ChangedError
            self._decoded[at] = record

    def _lines(self, places: list[tuple[int, int]]) -> list[bytes]:
        try:
            with self._opened() as file:
                if len(places) <= _FEW:
                    return [_at(file, *place) for place in places]
                first, end = places[0][0], sum(places[-1])
                data = _at(file, first, end - first)
        except OSError:
            raise ChangedError from None
        return [data[at - first : at - first + length] for at, length in places]

    def _opened(self) -> IO[bytes]:
        if self._path is None or self._status is None:
            raise ChangedError
        file = self._path.open("rb")
        if os.path.samestat(os.fstat(file.fileno()), self._status):
            return file
        file.close()
        raise ChangedError


def of_data(data: bytes, name: str) -> Book:
    """Of a file with these bytes, called `name`."""
    index, decoded = indices.extended(Index(), data)
    return Book(name, index, index.notes(name), decoded)


def consult(path: Path, anew: bool = False) -> Book:
    """The file at `path`; no record where there is none. ConfigError if it cannot be
    read.

    anew: all of it, whatever the index says
    """
    try:
        with path.open("rb") as file, files.locked(file.fileno(), exclusive=False):
            status, most = os.fstat(file.fileno()), limits.RECORDS.most
            has_index = LEAST_BYTES <= status.st_size <= most
            if not stat.S_ISREG(status.st_mode) or not has_index:
                data = files.read_most(file, limits.RECORDS, f"'{path}'")
                return of_data(data, str(path))
            known = Index() if anew else _fitting(_load(path), file, status)
            file.seek(known.end)
            data = file.read()
    except FileNotFoundError:
        return of_data(b"", str(path))
    except OSError as error:
        raise ConfigError(f"cannot read '{path}': {files.reason(error)}") from None
    return _extended(path, known, data, status)


def _fitting(known: Index, file: IO[bytes], status: os.stat_result) -> Index:
    """The index as far as the file begins with what it is of."""
    if known.identity and known.identity == _identity(status):
        return known
    if known.end > status.st_size or zlib.crc32(file.read(known.end)) != known.crc:
        return Index()
    return known


def _extended(path: Path, known: Index, data: bytes, status: os.stat_result) -> Book:
    """`data` follows in the file on what is known."""
    whole = data[: data.rfind(b"\n") + 1]
    is_all = known.end + len(data) == status.st_size
    index, decoded = indices.extended(known, whole) if whole else (known, {})
    index = replace(index, identity=_identity(status) if is_all else ())
    more: tuple[str, ...] = ()
    if whole or index.identity != known.identity:
        more = _store(index, path)
    if len(data) > len(whole):  # a torn line, which may still grow
        index, last = indices.extended(index, data[len(whole) :])
        decoded |= last
    notes = (*index.notes(str(path)), *more)
    return Book(str(path), index, notes, decoded, path, status)


def _identity(status: os.stat_result) -> tuple[int, ...]:
    """What is another one once the file is written to; empty where that is too new."""
    times = status.st_mtime_ns, status.st_ctime_ns
    if max(times) > time.time_ns() - _SETTLED:
        return ()
    return status.st_dev, status.st_ino, status.st_size, *times


def _load(path: Path) -> Index:
    """The index of the file at `path`; an empty one where it has none."""
    try:
        return indices.decode(_index_path(path).read_bytes()) or Index()
    except OSError:
        return Index()


def _store(index: Index, path: Path) -> tuple[str, ...]:
    """Keep the index of the file at `path`; a line where that fails."""
    try:
        where = _index_path(path)
        where.parent.mkdir(parents=True, exist_ok=True)
        files.replace(where, indices.encode(index))
    except OSError as error:
        why = files.reason(error)
        return (f"the index of '{path}' is not kept, it will be made again: {why}",)
    return ()


def _index_path(path: Path) -> Path:
    name = hashlib.blake2b(os.fsencode(path.absolute()), digest_size=16).hexdigest()
    return knobs.cache_dir() / f"records-{name}.index"


def _at(file: IO[bytes], offset: int, length: int) -> bytes:
    file.seek(offset)
    return file.read(length)
