"""What runs on a machine: a matmul in tiles, and what a block of it needs."""

from __future__ import annotations

from dataclasses import dataclass
from math import ceil

from yardstick.machines import Machine

LANES = 32
_REGISTER = 4  # bytes
_FIXED = 34  # registers for addresses and counters; an estimate
_COPY = 2.5  # registers for each copy of a thread in a K step; an estimate
_UNIT = 8  # registers of a thread are given out in eights; CUDA occupancy calculator
_RESERVED = 1024  # bytes of shared memory of each block; CUDA Programming Guide, 8.0
MMA = (16, 8)  # rows and columns of one mma
MMA_BYTES = 32  # along K, of one mma, whatever the type


@dataclass(frozen=True)
class Kernel:
    """C[batch, m, n] = A[batch, m, k] * B[batch, k, n], tile by tile.

    size, out, accumulator: bytes of an element of A and B, of C, of an accumulator
    block, warp: rows, columns (and K step) of their tiles
    slots: of the ring in shared memory; registers: fragments in flight, 1 or more
    group: rows of blocks that start together; 1 is along n first
    parts: of K, each computed by blocks of its own
    along_k: whether neighbours in memory are neighbours along K, in A and in B
    aligned: bytes that divide where rows of A and of B begin, 16 at most
    wgmma: warpgroups multiply, TMA copies
    """

    m: int
    n: int
    k: int
    batch: int
    size: int
    out: int
    accumulator: int
    block: tuple[int, int, int]
    warp: tuple[int, int]
    slots: int
    registers: int
    group: int = 1
    parts: int = 1
    along_k: tuple[bool, bool] = (True, False)
    aligned: tuple[int, int] = (16, 16)
    wgmma: bool = False

    @property
    def rows(self) -> int:
        """Of blocks."""
        return ceil(self.m / self.block[0])

    @property
    def columns(self) -> int:
        """Of blocks."""
        return ceil(self.n / self.block[1])

    @property
    def blocks(self) -> int:
        """Of the grid."""
        return self.rows * self.columns * self.batch * self.parts

    @property
    def steps(self) -> int:
        """Of a block's K loop."""
        return max(1, ceil(ceil(self.k / self.parts) / self.block[2]))

    @property
    def warps(self) -> int:
        """Of a block that compute."""
        return max(1, (self.block[0] // self.warp[0]) * (self.block[1] // self.warp[1]))

    @property
    def fragments(self) -> int:
        """Steps of mma in a K step."""
        return max(1, ceil(self.block[2] * self.size / MMA_BYTES))

    @property
    def by_elements(self) -> bool:
        """Whether rows begin where no cp.async may, of 4 bytes at least."""
        return min(self.aligned) < 4

    @property
    def tile_bytes(self) -> tuple[int, int]:
        """Of A's and of B's tile, as they lie in shared memory."""
        m, n, k = self.block
        return m * k * self.size, n * k * self.size


def resident(kernel: Kernel, machine: Machine) -> int:
    """Blocks that an SM holds at once; at least one, as a kernel runs."""
    threads = (kernel.warps + (4 if kernel.wgmma else 0)) * LANES
    registers = min(255, thread_registers(kernel))
    registers = ceil(registers / _UNIT) * _UNIT
    shared = kernel.slots * sum(kernel.tile_bytes) + _RESERVED
    most = min(
        machine.blocks_per_sm,
        machine.threads_per_sm // threads,
        machine.registers_per_sm // (registers * threads),
        machine.shared_per_sm // shared,
    )
    return max(1, most)


def thread_registers(kernel: Kernel) -> float:
    """An estimate: accumulators, fragments, copies, and what is always there."""
    rows, columns = kernel.warp
    accumulators = rows * columns * kernel.accumulator / _REGISTER / LANES
    if kernel.wgmma:
        return accumulators + _FIXED
    fragment = (rows + columns) * MMA_BYTES / _REGISTER / LANES
    copies = sum(kernel.tile_bytes) / 16 / (kernel.warps * LANES)
    return _FIXED + accumulators + fragment * kernel.registers + _COPY * min(copies, 16)


def spilled(kernel: Kernel) -> float:
    """Bytes of a thread's registers that go to memory; 0 where all fit."""
    return max(0.0, thread_registers(kernel) - 255) * _REGISTER
