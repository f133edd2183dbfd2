"""What the emulator shows in kernels of other compilers, as docs/findings.md has it.

    python bench/bench_findings.py [--tilelang PYTHON] [--triton PYTHON] [--cute PYTHON]

No GPU is needed, but environments that have the compilers, each with its own Python:

    python -m venv A && A/bin/pip install tilelang==0.1.15     # 6 GB, with PyTorch
    python -m venv B && B/bin/pip install triton==3.9.0
    python -m venv C && C/bin/pip install nvidia-cutlass-dsl==4.8.1

and nvcc for TileLang's, which are CUDA. Each kernel runs with copies that land late and
early, in several orders of warps; those of Triton and CuTe for sm_80 and sm_90. Prints
whether results are right, and what is reported.
"""

from __future__ import annotations

import argparse
import json
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
from findings import launches
from records import print_table, store

from alcop_mlir.runtime.emulator import Hazard, emulate

FOLDER = Path(__file__).parent / "findings"
MODES = (("late", "lockstep"), ("early", "lockstep"), ("late", "random(1)"))
ORDERS = ("lockstep", "ascending", "descending", "random")
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


def of_tilelang(python: str) -> list[Found]:
    """Its kernels, each in all modes; a line says which compiler it is."""
    known = _made([python, str(FOLDER / "tilelang_kernels.py")])
    print(f"{known['compiler']}, sm_80")
    return [
        run
        for kernel in known["kernels"]
        for run in runs(
            kernel["name"],
            kernel["stages"],
            built(kernel["source"], known["include"]),
        )
    ]


def of_ptx(python: str, script: str, capability: int) -> list[Found]:
    """What a script compiles to PTX, each in all modes; a line names the compiler."""
    known = _made([python, str(FOLDER / script), str(capability)])
    print(known["compiler"])
    # Triton's kernels take two pointers more than they declare.
    more = 2 if known["compiler"].startswith("Triton") else 0
    return [_run(kernel, more) for kernel in known["kernels"]]


def _run(kernel: Mapping[str, Any], more: int) -> Found:
    """One kernel in all modes, with so many pointers behind its arguments."""
    is_right, hazards = True, list[Hazard]()
    for visibility, schedule in product(("late", "early"), ORDERS):
        given = launches.launch(kernel["name"])
        others = [np.zeros(64, np.uint8) for _ in range(more)]
        result = emulate(
            kernel["ptx"],
            kernel["entry"],
            given.blocks,
            (kernel["threads"], 1, 1),
            [*given.arguments, *others],
            dynamic_shared=kernel["shared"],
            visibility=visibility,
            schedule=schedule,
        )
        found, bound = given.arguments[given.result], launches.BOUND
        is_right &= np.allclose(found, given.expected, atol=bound, rtol=bound)
        hazards += result.hazards
    reports = ", ".join(sorted({one.kind for one in hazards})) or "none"
    answer = "yes" if is_right else "no"
    cells = (kernel["name"], "", "late, early", "all", answer, reports)
    return Found(cells, is_right, tuple(hazards))


def _made(command: Sequence[str]) -> dict[str, Any]:
    """What a script prints as JSON, in its last line."""
    try:
        made = subprocess.run(command, check=True, capture_output=True, text=True)
    except OSError as error:
        sys.exit(f"cannot run '{command[0]}': {error.strerror}")
    except subprocess.CalledProcessError as error:
        sys.exit(
            f"{' '.join(command)}: {(error.stderr.splitlines() or ['failed'])[-1]}"
        )
    return json.loads(made.stdout.splitlines()[-1])


def main(arguments: Sequence[str] | None = None) -> int:
    """Exit status: 0, or 2 if there is nothing to do."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    for name in ("TileLang", "Triton", "CuTe"):
        about = f"the Python of an environment with {name}"
        parser.add_argument(f"--{name.lower()}", metavar="PYTHON", help=about)
    given = parser.parse_args(arguments)
    if given.tilelang is None and given.triton is None and given.cute is None:
        parser.error("expected --tilelang, --triton or --cute")
    if given.tilelang is not None:
        _print(of_tilelang(given.tilelang))
    for name, python in (("triton", given.triton), ("cute", given.cute)):
        if python is not None:
            for capability in (80, 90):
                _print(of_ptx(python, f"{name}_kernels.py", capability))
    return 0


def _print(found: Sequence[Found]) -> None:
    """A table, a count, and the first report."""
    print_table(HEADER, [one.cells for one in found])
    reported = [one for one in found if one.hazards]
    right = sum(one.is_right for one in found)
    print(f"{len(found)}: {right} right, {len(reported)} with reports")
    if reported:
        print(reported[0].hazards[0])
    print()
    store("findings", [dict(zip(HEADER, one.cells, strict=True)) for one in found])


if __name__ == "__main__":
    sys.exit(main())
