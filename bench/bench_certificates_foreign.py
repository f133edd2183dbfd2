"""How many kernels of other compilers are proven, as they are: Triton, TileLang, CuTe,
CUTLASS.

    ALCOP_FOREIGN_PYTHON=PYTHON python bench/bench_certificates_foreign.py
        [--capability 80] [--compiler NAME] [--seconds N] [--same-stores] [--sizes]

PYTHON has the compilers (`make test-foreign` makes such an environment); CUTLASS needs
nvcc too. Their kernels are those of `findings/`, which also run on the emulator. The
PTX is not changed, and nothing is promised of parameters and arrays, so that what is
proven is that shared memory is used right, for any arguments; with --same-stores, if
threads that store to one place at once store the same. With --sizes it is proven of the
arrays, sizes and grid that each is run with, and of matmuls what they compute. Prints a
row for each kernel: the verdict, what is not shown, CPU seconds of the prover and of a
check, and bytes of the certificate; then how many are proven.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
from findings import launches, programs
from findings.launches import Launch
from findings.programs import CAPABILITIES, MODULES, Failed, Missing, Program
from records import print_table, store

from alcop_mlir.certificate.api import BLOCK_NUMBERS, find_entry
from alcop_mlir.certificate.certificate import stored
from alcop_mlir.certificate.preconditions import Array, Preconditions
from alcop_mlir.certificate.state import Requirement
from alcop_mlir.checker.check import check
from alcop_mlir.compilation.certification import certified
from alcop_mlir.runtime.emulator.ptx.parser import parse_ptx
from alcop_mlir.tools.promises import computed

HEADER = ["compiler", "sm", "kernel", "prover s", "check s", "bytes", "verdict"]
_SHOWN = 150  # characters of a verdict
_Promised = tuple[Mapping[str, Requirement], Preconditions, str]
_NOTHING: _Promised = {}, Preconditions(), ""


def main() -> None:
    """The command."""
    parser = argparse.ArgumentParser(description=str(__doc__).partition("\n")[0])
    parser.add_argument("--capability", type=int, choices=CAPABILITIES, default=80)
    parser.add_argument("--compiler", choices=[*MODULES])
    parser.add_argument("--seconds", type=float, default=60, help="for each kernel")
    parser.add_argument("--same-stores", action="store_true")
    parser.add_argument("--sizes", action="store_true")
    given = parser.parse_args()
    compilers = [given.compiler] if given.compiler else [*MODULES]
    rows = [
        _row(one, given.capability, given)
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


def _row(program: Program, capability: int, given: Any) -> dict[str, Any]:
    start = time.process_time()
    kernel = find_entry(parse_ptx(program.ptx), program.entry)
    is_listed = program.structure is None and given.sizes
    names = [one.name for one in kernel.parameters]
    required, promised, stated = _launched(program, names) if is_listed else _NOTHING
    task = kernel.name, program.threads, program.shared, required, given.seconds
    same = given.same_stores
    report = certified(program.ptx, *task, promised, stated, shares_stores=same)
    proved = time.process_time()
    if report.certificate is not None:
        check(program.ptx, report.certificate, shares_stores=same)
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


def _launched(program: Program, names: Sequence[str]) -> _Promised:
    """What is known of a kernel's parameters, by their names, as it is run."""
    launch = launches.launch(program.name)
    arguments: Sequence[Any] = launch.arguments
    if program.parameters is not None:
        arguments = [launch.arguments["abcd".index(one)] for one in program.parameters]
    given = dict(zip(names, arguments, strict=False))
    arrays = {n: one for n, one in given.items() if isinstance(one, np.ndarray)}
    numbers = {n: one for n, one in given.items() if isinstance(one, int)}
    sizes = {n: Requirement(one, one) for n, one in numbers.items()}
    promised = Preconditions(
        {n: Array(((one.nbytes, ()),)) for n, one in arrays.items()},
        sizes=sizes,
        grid={
            axis: ((((count, ()),), 1),)
            for axis, count in zip(BLOCK_NUMBERS, launch.blocks, strict=True)
        },
    ).with_numbers()
    return sizes, promised, _computed(launch, arrays)


def _computed(launch: Launch, arrays: Mapping[str, Any]) -> str:
    """A statement of a matmul, as JSON text; else nothing."""
    if not launch.matmul:
        return ""
    left, right, out = (
        next(name for name, one in arrays.items() if one is launch.arguments[number])
        for number in (0, 1, launch.result)
    )
    (m, k), n = arrays[left].shape, arrays[out].shape[1]
    loops = f"{k}k,{n}n" if launch.matmul == "nn" else f"{n}n,{k}k"
    sizes = [arrays[name].itemsize for name in (out, left, right)]
    text = f"{out}[{m}m,{n}n]:{sizes[0]} = {left}[{m}m,{k}k]:{sizes[1]} "
    found = computed(f"{text}* {right}[{loops}]:{sizes[2]}")
    return json.dumps({**found, "grid": launch.blocks})


def _cells(row: dict[str, Any]) -> list[str]:
    numbers = f"{row['seconds']:.2f}", f"{row['check']:.2f}", f"{row['bytes']}"
    name = [row["compiler"], f"{row['capability']}", row["kernel"]]
    return [*name, *numbers, row["verdict"][:_SHOWN]]


if __name__ == "__main__":
    main()
