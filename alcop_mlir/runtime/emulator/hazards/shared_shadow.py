"""The race shadow of shared memory: who wrote and read each granule, and when.

A granule is the smallest shared access of the kernel. For each granule: whether it was
ever written or is the target of an `cp.async` in flight, the last writer (warp, stamp,
line), and for each warp its last read (stamp, line). See `clocks` for stamps. There is
one shadow for all blocks until an access differs between blocks.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from alcop_mlir.runtime.emulator.hazards.reports import (
    NEVER_WAITED,
    READ_AFTER_WRITE,
    READ_IN_FLIGHT,
    UNINITIALISED,
    WRITE_AFTER_READ,
    WRITE_AFTER_WRITE,
    WRITE_IN_FLIGHT,
    Hazard,
    Reports,
)
from alcop_mlir.runtime.emulator.machine.clocks import EPOCH, MANY_LANES, Clocks
from alcop_mlir.runtime.emulator.machine.lanes import Lanes
from alcop_mlir.runtime.emulator.ptx.syntax import Instruction

Array = np.ndarray
WRITTEN, IN_FLIGHT, ATOMIC = 1, 2, 4


class _Access:
    """An access in granules: `at` (entries, granules each), the rest (entries, 1)."""

    __slots__ = ("at", "copy", "lane", "now", "row", "stamp", "warp")

    def __init__(
        self, shadow: SharedShadow, lanes: Lanes, size: int, collective: bool = False
    ):
        if lanes.per_block:
            shadow.widen(lanes.owner.blocks)
        elif shadow.copies > 1:
            lanes = lanes.widened()
        warps = shadow.clocks.warps
        granule = (lanes.offset // shadow.granule)[:, None]
        each = size // shadow.granule
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
        self.row = cell * warps
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
        name_block: Callable[[int], tuple[int, int, int]],
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

    def widen(self, blocks: int) -> None:
        """From one shadow for all blocks to one for each."""
        self.clocks.widen(blocks)
        if self.copies == blocks:
            return
        for name in ("state", "writer", "written", "write_line"):
            setattr(self, name, np.tile(getattr(self, name), blocks))
        self.read = np.tile(self.read, (blocks, 1))
        self.read_line = np.tile(self.read_line, (blocks, 1))
        self.copies = blocks

    def on_read(
        self, lanes: Lanes, size: int, ins: Instruction, collective: bool = False
    ) -> None:
        """Checks and records a read of `size` bytes per lane.

        A `collective` read (ldmatrix) is one of the whole warp. The warp begins a new
        epoch after it, so that its lanes need not be told apart.
        """
        if not lanes.offset.size:
            return
        access = _Access(self, lanes, size, collective)
        at = access.at
        writer, written = self.writer.take(at), self.written.take(at)
        horizon = self.clocks.horizon.reshape(-1).take(access.row + writer)
        state = self.state.take(at)
        ready = (state & (WRITTEN | IN_FLIGHT)) == WRITTEN
        if not ready.all() or (written >= horizon).any():
            self._explain_read(access, ins)
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
        self.read_line.reshape(-1)[cell] = ins.line

    def on_write(
        self, lanes: Lanes, size: int, ins: Instruction, in_flight: bool = False
    ) -> Array | None:
        """A store, or the issue of a copy (`in_flight`).

        Returns which entries share a granule with another lane of their warp (None if
        none): whether that is a conflict depends on the values.
        """
        if not lanes.offset.size:
            return None
        access = _Access(self, lanes, size)
        at = access.at
        writer, written = self.writer.take(at), self.written.take(at)
        flat = self.clocks.horizon.reshape(-1)
        state = self.state.take(at)
        raced = (written >= flat.take(access.row + writer)).any()
        warps = self.clocks.warps
        seen = flat.take(access.row[..., None] + np.arange(warps))
        raced = raced or (self.read.take(at, axis=0) >= seen).any()
        if raced or (state & IN_FLIGHT).any():
            self._explain_write(access, ins, seen)
        self._set_writer(access, ins.line)
        if in_flight:
            self.state[at] = IN_FLIGHT
        else:
            self.state[at] = (state & IN_FLIGHT) | WRITTEN
        return self._overlaps(access, lanes, ins)

    def _overlaps(
        self, access: _Access, lanes: Lanes, ins: Instruction
    ) -> Array | None:
        """Entries of one store that lost a granule to another lane of it."""
        writer, stamp = self.writer.take(access.at), self.written.take(access.at)
        elsewhere = writer != access.warp
        if elsewhere.any():
            entry, column = (int(i) for i in np.argwhere(elsewhere)[0])
            self.report_overlap(lanes, entry, ins, int(writer[entry, column]))
            return None
        other = stamp != access.stamp
        return other.any(axis=1) if other.any() else None

    def on_atomic(self, lanes: Lanes, size: int, ins: Instruction) -> None:
        """A read-modify-write: like a store, but not racing with other atomics."""
        if not lanes.offset.size:
            return
        access = _Access(self, lanes, size)
        at = access.at
        state = self.state.take(at)
        flat = self.clocks.horizon.reshape(-1)
        plain = (state & ATOMIC) == 0
        written = self.written.take(at)
        raced = plain & (written >= flat.take(access.row + self.writer.take(at)))
        seen = flat.take(access.row[..., None] + np.arange(self.clocks.warps))
        late = (self.read.take(at, axis=0) >= seen).any()
        if late or raced.any() or (state & IN_FLIGHT).any():
            self._explain_write(access, ins, seen)
        if (state == 0).any():
            self._explain_read(access, ins)
        self._set_writer(access, ins.line)
        self.state[at] = state | WRITTEN | ATOMIC

    def on_landing(self, lanes: Lanes, size: int, line: int) -> None:
        """A copy issued at `line` is complete: from now on a write by its thread."""
        access = _Access(self, lanes, size)
        self.state[access.at] = WRITTEN
        self._set_writer(access, line)

    def _set_writer(self, access: _Access, line: int) -> None:
        self.writer[access.at] = access.warp
        self.written[access.at] = access.stamp
        self.write_line[access.at] = line

    def report_overlap(
        self, lanes: Lanes, entry: int, ins: Instruction, other: int | None = None
    ) -> None:
        """Two lanes (of warp `other` too) wrote the same bytes in one instruction."""
        if entry >= lanes.offset.size:  # counted through the blocks
            lanes = lanes.widened()
        offset = int(lanes.offset[entry])
        block, warp = int(lanes.block()[entry]), int(lanes.warp()[entry])
        who = "several lanes" if other is None else f"warps {warp} and {other}"
        what = (
            f"{who} write shared byte {offset} with no order between them; which "
            f"value stays is not defined: `{ins.text}`"
        )
        self._add(WRITE_AFTER_WRITE, what, ins, ins.line, block, warp, offset)

    def report_never_waited(self, lanes: Lanes, ins: Instruction) -> None:
        """A copy was still in flight when the kernel ended."""
        offset = int(lanes.offset[0])
        what = (
            f"the kernel ends with this copy to shared byte {offset} in flight "
            f"(no wait_group covers it): `{ins.text}`"
        )
        block, warp = int(lanes.block()[0]), int(lanes.warp()[0])
        self._add(NEVER_WAITED, what, ins, None, block, warp, offset)

    def _explain_read(self, access: _Access, ins: Instruction) -> None:
        at = access.at
        state, line = self.state.take(at), self.write_line.take(at)
        writer, written = self.writer.take(at), self.written.take(at)
        flying = (state & IN_FLIGHT) != 0
        self._each(
            READ_IN_FLIGHT,
            flying,
            line,
            access,
            ins,
            "read of a copy in flight, issued by warp {other} and not waited for; "
            "shared byte {byte} is read by warp {warp}",
            writer,
        )
        self._each(
            UNINITIALISED,
            state == 0,
            None,
            access,
            ins,
            "read of shared memory that was never written; byte {byte} is read by "
            "warp {warp}",
            writer,
        )
        raced = self._is_unordered(access, writer, written) & ~flying
        self._each(
            READ_AFTER_WRITE,
            raced,
            line,
            access,
            ins,
            "{pair}: shared byte {byte} was written by warp {other} and is read by "
            "warp {warp}",
            writer,
        )

    def _explain_write(self, access: _Access, ins: Instruction, seen: Array) -> None:
        at = access.at
        line, writer = self.write_line.take(at), self.writer.take(at)
        written = self.written.take(at)
        flying = (self.state.take(at) & IN_FLIGHT) != 0
        self._each(
            WRITE_IN_FLIGHT,
            flying,
            line,
            access,
            ins,
            "write over a copy in flight, issued by warp {other} and not waited for; "
            "shared byte {byte} is written by warp {warp}",
            writer,
        )
        raced = self._is_unordered(access, writer, written) & ~flying
        self._each(
            WRITE_AFTER_WRITE,
            raced,
            line,
            access,
            ins,
            "{pair}: shared byte {byte} was written by warp {other} and is written "
            "again by warp {warp}",
            writer,
        )
        read = self.read.take(at, axis=0)
        late = np.asarray(read >= seen)
        own = np.arange(self.clocks.warps) == access.warp[..., None]
        mine = self.read.reshape(-1).take(at * self.clocks.warps + access.warp)
        raced = self._is_unordered(access, np.broadcast_to(access.warp, at.shape), mine)
        late = np.where(own, raced[..., None], late)
        reader = late.argmax(axis=-1)
        self._each(
            WRITE_AFTER_READ,
            np.asarray(late.any(axis=-1)),
            self.read_line.reshape(-1).take(at * self.clocks.warps + reader),
            access,
            ins,
            "{pair}: shared byte {byte} was read by warp {other} and is overwritten "
            "by warp {warp}",
            reader,
        )

    def _is_unordered(self, access: _Access, warp: Array, stamp: Array) -> Array:
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
        access: _Access,
        ins: Instruction,
        what: str,
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
            copy = int(access.copy[row, 0]) if access.copy.size > 1 else 0
            granule = int(access.at[row, column]) - copy * self.granules
            warp, who = int(access.warp[row, 0]), int(other[row, column])
            pair = "no barrier between"
            if warp == who:
                pair = "different lanes of one warp with no bar.warp.sync between"
            byte = granule * self.granule
            text = what.format(other=who, warp=warp, byte=byte, pair=pair)
            text += f": `{ins.text}`"
            if line:
                text += f"; the other access is PTX line {line}: "
                text += f"`{self.reports.text(line)}`"
            self._add(kind, text, ins, line, copy, warp, byte)

    def _add(
        self,
        kind: str,
        what: str,
        ins: Instruction,
        other: int | None,
        copy: int,
        warp: int,
        byte: int,
    ) -> None:
        block = self.name_block(copy)
        message = f"block {block} {what}"
        self.reports.add(
            Hazard(
                kind,
                message,
                ins.line,
                other,
                block,
                warp,
                byte,
                "shared",
                1,
                ins.source,
            )
        )
