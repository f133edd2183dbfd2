"""How many kernels of other compilers are proven, as they are: Triton, TileLang, CuTe,
CUTLASS.

    ALCOP_FOREIGN_PYTHON=PYTHON python bench/bench_certificates_foreign.py
        [--capability 80] [--compiler NAME] [--seconds N] [--same-stores]

PYTHON has the compilers (`make test-foreign` makes such an environment); CUTLASS needs
nvcc too. Their kernels are those of `findings/`, which also run on the emulator. The
PTX is not changed, and nothing is promised of parameters and arrays, so that what is
proven is that shared memory is used right, for any arguments; with --same-stores, if
threads that store to one place at once store the same. Prints a row for each
kernel: the verdict, what is not shown, CPU seconds of the prover and of a check, and
bytes of the certificate; then how many are proven.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections import Counter
from collections.abc import Iterator
from typing import Any

from findings import programs
from findings.programs import CAPABILITIES, MODULES, Failed, Missing, Program
from records import print_table, store

from alcop_mlir.certificate.api import find_entry
from alcop_mlir.certificate.certificate import stored
from alcop_mlir.checker.check import check
from alcop_mlir.compilation.certification import certified
from alcop_mlir.runtime.emulator.ptx.parser import parse_ptx

HEADER = ["compiler", "sm", "kernel", "prover s", "check s", "bytes", "verdict"]
_SHOWN = 150  # characters of a verdict


def main() -> None:
    """The command."""
    parser = argparse.ArgumentParser(description=str(__doc__).partition("\n")[0])
    parser.add_argument("--capability", type=int, choices=CAPABILITIES, default=80)
    parser.add_argument("--compiler", choices=[*MODULES])
    parser.add_argument("--seconds", type=float, default=60, help="for each kernel")
    parser.add_argument("--same-stores", action="store_true")
    given = parser.parse_args()
    compilers = [given.compiler] if given.compiler else [*MODULES]
    rows = [
        _row(one, given.capability, given.seconds, given.same_stores)
        for compiler in compilers
        for one in _programs(compiler, given.capability)
    ]
    if not rows:
        raise SystemExit("error: no compiler is there: see `make test-foreign`")
    store("certificates_foreign", rows)
    print_table(HEADER, [_cells(row) for row in rows])
    counts = Counter(row["status"] for row in rows)
    found = ", ".join(f"{number} {status}" for status, number in counts.items())
    print(f"{len(rows)} kernels: {found}")


def _programs(compiler: str, capability: int) -> Iterator[Program]:
    """The kernels of a compiler, none where it is missing; a line says so."""
    try:
        python = programs.interpreter(compiler)
        yield from programs.programs(compiler, python, capability)
    except (Missing, Failed) as error:
        print(f"note: {compiler}: {error}", file=sys.stderr)


def _row(
    program: Program, capability: int, seconds: float, same_stores: bool
) -> dict[str, Any]:
    start = time.process_time()
    entry = program.entry or find_entry(parse_ptx(program.ptx), None).name
    given = entry, program.threads, program.shared, {}, seconds
    report = certified(program.ptx, *given, shares_stores=same_stores)
    proved = time.process_time()
    if report.certificate is not None:
        check(program.ptx, report.certificate, shares_stores=same_stores)
    known = report.certificate
    return {
        "compiler": program.compiler,
        "capability": capability,
        "kernel": program.name,
        "status": report.to_json()["status"],
        "verdict": report.verdict,
        "seconds": proved - start,
        "check": time.process_time() - proved,
        "bytes": 0 if known is None else len(stored([known])),
    }


def _cells(row: dict[str, Any]) -> list[str]:
    numbers = f"{row['seconds']:.2f}", f"{row['check']:.2f}", f"{row['bytes']}"
    name = [row["compiler"], f"{row['capability']}", row["kernel"]]
    return [*name, *numbers, row["verdict"][:_SHOWN]]


if __name__ == "__main__":
    main()
