"""The records of a run of the kit: JSON lines, each written as soon as it is known.

The first line gives the time, the machine and the versions; then comes a line per row.
A row has a `kind` and a unique `key`, `ok`, and either results or `error`.
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterable, Mapping
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

from alcop_mlir.errors import ConfigError

SCHEMA = 1
RUN, LEFT_OUT, SKIPPED = "run", "left out", "skipped"
# Kinds of lines that are about the run, and neither pass nor fail.
ABOUT = (RUN, LEFT_OUT, SKIPPED, "state", "ceiling", "drift")

Row = dict[str, Any]


class Budget:
    """Seconds until a moment; by the clock on the wall, so that processes agree."""

    def __init__(self, deadline: float):
        self.deadline = deadline

    @classmethod
    def of(cls, seconds: float) -> Budget:
        """From now on."""
        return cls(time.time() + seconds)

    def left(self) -> float:
        """Seconds; 0 when it is over."""
        return max(0.0, self.deadline - time.time())

    def part(self, share: float) -> Budget:
        """That share of what is left."""
        return Budget.of(self.left() * share)


class Recorder:
    """Appends rows to a file, and knows which it holds already.

    A second file names the row in progress, so that the row of a process that dies is
    known.
    """

    def __init__(self, path: Path):
        self.path = path
        path.parent.mkdir(parents=True, exist_ok=True)
        self.done = {row.get("key") for row in read(path)} if path.exists() else set()

    def about(self, **members: Any) -> None:
        """Write the first line, if the file is empty."""
        if RUN not in self.done:
            now = datetime.now(timezone.utc).isoformat(timespec="seconds")
            self.add(RUN, RUN, schema=SCHEMA, time=now, **members)

    def start(self, kind: str, key: str) -> bool:
        """Whether the row is still to be done; if so, marks it as in progress."""
        if key in self.done:
            return False
        current(self.path).write_text(json.dumps({"kind": kind, "key": key}))
        return True

    def add(self, kind: str, key: str, **members: Any) -> Row:
        """Write one row."""
        row = {"kind": kind, "key": key, **members}
        with self.path.open("a") as file:
            file.write(json.dumps(row) + "\n")
        current(self.path).unlink(missing_ok=True)
        self.done.add(key)
        return row

    def failed(self, kind: str, key: str, error: object, **members: Any) -> Row:
        """Write a row that failed, and print it at once."""
        text = describe(error)
        print(f"  FAILED {key}: {text}", flush=True)
        return self.add(kind, key, ok=False, error=text, **members)

    def left_out(self, keys: Iterable[str]) -> None:
        """Name the rows that there was no time for."""
        names = [key for key in keys if key not in self.done]
        if names:
            self.add(LEFT_OUT, f"{LEFT_OUT} {len(self.done)}", rows=names)


def current(path: Path) -> Path:
    """The file that names the row in progress."""
    return path.with_name(f"{path.name}.current")


def describe(error: object) -> str:
    """An exception as its type and first line; a text unchanged."""
    if not isinstance(error, BaseException):
        return str(error)
    lines = str(error).splitlines() or [""]
    return f"{type(error).__name__}: {lines[0]}"


def read(path: Path) -> list[Row]:
    """All rows; a last line that was torn is left out. ConfigError if unreadable."""
    try:
        lines = path.read_text().splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"cannot read '{path}': {error}") from None
    rows = []
    for number, line in enumerate(lines, start=1):
        try:
            row = json.loads(line)
        except ValueError:
            if number == len(lines):
                break
            raise ConfigError(f"{path}:{number}: no JSON") from None
        if not isinstance(row, dict) or "kind" not in row:
            raise ConfigError(f"{path}:{number}: no record of this kit")
        rows.append(row)
    return rows


def failures(rows: Iterable[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    """Rows that failed."""
    return [row for row in rows if row["kind"] not in ABOUT and not row.get("ok")]


def exit_status(rows: Iterable[Mapping[str, Any]]) -> int:
    """0 where rows were run and all went well, else 1."""
    counted = [row for row in rows if row["kind"] not in ABOUT]
    return 0 if counted and not failures(counted) else 1


def print_summary(rows: Iterable[Mapping[str, Any]], path: Path) -> None:
    """Print how many rows of each kind succeeded, what was not run, and why."""
    rows = list(rows)
    for kind in dict.fromkeys(row["kind"] for row in rows):
        if kind in ABOUT:
            continue
        mine = [row for row in rows if row["kind"] == kind]
        print(f"{kind}: {len(mine) - len(failures(mine))} of {len(mine)} ok")
    for row in rows:
        if row["kind"] == SKIPPED:
            print(f"not in the bundle: {row['count']} of {row['use']}: {row['reason']}")
        if row["kind"] == LEFT_OUT:
            print(f"left out for lack of time: {len(row['rows'])} rows")
    for row in failures(rows):
        print(f"FAILED {row['key']}: {row.get('error', '')}")
    print(f"records: {path}")
