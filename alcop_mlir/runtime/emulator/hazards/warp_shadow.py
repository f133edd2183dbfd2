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
    READ_AFTER_WRITE,
    WRITE_AFTER_READ,
    WRITE_AFTER_WRITE,
    Hazard,
    Reports,
)
from alcop_mlir.runtime.emulator.machine.clocks import Clocks
from alcop_mlir.runtime.emulator.machine.lanes import Lanes
from alcop_mlir.runtime.emulator.machine.memory import GLOBAL_WINDOW
from alcop_mlir.runtime.emulator.machine.warps import Names

_STAMP_BITS = 32
_MOST_UNRECORDED = 64  # instructions
_STAMP = (1 << _STAMP_BITS) - 1
WHAT = {
    READ_AFTER_WRITE: "was written by warp {other} and is read by warp {warp}",
    WRITE_AFTER_READ: "was read by warp {other} and is overwritten by warp {warp}",
    WRITE_AFTER_WRITE: "was written by warp {other} and is overwritten by warp {warp}",
}


class _Last:
    """The last accesses of each element: `cells` say who and when, 0 is never.

    A cell is the number of the warp among all of the batch, then the stamp.
    """

    def __init__(self, size: int, each: int):
        self.cells = [np.zeros(size, np.int64) for _ in range(each)]
        self.lines = [np.zeros(size, np.int32) for _ in range(each)]


class _Access:
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
        self.who = self.block * clocks.warps + warp
        copy = self.block if clocks.copies > 1 else 0
        self.row = copy * clocks.warps + warp
        stamp = clocks.start.reshape(-1).take(self.row)
        self.newest = int(clocks.start.max())
        self.cell = (self.who << _STAMP_BITS) | stamp


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
        self.readers: dict[int, _Last] = {}
        self.writers: dict[int, _Last] = {}
        self._unrecorded: list[_Access] = []

    def on_read(self, lanes: Lanes) -> None:
        """Checks and records a read."""
        if not lanes.per_block and lanes.owner.blocks > 1:
            return
        access = _Access(self.clocks, lanes)
        self._check(READ_AFTER_WRITE, self.writers, access)
        # Most reads are of what is not written before a barrier: these are forgotten.
        if self._unrecorded and self._unrecorded[-1].newest < self.clocks.least():
            self._unrecorded.clear()
        self._unrecorded.append(access)
        if len(self._unrecorded) > _MOST_UNRECORDED:
            self._record_reads()

    def _record_reads(self) -> None:
        for read in self._unrecorded:
            self._record(read)
        self._unrecorded.clear()

    def _record(self, access: _Access) -> None:
        lanes = access.lanes
        last = self._table(self.readers, lanes.size, 2)
        at, (first, second) = access.offset // lanes.size, last.cells
        before = first.take(at)
        others = (before >> _STAMP_BITS) != access.who
        second[at[others]] = before[others]
        last.lines[1][at[others]] = last.lines[0].take(at[others])
        first[at] = access.cell
        last.lines[0][at] = lanes.ins.line
        lost = first.take(at) != access.cell  # to another warp of this instruction
        second[at[lost]] = access.cell[lost]
        last.lines[1][at[lost]] = lanes.ins.line

    def on_write(self, lanes: Lanes, differs: Array) -> Array | None:
        """Checks and records a store; `differs`: the entries that change memory.

        Returns the entries that another warp writes too, None if there are none.
        """
        self._record_reads()
        access = _Access(self.clocks, lanes)
        self._check(WRITE_AFTER_READ, self.readers, access, differs)
        self._check(WRITE_AFTER_WRITE, self.writers, access, differs)
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
        access = _Access(self.clocks, lanes)
        others = lanes.warp()[lanes.offset == lanes.offset[entry]]
        line = lanes.ins.line
        self._report(WRITE_AFTER_WRITE, access, entry, int(others[-1]), line)

    def _table(self, table: dict[int, _Last], width: int, each: int) -> _Last:
        found = table.get(width)
        if found is None:
            found = table[width] = _Last(self.size // width, each)
        return found

    def _check(
        self,
        kind: str,
        table: dict[int, _Last],
        access: _Access,
        only: Array | None = None,
    ) -> None:
        """Reports the first race of these entries with the accesses in the table."""
        horizon, warps = self.clocks.horizon.reshape(-1), self.clocks.warps
        columns = self.clocks.columns
        for width, last in table.items():
            at = (access.offset // width)[:, None]
            if access.lanes.size > width:
                at = at + np.arange(access.lanes.size // width)
            for cells, lines in zip(last.cells, last.lines, strict=True):
                found = cells.take(at)
                by = found >> _STAMP_BITS
                is_other = (found != 0) & (by != access.who[:, None])
                if not is_other.any():
                    continue
                is_other &= by // warps == access.block[:, None]
                seen = horizon.take(access.row[:, None] * columns + by % warps)
                raced = is_other & ((found & _STAMP) >= seen)
                if only is not None:
                    raced &= only[:, None]
                if raced.any():
                    row, column = (int(i) for i in np.argwhere(raced)[0])
                    other = int(by[row, column]) % warps
                    line = int(lines[at[row, column]])
                    self._report(kind, access, row, other, line)
                    return

    def _report(
        self, kind: str, access: _Access, row: int, other: int, line: int
    ) -> None:
        ins = access.lanes.ins
        index, warp = int(access.block[row]), int(access.who[row]) % self.clocks.warps
        block, number = self.names.block(index, warp), self.names.warp(warp)
        address = GLOBAL_WINDOW + int(access.offset[row])
        named = self.names.warp_seen_from(index, warp, other)
        what = WHAT[kind].format(other=named, warp=number)
        message = (
            f"block {block} no barrier between: global address 0x{address:x} {what}: "
            f"`{ins.text}`; the other access is PTX line {line}: "
            f"`{self.reports.text(line)}`"
        )
        where = (block, number, address, "global", ins.source)
        self.reports.add(Hazard(kind, message, ins.line, line, *where))
