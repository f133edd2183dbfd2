"""What do MLIR's own transforms do for the same job, and where do they stop? No GPU.

usage: python bench/bench_upstream.py [--command] [--print] [CASE ...]

Each case of `upstream_cases.py` runs alcop-opt on an input of bench/upstream, with a
pipeline of upstream's passes or a transform script, in a process of its own: one that
crashes is a row of the table. What is left as a kernel is compiled on by alcop_mlir's
passes, runs on the emulator, and is compared with NumPy. The table is Markdown, as
docs/upstream.md quotes it; the exit status is 1 where a case no longer does what its
row says. `--command` prints the commands instead, `--print` what the cases print. The
raw records go to bench/results/upstream.jsonl.
"""

from __future__ import annotations

import argparse
import re
import shlex
import subprocess
import sys
import time
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
from records import ROOT, store
from upstream_cases import CASES, Case

from alcop_mlir.analysis.host.host_function import host, host_functions
from alcop_mlir.bindings import ir, make_context
from alcop_mlir.dialects import alcop
from alcop_mlir.manifest.functions import Function
from alcop_mlir.manifest.kernels import Kernel
from alcop_mlir.pipelines.driver import run_pipeline
from alcop_mlir.runtime import ptx
from alcop_mlir.runtime.emulator.api import emulate
from alcop_mlir.runtime.launch import grid_of
from alcop_mlir.target import find_target

UPSTREAM = Path("bench", "upstream")  # below the repository's root
TIMEOUT_SECONDS = 120
M, N, K = 512, 512, 1024
TOLERANCE = 1e-3  # of C, whose elements are about 30
# What is left to do for a kernel in which copies and fragments are as upstream left
# them: alcop_mlir's passes, none of which moves a copy or a barrier.
FINISH = (
    "builtin.module(func.func(canonicalize,cse,alcop-distribute-copies,alcop-lower-mma),"
    "fold-memref-alias-ops,canonicalize,cse,alcop-outline-kernels)"
)
LOWER = "builtin.module(alcop-lower-to-nvvm{target=sm_80})"


@dataclass(frozen=True)
class Outcome:
    """What came of a case.

    runs: "yes", "error", "crash" or "timeout"
    computes: "right" or "wrong", the kinds of hazards, bank conflicts; "" where nothing
        was run
    """

    runs: str
    computes: str
    output: str
    message: str
    seconds: float


def command(case: Case) -> list[str]:
    """The alcop-opt call, to be run in the repository's root."""
    return ["alcop-opt", str(UPSTREAM / case.input), *case.flags()]


def run(case: Case) -> Outcome:
    """The case in a process of its own, and its kernel in another."""
    start = time.perf_counter()
    call = [sys.executable, "-m", "alcop_mlir.tools.opt", *command(case)[1:]]
    status, output, message = _call(call)
    seconds = time.perf_counter() - start
    runs = {0: "yes", 1: "error", None: "timeout"}.get(status, "crash")
    computes = _computes(output) if runs == "yes" and case.computes else ""
    return Outcome(runs, computes, output, message, seconds)


def _computes(text: str) -> str:
    """What the kernel of a module computes, found in a process of its own."""
    status, said, message = _call([sys.executable, __file__, "--emulate"], text)
    return said.strip() if status == 0 else f"failed: {_first_line(message)}"


def _call(call: list[str], text: str = "") -> tuple[int | None, str, str]:
    """Exit status (None: it took too long), stdout and stderr."""
    try:
        done = subprocess.run(
            call,
            input=text,
            capture_output=True,
            text=True,
            check=False,
            cwd=ROOT,
            timeout=TIMEOUT_SECONDS,
        )
    except subprocess.TimeoutExpired:
        return None, "", ""
    return done.returncode, done.stdout, done.stderr


def emulated(text: str) -> str:
    """What the one kernel of a module computes of random arrays, and its hazards."""
    with make_context(), ir.Location.unknown():
        alcop.load()
        module = ir.Module.parse(text)
        run_pipeline(module, FINISH)
        function = host(host_functions(module)[0])
        assert isinstance(function, Function), function
        (kernel,) = function.kernels
        run_pipeline(module, LOWER)
        ops = [op.operation for op in module.body.operations]
        (kernels,) = [op for op in ops if op.name == "gpu.module"]
        code = ptx.emit_ptx(kernels, find_target("sm_80"))
    return _compared(code, kernel)


