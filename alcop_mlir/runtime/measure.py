"""How long a program takes.

On a GPU each launch is timed by events of its own, after a warm-up in which the clocks
settle, on several sets of arrays in turn that together do not fit the L2 cache: a
kernel alone in a loop would find its inputs there. Inputs should be random, since
zeros draw less power and let the clock rise.
"""

from __future__ import annotations

import importlib
import statistics
import time
from collections.abc import Sequence
from typing import Any

from alcop_mlir.frozen import frozen
from alcop_mlir.runtime.launch import Program

WARM_UP_LAUNCHES = 3
WARM_UP_SECONDS = 1.0
QUARTILE_RUNS = 4
CACHE_TURNS = 2  # the sets together take at least so many times the L2 cache


@frozen
class Timing:
    """Seconds of each run, in order."""

    seconds: tuple[float, ...]

    @property
    def median(self) -> float:
        """Seconds of the middle run."""
        return statistics.median(self.seconds)

    @property
    def spread(self) -> float:
        """Interquartile range divided by the median; 0 for runs too few to have any."""
        if len(self.seconds) < QUARTILE_RUNS:
            return 0.0
        low, _, high = statistics.quantiles(self.seconds, n=4)
        return (high - low) / self.median


def time_on_host(program: Program, arrays: Sequence[Any], repeat: int) -> Timing:
    """Wall time of `repeat` calls, as for the emulator."""
    seconds = []
    for _ in range(repeat):
        start = time.perf_counter()
        program(*arrays)
        seconds.append(time.perf_counter() - start)
    return Timing(tuple(seconds))


def time_on_gpu(program: Program, arrays: Sequence[Any], repeat: int) -> Timing:
    """GPU time of `repeat` launches on copies of `arrays`, which are CuPy arrays."""
    cupy = importlib.import_module("cupy")
    size = sum(array.nbytes for array in arrays)
    l2_bytes = cupy.cuda.Device().attributes["L2CacheSize"]
    count = max(1, min(repeat, -(-CACHE_TURNS * l2_bytes // size)))
    sets = [tuple(array.copy() for array in arrays) for _ in range(count)]
    _warm_up(cupy, program, sets)
    events = []
    for number in range(repeat):
        start, end = cupy.cuda.Event(), cupy.cuda.Event()
        start.record()
        program(*sets[number % count])
        end.record()
        events.append((start, end))
    events[-1][1].synchronize()
    milliseconds = [cupy.cuda.get_elapsed_time(*pair) for pair in events]
    return Timing(tuple(value / 1e3 for value in milliseconds))


def _warm_up(cupy: Any, program: Program, sets: Sequence[tuple[Any, ...]]) -> None:
    stream = cupy.cuda.get_current_stream()
    end = time.perf_counter() + WARM_UP_SECONDS
    launches = 0
    while launches < WARM_UP_LAUNCHES or time.perf_counter() < end:
        program(*sets[launches % len(sets)])
        launches += 1
        stream.synchronize()
