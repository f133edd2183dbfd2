"""A file of records to which each measurement is added once, whoever adds it.

Two records are of one measurement where all is equal but when, and what came of it: the
operator, the schedule, the device and the compiler. Searches that write to one file at
the same time, and workers of one machine, find here what others have measured.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import IO

from alcop_mlir import files, limits
from alcop_mlir.errors import ConfigError
from alcop_mlir.schedule import Schedule
from alcop_mlir.tuning import records
from alcop_mlir.tuning.problem import Problem
from alcop_mlir.tuning.records import Record, Setting

Key = tuple[Problem, Schedule, Setting]


def key(record: Record) -> Key:
    """What is equal of two records of one measurement."""
    return record.problem.recorded, record.schedule, record.setting


class Journal:
    """The records at `path`; each append sees what others have appended before."""

    def __init__(self, path: Path):
        self.path = path
        self._known: dict[Key, Record] = {}
        self._read = 0  # bytes of the file

    def refresh(self) -> Mapping[Key, Record]:
        """All records; ConfigError where they cannot be read."""
        try:
            with self.path.open("rb") as file, files.locked(file.fileno(), False):
                self._take(file)
        except FileNotFoundError:
            pass
        except OSError as error:
            why = files.reason(error)
            raise ConfigError(f"cannot read '{self.path}': {why}") from None
        return self._known

    def append(self, record: Record) -> Record:
        """Add it, unless there is one of this measurement; the one that is there."""
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            with self.path.open("ab+", buffering=0) as file:
                with files.locked(file.fileno(), exclusive=True):
                    self._take(file)
                    if key(record) in self._known:
                        return self._known[key(record)]
                    records.append_data(file, records.lines([record]))
                    self._take(file)
        except OSError as error:
            raise records.not_written(self.path, error) from None
        return self._known[key(record)]

    def _take(self, file: IO[bytes]) -> None:
        """Read what the open file has more than before."""
        file.seek(self._read)
        data = files.read_most(file, limits.RECORDS, f"'{self.path}'")
        self._read += len(data)
        # What is damaged is reported by who reads the file to choose by it.
        for record in records.parse(data, str(self.path)).records:
            self._known.setdefault(key(record), record)
