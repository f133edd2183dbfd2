"""Pools: what more workers gain, and what is lost when processes are killed.

    python bench/bench_pool.py [--trials N] [--wait SECONDS]
    python bench/bench_pool.py --kills N [--trials N]

No GPU is needed: measurements are by the simulated device, each of which waits as long
as `--wait` says, as a GPU would be busy; so many of them may wait at once on few cores.
What is timed is the search, from its first measurement to its last, without the start
of workers.

`--kills` searches until so many trials are recorded, and meanwhile ends random
processes of the search by SIGKILL: the search itself, which is then called again, its
workers, and their children, which measure. Then it counts the records, those that are
there twice, what a worker has kept and no record is of, and what was measured again
though it was kept. A worker that is killed before it keeps a measurement takes that
along.
"""

from __future__ import annotations

import argparse
import os
import random
import re
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path

import psutil
from records import store

from alcop_mlir.measurement.journal import key
from alcop_mlir.tuning import records

MODEL = """
func.func @mlp(%x: memref<512x512xf16>, %w: memref<512x1024xf16>,
               %y: memref<512x1024xf32>, %v: memref<512x2048xf16>,
               %z: memref<512x2048xf32>) {
  linalg.matmul ins(%x, %w : memref<512x512xf16>, memref<512x1024xf16>)
                outs(%y : memref<512x1024xf32>)
  linalg.matmul ins(%x, %v : memref<512x512xf16>, memref<512x2048xf16>)
                outs(%z : memref<512x2048xf32>)
  return
}
"""
WORKERS = (1, 2, 4)
AIMS = {2: 1.8, 4: 3.5}
# The tool, whose search goes on where nothing gets better, and that says when it began
# and ended.
TOOL = """
import os, sys, time
from alcop_mlir.measurement import pool_tasks, program_search
from alcop_mlir.tools import tune
program_search.PATIENCE = 10**6
found = program_search.search
def timed(*given):
    start = time.monotonic()
    yield from found(*given)
    print(f"search took {time.monotonic() - start:.2f} s")
from alcop_mlir.tools import tune_program
tune_program.search = timed
# Workers load this file too: each notes what it has measured, and then kept.
def note(name, record):
    path = os.path.join(os.environ["ALCOP_CACHE_DIR"], name)
    log = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT)
    os.write(log, f"{record.problem} {record.schedule}\\n".encode())
    os.close(log)
    return record
measured = pool_tasks._measured
def noted(asked, made, bundle):
    return note("measured", measured(asked, made, bundle))
class Kept(pool_tasks.Journal):
    def append(self, record):
        return note("kept", super().append(record))
pool_tasks._measured = noted
pool_tasks.Journal = Kept
if __name__ == "__main__":
    sys.exit(tune.main(sys.argv[1:]))
"""


def command(folder: Path, workers: int, trials: int, seed: int = 0) -> list[str]:
    """The search for schedules of MODEL on so many simulated devices."""
    (folder / "tool.py").write_text(TOOL)
    (folder / "mlp.mlir").write_text(MODEL)
    options = f"--device simulated --simulated-devices {workers} --target sm_90".split()
    options += ["--strategy", "random", "--seed", str(seed), "--budget", str(trials)]
    tool = [sys.executable, str(folder / "tool.py"), str(folder / "mlp.mlir")]
    return [*tool, "--pool", *options]


def environment(folder: Path, wait: float) -> dict[str, str]:
    """With a cache of its own."""
    own = {"ALCOP_CACHE_DIR": str(folder), "ALCOP_SIMULATED_SECONDS": str(wait)}
    return {**os.environ, **own}


