"""Runs the work in a process of its own, and the rest in another where that one dies.

After a fault in a kernel nothing runs any more in a process that uses CUDA; a kernel
that never ends, or a crash of a driver, ends the process. The row in progress is
recorded as failed, and a new process continues after it.
"""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path

from bench.gpu.records import Budget, Recorder, current

LOST = 75  # exit status of a worker whose GPU takes no more work; its row is recorded
ROW_LIMIT = 120.0  # seconds without a new row or another row begun
_POLL = 0.2
_AFTER_DEADLINE = 30.0  # seconds that a worker may take to end by itself
# More lost processes than this are no longer explained by bad kernels.
_MOST_RESTARTS = 20


class DeviceLost(Exception):
    """The process has to end; the row in progress is recorded."""


def run(
    arguments: Sequence[str], records: Path, budget: Budget, limit: float = ROW_LIMIT
) -> str:
    """Run `python ARGUMENTS` until it is finished; "" if it is, else the reason.

    records: the file that the process appends to; see records.Recorder
    """
    for _ in range(_MOST_RESTARTS):
        process = subprocess.Popen([sys.executable, *arguments])
        status = _wait(process, records, budget, limit)
        if status == 0:
            return ""
        row = _take_current(records)
        if status is None and budget.left() == 0 and row is None:
            return "the time was over"
        if row is not None:
            why = "took too long, and was stopped"
            if status is not None:
                why = f"the process died ({_status_name(status)})"
            Recorder(records).failed(row["kind"], row["key"], why)
        elif status not in (LOST, None):
            return f"the process died ({_status_name(status)})"
        if budget.left() == 0:
            return "the time was over"
    return f"gave up after {_MOST_RESTARTS} processes that died"


def _wait(
    process: subprocess.Popen[bytes], records: Path, budget: Budget, limit: float
) -> int | None:
    """The exit status; None if it made no progress and was killed."""
    changed, seen = time.monotonic(), _progress(records)
    over: float | None = None
    try:
        while process.poll() is None:
            time.sleep(_POLL)
            now = time.monotonic()
            if (progress := _progress(records)) != seen:
                changed, seen = now, progress
            if budget.left() == 0 and over is None:
                over = now
            late = over is not None and now - over > _AFTER_DEADLINE
            if now - changed > limit or late:
                process.kill()
                process.wait()
                return None
        return process.returncode
    finally:
        if process.poll() is None:  # Ctrl-C
            process.kill()
            process.wait()


def _progress(records: Path) -> tuple[float, ...]:
    paths = (records, current(records))
    return tuple(path.stat().st_mtime if path.exists() else 0.0 for path in paths)


def _take_current(records: Path) -> dict[str, str] | None:
    """The row that was started and not written."""
    path = current(records)
    if not path.exists():
        return None
    try:
        row = json.loads(path.read_text())
    except ValueError:  # killed while it wrote the name
        row = None
    path.unlink()
    return row


def _status_name(status: int | None) -> str:
    if status is not None and status < 0:
        return signal.Signals(-status).name
    return f"exit status {status}"
