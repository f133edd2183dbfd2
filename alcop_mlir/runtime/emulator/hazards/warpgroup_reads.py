"""What wgmma does to shared memory and registers while it is in flight.

It reads shared memory at any time from its issue to the wait that completes it. So its
reads are marked as later than all that any barrier orders, until the wait, where they
become reads of that moment.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

import numpy as np

from alcop_mlir.runtime.emulator.hazards.async_shadow import AsyncShadow
from alcop_mlir.runtime.emulator.hazards.reports import Hazard, Reports
from alcop_mlir.runtime.emulator.machine.clocks import EPOCH, MANY_LANES
from alcop_mlir.runtime.emulator.machine.lanes import Lanes
from alcop_mlir.runtime.emulator.machine.warps import Dim3
from alcop_mlir.runtime.emulator.ptx.syntax import Instruction

# A stamp after all others, of many lanes.
_NOT_OVER = np.int32(np.iinfo(np.int32).max // EPOCH * EPOCH - EPOCH + MANY_LANES)
_USED = "is multiplied"


class WarpgroupReads:
    """Checks the reads of wgmma by the shadow of shared memory."""

    def __init__(
        self,
        shadow: AsyncShadow,
        reports: Reports,
        name_block: Callable[[int], Dim3],
    ):
        self.shadow = shadow
        self.reports = reports
        self.name_block = name_block

    def on_issue(self, lanes: Lanes) -> None:
        """A read by these warps, each of them as one, begins."""
        origins = self.shadow.on_read(lanes, collective=True)
        if origins is not None:
            for number in np.unique(origins).tolist():
                if number:
                    self.shadow.report_unwritten(number, _USED, lanes.ins)
        self.shadow.check_proxy(lanes)
        self._mark(lanes, None)

    def on_complete(self, lanes: Iterable[Lanes], pending: Iterable[Lanes]) -> None:
        """The reads `lanes` are over; those of `pending` are not."""
        for one in lanes:
            self._mark(one, self.shadow.clocks.start)
        for one in pending:
            self._mark(one, None)

    def _mark(self, lanes: Lanes, start: np.ndarray | None) -> None:
        """Sets the stamps of a read: those of the epochs, or that of one in flight."""
        shadow, warps = self.shadow, self.shadow.clocks.warps
        if shadow.copies > 1:
            lanes = lanes.widened()
        block = lanes.block() if shadow.copies > 1 else np.zeros(1, np.int64)
        warp = lanes.warp()
        stamp = np.full(1, _NOT_OVER)
        if start is not None:
            stamp = start.reshape(-1).take(block * warps + warp) + np.int32(MANY_LANES)
        each = lanes.size // shadow.granule
        cell = (block * shadow.granules + lanes.offset // shadow.granule)[:, None]
        cell = (cell + np.arange(each)) * warps + warp[:, None]
        shadow.read.reshape(-1)[cell] = stamp[:, None]
        shadow.read_line.reshape(-1)[cell] = lanes.ins.line

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
        text = f"block {self.name_block(block)} warp {warp} {what}: `{ins.text}`"
        if other is not None:
            text += f"; the other access is PTX line {other.line}: `{other.text[:60]}`"
        line = None if other is None else other.line
        name = self.name_block(block)
        self.reports.add(
            Hazard(kind, text, ins.line, line, name, warp, 0, "register", ins.source)
        )
