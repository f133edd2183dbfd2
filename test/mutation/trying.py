"""Runs mutants in worker processes, and says what each of them did.

A worker is `python trying.py CLASS FIRST COUNT`: it prints a line before and after each
mutant, so that one that ends the process is known. Within it a mutant is a call of the
tool's `main`, with an alarm, and with an address space that a large input exceeds.
"""

from __future__ import annotations

import contextlib
import importlib
import io
import json
import os
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import traceback
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path

import mutants

SECONDS = 30  # that no input may take before it is refused
MEMORY = 2**30  # bytes, the same
CHUNK = 300  # mutants of a worker: what starting one costs is small beside that


@dataclass
class Row:
    """What the mutants of a class did; `wrong` says what is not as it should be."""

    kind: str
    count: int = 0
    accepted: int = 0
    refused: int = 0
    seconds: float = 0.0
    slowest: float = 0.0
    megabytes: int = 0
    wrong: list[str] = field(default_factory=list)

    def add(self, done: dict[str, object]) -> None:
        """Count one mutant."""
        self.count += 1
        seconds = float(str(done["seconds"]))
        self.accepted += done["status"] == 0
        self.refused += done["status"] == 1
        self.seconds += seconds
        self.slowest = max(self.slowest, seconds)
        self.megabytes = max(self.megabytes, int(str(done["megabytes"])))
        if done["wrong"]:
            self.wrong.append(f"{self.kind} {done['seed']}: {done['wrong']}")


def table(rows: list[Row]) -> list[str]:
    """The rows as lines, with their sum."""
    head = "class          mutants accepted refused wrong seconds slowest peak MiB"
    lines = [head]
    lines += [
        f"{row.kind:<15}{row.count:>7}{row.accepted:>9}{row.refused:>8}"
        f"{len(row.wrong):>6}{row.seconds:>8.1f}{row.slowest:>8.2f}{row.megabytes:>9}"
        for row in rows
    ]
    total = Counter[str]()
    for row in rows:
        for name in ("count", "accepted", "refused", "seconds"):
            total[name] += getattr(row, name)
    wrong = sum(len(row.wrong) for row in rows)
    lines.append(
        f"{'all':<15}{total['count']:>7}{total['accepted']:>9}{total['refused']:>8}"
        f"{wrong:>6}{float(total['seconds']):>8.1f}"
    )
    return lines


def run_all(counts: dict[str, int], first: int, jobs: int) -> list[Row]:
    """So many mutants of each class, from number `first` on."""
    rows = {kind: Row(kind) for kind in counts}
    tasks = [
        (kind, first + start, min(CHUNK, count - start))
        for kind, count in counts.items()
        for start in range(0, count, CHUNK)
    ]
    with ThreadPoolExecutor(jobs) as pool:
        for (kind, _, _), found in zip(tasks, pool.map(_chunk, tasks), strict=True):
            for done in found:
                rows[kind].add(done)
    return list(rows.values())


def _chunk(task: tuple[str, int, int]) -> list[dict[str, object]]:
    """The outcomes of some mutants; a worker that dies is replaced."""
    kind, first, count = task
    found: list[dict[str, object]] = []
    end = first + count
    while first < end:
        command = [sys.executable, __file__, kind, str(first), str(end - first)]
        done = subprocess.run(command, capture_output=True, check=False)
        lines = [
            json.loads(line)
            for line in done.stdout.decode(errors="replace").splitlines()
            if line.startswith('{"seed"')
        ]
        finished = [line for line in lines if "status" in line]
        found += finished
        first += len(finished)
        if first < end:
            why = f"the process ended with {done.returncode}"
            text = done.stderr.decode(errors="replace")[-300:]
            found.append(
                {
                    "seed": first,
                    "status": -1,
                    "seconds": 0.0,
                    "megabytes": 0,
                    "wrong": f"{why}: {text}",
                }
            )
            first += 1
    return found


def worker(kind: str, first: int, count: int) -> None:
    """Run some mutants in this process."""
    out = os.fdopen(os.dup(1), "w")
    for name in ("opt", "compile", "run", "tune"):
        importlib.import_module(f"alcop_mlir.tools.{name}")
    mutants.bundle()
    size = int(Path("/proc/self/statm").read_text().split()[0]) * 4096
    most = size + 4 * MEMORY
    resource.setrlimit(resource.RLIMIT_AS, (most, most))
    signal.signal(signal.SIGALRM, _alarm)
    for seed in range(first, first + count):
        print(json.dumps({"seed": seed}), file=out, flush=True)
        print(json.dumps({"seed": seed, **outcome(kind, seed)}), file=out, flush=True)


def outcome(kind: str, seed: int) -> dict[str, object]:
    """What a mutant does: its status, what is wrong, its time, the memory so far."""
    one = mutants.mutant(kind, seed)
    with tempfile.TemporaryDirectory(prefix="mutant-") as name:
        around = Path(name)
        folder = around / "cwd"
        folder.mkdir()
        mutants.write(one, folder)
        before = set(_listed(around))
        with _inside(folder):
            started = time.perf_counter()
            status, text = _call(one)
            seconds = time.perf_counter() - started
        new = {
            path
            for path in set(_listed(around)) - before
            if not path.startswith(tuple(f"cwd/{o}" for o in one.outputs))
        }
        wrong = _wrong(one, status, text, new, folder)
        for path in folder.iterdir():
            if path.is_dir() and not path.is_symlink():
                shutil.rmtree(path)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024
    if seconds > SECONDS:
        wrong.append(f"took {seconds:.0f} s")
    if peak > 3 * MEMORY // 2**20:
        wrong.append(f"took {peak} MiB")
    return {
        "status": status,
        "wrong": "; ".join(wrong),
        "seconds": seconds,
        "megabytes": peak,
    }


def _wrong(
    one: mutants.Mutant, status: int, text: str, new: set[str], folder: Path
) -> list[str]:
    found = []
    if status not in (0, 1):
        found.append(f"status {status}: {text[-700:]}")
    if text.count("\nerror:") + text.startswith("error:") > 1:
        found.append(f"several errors: {text[:400]}")
    if "Traceback" in text:
        found.append("a traceback")
    if new:
        found.append(f"wrote {sorted(new)}")
    if status == 1 and one.tool == "compile" and (folder / "out").exists():
        found.append("an output of a failed run")
    return found


def _call(one: mutants.Mutant) -> tuple[int, str]:
    """The status of the tool, and what it wrote to stderr."""
    tool = importlib.import_module(f"alcop_mlir.tools.{one.tool}")
    said = io.StringIO()
    signal.alarm(SECONDS)
    try:
        with contextlib.redirect_stdout(io.StringIO()):
            with contextlib.redirect_stderr(said):
                status = tool.main(list(one.arguments))
    except SystemExit as end:
        status = 0 if end.code is None else 3
    except BaseException:  # whatever ends a tool is what is looked for
        lines = traceback.format_exc().splitlines()
        return 2, "\n".join(line[:200] for line in lines)
    finally:
        signal.alarm(0)
    return status, said.getvalue()


def _alarm(*_: object) -> None:
    raise TimeoutError("too slow")


def _listed(folder: Path) -> Iterator[str]:
    for place, folders, names in os.walk(folder):
        for name in (*folders, *names):
            yield str(Path(place, name).relative_to(folder))


@contextlib.contextmanager
def _inside(folder: Path) -> Iterator[None]:
    before = Path.cwd()
    os.chdir(folder)
    try:
        yield
    finally:
        os.chdir(before)


if __name__ == "__main__":
    worker(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]))
