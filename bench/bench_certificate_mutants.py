"""Mutants of compiled kernels: what misbehaves on the emulator is not proven.

    python bench/bench_certificate_mutants.py [--most N] [--case NAME] [--state FILE]
        [--again]

Of each kernel of certificate_kernels.py N mutants (default 110, of each kind of
certificate_mutants.py as many, where there are) are proven and run, at all sizes with
copies that land late and early. What was tried is written to FILE, and a run that was
interrupted goes on. --again proves what was tried before once more, but runs nothing of
it: after a change of the prover or the checker. Prints a row per kind and one per
kernel. Columns are what came of runs: hazards (or a fault in shared memory), another
fault (out of bounds, a deadlock, no end, threads that write one place of global
memory), wrong results, or clean; of each how many there are, how many of them are
proven, and how many in part.

Exit status 1 where a mutant with hazards is proven, if in part, one that misbehaves in
any way is proven whole, or one with a stricter wait is not proven.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from certificate_kernels import CASES, EDGES, Case
from certificate_mutants import STRICTER, Mutant, mutants

from alcop_mlir.compilation.certification import certified
from alcop_mlir.errors import AlcopError

IN_PART = "proven in part"
RAN = ("hazards", "fault", "wrong", "clean")
Row = dict[str, Any]


def main() -> int:
    """Prints the tables; returns the exit status."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--most", type=int, default=110, help="mutants of a kernel")
    every = (*CASES, *EDGES)
    parser.add_argument("--case", choices=[c.name for c in every], help="only this one")
    state = Path("build/certificate_mutants.jsonl")
    parser.add_argument("--state", type=Path, default=state)
    parser.add_argument("--again", action="store_true", help="new verdicts, old runs")
    given = parser.parse_args()
    cases = [c for c in every if given.case in (None, c.name)]
    rows = list(tried(cases, given.most, given.state, given.again))
    show("kind", rows)
    print()
    show("kernel", rows)
    wrong = [row for row in rows if is_contradiction(row)]
    print(f"mutants {len(rows)}, contradictions {len(wrong)}", *wrong, sep="\n")
    return 1 if wrong else 0


def tried(
    cases: Iterable[Case], most: int, state: Path, again: bool = False
) -> Iterator[Row]:
    """What came of each mutant, now or before."""
    from rich.progress import track

    state.parent.mkdir(parents=True, exist_ok=True)
    lines = state.read_text().splitlines() if state.exists() else []
    done = {row["key"]: row for row in map(json.loads, lines)}
    with state.open("a", encoding="utf-8") as file:
        for case in cases:
            listed = mutants(case.ptx, case.launched.name, most)
            for mutant in track(listed, case.name):
                key = hashlib.sha256(f"{case.name} {mutant.text}".encode()).hexdigest()
                row = done.get(key)
                if row is None:
                    row = {"key": key, **attempt(case, mutant)}
                    print(json.dumps(row), file=file, flush=True)
                elif again:
                    said, is_fresh = verdict(case, mutant.text)
                    row = {**row, "said": said, "fresh": is_fresh}
                    print(json.dumps(row), file=file, flush=True)
                yield row


def attempt(case: Case, mutant: Mutant) -> Row:
    """The verdict on a mutant, and what its runs do."""
    said, is_fresh = verdict(case, mutant.text)
    ran = case.behaviour(mutant.text)
    return {
        "kernel": case.name,
        "kind": mutant.kind,
        "line": mutant.line,
        "said": said,
        "fresh": is_fresh,
        "ran": ran,
    }


def verdict(case: Case, ptx: str) -> tuple[str, bool]:
    """Of prover and checker; what they take for no PTX is not proven."""
    one = case.launched
    needs = dict(one.requirements)
    try:
        given = (one.name, one.threads, one.shared_bytes, needs, 60)
        report = certified(ptx, *given, one.promised, one.stated)
    except AlcopError:
        return "refused", False
    return IN_PART if report.missing else report.status, report.is_fresh


def is_contradiction(row: Row) -> bool:
    """Whether a run shows that the verdict is wrong."""
    is_proven = row["said"] in ("proven", IN_PART)
    if row["kind"] == STRICTER:
        return not is_proven
    is_wrong = row["said"] == "proven" and row["ran"] != "clean"
    return is_wrong or (is_proven and row["ran"] == "hazards")


def show(of: str, rows: list[Row]) -> None:
    """A row per kind or kernel."""
    head = "".join(f"{ran:>10}{'proven':>8}{'part':>6}" for ran in RAN)
    print(f"{of:<22}{'mutants':>8}{head}")
    for name in [*dict.fromkeys(row[of] for row in rows), "all"]:
        mine = [row for row in rows if name in (row[of], "all")]
        print(f"{name:<22}{len(mine):>8}{''.join(_cells(mine, ran) for ran in RAN)}")


def _cells(rows: list[Row], ran: str) -> str:
    here = [row for row in rows if row["ran"] == ran]
    proven = [row for row in here if row["said"] == "proven"]
    part = [row for row in here if row["said"] == IN_PART]
    return f"{len(here):>10}{len(proven):>8}{len(part):>6}"


if __name__ == "__main__":
    sys.exit(main())
