"""Where a function's intermediate arrays lie: in one piece of memory per call.

Kernels run one after the other, so an array is alive from the first kernel that uses it
to the last. Arrays that are never alive together may share bytes: the largest are
placed first, each where it first fits.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import numpy as np

from alcop_mlir.runtime.manifest import Function, Intermediate

ALIGNMENT = 256  # bytes; what cudaMalloc gives, and more than any access needs
# Floats of these bits are NaN: what is read before it is written shows in the result.
_UNWRITTEN = 0xFF


@dataclass(frozen=True)
class ByteRange:
    """An array's bytes [offset, end), and the numbers of its first and last kernel."""

    offset: int
    end: int
    first: int
    last: int

    def overlaps(self, first: int, last: int) -> bool:
        """Whether the array is alive at a time when kernels `first` to `last` run."""
        return self.first <= last and first <= self.last


@dataclass(frozen=True)
class Workspace:
    """The place of each array that a kernel uses, by name; how much memory in all."""

    places: Mapping[str, ByteRange]
    bytes: int


def plan(function: Function, sizes: Mapping[str, int]) -> Workspace:
    """The workspace of a call with arrays of these sizes."""
    places: dict[str, ByteRange] = {}
    for one in sorted(function.intermediates, key=lambda one: -one.bytes(sizes)):
        users = _users(function, one)
        if not users:
            continue
        first, last = users[0], users[-1]
        alive = [place for place in places.values() if place.overlaps(first, last)]
        offset = _first_gap(alive, one.bytes(sizes))
        places[one.name] = ByteRange(offset, offset + one.bytes(sizes), first, last)
    return Workspace(places, max((place.end for place in places.values()), default=0))


def _users(function: Function, one: Intermediate) -> list[int]:
    """Numbers of the kernels that are given the array."""
    return [
        number
        for number, kernel in enumerate(function.kernels)
        if one.name in kernel.arguments
    ]


def _first_gap(taken: Iterable[ByteRange], size: int) -> int:
    """The lowest aligned offset at which `size` bytes are free."""
    offset = 0
    for place in sorted(taken, key=lambda place: place.offset):
        if offset + size <= place.offset:
            break
        offset = max(offset, _aligned(place.end))
    return offset


def host_arrays(workspace: Workspace) -> dict[str, np.ndarray]:
    """A workspace in main memory: the bytes of each array, by name."""
    memory = np.empty(workspace.bytes + ALIGNMENT, np.uint8)
    begin = -memory.ctypes.data % ALIGNMENT
    return {
        name: memory[begin + place.offset : begin + place.end]
        for name, place in workspace.places.items()
    }


def mark_unwritten(
    workspace: Workspace, arrays: Mapping[str, np.ndarray], kernel: int
) -> None:
    """Spoil the arrays that kernel number `kernel` is the first to use."""
    for name, place in workspace.places.items():
        if place.first == kernel:
            arrays[name].fill(_UNWRITTEN)


def _aligned(offset: int) -> int:
    return -(-offset // ALIGNMENT) * ALIGNMENT
