"""Compile time in CPU seconds, in a fresh process and in a warm one.

usage: python bench/bench_compile.py [--repeat 5]

Cold: `alcop-compile FILE -o ...` as a process of its own, user and system time of it
and of ptxas, with the byte code of Python's modules in place, as after a first run.
Warm: the same from Python, after a first compile in that process; ptxas, a process of
its own, is shown separately. The median of the repeats is shown. The raw records go to
bench/results/compile.jsonl.
"""

from __future__ import annotations

import argparse
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bench_sass import SCHEDULES, matmul
from records import ROOT, print_table, store

LIMITS = {"cold": 2.0, "warm": 0.5}  # the project's own limits in CPU seconds
Record = dict[str, Any]


@dataclass(frozen=True)
class Cost:
    """Seconds: CPU time of this process, of those that it started, and wall time."""

    own: float
    started: float
    wall: float


def cost(work: Callable[[], object]) -> Cost:
    """The cost of one run of `work`."""
    before, start = os.times(), time.perf_counter()
    work()
    after, wall = os.times(), time.perf_counter() - start
    used = [late - early for late, early in zip(after[:4], before[:4], strict=True)]
    return Cost(sum(used[:2]), sum(used[2:]), wall)


def cold(file: Path, schedule: str | None, folder: Path, *options: str) -> Cost:
    """One run of the command-line tool; the first with a folder makes byte code."""
    command = [sys.executable, "-m", "alcop_mlir.tools.compile", str(file), *options]
    if schedule is not None:
        command += ["--schedule", schedule]
    command += ["-o", str(folder / "bundle.zip")]
    environment = {**os.environ, "PYTHONPYCACHEPREFIX": str(folder / "byte_code")}
    environment.pop("PYTHONDONTWRITEBYTECODE", None)
    return cost(
        lambda: subprocess.run(
            command, check=True, stdout=subprocess.DEVNULL, env=environment
        )
    )


def warm(file: Path, schedule: str | None) -> Cost:
    """One more compile in this process."""
    import alcop_mlir

    return cost(lambda: alcop_mlir.compile(file, schedule=schedule))


def record(kind: str, file: Path, schedule: str | None, runs: list[Cost]) -> Record:
    """The record of the runs of one kind."""
    return {
        "kind": kind,
        "file": file.name,
        "schedule": schedule,
        # A cold compile is itself a started process: it includes ptxas.
        "cpu_seconds": [run.started if kind == "cold" else run.own for run in runs],
        "ptxas_seconds": None if kind == "cold" else [run.started for run in runs],
        "wall_seconds": [run.wall for run in runs],
    }


def row(done: Record) -> list[str]:
    """One line of the table."""
    cpu, ptxas = done["cpu_seconds"], done["ptxas_seconds"]
    return [
        f"{done['file']} {done['schedule'] or '(schedule chosen)'}",
        done["kind"],
        f"{statistics.median(cpu):.2f}",
        f"{min(cpu):.2f} - {max(cpu):.2f}",
        f"{statistics.median(ptxas):.2f}" if ptxas else "",
        f"{statistics.median(done['wall_seconds']):.2f}",
        f"{LIMITS[done['kind']]:.1f}",
    ]


def main() -> None:
    """Measure, print, store."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n\n")[0])
    parser.add_argument("--repeat", type=int, default=5)
    repeat = parser.parse_args().repeat
    records = []
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        large = folder / "matmul_4096.mlir"
        large.write_text(matmul(4096))
        example = ROOT / "examples" / "matmul_f16.mlir"
        for file, schedule in ((example, None), (large, None), (large, SCHEDULES[0])):
            cold(file, schedule, folder)  # byte code and file caches
            warm(file, schedule)
            in_process = [warm(file, schedule) for _ in range(repeat)]
            processes = [cold(file, schedule, folder) for _ in range(repeat)]
            records += [
                record("cold", file, schedule, processes),
                record("warm", file, schedule, in_process),
            ]
    print(f"compiling to a bundle for sm_80: CPU seconds, median of {repeat}")
    header = ["", "", "CPU", "range", "and ptxas", "wall", "allowed CPU"]
    print_table(header, [row(done) for done in records])
    print(f"\nrecords: {store('compile', records)}")


if __name__ == "__main__":
    main()
