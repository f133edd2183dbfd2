"""What records cost when a schedule is chosen: CPU seconds, each in its own process.

    python bench/bench_records.py [--records 100000]

    first      records of a problem are asked for, for the first time
    record     the same again: the index is there
    appended   the same, after a search has added a record
    refit      a problem without records is asked for: a model is trained
    model      the same again: the trained model is there

What is counted begins when all is imported, and ends with the schedule; scikit-learn,
which only a process that trains imports, is "import". Of it are "records",
 until it is known what counts for the problem, and "choice", the rest.
Records are of random sizes, 64 schedules of each; their times are the model's, with
errors. Rows are stored in results/records.jsonl.
"""

from __future__ import annotations

import argparse
import importlib
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
from records import print_table, store

from alcop_mlir.target import find_target
from alcop_mlir.tuning import records
from alcop_mlir.tuning.analytical import predict
from alcop_mlir.tuning.candidates import Candidates
from alcop_mlir.tuning.problem import Problem
from alcop_mlir.tuning.records import Record, Setting
from alcop_mlir.tuning.selection import Chooser
from alcop_mlir.tuning.space import enumerate_space

TARGET = find_target("sm_80")
SETTING = Setting(TARGET.name, "cuda", TARGET.device, "535.1", "0.1.0", "abc")
SIZES = [64, 128, 192, 256, 384, 512, 768, 1024, 1536, 2048, 3072, 4096]
EACH = 64  # schedules of a problem
KNOWN, NEW = Problem(1024, 1024, 1024), Problem(1000, 1000, 1000)
PARTS = ("import", "records", "choice")
STEPS = ("first", "record", "appended", "refit", "model")


def main() -> None:
    """The command."""
    parser = argparse.ArgumentParser(description=str(__doc__).partition("\n")[0])
    parser.add_argument("--records", type=int, default=100_000, metavar="N")
    parser.add_argument("--step", choices=STEPS, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.step:
        print(json.dumps(step(given.step)))
        return
    with tempfile.TemporaryDirectory() as folder:
        environment = {**os.environ, "ALCOP_CACHE_DIR": folder, "ALCOP_GPU": ""}
        path = Path(folder) / "records.jsonl"
        write(path, given.records)
        time.sleep(2)  # a file that was just written is looked at again
        rows = [_run(one, path, environment) for one in STEPS]
    print(f"{given.records} records, CPU milliseconds")
    cells = [
        [row["step"], *(f"{row[one]:.1f}" for one in PARTS), row["source"]]
        for row in rows
    ]
    print_table(["", *PARTS, "from"], cells)
    store("records", [{**row, "number": given.records} for row in rows])


def _run(name: str, path: Path, environment: dict[str, str]) -> dict[str, object]:
    if name == "appended":
        records.append(path, [next(made(1))])
    done = subprocess.run(
        [sys.executable, __file__, "--step", name],
        env=environment,
        stdout=subprocess.PIPE,
        text=True,
        check=True,
    )
    return json.loads(done.stdout)


def step(name: str) -> dict[str, object]:
    """What one choice costs in this process."""
    problem = NEW if name in ("refit", "model") else KNOWN
    begun = time.process_time()
    if name == "refit":
        importlib.import_module("sklearn.ensemble")
    start = time.process_time()
    chooser = Chooser(TARGET)
    chooser.counted.of(problem)
    known = time.process_time()
    decision = chooser.choose(problem)
    end = time.process_time()
    times = {"records": (known - start) * 1e3, "choice": (end - known) * 1e3}
    imported = (start - begun) * 1e3
    return {"step": name, "import": imported, **times, "source": decision.source}


def write(path: Path, number: int) -> None:
    """So many records."""
    path.write_bytes(records.lines(made(number)))


def made(number: int) -> Iterator[Record]:
    """Records of random problems, the first of `KNOWN`."""
    generator = np.random.default_rng(0)
    schedules = enumerate_space(KNOWN, TARGET).schedules
    seen, problem = {KNOWN}, KNOWN
    while number > 0:
        rows = generator.choice(len(schedules), EACH, replace=False)
        mine = [schedules[row] for row in rows.tolist()]
        candidates = Candidates.legal(mine, problem, TARGET)
        seconds = predict(problem, candidates, TARGET).seconds
        seconds = seconds * np.exp(0.2 * generator.normal(size=len(seconds)))
        pairs = zip(candidates.schedules, seconds.tolist(), strict=True)
        for schedule, value in [*pairs][:number]:
            yield Record(problem, schedule, SETTING, records.now(), value)
            number -= 1
        while problem in seen:
            m, n, k = generator.choice(SIZES, 3).tolist()
            problem = Problem(m, n, k * int(generator.integers(1, 4)))
        seen.add(problem)


if __name__ == "__main__":
    main()
