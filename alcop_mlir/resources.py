"""What a schedule costs on a target: pure arithmetic, asked by passes and tuner alike.

The shared bytes are exact: alcop-outline-kernels lays the buffers out by the same
rule. The registers are an estimate, checked against ptxas in the tests.
"""

from __future__ import annotations

from dataclasses import dataclass

from alcop_mlir.errors import ConfigError
from alcop_mlir.schedule import Schedule
from alcop_mlir.target import (
    MAX_REGISTERS_PER_THREAD,
    MMA_K_BYTES,
    SHARED_BYTES_RESERVED_PER_BLOCK,
    WARP_SIZE,
    Target,
)

SHARED_ALIGNMENT = 128  # bytes; keeps every swizzled row of 128 bytes whole
# Addresses, loop counters and copy pointers, seen with ptxas 13 over the tested tiles.
ADDRESS_REGISTERS = 40


@dataclass(frozen=True)
class Resources:
    """Cost of one thread block, and how many of them an SM holds."""

    threads: int
    shared_bytes: int
    registers_per_thread: int
    blocks_per_sm: int


def shared_bytes(schedule: Schedule, element_bytes: int = 2) -> int:
    """Bytes of the shared A and B tiles over all their slots."""
    block_m, block_n, block_k = schedule.block
    slots = schedule.stages[0]
    return sum(
        align(slots * rows * block_k * element_bytes) for rows in (block_m, block_n)
    )


def registers_per_thread(schedule: Schedule) -> int:
    """Estimated 32-bit registers: accumulators, fragments of all stages, addresses."""
    warp_m, warp_n = schedule.warp
    accumulators = warp_m * warp_n // WARP_SIZE
    fragment_bytes = (warp_m + warp_n) * MMA_K_BYTES
    fragments = schedule.stages[1] * fragment_bytes // (4 * WARP_SIZE)
    return accumulators + fragments + ADDRESS_REGISTERS


def cost(schedule: Schedule, target: Target, element_bytes: int = 2) -> Resources:
    """Cost of `schedule`; raises ConfigError naming the limit it breaks."""
    shared = shared_bytes(schedule, element_bytes)
    if shared > target.shared_bytes_per_block:
        raise ConfigError(
            f"schedule '{schedule}' needs {shared} bytes of shared memory, "
            f"{target.name} has {target.shared_bytes_per_block} per block: fewer "
            "stages or a smaller block"
        )
    registers = registers_per_thread(schedule)
    if registers > MAX_REGISTERS_PER_THREAD:
        raise ConfigError(
            f"schedule '{schedule}' needs about {registers} registers per thread, "
            f"there are {MAX_REGISTERS_PER_THREAD}: a smaller warp tile or fewer "
            "register stages"
        )
    if schedule.threads * registers > target.registers_per_sm:
        raise ConfigError(
            f"schedule '{schedule}' needs about {schedule.threads * registers} "
            f"registers per block, {target.name} has {target.registers_per_sm}: fewer "
            "or smaller warps"
        )
    return Resources(
        threads=schedule.threads,
        shared_bytes=shared,
        registers_per_thread=registers,
        blocks_per_sm=min(
            target.blocks_per_sm,
            target.threads_per_sm // schedule.threads,
            target.registers_per_sm // (registers * schedule.threads),
            target.shared_bytes_per_sm // (shared + SHARED_BYTES_RESERVED_PER_BLOCK),
        ),
    )


def align(size: int) -> int:
    """`size` bytes rounded up to the alignment of a shared buffer."""
    return -(-size // SHARED_ALIGNMENT) * SHARED_ALIGNMENT