def _compared(code: str, kernel: Kernel) -> str:
    """The kernel run with copies that land late, then early: what C and hazards say."""
    random = np.random.default_rng(0)
    a = random.standard_normal((M, K)).astype(np.float16)
    b = random.standard_normal((K, N)).astype(np.float16)
    expected = a.astype(np.float64) @ b
    found, conflicts, is_right = set[str](), 0, True
    for visibility in ("late", "early"):
        c = np.zeros((M, N), np.float32)
        ran = emulate(
            code,
            kernel.name,
            grid_of(kernel, {}),
            kernel.block,
            [{"arg0": a, "arg1": b, "arg2": c}[name] for name in kernel.arrays],
            dynamic_shared=kernel.shared_bytes,
            visibility=visibility,
            counters=True,
        )
        is_right &= bool(np.abs(c - expected).max() < TOLERANCE)
        found |= {one.kind for one in (*ran.hazards, *ran.notes)}
        conflicts = ran.counters.bank_conflicts if ran.counters is not None else 0
    said = ["right" if is_right else "wrong", *sorted(found)]
    return ", ".join(said + ([f"{conflicts} bank conflicts"] if conflicts else []))


def faults(case: Case, outcome: Outcome) -> list[str]:
    """What the row of a case says and the outcome does not bear out."""
    said = outcome.output + outcome.message
    found = [f"does not show /{p}/" for p in case.shows if not re.search(p, said)]
    found += [f"shows /{p}/" for p in case.lacks if re.search(p, outcome.output)]
    for name in ("runs", "computes"):
        expected, got = getattr(case, name), getattr(outcome, name)
        if expected != got:
            found.append(f"{name} '{got}', expected '{expected}'")
    return found


def table(rows: list[tuple[Case, Outcome]]) -> str:
    """Markdown, a row per case."""
    lines = [
        "| case | input | runs | result | what it does | where it stops |",
        "|---|---|---|---|---|---|",
    ]
    for case, outcome in rows:
        cells = (
            f"`{case.name}`",
            case.input.removesuffix(".mlir"),
            outcome.runs,
            outcome.computes,
            case.does,
            case.stops,
        )
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines)


def _first_line(text: str) -> str:
    return text.strip().split("\n", 1)[0]


def _chosen(names: list[str]) -> list[Case]:
    known = {case.name: case for case in CASES}
    for name in names:
        if name not in known:
            sys.exit(f"error: no case '{name}', expected one of {', '.join(known)}")
    return [known[name] for name in names] or list(CASES)


def _record(case: Case, outcome: Outcome) -> dict[str, Any]:
    found = {**asdict(outcome), "output": len(outcome.output)}
    return {"case": case.name, "command": shlex.join(command(case)), **found}


def main() -> None:
    """Run, print, store."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n\n")[0])
    parser.add_argument("cases", nargs="*", metavar="CASE")
    parser.add_argument("--command", action="store_true", help="print the commands")
    parser.add_argument("--print", action="store_true", help="print what they print")
    parser.add_argument("--emulate", action="store_true", help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.emulate:
        print(emulated(sys.stdin.read()))
        return
    cases = _chosen(given.cases)
    if given.command:
        print("\n".join(shlex.join(command(case)) for case in cases))
        return
    rows = [(case, run(case)) for case in cases]
    if given.print:
        for case, outcome in rows:
            print(f"== {shlex.join(command(case))}\n{outcome.output}{outcome.message}")
    print(table(rows))
    wrong = [(case, fault) for case, out in rows for fault in faults(case, out)]
    for case, fault in wrong:
        print(f"{case.name}: {fault}", file=sys.stderr)
    path = store("upstream", [_record(case, outcome) for case, outcome in rows])
    print(f"\nrecords: {path.relative_to(ROOT)}", file=sys.stderr)
    sys.exit(bool(wrong))


if __name__ == "__main__":
    main()
