"""What a schedule costs on a target: pure arithmetic, used by passes and tuner alike.

The shared bytes are exact: alcop-outline-kernels lays the buffers out by the same
rule. The registers are an estimate, a sum of terms in `registers_per_thread`, and of
nothing else: what is chosen to need no more than there are spills nothing, as
`bench/bench_spills.py` shows of all kernels that are chosen. A new term is a function
of the schedule and of `Copies` that returns registers, one more line of the sum, and a
constant that says from what kernels it was measured. What it depends on and a schedule
does not say is a field of `Copies`, whose default adds nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

from alcop_mlir.errors import ConfigError
from alcop_mlir.frozen import frozen
from alcop_mlir.schedule import WGMMA, Schedule
from alcop_mlir.target import (
    CP_ASYNC_BYTES,
    MAX_REGISTERS_PER_THREAD,
    MMA_K_BYTES,
    SHARED_BYTES_RESERVED_PER_BLOCK,
    WARP_SIZE,
    WARPGROUP,
    Target,
)

SHARED_ALIGNMENT = 128  # bytes; keeps every swizzled row of 128 bytes whole
# Addresses, loop counters and copy pointers, seen with ptxas 13 over the tested tiles.
ADDRESS_REGISTERS = 40
# Of the tiles for rows that are not aligned, without a model: 64 x 64.
LARGEST_NARROW = 64
# Registers of a thread for each cp.async of less than 16 bytes in a K step: an address
# in global memory (2), one in shared memory, and how many bytes are there. ptxas 13.5
# takes from none to 6.5, and 1.6 in the mean of 148 kernels with f16, tf32 and s8 in
# all layouts, of known and of open sizes, that have 6 to 64 such copies. Of the kernels
# of narrow copies, by elements or not, that `cost` lets pass 2 of 152 spill, 8 bytes,
# where ptxas itself stops at 128 or 168 registers; of those that it refuses 31 of 141
# do, up to 12 KB. With 3 registers the first that passes spills 2.9 KB.
# python bench/bench_spills.py --grid 400
NARROW_COPY_REGISTERS = 4
# Registers of a thread for each cp.async of 16 bytes in a K step beyond the first 8: an
# address in global memory. With warps of 64x64 and 12 copies ptxas 13.5 takes 242 to
# 252 (f16, s8), with 16 up to 255, and with 24 and 32 it spills 16 to 208 bytes, where
# the estimate is 264 and more; with warps of 64x32 and 48 copies it takes 234, by the
# estimate 232. One of these that passes spills: s8 nn in one warp, 32 bytes. Gathered
# rows have terms of their own.
WIDE_COPY_REGISTERS = 2
_COPIES_AMONG_ADDRESSES = 8
# Registers of a thread for each operand that ldmatrix cannot transpose, as its elements
# are words: addresses that these are loaded at. Of tf32 nn with warps of 64x64 and 12
# copies ptxas 13.5 spills 24 to 64 bytes, of tn 116 to 220, and 40 and 80 with 8
# copies; of nt, where both are as ldmatrix wants them, none. Of tn 128x64x16 with warps
# of 32x64 takes 190, by the estimate 184.
WORD_LOAD_REGISTERS = 16
# Registers of a thread where A or B is gathered from images: for each row that it
# copies where that begins (2) and which taps it lacks; for each 32 bytes of a K step
# the addresses of one more fragment; the block's own row and column until C is stored,
# where these are computed by a raster. Of 3x3 and 3x3x3 windows with tiles of 64x64 per
# warp ptxas 13.5 takes 238 to 248 with 128x128x32, 246 to 254 with 128x128x64; with
# 256x64x32, eight rows for each thread, 255, and spills up to 228 bytes; with
# 128x128x64 and a raster 255, and spills 24 bytes.
# python bench/bench_conv_layers.py --sass
GATHERED_ROW_REGISTERS = 3
GATHERED_FRAGMENT_REGISTERS = 2
GATHERED_RASTER_REGISTERS = 4
_GATHERED_BYTES = 64  # of a row, that neighbouring threads copy at once
# Registers of a thread for what it copies element by element, a K step early: 96 with
# 64 x 64 and 4 warps, where ptxas takes up to 255 for all. With 128 it spills.
MOST_ELEMENT_REGISTERS = 96
# Where elements are copied, for the bounds that each is compared with: with open sizes
# 64x64x32 and 128x128x32 of f16 take 212 and 224 registers, by the estimate 208 and
# 224. Without them 128x64x32 with 4 warps passes, and spills 24 bytes.
BOUND_REGISTERS = 8
# Registers of a thread besides accumulators where wgmma multiplies: of tiles of
# 128x256, 256x128 and 192x128 ptxas 13.5 spills nothing with 168 and 128 registers at
# the start, and 232 and 160 by setmaxnreg.
WARPGROUP_REGISTERS = 40
SHARED_BYTES_OF_RINGS = 1024  # of static shared memory with mbarriers, aligned
_NARROWEST, _WIDEST = min(CP_ASYNC_BYTES), max(CP_ASYNC_BYTES)
WORD_BYTES, _ADDRESS_WORDS = 4, 2  # registers are of 32 bits, addresses of 64

Stored = tuple[int, int]  # bytes of an element of A and of B in memory


@frozen
class Copies:
    """How threads copy tiles, as far as their registers depend on it.

    at_once: bytes that a thread copies at once, of A and of B; below 4 these are loads
        of elements and stores
    gathered: "A" or "B" where that consists of windows of images, else ""
    word_loads: of A and B as many as fragments are loaded of element by element, as
        their elements are words, and their rows not along K
    """

    at_once: tuple[int, int] = (_WIDEST, _WIDEST)
    gathered: str = ""
    word_loads: int = 0

    @property
    def are_by_elements(self) -> bool:
        """Whether some are narrower than cp.async can be."""
        return min(self.at_once) < _NARROWEST

    @property
    def are_narrow(self) -> bool:
        """Whether some are narrower than they could be."""
        return min(self.at_once) < _WIDEST


WIDE = Copies()


@frozen
class Resources:
    """Cost of one thread block, and how many of them an SM holds."""

    threads: int
    shared_bytes: int
    registers_per_thread: int
    blocks_per_sm: int


def shared_bytes(
    schedule: Schedule,
    element_bytes: int = 2,
    stored: Stored | None = None,
    copies: Copies = WIDE,
) -> int:
    """Bytes of the shared A and B tiles over all their slots.

    What is copied by elements waits in registers, and has one slot.

    element_bytes: of an element as it is multiplied
    stored:        of an element of A and of B in memory, where these differ from it
    """
    sides = _sides(schedule, stored or (element_bytes, element_bytes), copies)
    return _in_slots(sides, schedule.stages[0])


def _sides(schedule: Schedule, sizes: Stored, copies: Copies) -> list[tuple[int, bool]]:
    """Of A and B the bytes of a tile, and whether it has slots."""
    *tile, step = schedule.block
    return [
        (rows * step * size, width >= _NARROWEST)
        for rows, size, width in zip(tile, sizes, copies.at_once, strict=True)
    ]


def _in_slots(sides: Sequence[tuple[int, bool]], count: int) -> int:
    return sum(align(size * count if slots else size) for size, slots in sides)


def registers_per_thread(
    schedule: Schedule,
    element_bytes: int = 2,
    stored: Stored | None = None,
    copies: Copies = WIDE,
) -> int:
    """Estimated 32-bit registers: the sum of all terms.

    element_bytes, stored: see `shared_bytes`
    """
    return (
        _accumulator_registers(schedule)
        + _fragment_registers(
            schedule.warp,
            max(schedule.stages[1], 2) if copies.are_narrow else schedule.stages[1],
            element_bytes,
            stored or (element_bytes, element_bytes),
        )
        + ADDRESS_REGISTERS
        + sum(_copy_registers(schedule.block, schedule.threads, element_bytes, copies))
        + (BOUND_REGISTERS if copies.are_by_elements else 0)
        + WORD_LOAD_REGISTERS * copies.word_loads
        + _gather_registers(schedule, element_bytes, copies)
    )


def _accumulator_registers(schedule: Schedule) -> int:
    warp_m, warp_n = schedule.warp
    return warp_m * warp_n // WARP_SIZE


@lru_cache(maxsize=1024)  # spaces list a warp's tile many times
def _fragment_registers(
    warp: tuple[int, int], stages: int, element_bytes: int, sizes: Stored
) -> int:
    """For fragments of all stages; with narrow copies there are two at least.

    They are loaded with memory's elements, of `sizes` bytes. Where these differ from
    those that are multiplied, one fragment step is also held converted. ptxas 13.5
    loads fragments early by itself: with one stage 64x64 warps of f16 take 2 to 8
    registers less than with two, not 32. That counts where there are none to spare.
    """
    steps = (extent * MMA_K_BYTES // element_bytes for extent in warp)
    waiting = sum(step * size for step, size in zip(steps, sizes, strict=True))
    computed = MMA_K_BYTES * sum(
        extent
        for extent, size in zip(warp, sizes, strict=True)
        if size != element_bytes
    )
    return (stages * waiting + computed) // (4 * WARP_SIZE)


@lru_cache(maxsize=4096)  # stages and rasters share it, and spaces list many
def _copy_registers(
    block: tuple[int, int, int], threads: int, element_bytes: int, copies: Copies
) -> tuple[int, int]:
    """For what is copied by cp.async; for what is copied by elements.

    The latter without what these are compared with. cp.async counts where it takes less
    than 16 bytes, and where there are many of it.
    """
    *tile, step = block
    narrow = wide = elements = 0
    for extent, width in zip(tile, copies.at_once, strict=True):
        each = extent * step // threads  # elements of a K step that a thread copies
        count = -(-each * element_bytes // width)
        if width < _NARROWEST:
            elements += element_registers(each, element_bytes)
        elif width < _WIDEST:
            narrow += NARROW_COPY_REGISTERS * count
        elif not copies.gathered:
            wide += count
    wide = WIDE_COPY_REGISTERS * max(0, wide - _COPIES_AMONG_ADDRESSES)
    return narrow + wide, elements


def _gather_registers(schedule: Schedule, element_bytes: int, copies: Copies) -> int:
    """For rows at addresses of their own, and what the loop carries for them."""
    if not copies.gathered:
        return 0
    extent, step_bytes = schedule.block["AB".index(copies.gathered)], element_bytes
    step_bytes *= schedule.block[2]
    chunks = min(step_bytes, _GATHERED_BYTES) // _WIDEST  # side by side
    rows = -(-extent * chunks // schedule.threads)
    return (
        GATHERED_ROW_REGISTERS * rows
        + GATHERED_FRAGMENT_REGISTERS * step_bytes // MMA_K_BYTES
        + (GATHERED_RASTER_REGISTERS if schedule.raster > 1 else 0)
    )


def element_registers(elements: int, element_bytes: int) -> int:
    """For what a thread copies by elements: one for each, and an address for a word."""
    return elements + elements * element_bytes // WORD_BYTES * _ADDRESS_WORDS


def cost(
    schedule: Schedule,
    target: Target,
    element_bytes: int = 2,
    stored: Stored | None = None,
    copies: Copies = WIDE,
) -> Resources:
    """Cost of `schedule`; raises ConfigError naming the limit it breaks.

    element_bytes, stored: see `shared_bytes`
    """
    threads = schedule.threads
    shared = shared_bytes(schedule, element_bytes, stored, copies)
    if shared > target.shared_bytes_per_block:
        raise ConfigError(
            f"schedule '{schedule}' needs {shared} bytes of shared memory, "
            f"{target.name} has {target.shared_bytes_per_block} per block: fewer "
            "stages or a smaller block"
        )
    _, by_elements = _copy_registers(schedule.block, threads, element_bytes, copies)
    if by_elements > MOST_ELEMENT_REGISTERS:
        raise ConfigError(
            f"schedule '{schedule}' needs {by_elements} registers per thread for what "
            f"is copied by elements, expected at most {MOST_ELEMENT_REGISTERS}: a "
            "smaller block, or more warps"
        )
    if schedule.engine == WGMMA:
        return _warpgroup_cost(schedule, target, shared)
    registers = registers_per_thread(schedule, element_bytes, stored, copies)
    if registers > MAX_REGISTERS_PER_THREAD:
        raise ConfigError(
            f"schedule '{schedule}' needs about {registers} registers per thread, "
            f"there are {MAX_REGISTERS_PER_THREAD}: a smaller warp tile or fewer "
            "register stages"
        )
    if threads * registers > target.registers_per_sm:
        raise ConfigError(
            f"schedule '{schedule}' needs about {threads * registers} "
            f"registers per block, {target.name} has {target.registers_per_sm}: fewer "
            "or smaller warps"
        )
    most = min(
        target.blocks_per_sm,
        target.threads_per_sm // threads,
        target.registers_per_sm // (registers * threads),
    )
    return _with_shared(Resources(threads, shared, registers, most), shared, target)


def costs_of_stages(
    schedule: Schedule,
    stages: Sequence[int],
    target: Target,
    element_bytes: int = 2,
    copies: Copies = WIDE,
) -> list[Resources]:
    """Costs with each number of shared stages, least first, as far as these fit.

    Registers do not depend on it. Raises ConfigError where the first does not fit.

    schedule: has the first of them, and mma.sync
    """
    first = cost(schedule, target, element_bytes, copies=copies)
    found = [first]
    sides = _sides(schedule, (element_bytes, element_bytes), copies)
    for count in stages[1:]:
        shared = _in_slots(sides, count)
        if shared > target.shared_bytes_per_block:
            break
        found.append(_with_shared(first, shared, target))
    return found


def _with_shared(one: Resources, shared: int, target: Target) -> Resources:
    """With so many bytes of shared memory, which may leave room for fewer blocks.

    one: with no more than these
    """
    most = target.shared_bytes_per_sm // (shared + SHARED_BYTES_RESERVED_PER_BLOCK)
    return Resources(
        one.threads, shared, one.registers_per_thread, min(one.blocks_per_sm, most)
    )


def _warpgroup_cost(schedule: Schedule, target: Target, shared: int) -> Resources:
    """Of a block with a warpgroup that copies: the others have only accumulators.

    shared: bytes of the slots; mbarriers come before them, and these begin at a
        multiple of what a swizzle repeats after
    """
    if not target.has_wgmma:
        raise ConfigError(no_wgmma(f"schedule '{schedule}'", target))
    needed = shared + SHARED_BYTES_OF_RINGS
    if needed > target.shared_bytes_per_block:
        raise ConfigError(
            f"schedule '{schedule}' needs {needed} bytes of shared memory with the "
            f"mbarriers of the ring, {target.name} has "
            f"{target.shared_bytes_per_block} per block: fewer stages or a smaller "
            "block"
        )
    registers = _accumulator_registers(schedule) + WARPGROUP_REGISTERS
    computing = schedule.threads * schedule.turns
    threads = computing + WARPGROUP * WARP_SIZE
    roles = role_registers(computing)
    most = MAX_REGISTERS_PER_THREAD if roles is None else roles[1]
    if registers > most:
        raise ConfigError(
            f"schedule '{schedule}' needs about {registers} registers per thread that "
            f"computes, {threads} threads leave {most}: a smaller warp tile or fewer "
            "warps"
        )
    of_all = target.registers_per_sm // threads
    return Resources(
        threads=threads,
        shared_bytes=needed,
        registers_per_thread=min(of_all, MAX_REGISTERS_PER_THREAD),
        blocks_per_sm=min(
            target.threads_per_sm // threads,
            max(1, target.registers_per_sm // (threads * of_all)),
            target.shared_bytes_per_sm // (needed + SHARED_BYTES_RESERVED_PER_BLOCK),
        ),
    )


def no_wgmma(what: str, target: Target) -> str:
    """The message that `what` needs wgmma, on a target without it."""
    return (
        f"{what} needs wgmma, which {target.name} does not have: compile for sm_90a, "
        "or leave the engine out"
    )


def cost_as_given(
    schedule: Schedule, target: Target, element_bytes: int, copies: Copies
) -> Resources:
    """As `cost`; of one that only its copies forbid, by an estimate, without these."""
    try:
        return cost(schedule, target, element_bytes, copies=copies)
    except ConfigError:
        return cost(schedule, target, element_bytes)


def role_registers(threads: int) -> tuple[int, int] | None:
    """Registers of a thread that copies and of one that computes, by setmaxnreg.

    threads: that compute, of whole warpgroups; one more copies. None where all have
    enough. Multiples of 8 from 24 on, together no more than an SM has: PTX ISA,
    setmaxnreg. Those of copying warps are as CUTLASS has them.
    """
    groups = threads // (WARPGROUP * WARP_SIZE)
    if groups < 2:
        return None
    copying = {2: 40, 3: 32}.get(groups, 24)
    of_all = Target.registers_per_sm // (WARPGROUP * WARP_SIZE) - copying
    return copying, of_all // groups // 8 * 8


def align(size: int) -> int:
    """`size` bytes rounded up to the alignment of a shared buffer."""
    return -(-size // SHARED_ALIGNMENT) * SHARED_ALIGNMENT
