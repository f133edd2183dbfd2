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
    MBARRIER_OVERWRITTEN,
    NEVER_WAITED,
    NO_PROXY_FENCE,
    READ_AFTER_WRITE,
    READ_IN_FLIGHT,
    UNFINISHED,
    UNINITIALISED,
    WRITE_AFTER_READ,
    WRITE_AFTER_WRITE,
    WRITE_IN_FLIGHT,
    WRITE_WHILE_READ,
    Hazard,
    Reports,
)
from alcop_mlir.runtime.emulator.machine.clocks import EPOCH, MANY_LANES, Clocks
from alcop_mlir.runtime.emulator.machine.lanes import Lanes
from alcop_mlir.runtime.emulator.machine.warps import Dim3
from alcop_mlir.runtime.emulator.ptx.syntax import Instruction

WRITTEN, IN_FLIGHT, ATOMIC, MBARRIER = 1, 2, 4, 8
# What `warp` does to a shared byte, and what `other` did; `pair` says who they are.
WHAT = {
    READ_IN_FLIGHT: "read of a copy in flight, issued by warp {other} and not waited "
    "for; shared byte {byte} is read by warp {warp}",
    UNINITIALISED: "read of shared memory that was never written; byte {byte} is read "
    "by warp {warp}",
    READ_AFTER_WRITE: "{pair}: shared byte {byte} was written by warp {other} and is "
    "read by warp {warp}",
    WRITE_IN_FLIGHT: "write over a copy in flight, issued by warp {other} and not "
    "waited for; shared byte {byte} is written by warp {warp}",
    WRITE_AFTER_WRITE: "{pair}: shared byte {byte} was written by warp {other} and is "
    "written again by warp {warp}",
    EQUAL_WRITES: "{pair}: shared byte {byte} was written by warp {other} and is "
    "written again by warp {warp}, with the value that it has",
    MBARRIER_OVERWRITTEN: "write over an mbarrier that has no mbarrier.inval before; "
    "shared byte {byte} is written by warp {warp}",
    NO_PROXY_FENCE: "no fence.proxy.async between: shared byte {byte} was written by "
    "warp {other} and is read through the async proxy, for warp {warp}",
    WRITE_WHILE_READ: "write over what an operation issued by warp {other}, and not "
    "waited for, still reads; shared byte {byte} is written by warp {warp}",
    WRITE_AFTER_READ: "{pair}: shared byte {byte} was read by warp {other} and is "
    "overwritten by warp {warp}",
}


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
        else:
            self.copy = np.zeros((1, 1), np.int64)
            self.at = granule
        cell = self.copy * warps + self.warp
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
        name_block: Callable[[int], Dim3],
    ):
        self.granule = granule
        self.granules = -(-max(size, 1) // granule)
        self.copies = 1
        self.clocks = clocks
        self.reports = reports
        self.name_block = name_block
        n, warps = self.granules, clocks.warps
        self.state = np.zeros(n, np.uint8)
        self.writer = np.zeros(n, np.int32)
        self.written = np.zeros(n, np.int32)
        self.write_line = np.zeros(n, np.int32)
        self.read = np.zeros((n, warps), np.int32)
        self.read_line = np.zeros((n, warps), np.int32)
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
        horizon = self.clocks.horizon.reshape(-1).take(access.row + writer)
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
        return origins

    def _origins(self, access: SharedAccess, missing: Array) -> Array | None:
        """The origins of an access; that of bytes never written is this load."""
        if not missing.any():
            return None
        line = access.ins.line
        number = self._loads.get(line)
        if number is None:
            number = self._loads[line] = len(self._uses) + 1
            self._uses.append(self._describe(UNINITIALISED, missing, access))
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

    def on_atomic(self, lanes: Lanes) -> None:
        """Checks and records a read-modify-write."""
        if not lanes.offset.size:
            return
        access = SharedAccess(self, lanes)
        state = self.state.take(access.at)
        self._check_write(access, (state & ATOMIC) == 0, None)
        if (state == 0).any():
            self._explain_read(access)
            self._each(UNINITIALISED, state == 0, None, access, access.warp)
        self._set_writer(access)
        self.state[access.at] = state | WRITTEN | ATOMIC

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
        at, flat = access.at, self.clocks.horizon.reshape(-1)
        raced = self.written.take(at) >= flat.take(access.row + self.writer.take(at))
        if plain is not None:
            raced = raced & plain
        seen = flat.take(access.row[..., None] + np.arange(self.clocks.warps))
        late = self.read.take(at, axis=0) >= seen
        flying = self.state.take(at) & IN_FLIGHT
        if raced.any() or late.any() or flying.any():
            self._explain_write(access, seen, changes)

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
        if not differ and not others.size:
            return
        who = f"warps {warp} and {int(others[0])}" if others.size else "several lanes"
        kind, tail = WRITE_AFTER_WRITE, "which value stays is not defined"
        if not differ:
            kind, tail = EQUAL_WRITES, "both write the same value"
        what = (
            f"{who} write shared byte {int(lanes.offset[entry])} with no order between "
            f"them; {tail}: `{lanes.ins.text}`"
        )
        self._add_entry(kind, what, lanes, entry, lanes.ins.line)

    def report_exit(self, lanes: Lanes, what: str) -> None:
        """The kernel ended too early for what these lanes have issued."""
        text = f"the kernel ends while {what}: `{lanes.ins.text}`"
        self._add_entry(UNFINISHED, text, lanes, 0, None)

    def report_never_waited(self, lanes: Lanes) -> None:
        """A copy was still in flight when the kernel ended."""
        what = (
            f"the kernel ends with this copy to shared byte {int(lanes.offset[0])} in "
            f"flight (no wait_group covers it): `{lanes.ins.text}`"
        )
        self._add_entry(NEVER_WAITED, what, lanes, 0, None)

    def _add_entry(
        self, kind: str, what: str, lanes: Lanes, entry: int, other: int | None
    ) -> None:
        block, warp = int(lanes.block()[entry]), int(lanes.warp()[entry])
        byte = int(lanes.offset[entry])
        made = self._made(kind, what, lanes.ins, other, block, warp, byte)
        self.reports.add(made)

    def _explain_read(self, access: SharedAccess) -> None:
        at = access.at
        state, line = self.state.take(at), self.write_line.take(at)
        writer, written = self.writer.take(at), self.written.take(at)
        flying = (state & IN_FLIGHT) != 0
        raced = self._is_unordered(access, writer, written) & ~flying
        self._each(READ_IN_FLIGHT, flying, line, access, writer)
        self._each(READ_AFTER_WRITE, raced, line, access, writer)

    def _explain_write(
        self,
        access: SharedAccess,
        seen: Array,
        changes: Callable[[], Array] | None,
    ) -> None:
        at = access.at
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

    def _is_unordered(self, access: SharedAccess, warp: Array, stamp: Array) -> Array:
        """Whether an access of `warp` with `stamp` races with this one, exactly."""
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

    def _describe(self, kind: str, bad: Array, access: SharedAccess) -> Hazard:
        """The report of the first of these granules, without another access."""
        row, column = (int(i) for i in np.argwhere(bad)[0])
        return self._hazard(kind, access, row, column, -1, None)

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
        pair = "no barrier between"
        if warp == other:
            pair = "different lanes of one warp with no bar.warp.sync between"
        byte = granule * self.granule
        by_copy = other >= self.clocks.warps
        if by_copy:
            pair = "no wait for the mbarrier of a copy"
        text = WHAT[kind].format(other=other, warp=warp, byte=byte, pair=pair)
        if by_copy:
            text = text.replace(f"by warp {other}", "by the copy")
        text += f": `{access.ins.text}`"
        if line:
            text += f"; the other access is PTX line {line}: "
            text += f"`{self.reports.text(line)}`"
        return self._made(kind, text, access.ins, line, copy, warp, byte)

    def _made(
        self,
        kind: str,
        what: str,
        ins: Instruction,
        other: int | None,
        copy: int,
        warp: int,
        byte: int,
    ) -> Hazard:
        block = self.name_block(copy)
        message = f"block {block} {what}"
        where = (block, warp, byte, "shared", ins.source)
        return Hazard(kind, message, ins.line, other, *where)
