"""The race shadow of shared memory: who wrote and read each granule, and when.

A granule is the smallest shared access of the kernel. For each granule: whether it was
ever written or is the target of an `cp.async` in flight, the last writer (warp, stamp,
line), and for each warp its last read (stamp, line). See `clocks` for stamps. There is
one shadow for all blocks until an access differs between blocks.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from alcop_mlir.runtime.emulator.arithmetic.storage import Array
from alcop_mlir.runtime.emulator.hazards.reports import (
    EQUAL_WRITES,
    NEVER_WAITED,
    READ_AFTER_WRITE,
    READ_IN_FLIGHT,
    UNFINISHED,
    UNINITIALISED,
    WRITE_AFTER_READ,
    WRITE_AFTER_WRITE,
    WRITE_IN_FLIGHT,
    Hazard,
    Reports,
)
from alcop_mlir.runtime.emulator.hazards.shared_texts import SharedTexts
from alcop_mlir.runtime.emulator.machine.clocks import EPOCH, MANY_LANES, Clocks
from alcop_mlir.runtime.emulator.machine.lanes import Lanes
from alcop_mlir.runtime.emulator.machine.warps import Names
from alcop_mlir.runtime.emulator.ptx.syntax import Instruction

WRITTEN, IN_FLIGHT, ATOMIC, MBARRIER, WIDE = 1, 2, 4, 8, 16


class SharedAccess:
    """An access in granules: `at` (entries, granules each), the rest (entries, 1)."""

    __slots__ = ("at", "copy", "ins", "lane", "now", "row", "stamp", "warp")

    def __init__(self, shadow: SharedShadow, lanes: Lanes, collective: bool = False):
        if lanes.per_block:
            shadow.widen(lanes.owner.blocks)
        elif shadow.copies > 1:
            lanes = lanes.widened()
        self.ins = lanes.ins
        warps = shadow.clocks.warps
        granule = (lanes.offset // shadow.granule)[:, None]
        each = lanes.size // shadow.granule
        if each > 1:
            granule = granule + np.arange(each)
        self.warp = lanes.warp()[:, None]
        self.lane = lanes.lane()[:, None]
        if collective:
            # Every lane receives of every row, whichever lane gave its address.
            self.lane = np.full_like(self.lane, MANY_LANES)
        if shadow.copies > 1:
            self.copy = lanes.block()[:, None]
            self.at = granule + self.copy * shadow.granules
            cell = self.copy * warps + self.warp
        else:
            self.copy = np.zeros((1, 1), np.int64)
            self.at, cell = granule, self.warp
        self.row = cell * shadow.clocks.columns
        self.now = shadow.clocks.start.reshape(-1).take(cell)
        self.stamp = self.now + self.lane.astype(np.int32)


class SharedShadow:
    """Checks every shared access of a batch of blocks and records it."""

    def __init__(
        self,
        size: int,
        granule: int,
        clocks: Clocks,
        reports: Reports,
        names: Names,
    ):
        self.granule = granule
        self.granules = -(-max(size, 1) // granule)
        self.copies = 1
        self.clocks = clocks
        self.reports = reports
        self.texts = SharedTexts(granule, size, clocks, reports, names)
        n, warps = self.granules, clocks.warps
        self.state = np.zeros(n, np.uint8)
        self.writer = np.zeros(n, np.int32)
        self.written = np.zeros(n, np.int32)
        self.write_line = np.zeros(n, np.int32)
        self.read = np.zeros((n, warps), np.int32)
        self.read_line = np.zeros((n, warps), np.int32)
        self.reads_until = 0  # no read has a later stamp; 0: there was none
        # Of values that come from unwritten bytes: the number of the load; see
        # `unwritten`. The report of each, should its value be used.
        self.origin: Array | None = None
        self._loads: dict[int, int] = {}
        self._uses: list[Hazard] = []

    def widen(self, blocks: int) -> None:
        """From one shadow for all blocks to one for each."""
        self.clocks.widen(blocks)
        if self.copies == blocks:
            return
        for name in ("state", "writer", "written", "write_line"):
            setattr(self, name, np.tile(getattr(self, name), blocks))
        if self.origin is not None:
            self.origin = np.tile(self.origin, blocks)
        self.read = np.tile(self.read, (blocks, 1))
        self.read_line = np.tile(self.read_line, (blocks, 1))
        self.copies = blocks

    def on_read(self, lanes: Lanes, collective: bool = False) -> Array | None:
        """Checks and records a read.

        A `collective` read (ldmatrix) is one of the whole warp. The warp begins a new
        epoch after it, so that its lanes need not be told apart.
        """
        if not lanes.offset.size:
            return None
        access = SharedAccess(self, lanes, collective)
        at = access.at
        writer, written = self.writer.take(at), self.written.take(at)
        horizon = self.seen_by(access, writer)
        state = self.state.take(at)
        ready = (state & (WRITTEN | IN_FLIGHT)) == WRITTEN
        origins: Array | None = None
        if not ready.all() or (written >= horizon).any():
            self._explain_read(access)
            origins = self._origins(access, state == 0)
        cell = at * self.clocks.warps + access.warp
        read, stamp = self.read.reshape(-1), access.stamp
        if collective:
            read[cell] = stamp
        else:
            many = access.now + MANY_LANES
            before = read.take(cell)
            stamp = np.where((before >= access.now) & (before != stamp), many, stamp)
            read[cell] = stamp
            other = read.take(cell) != stamp
            if other.any():  # two lanes read the same granule in this instruction
                read[cell[other]] = np.broadcast_to(many, cell.shape)[other]
        self.read_line.reshape(-1)[cell] = lanes.ins.line
        self.note_reads()
        return origins

    def note_reads(self) -> None:
        """Reads of the epochs that there are now have been recorded."""
        self.reads_until = int(self.clocks.start.max()) + MANY_LANES

    def _origins(self, access: SharedAccess, missing: Array) -> Array | None:
        """The origins of an access; that of bytes never written is this load."""
        if not missing.any():
            return None
        line = access.ins.line
        number = self._loads.get(line)
        if number is None:
            number = self._loads[line] = len(self._uses) + 1
            row, column = (int(i) for i in np.argwhere(missing)[0])
            self._uses.append(
                self._hazard(UNINITIALISED, access, row, column, -1, None)
            )
        known = number if self.origin is None else self.origin.take(access.at)
        return np.where(missing, np.where(known == 0, number, known), 0)

    def taint(self, lanes: Lanes, origin: Array) -> None:
        """A store of values that come from unwritten bytes writes nothing."""
        if self.copies > 1 and not lanes.per_block:
            blocks = lanes.owner.blocks
            lanes, origin = lanes.widened(), np.tile(origin, blocks)
        bad = origin != 0
        if not bad.any():
            return
        access = SharedAccess(self, lanes)
        at = access.at[bad]
        if self.origin is None:
            self.origin = np.zeros(self.state.size, np.int32)
        self.state[at] = 0
        self.origin[at] = origin[bad][:, None]

    def report_unwritten(self, number: int, how: str, ins: Instruction) -> None:
        """What a load has read from unwritten bytes is used."""
        known = self._uses[number - 1]
        message = f"{known.message}; its value {how} at PTX line {ins.line}: "
        self.reports.add(replace(known, message=f"{message}`{ins.text}`"))

    def on_write(
        self,
        lanes: Lanes,
        in_flight: bool = False,
        changes: Callable[[], Array] | None = None,
    ) -> Array | None:
        """Checks and records a store, or the issue of a copy (`in_flight`)."""
        if not lanes.offset.size:
            return None
        access = SharedAccess(self, lanes)
        self._check_write(access, None, changes)
        at = access.at
        if in_flight:
            self.state[at] = IN_FLIGHT
        else:
            self.state[at] = (self.state.take(at) & IN_FLIGHT) | WRITTEN
        self._set_writer(access)
        return self._overlaps(access, lanes)

    def on_landing(self, lanes: Lanes) -> None:
        """A copy is complete: from now on a write by its thread."""
        access = SharedAccess(self, lanes)
        self.state[access.at] = WRITTEN
        self._set_writer(access)

    def _check_write(
        self,
        access: SharedAccess,
        plain: Array | None,
        changes: Callable[[], Array] | None,
    ) -> None:
        """Looks for races with earlier reads, and with writes where `plain` holds."""
        flying = self.state.take(access.at) & IN_FLIGHT
        if flying.any() or self._is_raced(access, plain) or self._is_late(access):
            self._explain_write(access, changes)

    def _is_raced(self, access: SharedAccess, plain: Array | None) -> bool:
        """Whether some last write, where `plain` holds, did not come before."""
        if plain is not None and not plain.any():
            return False
        at, flat = access.at, self.clocks.horizon.reshape(-1)
        raced = self.written.take(at) >= flat.take(access.row + self.writer.take(at))
        return bool((raced if plain is None else raced & plain).any())

    def _is_late(self, access: SharedAccess) -> bool:
        """Whether some warp may still have to read what is written."""
        if not self.reads_until or self.reads_until < self.clocks.least():
            return False
        late = self.read.take(access.at, axis=0) >= self._reads_seen(access)
        return bool(late.any())

    def _reads_seen(self, access: SharedAccess) -> Array:
        """Up to which stamps each entry sees the reads of each warp."""
        cell = access.row[..., None] + np.arange(self.clocks.warps)
        return self.clocks.horizon.reshape(-1).take(cell)

    def _overlaps(self, access: SharedAccess, lanes: Lanes) -> Array | None:
        """Entries of one store that lost a granule to another lane of it."""
        writer, stamp = self.writer.take(access.at), self.written.take(access.at)
        other = (writer != access.warp) | (stamp != access.stamp)
        return other.any(axis=1) if other.any() else None

    def _set_writer(self, access: SharedAccess) -> None:
        self.writer[access.at] = access.warp
        self.written[access.at] = access.stamp
        self.write_line[access.at] = access.ins.line

    def report_overlap(self, lanes: Lanes, entry: int, differ: bool = True) -> None:
        """Two lanes wrote the same bytes in one instruction."""
        if lanes.per_block or self.copies > 1 or entry >= lanes.offset.size:
            lanes = lanes.widened()  # counted through the blocks
        access = SharedAccess(self, lanes)
        warp = int(lanes.warp()[entry])
        writers = self.writer.take(access.at[entry])
        others = writers[writers != warp]
        if differ or others.size:
            other = int(others[0]) if others.size else -1
            self.reports.add(self.texts.overlap(lanes, entry, other, differ))

    def report_exit(self, lanes: Lanes, what: str) -> None:
        """The kernel ended too early for what these lanes have issued."""
        text = f"the kernel ends while {what}: `{lanes.ins.text}`"
        self.reports.add(self.texts.at_entry(UNFINISHED, text, lanes, 0, None))

    def report_never_waited(self, lanes: Lanes) -> None:
        """A copy was still in flight when the kernel ended."""
        byte = self.texts.byte_of(lanes, 0)
        what = (
            f"the kernel ends with this copy to shared byte {byte} in "
            f"flight (no wait_group covers it): `{lanes.ins.text}`"
        )
        self.reports.add(self.texts.at_entry(NEVER_WAITED, what, lanes, 0, None))

    def _explain_read(self, access: SharedAccess) -> None:
        at = access.at
        state, line = self.state.take(at), self.write_line.take(at)
        writer, written = self.writer.take(at), self.written.take(at)
        flying = (state & IN_FLIGHT) != 0
        raced = self._is_unordered(access, writer, written, reads=True) & ~flying
        self._each(READ_IN_FLIGHT, flying, line, access, writer)
        self._each(READ_AFTER_WRITE, raced, line, access, writer)

    def _explain_write(
        self,
        access: SharedAccess,
        changes: Callable[[], Array] | None,
    ) -> None:
        at, seen = access.at, self._reads_seen(access)
        line, writer = self.write_line.take(at), self.writer.take(at)
        flying = (self.state.take(at) & IN_FLIGHT) != 0
        raced = self._is_unordered(access, writer, self.written.take(at)) & ~flying
        self._each(WRITE_IN_FLIGHT, flying, line, access, writer)
        if changes is not None and raced.any():
            changed = changes()
            if changed.size != len(at):  # one entry stands for all blocks
                changed = changed.any(axis=0)
            changed = changed.reshape(-1, 1)
            self._each(EQUAL_WRITES, raced & ~changed, line, access, writer)
            raced = raced & changed
        self._each(WRITE_AFTER_WRITE, raced, line, access, writer)
        cell = at * self.clocks.warps
        mine = self.read.reshape(-1).take(cell + access.warp)
        raced = self._is_unordered(access, np.broadcast_to(access.warp, at.shape), mine)
        own = np.arange(self.clocks.warps) == access.warp[..., None]
        late = np.where(own, raced[..., None], self.read.take(at, axis=0) >= seen)
        reader = late.argmax(axis=-1)
        line = self.read_line.reshape(-1).take(cell + reader)
        late = np.asarray(late.any(axis=-1))
        self._each(WRITE_AFTER_READ, late, line, access, reader)

    def seen_by(self, access: SharedAccess, writer: Array) -> Array:
        """Up to which stamps each entry sees what `writer`, a column, has written."""
        column = self.clocks.reading_column(access.warp, writer)
        return self.clocks.horizon.reshape(-1).take(access.row + column)

    def _is_unordered(
        self, access: SharedAccess, warp: Array, stamp: Array, reads: bool = False
    ) -> Array:
        """Whether an access of `warp` with `stamp` races with this one, exactly.

        reads: whether that was a write, and this is a read of it
        """
        if reads:
            horizon = self.seen_by(access, warp)
        else:
            horizon = self.clocks.horizon.reshape(-1).take(access.row + warp)
        own = self.clocks.own_horizon(access.copy, access.warp, access.lane, stamp)
        same_lane = stamp % EPOCH == access.lane
        return np.where(
            warp == access.warp, (stamp >= own) & ~same_lane, stamp >= horizon
        )

    def _each(
        self,
        kind: str,
        bad: Array,
        lines: Array | None,
        access: SharedAccess,
        other: Array,
    ) -> None:
        """One report for each different line of the other access."""
        entries = np.argwhere(bad)
        if not len(entries):
            return
        rows, columns = entries[:, 0], entries[:, 1]
        if lines is None:
            first = [0]
        else:
            first = np.unique(lines[rows, columns], return_index=True)[1].tolist()
        for i in first:
            row, column = int(rows[i]), int(columns[i])
            line = None if lines is None else int(lines[row, column])
            who = int(other[row, column])
            self.reports.add(self._hazard(kind, access, row, column, who, line))

    def _hazard(
        self,
        kind: str,
        access: SharedAccess,
        row: int,
        column: int,
        other: int,
        line: int | None,
    ) -> Hazard:
        """The report of one granule of an access; `line` is the other access."""
        copy = int(access.copy[row, 0]) if access.copy.size > 1 else 0
        granule = int(access.at[row, column]) - copy * self.granules
        warp = int(access.warp[row, 0])
        return self.texts.hazard(kind, access.ins, (copy, warp, granule), other, line)
