"""Times of the emulator on the f16 matmul fixture, against their targets.

Prints one line per figure: the best wall-clock time of a few runs, the CPU time of that
run, and the target where there is one. Usage: python bench/bench_emulator.py [--quick]
[PTX]
"""

from __future__ import annotations

import argparse
import resource
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from alcop_mlir.runtime.emulator import Result, emulate

FIXTURES = Path(__file__).parent.parent / "test/runtime/emulator/fixtures"
TILE = 128  # rows and columns of C of one block
SIZES = {  # (m, n, k): the most seconds of a run with hazards on
    (256, 256, 256): 0.15,
    (512, 512, 1024): 0.6,
    (1024, 1024, 1024): 1.2,
    (2048, 2048, 2048): 8.0,
}
PREPARE_LIMIT, HAZARD_LIMIT, SKEW_LIMIT, MEMORY_LIMIT = 0.2, 2.0, 4.0, 500
MIB = 1024  # ru_maxrss is in KiB on Linux


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("ptx", nargs="?", default=FIXTURES / "gemm_f16_3stage.ptx")
    parser.add_argument("--quick", action="store_true", help="leave out 2048 cubed")
    options = parser.parse_args()
    ptx = Path(options.ptx).read_text(encoding="utf-8")
    sizes = [s for s in SIZES if not (options.quick and s[0] == 2048)]
    for size in sizes:
        seconds, busy, total = best_run(ptx, size)
        print_figure(f"{size} run", seconds, SIZES[size], "s", f"CPU {busy:.3f} s")
        if size == (256, 256, 256):
            # All but the run: parsing, translating, placing arrays.
            print_figure("parse and place", total - seconds, PREPARE_LIMIT, "s")
        if size == (1024, 1024, 1024):
            peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / MIB
            print_figure("peak memory so far", peak, MEMORY_LIMIT, "MiB")
    compare(ptx, (1024, 1024, 1024))


def compare(ptx: str, size: tuple[int, int, int]) -> None:
    """The cost of hazards and of skewed schedules, in CPU time."""
    base = best_run(ptx, size)[1]
    without = best_run(ptx, size, hazards=False)[1]
    print_figure("hazards on / off", base / without, HAZARD_LIMIT, "x")
    for schedule in ("ascending", "descending", "random(1)"):
        skewed = best_run(ptx, size, schedule=schedule)[1]
        print_figure(f"{schedule} / lockstep", skewed / base, SKEW_LIMIT, "x")


def best_run(
    ptx: str, size: tuple[int, int, int], repeats: int = 3, **options: Any
) -> tuple[float, float, float]:
    """Seconds of the best run, CPU seconds and seconds of that whole call."""
    m, n, k = size
    random = np.random.default_rng(0)
    a = random.standard_normal((m, k)).astype(np.float16)
    b = random.standard_normal((k, n)).astype(np.float16)
    c = np.zeros((m, n), np.float32)
    best = (np.inf, np.inf, np.inf)
    for _ in range(repeats):
        result, busy, total = timed(
            lambda: emulate(
                ptx,
                None,
                (-(-n // TILE), -(-m // TILE), 1),
                (128, 1, 1),
                [a, b, c, m, n, k],
                **options,
            )
        )
        if result.hazards:
            sys.exit(f"unexpected: {result.hazards[0]}")
        best = min(best, (result.seconds, busy, total))
    wanted = a.astype(np.float32) @ b.astype(np.float32)
    if not np.allclose(c, wanted, rtol=1e-3, atol=1e-2):
        sys.exit(f"{size}: the result is wrong")
    return best


def timed(call: Callable[[], Result]) -> tuple[Result, float, float]:
    wall, busy = time.perf_counter(), time.process_time()
    result = call()
    return result, time.process_time() - busy, time.perf_counter() - wall


def print_figure(
    name: str, value: float, limit: float, unit: str, note: str = ""
) -> None:
    verdict = "ok" if value <= limit else "OVER"
    print(f"{name:28} {value:9.3f} {unit:4} (at most {limit:g}) {verdict:5} {note}")


if __name__ == "__main__":
    main()
