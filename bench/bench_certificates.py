"""How many of our kernels are proven: those of `make gpu-bundle`, by group.

    python bench/bench_certificates.py [--most N] [--target sm_80] [--group NAME]

Compiles kernels of the lists of bench/gpu (at most N of each group, evenly chosen),
proves each, and prints a row per group: kernels, how many are proven, those
of them in part (see docs/certificates.md), verdicts, CPU seconds of the prover with the
check of what it proved, bytes of certificates. What is not proven is listed below, with
its reason.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from alcop_mlir.certificate.api import Report
from alcop_mlir.certificate.certificate import stored
from alcop_mlir.compilation import compiler, inputs
from alcop_mlir.compilation.certification import certify_bundle
from alcop_mlir.errors import AlcopError
from alcop_mlir.schedule import Schedule
from alcop_mlir.target import find_target
from bench.gpu.lists import all_items
from bench.gpu.spec import Spec


@dataclass
class Group:
    """What came of the kernels of one group."""

    verdicts: Counter[str] = field(default_factory=Counter)
    in_part: int = 0
    seconds: list[float] = field(default_factory=list)
    bytes_: list[int] = field(default_factory=list)


def main() -> None:
    """Prints the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--most", type=int, default=8)
    parser.add_argument("--target", default="sm_80")
    parser.add_argument("--group", default="")
    parser.add_argument("--seconds", type=float, default=60)
    given = parser.parse_args()
    rows: dict[str, Group] = {}
    reasons: list[str] = []
    for group, specs in chosen(given.target, given.group, given.most).items():
        row = rows[group] = Group()
        for spec in specs:
            for seconds, report in verdicts(spec, given.seconds):
                row.verdicts[report.status] += 1
                row.in_part += bool(report.missing)
                row.seconds.append(seconds)
                if report.certificate is not None:
                    row.bytes_.append(len(stored([report.certificate])))
                if report.status != "proven":
                    why = str(report.finding or report.why)
                    reasons.append(f"{spec.key} {report.entry}: {report.status}: {why}")
                    print(reasons[-1], file=sys.stderr, flush=True)
    print(
        f"{'group':<16}{'kernels':>8}{'proven':>8}{'part':>6}{'not':>5}{'outside':>8}",
        end="",
    )
    print(f"{'median s':>10}{'most s':>8}{'bytes':>8}")
    for name, row in rows.items():
        show(name, row)
    print(*sorted(reasons), sep="\n")


def show(name: str, row: Group) -> None:
    """One line of the table."""
    counts = [row.verdicts[v] for v in ("proven", "not proven", "outside")]
    seconds = sorted(row.seconds) or [0.0]
    most = max(row.bytes_, default=0)
    print(
        f"{name:<16}{sum(counts):>8}{counts[0]:>8}{row.in_part:>6}{counts[1]:>5}{counts[2]:>8}",
        end="",
    )
    print(f"{seconds[len(seconds) // 2]:>10.2f}{seconds[-1]:>8.2f}{most:>8}")


def chosen(target: str, group: str, most: int) -> dict[str, list[Spec]]:
    """Specs by group, at most so many of each."""
    found: dict[str, dict[Spec, None]] = {}
    for item in all_items(target):
        if group in item.group:
            found.setdefault(item.group, {})[item.spec] = None
    return {name: _some(list(specs), most) for name, specs in found.items()}


def _some(specs: list[Spec], most: int) -> list[Spec]:
    step = max(1.0, len(specs) / most)
    return [specs[int(i * step)] for i in range(min(most, len(specs)))]


def verdicts(spec: Spec, seconds: float) -> list[tuple[float, Report]]:
    """The verdict on each kernel of a spec, with the CPU seconds of all shared."""
    schedule = Schedule.parse(spec.schedule) if spec.schedule else None
    target = find_target(spec.target)
    options = compiler.Options(target, schedule, allow_tf32=spec.allow_tf32)
    try:
        made = compiler.compile_source(inputs.read_text(spec.mlir()), options)
    except AlcopError as error:
        print(f"{spec.key}: not compiled: {error}", file=sys.stderr)
        return []
    start = time.process_time()
    reports = certify_bundle(made, seconds)
    spent = (time.process_time() - start) / max(len(reports), 1)
    return [(spent, report) for report in reports]


if __name__ == "__main__":
    main()
