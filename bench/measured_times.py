"""What others measured on GPUs, from the tables of bench/measured; see its README.md.

    best(half)      SGLang's: the fastest of 1,280 kernels of Triton's, without its time
    spaces(half)    the benchmark hub's: times of all kernels of a space

Either is split once, so that one half may set constants and the other judges: problems
by a hash of device and sizes, spaces as `CALIBRATING` lists them.
"""

from __future__ import annotations

import csv
import gzip
import itertools
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt
from real_times import CALIBRATION, half_of, warp_tile

from alcop_mlir.errors import ConfigError
from alcop_mlir.schedule import Schedule
from alcop_mlir.tuning.problem import Problem

FOLDER = Path(__file__).parent / "measured"
FloatArray = npt.NDArray[np.float64]
# Device, and the target that its kernels are compiled for. Others of the table (H20,
# L20Y, B200) have rates of their own, which no target has.
TARGETS = {
    "NVIDIA_A100-SXM4-80GB": "sm_80",
    "NVIDIA_A800-SXM4-80GB": "sm_80",
    "NVIDIA_H100_80GB_HBM3": "sm_90",
    "NVIDIA_H200": "sm_90",
}
_TYPES = {
    "int8_w8a8": ("i8", "i8", "i32", "i32"),
    "fp8_w8a8": ("f8E4M3FN", "f8E4M3FN", "f32", "bf16"),
}
# The space of SGLang's tuning script: tile M, N, K, group of rows, warps, stages.
SGLANG_SPACE = tuple(
    itertools.product(
        (16, 32, 64, 128, 256),
        (32, 64, 128, 256),
        (64, 128),
        (1, 16, 32, 64),
        (4, 8),
        (2, 3, 4, 5),
    )
)
CALIBRATING = ("convolution-A4000", "convolution-RTX3090", "gemm-RTX2080Ti")


@dataclass(frozen=True)
class Best:
    """The kernel of `SGLANG_SPACE` that was the fastest for a problem."""

    device: str
    problem: Problem
    chosen: tuple[int, ...]

    @property
    def target(self) -> str:
        """Of the device."""
        return TARGETS[self.device]

    @property
    def half(self) -> str:
        """`CALIBRATION` or `HELD_BACK`."""
        return half_of(f"{self.device} {self.problem.sizes}")


@dataclass(frozen=True, eq=False)
class MeasuredSpace:
    """Times of all kernels of a space, by row.

    parameters: a column for each name
    """

    name: str
    names: tuple[str, ...]
    parameters: FloatArray
    milliseconds: FloatArray


def best(half: str) -> list[Best]:
    """Of SGLang's problems on a device of `TARGETS`."""
    with (FOLDER / "sglang.csv").open() as file:
        rows = [row for row in csv.DictReader(file) if row["device"] in TARGETS]
    columns = ("block_m", "block_n", "block_k", "group_m", "warps", "stages")
    found = [
        Best(
            row["device"],
            Problem(
                int(row["m"]),
                int(row["n"]),
                int(row["k"]),
                dtypes=_TYPES[row["dtype"]],
                layout="mk,nk",
            ),
            tuple(int(row[one]) for one in columns),
        )
        for row in rows
    ]
    return [one for one in found if one.half == half]


def schedule(chosen: tuple[int, ...]) -> Schedule | None:
    """Of a kernel of `SGLANG_SPACE`; None where it has none."""
    m, n, k, group, warps, stages = chosen
    warp = warp_tile(m, n, warps)
    try:
        return Schedule((m, n, k), warp, (stages, 2), raster=group)
    except ConfigError:
        return None  # fewer rows than 16 for each warp


def spaces(half: str) -> list[MeasuredSpace]:
    """The benchmark hub's."""
    names = sorted(path.name for path in FOLDER.glob("*.csv.gz"))
    stems = [name.removesuffix(".csv.gz") for name in names]
    first = half == CALIBRATION
    return [_space(one) for one in stems if (one in CALIBRATING) == first]


def _space(name: str) -> MeasuredSpace:
    with gzip.open(FOLDER / f"{name}.csv.gz", "rt") as file:
        header, *rows = csv.reader(file)
    table = np.array(rows, np.float64)
    return MeasuredSpace(name, tuple(header[:-1]), table[:, :-1], table[:, -1])


def shares(ranks: Iterable[float], limits: Iterable[float]) -> list[float]:
    """Which part of `ranks`, from 0 to 1, lies below each limit."""
    found = np.array([*ranks])
    return [float((found <= limit).mean()) for limit in limits]
