"""A latency model of kernels that go over rows, as a softmax or a norm does.

A block starts, loads its rows, combines them over threads once for each reduction that
needs the one before, computes and stores. Blocks come in waves; all that they move is
moved in the time that DRAM takes for it, or that instructions take to be issued, and
what a wave waits for is not hidden by the next one: the times add up. Rows that lie in
the registers of few threads wait for these one after another, of many threads for
barriers. Nothing in it is fitted to kernels of rows: constants are those of
`hardware.py`, and `bench/bench_measured_kernels.py` compares it with measured times.
Times are in seconds.
"""

from __future__ import annotations

import math
from collections.abc import Mapping

from alcop_mlir import hardware
from alcop_mlir.frozen import frozen
from alcop_mlir.target import MAX_REGISTERS_PER_THREAD, WARP_SIZE, Target

PARTS = (
    "launch",
    "start",  # of blocks, until their rows have come
    "reductions",  # shuffles, and barriers where several warps have a row
    "threads",  # what one computes of its part of a row, while no other does
    "moving",  # bytes from and to DRAM or the SMs at work, or instructions
)
_SHUFFLES = 5  # over a warp: log2 of its lanes
_BARRIERS = 2  # of a reduction over warps: all have written theirs, all have read
_OTHER_REGISTERS = 24  # of a thread: addresses, counters, totals; an estimate


@frozen
class RowWork:
    """What a kernel of rows computes.

    rows, columns: how many
    moved_bytes:   read and written, each array once
    reductions:    that need the one before
    live:          elements of a column that a thread holds at once
    """

    rows: int
    columns: int
    moved_bytes: int
    reductions: int
    live: int = 1


@frozen
class RowTime:
    """What it takes: seconds by name of `PARTS`, which add up."""

    parts: Mapping[str, float]

    @property
    def seconds(self) -> float:
        """All of it."""
        return sum(self.parts.values())


def predict(work: RowWork, threads: int, block_threads: int, target: Target) -> RowTime:
    """The time with so many threads for each row, and in a block."""
    cycle = 1 / target.clock_hz
    held = math.ceil(work.columns / threads)
    blocks = math.ceil(work.rows * threads / block_threads)
    resident = min(
        _most_resident(held * work.live, block_threads, target),
        math.ceil(blocks / target.sms),
    )
    waves = max(blocks / (target.sms * resident), 1.0)
    moved = work.moved_bytes / (hardware.DRAM_REACHED * target.dram_bytes_per_second)
    working = min(blocks, target.sms)
    share = min(hardware.rates(target).l2_most, target.l2_bytes_per_second / working)
    moved = max(moved, work.moved_bytes / working / share)
    instructions = work.rows * work.columns * hardware.ROW_INSTRUCTIONS
    issued = instructions / (target.sms * target.float_lanes) * cycle
    start = hardware.BLOCK_START + hardware.LOADED * target.dram_latency
    each = WARP_SIZE / (target.float_lanes / hardware.SUB_CORES)  # instruction
    alone = held * hardware.ROW_INSTRUCTIONS * each
    return RowTime(
        {
            "launch": hardware.LAUNCH * cycle,
            "start": waves * start * cycle,
            "reductions": waves * work.reductions * _reduction(threads) * cycle,
            "threads": waves * alone * cycle,
            "moving": max(moved, issued),
        }
    )


def _most_resident(held: int, block_threads: int, target: Target) -> int:
    """Blocks that an SM has room for."""
    registers = min(held + _OTHER_REGISTERS, MAX_REGISTERS_PER_THREAD)
    found = min(
        target.registers_per_sm // (registers * block_threads),
        target.threads_per_sm // block_threads,
        target.blocks_per_sm,
    )
    return max(found, 1)


def _reduction(threads: int) -> float:
    """Cycles until all threads of a row have a total."""
    shuffles = _SHUFFLES * hardware.SHUFFLE
    if threads <= WARP_SIZE:
        return shuffles
    between = _BARRIERS * hardware.BARRIER + hardware.SHARED_LATENCY
    return 2 * shuffles + between
