"""Global, shared and local memory of a run, as flat byte arrays.

Addresses: global buffers lie in one window with unmapped gaps between them; shared and
local memory have windows of the generic address space (PTX ISA "Generic Addressing").
Offset 0 of shared memory is address 0x400 of its window, so that a null pointer is
caught there too.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from alcop_mlir.runtime.emulator.arithmetic.storage import MOVED_AS, U64, Array

GLOBAL_WINDOW = 0x7_0000_0000
SHARED_WINDOW = 0x7F00_0000_0000
LOCAL_WINDOW = 0x7E00_0000_0000
PARAM_WINDOW = 0x7D00_0000_0000
WINDOW_SIZE = 1 << 32
# Of the spaces that have a window of their own; all else is global.
WINDOWS = {"shared": SHARED_WINDOW, "local": LOCAL_WINDOW, "param": PARAM_WINDOW}
SHARED_START = 0x400
# An address in the shared memory of another block of the cluster: that in its own, plus
# this many times its rank and one.
RANK_STEP = 1 << 24
SHARED_UNIT = 1024  # bytes: swizzles repeat after so many, PTX ISA "Tensor Swizzling"
POISON = 0xFF  # every byte that nothing has written; NaN in every float format
HEAP_SIZE = 8 * 2**20  # bytes; CUDA: the default of cudaLimitMallocHeapSize
HEAP_ALIGN = 16  # bytes; CUDA: what device malloc returns is aligned to
ALIGNMENT = 256  # CUDA: allocations are aligned to at least 256 bytes
STATIC_SHARED_LIMIT = 48 * 1024  # CUDA: static shared memory of a block
# CUDA C++ Programming Guide, "Technical Specifications per Compute Capability": the
# most shared memory of a block, opted in.
TARGET_SHARED = {
    "sm_80": 163 * 1024,
    "sm_86": 99 * 1024,
    "sm_87": 163 * 1024,
    "sm_88": 99 * 1024,
    "sm_89": 99 * 1024,
    "sm_90": 227 * 1024,
    "sm_100": 227 * 1024,
    "sm_120": 99 * 1024,
}


@dataclass(frozen=True)
class MappedRange:
    """One mapped range of global memory: [start, stop) in device addresses."""

    name: str
    start: int
    stop: int
    writable: bool


def views_of(data: Array) -> dict[int, Array]:
    """The same bytes seen as elements of 1, 2, 4, 8 and 16 bytes (last axis)."""
    return {size: data.view(dtype) for size, dtype in MOVED_AS.items()}


def aligned_bytes(shape: tuple[int, ...], fill: int) -> Array:
    """A byte array whose first byte is 64-byte aligned."""
    total = int(np.prod(shape))
    raw = np.empty(total + 64, np.uint8)
    start = -raw.ctypes.data % 64
    out = raw[start : start + total].reshape(shape)
    out.fill(fill)
    return out


class GlobalMemory:
    """All global buffers, laid out once before the run."""

    def __init__(
        self,
        sizes: list[tuple[str, int, bool]],
        behind: Sequence[int] = (),
        heap: int = 0,
    ):
        """`sizes`: name, bytes, may be written; `behind`: of the first ones, how many
        bytes behind an aligned address they begin; `heap`: bytes for `allocate`.
        """
        self.buffers: list[MappedRange] = []
        top = ALIGNMENT
        for number, (name, size, writable) in enumerate(sizes):
            top += behind[number] if number < len(behind) else 0
            start = GLOBAL_WINDOW + top
            self.buffers.append(MappedRange(name, start, start + size, writable))
            # A whole unmapped unit between buffers: overruns never land in another.
            top = -(-(top + size) // ALIGNMENT) * ALIGNMENT + ALIGNMENT
        self.data = aligned_bytes((top + heap,), 0)
        self.data[top:] = POISON
        self._free = GLOBAL_WINDOW + top
        self._allocated: dict[int, int] = {}  # address -> number of its range
        self.views = views_of(self.data)
        self._index()

    def _index(self) -> None:
        """The ranges as arrays."""
        self.starts = np.array([b.start for b in self.buffers], U64)
        self.stops = np.array([b.stop for b in self.buffers], U64)
        self.writable = np.array([b.writable for b in self.buffers], bool)
        self.all_writable = bool(self.writable.all())

    def allocate(self, sizes: Array) -> Array:
        """Device `malloc` for some threads: addresses, 0 where the heap is full.

        What is freed is not given out again, so that a use of it is found.
        """
        out = np.zeros(sizes.shape, U64)
        end = GLOBAL_WINDOW + self.data.size
        for i, size in enumerate(sizes.tolist()):
            start = self._free
            if not 0 < size <= end - start - HEAP_ALIGN:
                continue
            number = len(self._allocated)
            self._allocated[start] = len(self.buffers)
            name = f"allocation {number} of malloc"
            self.buffers.append(MappedRange(name, start, start + size, True))
            # Unmapped bytes between any two.
            self._free += -(-size // HEAP_ALIGN) * HEAP_ALIGN + HEAP_ALIGN
            out[i] = start
        self._index()
        return out

    def release(self, address: int) -> bool:
        """Device `free`; whether the address is that of an allocation in use."""
        at = self._allocated.get(address)
        if at is None or self.buffers[at].stop == address:
            return False
        old = self.buffers[at]
        self.buffers[at] = MappedRange(f"{old.name}, freed", address, address, True)
        self.stops[at] = address
        return True

    def bytes_of(self, buffer: MappedRange) -> Array:
        """The bytes of one range, without a copy."""
        start = buffer.start - GLOBAL_WINDOW
        return self.data[start : start + buffer.stop - buffer.start]

    def buffer_at(self, address: int) -> int:
        """Index of the last buffer that starts at or below `address`, or -1."""
        return int(self.buffers_at(U64.type(address)))

    def buffers_at(self, address: Array | np.generic) -> Array:
        """The same for many addresses."""
        return np.searchsorted(self.starts, address, side="right") - 1

    def outside(self, address: Array, size: Array | int) -> Array:
        """Which accesses of `size` bytes do not lie in one buffer."""
        if not self.buffers:
            return np.ones(address.shape, bool)
        at = self.buffers_at(address)
        known = np.maximum(at, 0)
        last = self.stops[known] - address
        return (at < 0) | (address >= self.stops[known]) | (last < U64.type(0) + size)

    def nearest(self, address: int) -> str:
        """`the nearest buffer is NAME [start, stop)`, for messages."""
        if not self.buffers:
            return "there is no global buffer"
        near = min(
            self.buffers, key=lambda b: max(b.start - address, address - b.stop, 0)
        )
        name = f"{near.name} ({near.stop - near.start} bytes)"
        if address < near.start:
            return f"{near.start - address} bytes before {name}"
        if address < near.stop:
            return f"it runs past the end of {name}"
        return f"{address - near.stop} bytes past the end of {name}"


class BlockMemory:
    """Memory with a copy per block (shared) or per thread (local): (copies, bytes)."""

    def __init__(self, copies: int, size: int, fill: int):
        padded = -(-max(size, 1) // 16) * 16
        self.size = size
        self.copies = copies
        self.data = aligned_bytes((copies, padded), fill)
        self.views = views_of(self.data)
        self.flat = {w: v.reshape(-1) for w, v in self.views.items()}

    def gather(self, width: int, copy: Array | None, offset: Array) -> Array:
        """(entries,) at `copy`, or (copies, entries) from every copy if it is None."""
        at = offset // width
        view = self.views[width]
        if copy is None:
            return view.take(at, axis=1)
        return self.flat[width].take(copy * view.shape[1] + at)

    def scatter(self, width: int, copy: Array | None, offset: Array, x: Array) -> None:
        """The opposite of `gather`."""
        at = offset // width
        view = self.views[width]
        if copy is None:
            view[:, at] = x
        else:
            self.flat[width][copy * view.shape[1] + at] = x
