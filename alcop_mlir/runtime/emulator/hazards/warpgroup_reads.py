"""What wgmma does to shared memory and registers while it is in flight.

It reads shared memory at any time from its issue to the wait that completes it: each
warp its rows of A, and all of B.
"""

from __future__ import annotations

import numpy as np

from alcop_mlir.runtime.emulator.arithmetic.storage import Array
from alcop_mlir.runtime.emulator.hazards.cluster_shadow import ClusterShadow
from alcop_mlir.runtime.emulator.hazards.reports import Hazard, Reports
from alcop_mlir.runtime.emulator.hazards.shared_shadow import WRITTEN, SharedAccess
from alcop_mlir.runtime.emulator.machine.clocks import EPOCH
from alcop_mlir.runtime.emulator.machine.lanes import Lanes
from alcop_mlir.runtime.emulator.machine.warpgroups import OperandRead
from alcop_mlir.runtime.emulator.machine.warps import Names
from alcop_mlir.runtime.emulator.ptx.syntax import Instruction


class WarpgroupReads:
    """Checks the reads of wgmma by the shadow of shared memory."""

    def __init__(
        self,
        shadow: ClusterShadow,
        reports: Reports,
        names: Names,
    ):
        self.shadow = shadow
        self.reports = reports
        self.names = names

    def on_issue(self, read: OperandRead) -> None:
        """A read by these warps, each of them as one, begins."""
        granules = self._granules(read)
        if granules is not None and self._is_ready(granules, self._warps(read)):
            warps = self._warps(read)
            times = len(warps) // len(granules)
            line = read.ins.line
            self.shadow.begin_reads(granules, int(warps[-1]), line, np.int32(times))
            return
        lanes = read.lanes()
        self.shadow.on_async_read(lanes)
        state = self.shadow.state.take(SharedAccess(self.shadow, lanes, True).at)
        if not state.all():
            self._report_unwritten(lanes)

    def on_complete(self, read: OperandRead) -> None:
        """It is over: whoever waits for this wgmma, by whichever warp, comes after."""
        granules, shadow = self._granules(read), self.shadow
        clocks = shadow.clocks
        if granules is None or shadow.reading is None or len(read.number) > 1:
            lanes = read.lanes()
            if shadow.copies > 1:
                lanes = lanes.widened()
            number = np.broadcast_to(read.number, read.active.shape)[..., None]
            columns = clocks.multiplied_column(lanes.warp())
            shadow.on_engine_read_end(lanes, columns, lanes.pick(number))
            return
        warps = self._warps(read)
        times = np.int32(len(warps) // len(granules))
        np.subtract.at(shadow.reading, granules.reshape(-1), times)
        columns = clocks.multiplied_column(warps)
        number = np.broadcast_to(read.number, read.active.shape)[0, read.active[0]]
        for column in np.unique(columns).tolist():
            mine = columns == column
            at = granules if len(granules) == 1 else granules[mine]
            stamp = np.int32(number[mine].max() * EPOCH)
            shadow.note_engine_read(column, at, stamp, read.ins.line)
        shadow.note_reads()

    def _granules(self, read: OperandRead) -> Array | None:
        """What each active warp reads, (1|warps, n), 1 where they all read the same.

        None where it depends on the block.
        """
        if self.shadow.copies > 1 or len(read.offset) > 1 or len(read.active) > 1:
            return None
        offset = read.offset[0]
        if len(offset) > 1:
            offset = offset[read.active[0]]
        first = offset[..., None] // self.shadow.granule
        return (first + np.arange(read.size // self.shadow.granule)).reshape(
            len(offset), -1
        )

    def _warps(self, read: OperandRead) -> Array:
        """The active warps, numbered in their block."""
        return read.owner.first_warp + np.flatnonzero(read.active[0])

    def _is_ready(self, granules: Array, warps: Array) -> bool:
        """Whether one engine has written all that, before what all warps have seen.

        That is nearly always so; what is not is looked at by warp and granule.
        """
        shadow, clocks = self.shadow, self.shadow.clocks
        writer = shadow.writer.take(granules)
        column = int(writer.flat[0])
        if column < clocks.warps or (writer != column).any():
            return False
        if (shadow.state.take(granules) != WRITTEN).any():
            return False
        seen = clocks.horizon[0, warps, column]
        return bool(shadow.written.take(granules).max() < seen.min())

    def _report_unwritten(self, lanes: Lanes) -> None:
        origins = self.shadow.on_read(lanes, collective=True)
        if origins is not None:
            for number in np.unique(origins[origins != 0]).tolist():
                self.shadow.report_unwritten(number, "is multiplied", lanes.ins)

    def report(
        self,
        kind: str,
        ins: Instruction,
        other: Instruction | None,
        where: tuple[int, int],
        what: str,
    ) -> None:
        """A hazard of registers at `ins`; `where`: the block of the batch, the warp."""
        block, warp = where
        name, number = self.names.block(block, warp), self.names.warp(warp)
        text = f"block {name} warp {number} {what}: `{ins.text}`"
        if other is not None:
            text += f"; the other access is PTX line {other.line}: `{other.text[:60]}`"
        line = None if other is None else other.line
        self.reports.add(
            Hazard(kind, text, ins.line, line, name, number, 0, "register", ins.source)
        )
