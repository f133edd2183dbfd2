"""Races between the warps of one block, or of one cluster, in global memory.

As in shared memory, what orders two warps is a barrier that both passed since (see
`clocks`). For every access width used there is a table: of each element the two warps
that last read it, or the one that last changed it, each with its stamp and line. Two
readers are enough: where barriers are of the whole block, one of them is not the writer
and read no earlier than any other. Not checked are

- lanes of one warp, which run an instruction together
- writes of what memory holds already; who reads it afterwards gets that from any writer
- what all blocks read at one address: a write there is a conflict of blocks
"""

from __future__ import annotations

import numpy as np

from alcop_mlir.runtime.emulator.arithmetic.storage import Array
from alcop_mlir.runtime.emulator.hazards.reports import (
    NO_PROXY_FENCE,
    READ_AFTER_WRITE,
    READ_IN_FLIGHT,
    WRITE_AFTER_READ,
    WRITE_AFTER_WRITE,
    WRITE_IN_FLIGHT,
    WRITE_WHILE_READ,
    Hazard,
    Reports,
)
from alcop_mlir.runtime.emulator.machine.clocks import Clocks
from alcop_mlir.runtime.emulator.machine.lanes import Lanes
from alcop_mlir.runtime.emulator.machine.memory import GLOBAL_WINDOW
from alcop_mlir.runtime.emulator.machine.warps import Names

# A cell: the number of the block, the column of the clocks, two marks, the stamp.
STAMP_BITS = 32
COLUMN_BITS = 16
COLUMN = (1 << COLUMN_BITS) - 1
BY_ENGINE, REDUCED = 1 << 31, 1 << 30  # marks of `engine_shadow`
STAMP = REDUCED - 1
_MOST_UNRECORDED = 64  # instructions
WHAT = {
    READ_AFTER_WRITE: "no barrier between: global address {at} was written by "
    "{other} and is read by warp {warp}",
    WRITE_AFTER_READ: "no barrier between: global address {at} was read by {other} and "
    "is overwritten by warp {warp}",
    WRITE_AFTER_WRITE: "no barrier between: global address {at} was written by "
    "{other} and is overwritten by warp {warp}",
    READ_IN_FLIGHT: "global address {at} is where a copy goes that {other} has issued, "
    "and is read by warp {warp} before a cp.async.bulk.wait_group without .read, which "
    "its thread has to execute first",
    WRITE_IN_FLIGHT: "global address {at} is where a copy goes that {other} has "
    "issued, and is written by warp {warp} before a cp.async.bulk.wait_group without "
    ".read, which its thread has to execute first",
    WRITE_WHILE_READ: "global address {at} is read by a copy to shared memory, and is "
    "overwritten by warp {warp}, which has not waited for the mbarrier of the copy",
    NO_PROXY_FENCE: "no fence.proxy.async (or fence.proxy.async.global) between: "
    "global address {at} was written by {other} and is read through the async proxy, "
    "for warp {warp}",
}


class Last:
    """The last accesses of each element: `cells` say who and when, 0 is never."""

    def __init__(self, size: int, each: int):
        self.cells = [np.zeros(size, np.int64) for _ in range(each)]
        self.lines = [np.zeros(size, np.int32) for _ in range(each)]


Table = dict[int, Last]  # by the width of the elements


