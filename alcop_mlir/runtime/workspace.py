"""Offsets of a function's intermediate buffers in one workspace per call.

The kernels that a call runs run one after the other, so a buffer is live from the first
of them that uses it to the last; one that none of them uses takes no memory. Buffers
that are never live together may share bytes: the largest are placed first, each where
it first fits.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import numpy as np

from alcop_mlir.errors import LaunchError
from alcop_mlir.extents import number
from alcop_mlir.frozen import frozen
from alcop_mlir.manifest.arrays import Intermediate
from alcop_mlir.manifest.kernels import Kernel

ALIGNMENT = 256  # bytes; what cudaMalloc gives, and more than any access needs
# Floats of these bits are NaN: a read before the first write shows in the result.
_UNWRITTEN = 0xFF


@frozen
class ByteRange:
    """A buffer's bytes [offset, end), and the numbers of its first and last kernel."""

    offset: int
    end: int
    first: int
    last: int

    def overlaps(self, first: int, last: int) -> bool:
        """Whether the buffer is live while kernels `first` to `last` run."""
        return self.first <= last and first <= self.last


@frozen
class Workspace:
    """The bytes of each buffer that a kernel uses, by name, and the total size."""

    ranges: Mapping[str, ByteRange]
    bytes: int


def plan(
    intermediates: Iterable[Intermediate],
    kernels: Sequence[Kernel],
    sizes: Mapping[str, int],
) -> Workspace:
    """The workspace of a call with arrays of these sizes, which runs these kernels.

    Raises LaunchError where a buffer would be of a negative size.
    """
    lives: dict[str, tuple[int, int]] = {}
    for position, kernel in enumerate(kernels):
        for name in kernel.arrays:
            lives[name] = lives.get(name, (position, position))[0], position
    used = [one for one in intermediates if one.name in lives]
    for extent in dict.fromkeys(extent for one in used for extent in one.shape):
        if (found := number(extent, sizes)) < 0:
            why = f"{extent} is {found}, expected at least 0"
            raise LaunchError(f"sizes do not fit together: {why}")
    ranges: dict[str, ByteRange] = {}
    for one in sorted(used, key=lambda one: -one.bytes(sizes)):
        first, last = lives[one.name]
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
    workspace: Workspace, arrays: Mapping[str, np.ndarray], kernel: int
) -> None:
    """Fill the buffers that kernel number `kernel` is the first to use with NaN."""
    for name, part in workspace.ranges.items():
        if part.first == kernel:
            arrays[name].fill(_UNWRITTEN)
