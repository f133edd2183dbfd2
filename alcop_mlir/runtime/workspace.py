"""Offsets of a function's intermediate buffers in one workspace per call.

Kernels run one after the other, so a buffer is live from the first kernel that uses it
to the last. Buffers that are never live together may share bytes: the largest are
placed first, each where it first fits.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import numpy as np

from alcop_mlir.manifest.functions import Function

ALIGNMENT = 256  # bytes; what cudaMalloc gives, and more than any access needs
# Floats of these bits are NaN: a read before the first write shows in the result.
_UNWRITTEN = 0xFF


@dataclass(frozen=True)
class ByteRange:
    """A buffer's bytes [offset, end), and the numbers of its first and last launch."""

    offset: int
    end: int
    first: int
    last: int

    def overlaps(self, first: int, last: int) -> bool:
        """Whether the buffer is live while launches `first` to `last` run."""
        return self.first <= last and first <= self.last


@dataclass(frozen=True)
class Workspace:
    """The bytes of each buffer that a kernel uses, by name, and the total size."""

    ranges: Mapping[str, ByteRange]
    bytes: int


def plan(function: Function, sizes: Mapping[str, int]) -> Workspace:
    """The workspace of a call with arrays of these sizes."""
    ranges: dict[str, ByteRange] = {}
    for one in sorted(function.intermediates, key=lambda one: -one.bytes(sizes)):
        users = [
            n for n, launch in enumerate(function.launches) if one.name in launch.arrays
        ]
        if not users:
            continue
        first, last = users[0], users[-1]
        live = [taken for taken in ranges.values() if taken.overlaps(first, last)]
        offset = _first_gap(live, one.bytes(sizes))
        ranges[one.name] = ByteRange(offset, offset + one.bytes(sizes), first, last)
    return Workspace(ranges, max((taken.end for taken in ranges.values()), default=0))


def _first_gap(ranges: Iterable[ByteRange], size: int) -> int:
    """The lowest aligned offset at which `size` bytes are free."""
    offset = 0
    for taken in sorted(ranges, key=lambda taken: taken.offset):
        if offset + size <= taken.offset:
            break
        offset = max(offset, -(-taken.end // ALIGNMENT) * ALIGNMENT)
    return offset


def host_arrays(workspace: Workspace) -> dict[str, np.ndarray]:
    """A workspace in main memory: the bytes of each buffer, by name."""
    memory = aligned_bytes(workspace.bytes)
    return {
        name: memory[part.offset : part.end] for name, part in workspace.ranges.items()
    }


def aligned_bytes(size: int) -> np.ndarray:
    """Bytes of main memory that begin as those of cudaMalloc do."""
    memory = np.empty(size + ALIGNMENT, np.uint8)
    begin = -memory.ctypes.data % ALIGNMENT
    return memory[begin : begin + size]


def mark_unwritten(
    workspace: Workspace, arrays: Mapping[str, np.ndarray], launch: int
) -> None:
    """Fill the buffers that launch number `launch` is the first to use with NaN."""
    for name, part in workspace.ranges.items():
        if part.first == launch:
            arrays[name].fill(_UNWRITTEN)
