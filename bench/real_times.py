"""Times that others measured on GPUs, as problems and schedules of this compiler.

PyTorch's AutoHeuristic data are times of Triton's matmul template on A100 and H100:
tables without a licence, so that nothing of them is kept here. `read` takes a copy that
a user has (`a100_mm.txt`, `h100_mm.txt`, ...):

    {"shared_memory": 166912, "device_capa": [8, 0], "name": "mm", ...}
    m,k,n,mat1_dtype,mat2_dtype,mat1_stride_0,...,using_tf32,choice,feedback
    1152,2048,768,torch.float16,...,type=triton_BLOCK-M=64_..._numwarps=4,0.0213

Problems are split once: one half may set constants of the model (`CALIBRATION`), the
other half judges it. A problem's half follows from its sizes alone.
"""

from __future__ import annotations

import csv
import functools
import hashlib
import json
import re
import statistics
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from alcop_mlir.errors import ConfigError
from alcop_mlir.schedule import Schedule
from alcop_mlir.tuning.problem import Problem

CALIBRATION, HELD_BACK = "calibration", "held back"
LEAST = 8  # schedules with a time, of a problem
_TYPES = {"torch.float16": "f16", "torch.bfloat16": "bf16"}
_SIZES = ("m", "n", "k", "mat1_dtype", "mat2_dtype")
_STRIDES = ("mat1_stride_0", "mat1_stride_1", "mat2_stride_0", "mat2_stride_1")
_CHOICE = re.compile(
    r"type=triton_BLOCK-M=(\d+)_BLOCK-K=(\d+)_BLOCK-N=(\d+)"
    r"_numstages=(\d+)_numwarps=(\d+)"
)
_MMA = (16, 8)  # rows and columns of what a warp multiplies at once


@dataclass(frozen=True)
class Times:
    """Of one problem: milliseconds of each schedule, the median where there are more.

    target: "sm_80" or "sm_90"
    """

    problem: Problem
    target: str
    milliseconds: dict[Schedule, float]

    @property
    def half(self) -> str:
        """`CALIBRATION` or `HELD_BACK`."""
        return half_of(repr(self.problem.sizes))


def half_of(name: str) -> str:
    """`CALIBRATION` or `HELD_BACK`, by what names a problem alone."""
    digest = hashlib.sha256(name.encode()).digest()
    return CALIBRATION if digest[0] % 2 else HELD_BACK


def read(paths: Iterable[Path]) -> list[Times]:
    """All problems in AutoHeuristic's tables with 16-bit elements and `LEAST` times.

    Raises ConfigError for a file that is no such table; other types are left out.
    """
    found: dict[tuple[str, Problem], dict[Schedule, list[float]]] = {}
    for path in paths:
        target, rows = _table(path)
        for number, row in enumerate(rows, 3):
            try:
                problem = _problem(*(row[name] for name in (*_SIZES, *_STRIDES)))
                schedule = _schedule(row["choice"])
                time = float(row["feedback"])
            except (KeyError, TypeError, ValueError) as error:
                raise ConfigError(
                    f"{path}, line {number}: {error!r}, expected a row of AutoHeuristic"
                ) from None
            if problem is None or schedule is None or not 0 < time < float("inf"):
                continue
            times = found.setdefault((target, problem), {})
            times.setdefault(schedule, []).append(time)
    return [
        Times(problem, target, {s: statistics.median(of) for s, of in times.items()})
        for (target, problem), times in found.items()
        if len(times) >= LEAST
    ]


def _table(path: Path) -> tuple[str, csv.DictReader[str]]:
    try:
        lines = path.read_text().splitlines()
        major, minor = json.loads(lines[0])["device_capa"]
    except (OSError, ValueError, KeyError, IndexError, TypeError) as error:
        raise ConfigError(
            f"{path}: {error!r}, expected a table of AutoHeuristic"
        ) from None
    rows = csv.DictReader(lines[1:])
    missing = [
        one
        for one in (*_SIZES, *_STRIDES, "choice", "feedback")
        if one not in (rows.fieldnames or ())
    ]
    if missing:
        raise ConfigError(f"{path}: no column {missing[0]}, expected AutoHeuristic's")
    return f"sm_{major}{minor}", rows


@functools.cache  # rows are many, their problems few
def _problem(*texts: str) -> Problem | None:
    """None for other types than f16 and bf16, and for rows that lie apart."""
    kind, other = (_TYPES.get(text) for text in texts[3:5])
    if kind is None or other != kind:
        return None
    m, n, k, a0, a1, b0, b1 = map(int, (*texts[:3], *texts[5:]))
    a = "mk" if (a0, a1) == (k, 1) else "km" if (a0, a1) == (1, m) else ""
    b = "kn" if (b0, b1) == (n, 1) else "nk" if (b0, b1) == (1, k) else ""
    if not a or not b:
        return None
    return Problem(m, n, k, dtypes=(kind, kind, "f32", kind), layout=f"{a},{b}")


@functools.cache
def _schedule(choice: str) -> Schedule | None:
    """None for what is no kernel of Triton's."""
    match = _CHOICE.fullmatch(choice)
    if match is None:
        return None
    m, k, n, stages, warps = map(int, match.groups())
    warp = warp_tile(m, n, warps)
    return Schedule(
        (m, n, k), warp, (slots_of(stages), 2 if stages > 1 else 1), raster=8
    )


def warp_tile(m: int, n: int, warps: int) -> tuple[int, int]:
    """Rows and columns of each warp of a block of Triton's."""
    along_m, along_n = warps_of(m, n, warps)
    return max(_MMA[0], m // along_m), max(2 * _MMA[1], n // along_n)


def slots_of(stages: int) -> int:
    """Slots in shared memory of Triton's `num_stages`."""
    return max(1, stages)


def warps_of(m: int, n: int, warps: int) -> tuple[int, int]:
    """Warps along M and N, as Triton spreads them for mma.sync.

    Each time the dimension is halved that has more left for a warp, N counting half.
    """
    along = [1, 1]
    while along[0] * along[1] < warps:
        rows, columns = m / _MMA[0] / along[0], n / (2 * _MMA[1]) / along[1]
        by_rows = rows >= columns and along[0] < m / _MMA[0]
        along[0 if by_rows else 1] *= 2
    return along[0], along[1]


def of_half(times: Sequence[Times], half: str) -> list[Times]:
    """Those of one half."""
    return [one for one in times if one.half == half]
