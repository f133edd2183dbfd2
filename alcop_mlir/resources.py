"""What a schedule costs on a target: pure arithmetic, used by passes and tuner alike.

The shared bytes are exact: alcop-outline-kernels lays the buffers out by the same
rule. The registers are an estimate, checked against ptxas in the tests.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from alcop_mlir.errors import ConfigError
from alcop_mlir.schedule import Schedule
from alcop_mlir.taps import Taps, k_steps
from alcop_mlir.target import (
    CP_ASYNC_BYTES,
    MAX_REGISTERS_PER_THREAD,
    MMA_K_BYTES,
    SHARED_BYTES_RESERVED_PER_BLOCK,
    WARP_SIZE,
    Target,
    mma_shape,
)

SHARED_ALIGNMENT = 128  # bytes; keeps every swizzled row of 128 bytes whole
# Addresses, loop counters and copy pointers, seen with ptxas 13 over the tested tiles.
ADDRESS_REGISTERS = 40
# Rows or columns of a tile whose copies are narrower than 16 bytes: with 128 x 128 a
# thread holds the addresses of so many copies that ptxas spills.
LARGEST_NARROW = 64
# Registers of a thread for what it copies element by element, a K step early: 96 with
# 64 x 64 and 4 warps, where ptxas takes up to 255 for all. With 128 it spills.
MOST_ELEMENT_REGISTERS = 96
_WORD_BYTES, _ADDRESS_WORDS = 4, 2  # registers are of 32 bits, addresses of 64

Stored = tuple[int, int]  # bytes of an element of A and of B in memory


@dataclass(frozen=True)
class Resources:
    """Cost of one thread block, and how many of them an SM holds."""

    threads: int
    shared_bytes: int
    registers_per_thread: int
    blocks_per_sm: int


def shared_bytes(
    schedule: Schedule, element_bytes: int = 2, stored: Stored | None = None
) -> int:
    """Bytes of the shared A and B tiles over all their slots.

    element_bytes: of an element as it is multiplied
    stored:        of an element of A and of B in memory, where these differ from it
    """
    *rows, block_k = schedule.block
    slots = schedule.stages[0]
    sizes = stored or (element_bytes, element_bytes)
    return sum(
        align(slots * extent * block_k * size)
        for extent, size in zip(rows, sizes, strict=True)
    )


def registers_per_thread(
    schedule: Schedule, element_bytes: int = 2, stored: Stored | None = None
) -> int:
    """Estimated 32-bit registers: accumulators, fragments of all stages, addresses.

    Fragments are loaded with memory's elements. Where these differ from those that are
    multiplied, one fragment step is also held converted.
    """
    warp_m, warp_n = schedule.warp
    accumulators = warp_m * warp_n // WARP_SIZE
    sizes = stored or (element_bytes, element_bytes)
    steps = (extent * MMA_K_BYTES // element_bytes for extent in schedule.warp)
    waiting = sum(step * size for step, size in zip(steps, sizes, strict=True))
    computed = MMA_K_BYTES * sum(
        extent
        for extent, size in zip(schedule.warp, sizes, strict=True)
        if size != element_bytes
    )
    fragments = (schedule.stages[1] * waiting + computed) // (4 * WARP_SIZE)
    return accumulators + fragments + ADDRESS_REGISTERS


def copies_fit(schedule: Schedule, copy_bytes: Sequence[int]) -> bool:
    """Whether registers suffice for what threads copy of A and B, so much at once.

    `cost` does not know of that: it counts what all rows take.
    """
    *tile, step = schedule.block
    registers = sum(
        element_registers(extent * step // schedule.threads, width)
        for extent, width in zip(tile, copy_bytes, strict=True)
        if width < min(CP_ASYNC_BYTES)
    )
    is_wide = min(copy_bytes) >= max(CP_ASYNC_BYTES)
    fits = max(tile) <= LARGEST_NARROW and registers <= MOST_ELEMENT_REGISTERS
    return is_wide or fits


def element_registers(elements: int, element_bytes: int) -> int:
    """For what a thread copies by elements: one for each, and an address for a word."""
    return elements + elements * element_bytes // _WORD_BYTES * _ADDRESS_WORDS


def cost(
    schedule: Schedule,
    target: Target,
    element_bytes: int = 2,
    stored: Stored | None = None,
) -> Resources:
    """Cost of `schedule`; raises ConfigError naming the limit it breaks.

    element_bytes, stored: see `shared_bytes`
    """
    shared = shared_bytes(schedule, element_bytes, stored)
    if shared > target.shared_bytes_per_block:
        raise ConfigError(
            f"schedule '{schedule}' needs {shared} bytes of shared memory, "
            f"{target.name} has {target.shared_bytes_per_block} per block: fewer "
            "stages or a smaller block"
        )
    registers = registers_per_thread(schedule, element_bytes, stored)
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


def check_k_step(schedule: Schedule, element_bytes: int, dtype: str) -> None:
    """ConfigError where a K step is no whole number of mma.sync's on the type."""
    _, _, step = mma_shape(element_bytes)
    if schedule.block[2] % step:
        raise ConfigError(
            f"schedule '{schedule}' has a K step of {schedule.block[2]}, expected a "
            f"multiple of {step} for {dtype}"
        )


def split_step(schedule: Schedule, element_bytes: int) -> int:
    """What K has to be a multiple of to be split: parts of whole 16 bytes."""
    parts = schedule.split_k
    return 1 if parts == 1 else parts * max(CP_ASYNC_BYTES) // element_bytes


def check_split(
    schedule: Schedule,
    k: int | None,
    element_bytes: int,
    batched: bool,
    taps: Taps | None = None,
) -> None:
    """ConfigError where K cannot be split as `schedule` says.

    k: None where it is known at run time only
    batched: whether the contraction has a batch; parts of K are computed as one
    taps: that K consists of
    """
    if schedule.split_k == 1:
        return
    step = split_step(schedule, element_bytes)
    if batched:
        why = "the contraction has a batch: leave split_k out"
    elif taps is not None and k is not None:
        if _has_parts_of_steps(schedule, k, taps):
            return
        steps = k_steps(k, schedule.block[2], taps)
        why = f"{taps.count} taps have {steps} steps, expected parts of equally many"
    elif k is None:
        why = "K is known at run time only: leave split_k out"
    elif k == 0 or k % step:
        why = f"K is {k}, expected a multiple of {step}: parts of whole 16 bytes"
    else:
        return
    raise ConfigError(f"schedule '{schedule}' splits K, but {why}")


def _has_parts_of_steps(schedule: Schedule, k: int, taps: Taps) -> bool:
    """Whether K falls into parts of equal size, of whole steps."""
    parts, step = schedule.split_k, schedule.block[2]
    is_alike = k // taps.count % step == 0 or taps.count % parts == 0
    return is_alike and k_steps(k, step, taps) % parts == 0


def align(size: int) -> int:
    """`size` bytes rounded up to the alignment of a shared buffer."""
    return -(-size // SHARED_ALIGNMENT) * SHARED_ALIGNMENT