class GlobalAccess:
    """An access with an entry for each lane of each warp that makes it."""

    def __init__(self, clocks: Clocks, lanes: Lanes):
        self.lanes = lanes
        self.offset, warp, self.block = lanes.offset, lanes.warp(), lanes.block()
        if lanes.shape[1] < lanes.owner.warps:
            # One entry for all warps of the cohort: the first and the last stand for
            # them, as two readers are remembered.
            last = np.full_like(warp, lanes.owner.first_warp + lanes.owner.warps - 1)
            warp = np.concatenate([warp, last])
            self.offset, self.block = np.tile(self.offset, 2), np.tile(self.block, 2)
        self.who = self.block << COLUMN_BITS | warp
        copy = self.block if clocks.copies > 1 else 0
        self.row = copy * clocks.warps + warp
        stamp = clocks.start.reshape(-1).take(self.row)
        self.newest = int(clocks.start.max())
        self.cell = (self.who << STAMP_BITS) | stamp

    def elements(self, width: int) -> Array:
        """The elements of that width that each entry touches, (entries, elements)."""
        at = (self.offset // width)[:, None]
        if self.lanes.size > width:
            at = at + np.arange(self.lanes.size // width)
        return at

    def is_own_block(self, who: Array) -> Array:
        """Whether these, (entries, elements), are of the block of their entry."""
        return (who >> COLUMN_BITS) == self.block[:, None]

    def cells_of(self, columns: Array, stamps: Array | int) -> Array:
        """Cells of other columns of the clocks, with these stamps and marks."""
        return (self.block << COLUMN_BITS | columns) << STAMP_BITS | stamps


class WarpShadow:
    """Kept for a batch of blocks, whose clocks it uses."""

    def __init__(
        self,
        size: int,
        clocks: Clocks,
        reports: Reports,
        names: Names,
    ):
        self.size = size
        self.clocks = clocks
        self.reports = reports
        self.names = names
        self.readers: Table = {}
        self.writers: Table = {}
        self._unrecorded: list[GlobalAccess] = []

    def on_read(self, lanes: Lanes) -> None:
        """Checks and records a read."""
        if not lanes.per_block and lanes.owner.blocks > 1:
            return
        access = GlobalAccess(self.clocks, lanes)
        self._check_read(access)
        # Most reads are of what is not written before a barrier: these are forgotten.
        if self._unrecorded and self._unrecorded[-1].newest < self.clocks.least():
            self._unrecorded.clear()
        self._unrecorded.append(access)
        if len(self._unrecorded) > _MOST_UNRECORDED:
            self._record_reads()

    def _record_reads(self) -> None:
        for read in self._unrecorded:
            self._record(self.readers, read, read.cell)
        self._unrecorded.clear()

    def _record(self, table: Table, access: GlobalAccess, cells: Array) -> None:
        """These read last, in front of who did so before."""
        lanes = access.lanes
        last = self._table(table, lanes.size, 2)
        at, (first, second) = access.offset // lanes.size, last.cells
        before = first.take(at)
        others = ((before ^ cells) >> STAMP_BITS) != 0
        second[at[others]] = before[others]
        last.lines[1][at[others]] = last.lines[0].take(at[others])
        first[at] = cells
        last.lines[0][at] = lanes.ins.line
        lost = first.take(at) != cells  # to another warp of this instruction
        second[at[lost]] = cells[lost]
        last.lines[1][at[lost]] = lanes.ins.line

    def on_write(self, lanes: Lanes, differs: Array) -> Array | None:
        """Checks and records a store; `differs`: the entries that change memory.

        Returns the entries that another warp writes too, None if there are none.
        """
        self._record_reads()
        access = GlobalAccess(self.clocks, lanes)
        self._check_write(access, differs)
        last = self._table(self.writers, lanes.size, 1)
        at, (cells,) = access.offset // lanes.size, last.cells
        known = cells.take(at)
        cells[at] = np.where(differs | (known == access.cell), access.cell, 0)
        last.lines[0][at] = lanes.ins.line
        lost = differs & (cells.take(at) != access.cell)
        if not lost.any():
            return None
        cells[at[lost]] = 0  # one of several writers of what is, else, the same
        return lost

    def report_clash(self, lanes: Lanes, entry: int) -> None:
        """Two warps wrote different values with one instruction; `entry` lost."""
        access = GlobalAccess(self.clocks, lanes)
        others = lanes.warp()[lanes.offset == lanes.offset[entry]]
        line = lanes.ins.line
        self._report(WRITE_AFTER_WRITE, access, entry, int(others[-1]), line)

    def _table(self, table: Table, width: int, each: int) -> Last:
        found = table.get(width)
        if found is None:
            found = table[width] = Last(self.size // width, each)
        return found

    def _check_read(self, access: GlobalAccess) -> None:
        self._check(READ_AFTER_WRITE, self.writers, access)

    def _check_write(
        self, access: GlobalAccess, differs: Array | None, apart: int = 0
    ) -> None:
        self._check(WRITE_AFTER_READ, self.readers, access, differs)
        self._check(WRITE_AFTER_WRITE, self.writers, access, differs, apart)

    def _check(
        self,
        kind: str,
        table: Table,
        access: GlobalAccess,
        only: Array | None = None,
        apart: int = 0,
    ) -> None:
        """Reports the first race of these entries with the accesses in the table.

        apart: marks of accesses with which they do not race
        """
        for width, last in table.items():
            at = access.elements(width)
            for cells, lines in zip(last.cells, last.lines, strict=True):
                found = cells.take(at)
                by = found >> STAMP_BITS
                is_other = (found != 0) & (by != access.who[:, None])
                if not is_other.any():
                    continue
                is_other &= access.is_own_block(by)
                raced = is_other & ((found & STAMP) >= self._seen(access, by & COLUMN))
                if apart:
                    raced &= (found & apart) == 0
                if only is not None:
                    raced &= only[:, None]
                if raced.any():
                    self._report_first(kind, access, raced, at, by, lines)
                    return

    def _seen(self, access: GlobalAccess, column: Array) -> Array:
        """Up to which stamps each entry sees what these columns have done."""
        at = access.row[:, None] * self.clocks.columns + column
        return self.clocks.horizon.reshape(-1).take(at)

    def _report_first(
        self,
        kind: str,
        access: GlobalAccess,
        bad: Array,
        at: Array,
        by: Array,
        lines: Array,
    ) -> None:
        """The first of these, (entries, elements), of elements `at` with `by`."""
        row, column = (int(i) for i in np.argwhere(bad)[0])
        other, line = int(by[row, column]) & COLUMN, int(lines[at[row, column]])
        self._report(kind, access, row, other, line)

    def _report(
        self, kind: str, access: GlobalAccess, row: int, other: int, line: int
    ) -> None:
        """What the entry in that row does; `other`: a column of the clocks."""
        ins = access.lanes.ins
        index, warp = int(access.block[row]), int(access.who[row]) & COLUMN
        block, number = self.names.block(index, warp), self.names.warp(warp)
        address = GLOBAL_WINDOW + int(access.offset[row])
        named = self._named(index, warp, other)
        what = WHAT[kind].format(other=named, warp=number, at=f"0x{address:x}")
        message = (
            f"block {block} {what}: `{ins.text}`; the other access is PTX line {line}: "
            f"`{self.reports.text(line)}`"
        )
        where = (block, number, address, "global", ins.source)
        self.reports.add(Hazard(kind, message, ins.line, line, *where))

    def _named(self, index: int, warp: int, column: int) -> str:
        """Who a column of the clocks stands for, as seen from a warp of a block."""
        return f"warp {self.names.warp_seen_from(index, warp, column)}"