def seconds(workers: int, trials: int, wait: float) -> float:
    """What a search by so many workers takes."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        done = subprocess.run(
            command(folder, workers, trials),
            env=environment(folder, wait),
            capture_output=True,
            text=True,
            check=True,
        )
    (found,) = re.findall(r"search took ([\d.]+) s", done.stdout)
    return float(found)


def speedups(trials: int, wait: float) -> int:
    """Print and store them; 1 where one is less than its aim."""
    took = {count: seconds(count, trials, wait) for count in WORKERS}
    print(f"{trials} trials of {wait} s each, {os.cpu_count()} cores")
    print("| workers | seconds | times as fast as one | aim |")
    print("|--:|--:|--:|--:|")
    for count, time_taken in took.items():
        speedup, aim = took[1] / time_taken, AIMS.get(count, 1.0)
        print(f"| {count} | {time_taken:.1f} | {speedup:.2f} | {aim:g} |")
    row = {"trials": trials, "wait": wait, "seconds": took}
    store("pool", [row])
    return int(any(took[1] / took[count] < aim for count, aim in AIMS.items()))


@dataclass
class Killed:
    """A search whose processes are killed, again and again."""

    folder: Path
    trials: int
    chance: random.Random
    ended: Counter[str] = field(default_factory=Counter[str])
    starts: int = 0

    @property
    def path(self) -> Path:
        """Where its records are."""
        return self.folder / "records.jsonl"

    def recorded(self) -> int:
        """Lines of its records."""
        return self.path.read_bytes().count(b"\n") if self.path.exists() else 0

    def started(self) -> subprocess.Popen[bytes]:
        """The search, for what is left of its trials."""
        self.starts += 1
        left = max(1, self.trials - self.recorded())
        return subprocess.Popen(
            command(self.folder, 2, left, self.starts),
            env=environment(self.folder, 0.2),
            stdout=subprocess.DEVNULL,
            stderr=(self.folder / "said").open("ab"),
        )

    def run(self, kills: int) -> None:
        """Search until all is recorded; kills are spread over the first nine tenths."""
        tool, last = self.started(), 0.9 * self.trials
        while True:
            time.sleep(self.chance.uniform(0.05, 0.3))
            if tool.poll() is not None:
                if self.recorded() >= self.trials:
                    return
                tool = self.started()
            elif self.ended.total() < min(kills, kills * self.recorded() / last):
                time.sleep(self.chance.uniform(0, 0.5))
                self.kill(psutil.Process(tool.pid))

    def kill(self, search: psutil.Process) -> None:
        """One of its processes, or itself, without a warning."""
        try:
            below = search.children(recursive=True)
            found = [one for one in below if "spawn_main" in " ".join(one.cmdline())]
            itself = self.chance.random() < 0.15 or not found
            one = search if itself else self.chance.choice(found)
            is_worker = one.ppid() == search.pid
            name = "search" if itself else "worker" if is_worker else "child"
            one.send_signal(signal.SIGKILL)
        except psutil.NoSuchProcess:
            return
        self.ended[name] += 1

    def report(self) -> int:
        """Print what there is in the end; 1 where something is lost, or twice."""
        log = records.read(self.path)
        keys = Counter(key(one) for one in log.records)
        failed = sum(one.seconds is None for one in log.records)
        texts = {f"{one.problem} {one.schedule}" for one in log.records}
        made, kept = self._noted("measured"), self._noted("kept")
        doubled = sum(count - 1 for count in keys.values())
        lost = len(kept.keys() - texts)
        again = sum(count - 1 for count in kept.values())
        print(f"{self.ended.total()} kills ({dict(self.ended)}), {self.starts} starts")
        count = len(log.records)
        print(f"{count} records, {doubled} doubled, {lost} lost, {failed} failed")
        taken = made.total() - kept.total()
        print(f"{made.total()} measurements ended, {taken} not noted as kept: killed")
        print(f"{again} measured again that had been kept")
        print(f"{len(log.notes)} damaged lines")
        row = {"kills": dict(self.ended), "records": len(log.records), "lost": lost}
        store("pool-kills", [{**row, "doubled": doubled, "again": again}])
        return int(bool(doubled or lost or again or count < self.trials))

    def _noted(self, name: str) -> Counter[str]:
        """What workers noted, and how often."""
        return Counter((self.folder / name).read_text().splitlines())


def main() -> int:
    """The command; returns the exit status."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--trials", type=int, metavar="N")
    parser.add_argument("--wait", type=float, default=1.0, metavar="SECONDS")
    parser.add_argument("--kills", type=int, metavar="N")
    parser.add_argument("--seed", type=int, default=0, metavar="N")
    given = parser.parse_args()
    if given.kills is None:
        return speedups(given.trials or 64, given.wait)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        chance = random.Random(given.seed)
        search = Killed(folder, given.trials or 500, chance)
        search.run(given.kills)
        return search.report()


if __name__ == "__main__":
    sys.exit(main())
