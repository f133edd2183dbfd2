"""Mutants of compiled kernels: what misbehaves on the emulator is not proven.

    python bench/bench_certificate_mutants.py [--most N] [--schedule TEXT]

Each wait, barrier, commit and copy of small matmuls is left out, each wait weakened or
made stricter, each copy shifted, each wrap of a slot moved by one. Each mutant is run,
with K of ten steps. Prints a row per kind, run (hazards or a fault, wrong results, or
clean) and verdict.
Exit status 1 where a mutant with hazards is proven. One with wrong results may be: that
the right rows are read is no part of the claim, see docs/certificates.md.
"""

from __future__ import annotations

import argparse
import random
import re
import sys
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from alcop_mlir.certificate.api import Report
from alcop_mlir.compilation import compiler, inputs
from alcop_mlir.compilation.certification import certify_bundle
from alcop_mlir.errors import AlcopError
from alcop_mlir.runtime.bundle import Bundle, Code
from alcop_mlir.runtime.launch import Program
from alcop_mlir.schedule import Schedule
from alcop_mlir.target import find_target

_WAIT = re.compile(r"(wait_group\s+)(\d+)")
_COPY = re.compile(r"(cp\.async\.c[ag]\.shared\.global \[%\w+)(\+\d+)?\]")
_WRAP = re.compile(r"(setp\.eq\.b64\s+%p\d+, %rd\d+, )([234]);")
_K = 320
_ROWS = 64
SCHEDULES = (
    "block=64,64,32 warp=32,32 stages=2,1",
    "block=64,64,32 warp=32,32 stages=3,1",
    "block=64,64,32 warp=32,32 stages=3,2",
    "block=64,64,32 warp=32,32 stages=4,2",
)
SOURCE = """
func.func @f(%A: memref<64x{k}xf16>, %B: memref<{k}x64xf16>, %C: memref<64x64xf32>) {{
  linalg.matmul ins(%A, %B : memref<64x{k}xf16>, memref<{k}x64xf16>)
                outs(%C : memref<64x64xf32>)
  return
}}
"""


def main() -> int:
    """Prints the table; returns the exit status."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--most", type=int, default=40, help="mutants of a kernel")
    parser.add_argument("--schedule", help="only this one")
    given = parser.parse_args()
    counts: Counter[tuple[str, str, str]] = Counter()
    wrong: list[str] = []
    for schedule in [given.schedule] if given.schedule else SCHEDULES:
        bundle = compiled(schedule)
        (name,) = bundle.code
        every = list(mutants(bundle.code[name].ptx))
        random.Random(1).shuffle(every)
        for kind, text in every[: given.most]:
            mutant = replace(bundle, code={name: Code(text)})
            report = verdict(mutant)
            ran = behaviour(mutant)
            fresh = ", fresh" if report.is_fresh else ""
            counts[kind, ran, f"{report.status}{fresh}"] += 1
            if report.status == "proven" and ran == "hazards":
                wrong.append(f"{schedule}: {kind}: {ran}, but {report.status}{fresh}")
    for (kind, ran, said), number in sorted(counts.items()):
        print(f"{kind:<20}{ran:<10}{said:<18}{number:>5}")
    print(
        f"mutants {sum(counts.values())}, contradictions {len(wrong)}", *wrong, sep="\n"
    )
    return 1 if wrong else 0


def compiled(schedule: str) -> Bundle:
    """The kernel of that schedule."""
    options = compiler.Options(find_target("sm_80"), Schedule.parse(schedule))
    source = SOURCE.format(k=_K)
    return compiler.compile_source(inputs.read_text(source), options)


def mutants(ptx: str) -> Iterator[tuple[str, str]]:
    """Each kind of mutant, and its text."""
    lines = ptx.split("\n")
    for number, line in enumerate(lines):
        for kind, new in changes(line):
            yield kind, "\n".join([*lines[:number], new, *lines[number + 1 :]])


def changes(line: str) -> Iterator[tuple[str, str]]:
    """What a line may become."""
    wait, copy, wrap = (p.search(line) for p in (_WAIT, _COPY, _WRAP))
    if wait is not None:
        groups = int(wait[2])
        yield "wait left out", ""
        yield "wait weakened", line.replace(wait[0], f"{wait[1]}{groups + 1}")
        if groups:
            yield "wait stricter", line.replace(wait[0], f"{wait[1]}{groups - 1}")
    if "bar.sync" in line:
        yield "barrier left out", ""
    if "commit_group" in line:
        yield "commit left out", ""
    if copy is not None:
        place = int((copy[2] or "+0")[1:]) + 16
        yield "copy left out", ""
        yield "copy shifted", line.replace(copy[0], f"{copy[1]}+{place}]")
    if wrap is not None:
        for to in (int(wrap[2]) - 1, int(wrap[2]) + 1):
            yield "wrap moved", line.replace(wrap[0], f"{wrap[1]}{to};")


def verdict(bundle: Bundle) -> Report:
    """On the one kernel."""
    return certify_bundle(bundle, 60)[0]


def behaviour(bundle: Bundle) -> str:
    """Of a run: hazards (or a fault), wrong results, or clean."""
    rng = np.random.default_rng(0)
    a, b = (
        rng.integers(-2, 3, s).astype(np.float16) for s in ((_ROWS, _K), (_K, _ROWS))
    )
    c = np.zeros((_ROWS, _ROWS), np.float32)
    try:
        Program(bundle, device="emulator")(a, b, c)
    except AlcopError:
        return "hazards"
    expected = a.astype(np.float32) @ b.astype(np.float32)
    return "clean" if np.array_equal(c, expected) else "wrong"


if __name__ == "__main__":
    sys.exit(main())
