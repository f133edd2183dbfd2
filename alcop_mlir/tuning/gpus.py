"""The GPU that a record is of, the one that is compiled for, and times possible on it.

One architecture has GPUs of very different speed, such as H20 and H200: a record of one
says nothing about another. They are told apart by the names that drivers give them.
"""

from __future__ import annotations

import functools
import os
import shutil
import subprocess
from dataclasses import dataclass
from typing import Any

import numpy as np

from alcop_mlir import knobs
from alcop_mlir.target import Target, newest_target
from alcop_mlir.tuning.candidates import FloatArray
from alcop_mlir.tuning.problem import Problem

# What is faster than the peak of a target's row: its own GPU by overclocking,
# others of the architecture by more SMs and rates (L40S against RTX 4090: 2.2).
_OVERCLOCKED = 1.25
_OTHER_GPU = 4.0
_QUERY = "--query-gpu=name,driver_version,compute_cap"


@dataclass(frozen=True)
class Gpu:
    """A GPU as its driver describes it; `capability` is 80 for 8.0, 0 if unknown."""

    name: str
    driver: str
    capability: int


def compiled_for(target: Target) -> str:
    """The GPU that the compiler chooses schedules for.

    `ALCOP_GPU`, else this machine's GPU, if `target` is compiled for it where nothing
    else is asked for; else the one that the target's figures are of.
    """
    if knobs.gpu():
        return knobs.gpu() or ""
    mine = local()
    newest = newest_target(mine.capability) if mine is not None else None
    if mine is not None and newest and newest.architecture == target.architecture:
        return mine.name
    return target.device


@functools.cache
def local() -> Gpu | None:
    """The first GPU of this machine that CUDA may use; None where none is found."""
    found = visible()
    return found[0][1] if found else None


def visible() -> tuple[tuple[str, Gpu], ...]:
    """All GPUs of this machine that CUDA may use, with what names each to CUDA."""
    tool = shutil.which("nvidia-smi")
    if tool is None:
        return ()
    names = os.environ.get("CUDA_VISIBLE_DEVICES", "").split(",")
    asked = [name.strip() for name in names if name.strip()]
    rows = [(one, line) for one in asked for line in _query(tool, one)[:1]]
    if not asked:
        rows = [(str(n), line) for n, line in enumerate(_query(tool, ""))]
    found = [(number, _gpu(line)) for number, line in rows]
    return tuple((number, gpu) for number, gpu in found if gpu is not None)


def _query(tool: str, which: str) -> list[str]:
    """A line for each GPU, or for that one."""
    command = [tool, _QUERY, "--format=csv,noheader", *(["-i", which] if which else [])]
    try:
        answer = subprocess.run(
            command, capture_output=True, text=True, check=True, timeout=20
        )
    except (OSError, subprocess.SubprocessError):
        return []
    return answer.stdout.strip().splitlines()


def _gpu(line: str) -> Gpu | None:
    parts = [part.strip() for part in line.split(",")]
    if len(parts) != 3 or not parts[0]:
        return None
    digits = parts[2].replace(".", "")
    return Gpu(parts[0], parts[1], int(digits) if digits.isdecimal() else 0)


def least_seconds(problem: Problem, target: Target, gpu: str) -> float:
    """No GPU called `gpu` computes `problem` faster, if `target` is its row."""
    return float(least(*work(problem), target, gpu))


@functools.cache  # records are many, their problems few
def work(problem: Problem) -> tuple[float, float, float]:
    """Operations of `problem`, bytes of all its arrays, and bytes of an element."""
    m, n, k, batch = problem.sizes
    if problem.chain is not None:
        # Matrices may share their keys and values, and a mask leave some out.
        rows = m * (k * problem.element_bytes + problem.chain.d * problem.out_bytes)
        return problem.flops, float(batch * rows), float(problem.element_bytes)
    inputs = (m + n) * k * problem.element_bytes
    moved = batch * (inputs + m * n * problem.out_bytes)
    return problem.flops, float(moved), float(problem.element_bytes)


def least(
    flops: Any, moved: Any, element_bytes: Any, target: Target, gpu: str
) -> FloatArray:
    """The least seconds of such `work`, of one problem or of many.

    All multiplications take time, all arrays pass through L2 once, and a load returns
    before what is computed from it.
    """
    peak = target.tensor_f16_flops * 2 / element_bytes
    seconds = np.maximum(flops / peak, moved / target.l2_bytes_per_second)
    latency = target.l2_latency / target.clock_hz
    faster = _OVERCLOCKED if gpu == target.device else _OTHER_GPU
    return (seconds + latency) / faster
