"""What the emulator shows in kernels of other compilers, as docs/findings.md has it.

    python bench/bench_findings.py --tilelang PYTHON

No GPU is needed, but nvcc, and an environment with TileLang, whose Python is PYTHON:
`python -m venv DIR && DIR/bin/pip install tilelang==0.1.15` (6 GB, with PyTorch). Each
kernel runs with copies that land late and early, in two orders of warps. Prints whether
results are right, and what is reported. Exit status 1 if nothing is found.
"""

from __future__ import annotations

import argparse
import json
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from records import print_table, store

from alcop_mlir.runtime.emulator import Hazard, emulate

KERNELS = Path(__file__).parent / "findings" / "tilelang_kernels.py"
MODES = (("late", "lockstep"), ("early", "lockstep"), ("late", "random(1)"))
HEADER = ("kernel", "stages", "copies land", "schedule", "right", "reports")


@dataclass(frozen=True)
class Launch:
    """How a kernel is run: arrays, of which the last one is the result.

    bound: of the largest error
    """

    grid: tuple[int, int, int]
    arrays: tuple[np.ndarray, ...]
    expected: np.ndarray
    shared: int
    bound: float = 0.0


@dataclass(frozen=True)
class Found:
    """One run of a kernel."""

    cells: tuple[object, ...]
    is_right: bool
    hazards: tuple[Hazard, ...]


def launch(name: str, stages: int) -> Launch:
    """Inputs of a kernel of `tilelang_kernels.py`, and what it should compute."""
    rng = np.random.default_rng(0)
    if name == "overwritten":
        rows = rng.standard_normal((8, 1024)).astype(np.float16)
        expected = np.concatenate([rows[:1], rows[:-1]])
        # Slots of a buffer, if a compiler makes some.
        shared = 2 * 1024 * max(1, stages)
        return Launch((1, 1, 1), (rows, np.zeros_like(rows)), expected, shared)
    a, b = rng.standard_normal((2, 256, 256)).astype(np.float16)
    c = np.zeros((256, 256), np.float32)
    product = a.astype(np.float64) @ b.astype(np.float64)
    shared = 2 * 2 * 128 * 32 * max(1, stages)
    return Launch((2, 2, 1), (a, b, c), product.astype(np.float32), shared, 1e-3)


def runs(name: str, stages: int, ptx: str) -> Iterator[Found]:
    """The kernel in each mode."""
    given = launch(name, stages)
    for visibility, schedule in MODES:
        arrays = [array.copy() for array in given.arrays]
        result = emulate(
            ptx,
            None,
            given.grid,
            (128, 1, 1),
            arrays,
            dynamic_shared=given.shared,
            visibility=visibility,
            schedule=schedule,
        )
        is_right = bool((np.abs(arrays[-1] - given.expected) <= given.bound).all())
        kinds = sorted({one.kind for one in result.hazards})
        reports = ", ".join(kinds) or "none"
        answer = "yes" if is_right else "no"
        cells = (name, stages, visibility, schedule, answer, reports)
        yield Found(cells, is_right, tuple(result.hazards))


def built(source: str, folders: Sequence[str]) -> str:
    """PTX for sm_80 by nvcc."""
    nvcc = shutil.which("nvcc")
    if nvcc is None:
        sys.exit("needs nvcc, of the CUDA toolkit, on the search path")
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "kernel.cu")
        path.write_text(source, "utf-8")
        includes = [f"-I{one}" for one in folders]
        flags = ["-ptx", "-arch=sm_80", "-std=c++17", "-w"]
        out = path.with_suffix(".ptx")
        subprocess.run([nvcc, *flags, *includes, str(path), "-o", str(out)], check=True)
        return out.read_text("utf-8")


def main(arguments: Sequence[str] | None = None) -> int:
    """Exit status: 1 if nothing is found."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    about = "the Python of an environment with TileLang"
    parser.add_argument("--tilelang", required=True, metavar="PYTHON", help=about)
    given = parser.parse_args(arguments)
    made = subprocess.run(
        [given.tilelang, str(KERNELS)], check=True, capture_output=True, text=True
    )
    known = json.loads(made.stdout.splitlines()[-1])
    found = [
        run
        for kernel in known["kernels"]
        for run in runs(
            kernel["name"],
            kernel["stages"],
            built(kernel["source"], known["include"]),
        )
    ]
    print(f"{known['compiler']}, sm_80")
    print_table(HEADER, [one.cells for one in found])
    first = next((one.hazards[0] for one in found if one.hazards), None)
    if first is not None:
        print(f"\n{first}")
    columns = [dict(zip(HEADER, one.cells, strict=True)) for one in found]
    store("findings", [{"compiler": known["compiler"], **one} for one in columns])
    return 0 if first is not None else 1


if __name__ == "__main__":
    sys.exit(main())
