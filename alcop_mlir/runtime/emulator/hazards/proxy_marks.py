"""Global memory that one block writes and a copy engine reads for another one.

PTX ISA "Async proxy": between a write of the generic proxy and a read of the async one
there has to be a fence.proxy.async, by the block that writes, behind its write, or by
the one that reads, behind what tells it of the write. `engine_shadow` follows that
exactly within a block or cluster. Between others, which order themselves by flags, this
asks less: whether either has executed such a fence since the write. So what it reports
is missing; a fence at the wrong place may pass.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from alcop_mlir.runtime.emulator.arithmetic.storage import Array


class _Writes:
    """Of each element of one width, the last write: when, whose, and by which line."""

    def __init__(self, size: int):
        self.time = np.zeros(size, np.int64)  # 0: none by the generic proxy
        self.block = np.zeros(size, np.int32)
        self.line = np.zeros(size, np.int32)


@dataclass(frozen=True)
class Unfenced:
    """A read without a fence: its entry, and who wrote there, in which line."""

    entry: int
    block: int
    line: int


@dataclass(eq=False)
class ProxyMarks:
    """Kept for a launch of `size` bytes; blocks are marks, as in `global_shadow`."""

    size: int
    now: int = 0
    fences: dict[int, int] = field(default_factory=dict)  # by block, the last one
    writes: dict[int, _Writes] = field(default_factory=dict)  # by width

    def on_fence(self, blocks: Array) -> None:
        """These execute a fence.proxy.async of global memory."""
        self.now += 1
        self.fences.update(dict.fromkeys(blocks.tolist(), self.now))

    def on_write(
        self, offset: Array, width: int, blocks: Array, line: int, by_engine: bool
    ) -> None:
        """Writes of `width` bytes; (entries,). Those of engines need no fence."""
        for each, last in self.writes.items():  # one element has one last write
            last.time[_elements(offset, width, each)] = 0
        if by_engine:
            return
        last = self.writes.get(width)
        if last is None:
            last = self.writes[width] = _Writes(self.size // width)
        self.now += 1
        at = offset // width
        last.time[at], last.block[at], last.line[at] = self.now, blocks, line

    def unfenced(self, offset: Array, width: int, blocks: Array) -> Unfenced | None:
        """The first of these reads by engines that a fence is missing before."""
        known = self._fenced(blocks)[:, None]
        for each, last in self.writes.items():
            at = _elements(offset, width, each)
            time, writer = last.time.take(at), last.block.take(at)
            bad = (time > known) & (writer != blocks[:, None]) & (writer > 0)
            if bad.any():
                bad &= time > self._fenced(writer)
            if bad.any():
                entry, column = (int(i) for i in np.argwhere(bad)[0])
                line = int(last.line[at[entry, column]])
                return Unfenced(entry, int(writer[entry, column]), line)
        return None

    def _fenced(self, blocks: Array) -> Array:
        """When each of them has executed the last fence, 0 for never."""
        known, where = np.unique(blocks, return_inverse=True)
        times = np.array([self.fences.get(one, 0) for one in known.tolist()], np.int64)
        return times.take(where).reshape(blocks.shape)


def _elements(offset: Array, width: int, each: int) -> Array:
    """The elements of `each` bytes that accesses touch, (entries, elements)."""
    return (offset // each)[:, None] + np.arange(max(1, width // each))
