"""The race shadow of shared memory where mbarriers and copy engines take part.

To the shadow of plain accesses it adds mbarrier objects, which nothing else may write,
and writes of copies that are ordered by the phase of an mbarrier: they are stamped with
an epoch of its column of the clocks.

Reads of engines last from their issue to the wait for them. What they read and a thread
has written needs a fence.proxy.async on the way from one to the other (PTX ISA "Async
proxy").
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from alcop_mlir.runtime.emulator.arithmetic.storage import Array
from alcop_mlir.runtime.emulator.hazards.flag_shadow import FlagShadow
from alcop_mlir.runtime.emulator.hazards.reports import (
    MBARRIER_OVERWRITTEN,
    NO_PROXY_FENCE,
    READ_AFTER_WRITE,
    UNINITIALISED,
    WRITE_WHILE_READ,
)
from alcop_mlir.runtime.emulator.hazards.shared_shadow import (
    ATOMIC,
    IN_FLIGHT,
    MBARRIER,
    WIDE,
    WRITTEN,
    SharedAccess,
)
from alcop_mlir.runtime.emulator.machine.clocks import EPOCH, MANY_LANES
from alcop_mlir.runtime.emulator.machine.lanes import Lanes

# NumPy's `at` is a hundred times as fast with flat indices and no other type to add.
_ONE = np.int32(1)


class AsyncShadow(FlagShadow):
    """Checks every shared access of a batch, those of mbarriers and engines too.

    reading: how many engines read each granule; reader: the warp and line of the last
    one; both None until the first.
    """

    reading: Array | None = None
    reader: Array

    def on_mbarrier(self, lanes: Lanes, ends: bool = False) -> None:
        """Objects begin, or end, here."""
        at = SharedAccess(self, lanes).at
        state = self.state.take(at)
        self.state[at] = state & (0xFF ^ MBARRIER) if ends else state | MBARRIER

    def on_mbarrier_use(self, lanes: Lanes, by_engine: bool = False) -> None:
        """An operation on objects: races only with their init."""
        access = SharedAccess(self, lanes)
        at = access.at
        writer, written = self.writer.take(at), self.written.take(at)
        plain = (self.state.take(at) & ATOMIC) == 0
        raced = plain & self._is_unordered(access, writer, written, reads=True)
        if raced.any() and self.clocks.inited >= 0:
            # An mbarrier.init with its fence is known by what orders no other writes.
            column = self.clocks.inited + np.minimum(writer, self.clocks.warps - 1)
            known = self.clocks.horizon.reshape(-1).take(access.row + column)
            raced &= written >= known
        if raced.any():
            line = self.write_line.take(at)
            self._each(READ_AFTER_WRITE, raced, line, access, writer)

    def on_async_read(self, lanes: Lanes) -> None:
        """The copy engine or tensor core begins to read."""
        access = SharedAccess(self, lanes)
        at = access.at
        state = self.state.take(at)
        writer, written = self.writer.take(at), self.written.take(at)
        raced = written >= self.seen_by(access, writer)
        if raced.any() or (state & IN_FLIGHT).any():
            self._explain_read(access)
        self._check_proxy(access)
        self.begin_reads(at, access.warp, access.ins.line)

    def begin_reads(
        self, at: Array, warp: Array | int, line: int, times: np.int32 = _ONE
    ) -> None:
        """So many reads of each of these granules begin, the last one by `warp`."""
        if self.reading is None or self.reading.size != self.state.size:
            self.reading = np.zeros(self.state.size, np.int32)
            self.reader = np.zeros((2, self.state.size), np.int32)
        np.add.at(self.reading, at.reshape(-1), times)
        self.reader[0][at], self.reader[1][at] = warp, line

    def check_proxy(self, lanes: Lanes) -> None:
        """Before a read through the async proxy, whoever looks for races otherwise."""
        self._check_proxy(SharedAccess(self, lanes))

    def _check_proxy(self, access: SharedAccess) -> None:
        at, clocks = access.at, self.clocks
        writer = self.writer.take(at)
        generic = (writer < clocks.warps) & ((self.state.take(at) & WRITTEN) != 0)
        first = clocks.fenced["shared"]
        if first >= 0:
            column = first + np.where(generic, writer, 0)
            fenced = clocks.horizon.reshape(-1).take(access.row + column)
            generic &= self.written.take(at) >= fenced
        if generic.any():
            line = self.write_line.take(at)
            self._each(NO_PROXY_FENCE, generic, line, access, writer)

    def on_async_read_end(self, lanes: Lanes) -> None:
        """The wait for that read: from now on it is a read by these lanes."""
        access = SharedAccess(self, lanes)
        assert self.reading is not None
        np.subtract.at(self.reading, access.at.reshape(-1), _ONE)
        cell = access.at * self.clocks.warps + access.warp
        read, stamp = self.read.reshape(-1), access.stamp
        before = read.take(cell)
        others = (before >= access.now) & (before != stamp)
        read[cell] = np.where(others, access.now + MANY_LANES, stamp)
        self.read_line.reshape(-1)[cell] = access.ins.line
        self.note_reads()

    def widen(self, blocks: int) -> None:
        """From one shadow for all blocks to one for each."""
        if self.reading is not None and self.copies != blocks:
            self.reading = np.tile(self.reading, blocks)
            self.reader = np.tile(self.reader, (1, blocks))
        super().widen(blocks)

    def on_async_landing(self, lanes: Lanes, columns: Array, epochs: Array) -> None:
        """Copies are complete: writes of these epochs of columns of the clocks."""
        access = SharedAccess(self, lanes)
        self.state[access.at] = WRITTEN
        self.writer[access.at] = columns[:, None]
        self.written[access.at] = (epochs * EPOCH)[:, None]
        self.write_line[access.at] = access.ins.line

    def on_async_update(
        self, lanes: Lanes, columns: Array, epochs: Array, at_issue: bool = False
    ) -> None:
        """A read-modify-write, over with these epochs; not racing with its kind."""
        access = SharedAccess(self, lanes)
        state = self.state.take(access.at)
        if at_issue:
            self._check_write(access, (state & ATOMIC) == 0, None)
            if (state == 0).any():
                self._each(UNINITIALISED, state == 0, None, access, access.warp)
        self.state[access.at] = state | WRITTEN | ATOMIC | WIDE
        self.writer[access.at] = columns[:, None]
        self.written[access.at] = (epochs * EPOCH)[:, None]
        self.write_line[access.at] = access.ins.line

    def _check_write(
        self,
        access: SharedAccess,
        plain: Array | None,
        changes: Callable[[], Array] | None,
    ) -> None:
        super()._check_write(access, plain, changes)
        if self.reading is not None:
            busy = self.reading.take(access.at) > 0
            if busy.any():
                reader, line = self.reader[:, access.at]
                self._each(WRITE_WHILE_READ, busy, line, access, reader)
        over = (self.state.take(access.at) & MBARRIER) != 0
        if over.any():
            other = np.broadcast_to(access.warp, over.shape)
            self._each(MBARRIER_OVERWRITTEN, over, None, access, other)
