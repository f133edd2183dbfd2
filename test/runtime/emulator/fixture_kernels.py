"""The kernels that nvcc compiled from the CUDA sources in `fixtures/`."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from kernel_text import launch

from alcop_mlir.runtime.emulator import Result

FOLDER = Path(__file__).parent / "fixtures"

VISIBILITIES = ["late", "early"]
SCHEDULES = ["lockstep", "ascending", "descending", "random(3)"]
MODES = [(early, order) for early in VISIBILITIES for order in SCHEDULES]

TILE = 128  # rows and columns of C per block of the gemm
TILE_K = 32


@cache
def fixture(name: str) -> str:
    """The text of `fixtures/<name>.ptx`."""
    return (FOLDER / f"{name}.ptx").read_text()


@cache
def gemm_operands(m: int, n: int, k: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """A and B in f16, and C = A B in f32."""
    generator = np.random.default_rng(m * 7 + n * 3 + k)
    a = generator.standard_normal((m, k)).astype(np.float16)
    b = generator.standard_normal((k, n)).astype(np.float16)
    return a, b, a.astype(np.float32) @ b.astype(np.float32)


def run_gemm(text: str, m: int, n: int, k: int, **options: Any) -> tuple[Result, int]:
    """Run the gemm fixture or a variant; also how many elements of C are wrong."""
    a, b, wanted = gemm_operands(m, n, k)
    c = np.full((m, n), -777, np.float32)
    grid = (-(-n // TILE), -(-m // TILE))
    result = launch(
        text, "gemm", grid, (128,), [a.copy(), b.copy(), c, m, n, k], **options
    )
    close = np.abs(c - wanted) <= 1e-3 * np.sqrt(k)
    return result, int((~close).sum())


def edit(text: str, old: str, new: str, after: str = "", occurrence: int = 0) -> str:
    """Replace the first `old` behind `after`; both must be there."""
    start = text.index(after) if after else 0
    for _ in range(occurrence):
        start = text.index(old, start) + len(old)
    place = text.index(old, start)
    return text[:place] + new + text[place + len(old) :]
