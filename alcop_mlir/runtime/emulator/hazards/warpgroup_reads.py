"""What wgmma does to shared memory and registers while it is in flight.

It reads shared memory at any time from its issue to the wait that completes it: each
warp its rows of A, and all of B.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

import numpy as np

from alcop_mlir.runtime.emulator.hazards.async_shadow import AsyncShadow
from alcop_mlir.runtime.emulator.hazards.reports import Hazard, Reports
from alcop_mlir.runtime.emulator.hazards.shared_shadow import SharedAccess
from alcop_mlir.runtime.emulator.machine.lanes import Lanes
from alcop_mlir.runtime.emulator.machine.warps import Dim3
from alcop_mlir.runtime.emulator.ptx.syntax import Instruction


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
        self.shadow.on_async_read(lanes)
        state = self.shadow.state.take(SharedAccess(self.shadow, lanes, True).at)
        if not state.all():
            self._report_unwritten(lanes)

    def _report_unwritten(self, lanes: Lanes) -> None:
        origins = self.shadow.on_read(lanes, collective=True)
        if origins is not None:
            for number in np.unique(origins[origins != 0]).tolist():
                self.shadow.report_unwritten(number, "is multiplied", lanes.ins)

    def on_complete(self, reads: Iterable[Lanes]) -> None:
        """These reads are over."""
        for lanes in reads:
            self.shadow.on_async_read_end(lanes, collective=True)

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
