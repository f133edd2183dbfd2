"""How the copy of a tile can be spread over the threads of a block.

A tile is cut into chunks of consecutive elements of one row, each moved by one access
of one thread. Thread t takes chunks t, t + threads, t + 2 * threads, ...: neighbouring
threads take neighbouring chunks, so that a warp's accesses fill whole sectors.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

from alcop_mlir.analysis.alignment import (
    address_alignment,
    element_bytes,
    has_whole_bytes,
)
from alcop_mlir.analysis.memory import is_workgroup
from alcop_mlir.analysis.thread_block import ThreadBlock
from alcop_mlir.target import CP_ASYNC_BYTES

ASYNC_COPY = "alcop.async_copy"
PLAIN_COPY = "memref.copy"
# Bytes of one load or store; [PTX] ld, st: up to .v4.b32.
ACCESS_BYTES = (1, 2, 4, 8, 16)


@dataclass(frozen=True)
class Distribution:
    """Chunks of a tile over threads.

    shape:    extents of the tile
    elements: consecutive elements in a chunk
    bytes:    bytes in a chunk
    threads:  threads that share the work
    """

    shape: tuple[int, ...]
    elements: int
    bytes: int
    threads: int

    @property
    def chunks_per_row(self) -> int:
        """Chunks along the last dimension."""
        return self.shape[-1] // self.elements

    @property
    def chunks(self) -> int:
        """All chunks of the tile."""
        return math.prod(self.shape[:-1]) * self.chunks_per_row

    @property
    def rounds(self) -> int:
        """Chunks of the busiest thread."""
        return -(-self.chunks // self.threads)

    @property
    def last_round(self) -> int:
        """Threads with a chunk in the last round; all of them if it is a full one."""
        return self.chunks - (self.rounds - 1) * self.threads


@dataclass(frozen=True)
class Rejected:
    """Why a copy cannot be spread."""

    reason: str


def crosses_memories(copy: Any) -> bool:
    """Whether a copy has one side in workgroup memory and the other not."""
    source, target = copy.operation.operands
    return is_workgroup(source.type) != is_workgroup(target.type)


def distribute(copy: Any, block: ThreadBlock) -> Distribution | Rejected:
    """The widest legal distribution of an async_copy or memref.copy over `block`."""
    source, target = copy.operation.operands
    if copy.operation.name == ASYNC_COPY and not is_workgroup(target.type):
        return Rejected(f"copies to {target.type}, expected workgroup memory")
    if not crosses_memories(copy):
        return Rejected(f"copies from {source.type}, expected global memory")
    if block.threads is None:
        return Rejected(
            f"the thread block is {block}, expected constant sizes, 1 along y and z"
        )
    for kind in (source.type, target.type):
        if not kind.has_static_shape or not kind.shape:
            return Rejected(f"copies {kind}, expected static sizes of rank 1 or more")
    width = max(w for w in ACCESS_BYTES if _is_legal(w, copy))
    size = element_bytes(source.type)
    return Distribution(
        tuple(source.type.shape), max(1, width // size), width, block.threads
    )


def is_asynchronous(copy: Any, distribution: Distribution) -> bool:
    """Whether the hardware can copy these chunks in the background."""
    return copy.operation.name == ASYNC_COPY and distribution.bytes in CP_ASYNC_BYTES


def _is_legal(width: int, copy: Any) -> bool:
    """Whether both sides may be accessed `width` bytes at a time."""
    source, target = copy.operation.operands
    size = element_bytes(source.type)
    if width <= size:
        return True  # one element at a time is what any memref allows
    elements, rest = divmod(width, size)
    return (
        rest == 0
        and has_whole_bytes(source.type.element_type)
        and source.type.shape[-1] % elements == 0
        and all(_is_aligned(side, elements, width) for side in (source, target))
    )


def _is_aligned(memref: Any, elements: int, width: int) -> bool:
    """Whether every chunk is contiguous and begins at a multiple of its size."""
    strides, _ = memref.type.get_strides_and_offset()
    steps = [1] * (len(strides) - 1) + [elements]
    return strides[-1] == 1 and address_alignment(memref, steps) % width == 0
