"""What the emulator shows in kernels of other compilers, as docs/findings.md has it.

    python bench/bench_findings.py [--tilelang PYTHON] [--triton PYTHON] [--cute PYTHON]
        [--cutlass PYTHON] [--nvcc]

No GPU is needed, but an environment that has the compilers, and its own Python:

    python -m venv A && A/bin/pip install 'alcop-mlir[anchors]'     # 7 GB, with PyTorch

(or as `make test-foreign` makes it: build/foreign/bin/python), and nvcc for what is
CUDA: TileLang's kernels, CUTLASS's, whose headers TileLang brings, and the programs of
test/foreign_programs (--nvcc). Each kernel, for sm_80 and for sm_90, runs with copies
that land late and early, each in four orders of warps. Prints whether results are
right, and what is reported.
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path

from findings import programs
from records import print_table, store

from alcop_mlir.errors import EmulationError

HEADER = ("kernel", "copies land late", "early", "reports")
NVCC_PROGRAMS = Path(__file__).parents[1] / "test" / "foreign_programs"
Row = tuple[str, str, str, str]


def rows_of(compiler: str, python: str, capability: int) -> Iterator[tuple[str, Row]]:
    """The compiler's name and a row for each of its kernels."""
    for program in programs.programs(compiler, python, capability):
        try:
            found = programs.found(program)
        except EmulationError as error:
            yield program.compiler, (program.name, "refused", "refused", str(error))
            continue
        wrong = {visibility for visibility, _ in found.wrong}
        late, early = (
            "wrong" if one in wrong else "right" for one in ("late", "early")
        )
        reports = ", ".join(sorted({one.kind for one in found.hazards})) or "none"
        yield program.compiler, (program.name, late, early, reports)


def rows_of_nvcc() -> Iterator[tuple[str, Row]]:
    """The programs of test/foreign_programs, in one mode."""
    sys.path.insert(0, str(NVCC_PROGRAMS))
    from cuda_programs import PROGRAMS, TARGETS
    from test_programs import run

    nvcc = shutil.which("nvcc")
    if nvcc is None:
        raise programs.Missing("no nvcc, of the CUDA toolkit, on the search path")
    said = subprocess.run([nvcc, "--version"], capture_output=True, text=True).stdout
    release = re.search(r"release ([\d.]+)", said)
    name = f"nvcc {release[1] if release else ''}, sm_80 and sm_90"
    with tempfile.TemporaryDirectory() as folder:
        texts: dict[str, str] = {}
        for program in PROGRAMS:
            if program.file not in texts:
                to = Path(folder, f"{program.file}.ptx")
                target = TARGETS.get(program.file, "sm_80")
                command = [nvcc, "-std=c++17", f"-arch={target}", "-ptx", "-o", str(to)]
                source = str(NVCC_PROGRAMS / program.file)
                subprocess.run([*command, source], check=True)
                texts[program.file] = to.read_text("utf-8")
            result, is_right = run(program, texts[program.file])
            kinds = sorted({one.kind for one in result.hazards})
            answer = "right" if is_right else "wrong"
            yield name, (program.name, answer, "", ", ".join(kinds) or "none")


def count(rows: Sequence[Row]) -> Counter[str]:
    """How many are right, wrong, refused; how many are reported."""
    counts: Counter[str] = Counter()
    for _, late, early, reports in rows:
        answers = {late, early} - {""}
        counts["right" if answers == {"right"} else min(answers - {"right"})] += 1
        counts["reported"] += reports != "none" and "refused" not in answers
    return counts


def main(arguments: Sequence[str] | None = None) -> int:
    """Exit status: 0, or 2 if there is nothing to do."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    for name in ("TileLang", "Triton", "CuTe", "CUTLASS"):
        about = f"the Python of an environment with {name}"
        parser.add_argument(f"--{name.lower()}", metavar="PYTHON", help=about)
    about = "also the programs of test/foreign_programs"
    parser.add_argument("--nvcc", action="store_true", help=about)
    given = vars(parser.parse_args(arguments))
    sources: list[Iterator[tuple[str, Row]]] = [
        rows_of(name, os.path.abspath(given[name]), capability)
        for name in programs.MODULES
        if given[name] is not None
        for capability in programs.CAPABILITIES
    ]
    if given["nvcc"]:
        sources.append(rows_of_nvcc())
    if not sources:
        parser.error("expected --tilelang, --triton, --cute, --cutlass or --nvcc")
    every: list[Row] = []
    try:
        for source in sources:
            every += _print(list(source))
    except (programs.Missing, programs.Failed) as error:
        sys.exit(f"error: {error}")
    print(f"all: {_line(every)}")
    return 0


def _print(found: Sequence[tuple[str, Row]]) -> list[Row]:
    """A table and a count of one compiler's kernels."""
    rows = [row for _, row in found]
    print(found[0][0])
    print_table(HEADER, rows)
    print(f"{_line(rows)}\n")
    store("findings", [dict(zip(HEADER, row, strict=True)) for row in rows])
    return rows


def _line(rows: Sequence[Row]) -> str:
    counts = count(rows)
    names = ("right", "wrong", "refused", "reported")
    return f"{len(rows)} kernels: " + ", ".join(f"{counts[n]} {n}" for n in names)


if __name__ == "__main__":
    sys.exit(main())
