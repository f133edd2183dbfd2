"""How many of our kernels are proven: those of `make gpu-bundle`, by group.

    python bench/bench_certificates.py [--most N] [--target sm_80] [--group NAME]
        [--state FILE] [--jobs N]

Compiles kernels of the lists of bench/gpu (at most N of each group, evenly chosen; all
with --most 0), proves each, and prints a row per group: kernels, how many are proven,
those of them in part (see docs/certificates.md), those of these whose accesses to
global memory are not shown to be inside of arrays ("loose"), those whose results are
placed, verdicts, CPU seconds of
the prover with the check of what it proved, of a check by itself, and bytes of
certificates. What is not proven is listed below, with its reason. What was tried is
written to FILE, and a run that was interrupted goes on. N kernels are tried at a time;
the seconds are of one CPU.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor, as_completed
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from alcop_mlir.certificate.certificate import stored
from alcop_mlir.checker.check import check
from alcop_mlir.compilation import compiler, inputs
from alcop_mlir.compilation.certification import certified, launched_kernels
from alcop_mlir.errors import AlcopError
from alcop_mlir.schedule import Schedule
from alcop_mlir.target import find_target
from bench.gpu.lists import all_items
from bench.gpu.spec import Spec

Row = dict[str, Any]


def main() -> None:
    """Prints the table."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--most", type=int, default=8)
    parser.add_argument("--target", default="sm_80")
    parser.add_argument("--group", default="")
    parser.add_argument("--seconds", type=float, default=60)
    state = Path("build/certificates.jsonl")
    parser.add_argument("--state", type=Path, default=state)
    parser.add_argument("--jobs", type=int, default=1)
    given = parser.parse_args()
    specs = chosen(given.target, given.group, given.most)
    rows = list(tried(specs, given.seconds, given.state, given.jobs))
    print(f"{'group':<16}{'kernels':>8}{'proven':>8}{'part':>6}{'loose':>6}", end="")
    print(f"{'placed':>8}", end="")
    print(f"{'not':>5}", end="")
    print(f"{'outside':>8}{'median s':>10}{'most s':>8}{'check s':>8}{'bytes':>8}")
    for name in dict.fromkeys(row["group"] for row in rows):
        show(name, [row for row in rows if row["group"] == name])
    show("all", rows)
    print(
        *sorted(
            f"{r['key']} {r['entry']}: {r['said']} {r['loose']} {r['misplaced']}"
            for r in rows
            if r["said"]
        ),
        sep="\n",
    )


def tried(
    groups: dict[str, list[Spec]], seconds: float, state: Path, jobs: int
) -> Iterator[Row]:
    """What came of each kernel, now or before."""
    from rich.progress import track

    state.parent.mkdir(parents=True, exist_ok=True)
    lines = state.read_text().splitlines() if state.exists() else []
    done = {one["key"]: one["kernels"] for one in map(json.loads, lines)}
    every = {spec.key: spec for specs in groups.values() for spec in specs}
    left = [spec for key, spec in every.items() if key not in done]
    with state.open("a", encoding="utf-8") as file, ProcessPoolExecutor(jobs) as pool:
        waiting = [pool.submit(kept, spec, seconds) for spec in left]
        for one in track(as_completed(waiting), "kernels", total=len(waiting)):
            found = one.result()
            done[found["key"]] = found["kernels"]
            print(json.dumps(found), file=file, flush=True)
    for group, specs in groups.items():
        for spec in specs:
            yield from ({"group": group, **row} for row in done[spec.key])


def kept(spec: Spec, seconds: float) -> dict[str, Any]:
    """What is kept of a spec."""
    return {"key": spec.key, "kernels": list(verdicts(spec, seconds))}


def show(name: str, rows: list[Row]) -> None:
    """One line of the table."""
    counts = Counter(row["status"] for row in rows)
    proven = counts["proven"] + counts["proven in part"]
    seconds = sorted(row["seconds"] for row in rows) or [0.0]
    checks, sizes = ([row[n] for row in rows] or [0] for n in ("check", "bytes"))
    loose = sum("bounded" in row["missing"] for row in rows)
    placed = sum(bool(row["bytes"]) and not row["misplaced"] for row in rows)
    print(f"{name:<16}{len(rows):>8}{proven:>8}{counts['proven in part']:>6}", end="")
    print(
        f"{loose:>6}{placed:>8}{counts['not proven']:>5}{counts['outside']:>8}", end=""
    )
    print(f"{seconds[len(seconds) // 2]:>10.2f}{seconds[-1]:>8.2f}", end="")
    print(f"{max(checks):>8.2f}{max(sizes):>8}")


def chosen(target: str, group: str, most: int) -> dict[str, list[Spec]]:
    """Specs by group, at most so many of each."""
    found: dict[str, dict[Spec, None]] = {}
    for item in all_items(target):
        if group in item.group:
            found.setdefault(item.group, {})[item.spec] = None
    return {name: _some(list(specs), most) for name, specs in found.items()}


def _some(specs: list[Spec], most: int) -> list[Spec]:
    if not most:
        return specs
    step = max(1.0, len(specs) / most)
    return [specs[int(i * step)] for i in range(min(most, len(specs)))]


def verdicts(spec: Spec, seconds: float) -> Iterator[Row]:
    """What came of each kernel of a spec."""
    schedule = Schedule.parse(spec.schedule) if spec.schedule else None
    target = find_target(spec.target)
    options = compiler.Options(
        target, schedule, use_ptxas=False, allow_tf32=spec.allow_tf32
    )
    try:
        made = compiler.compile_source(inputs.read_text(spec.mlir()), options)
    except AlcopError as error:
        print(f"{spec.key}: not compiled: {error}", file=sys.stderr)
        return
    for one in launched_kernels(made):
        ptx = made.code[one.module].ptx
        needs = dict(one.requirements)
        start = time.process_time()
        given = (one.name, one.threads, one.shared_bytes, needs, seconds)
        report = certified(ptx, *given, one.promised, one.stated)
        proved = time.process_time()
        found = report.certificate
        if found is not None:
            check(ptx, found)
        yield {
            "key": spec.key,
            "entry": report.entry,
            "status": report.to_json()["status"],
            "said": "" if report.verdict == "proven" else report.verdict,
            "missing": list(report.missing),
            "loose": report.loose,
            "misplaced": report.misplaced,
            "seconds": proved - start,
            "check": time.process_time() - proved,
            "bytes": 0 if found is None else len(stored([found])),
        }


if __name__ == "__main__":
    main()
