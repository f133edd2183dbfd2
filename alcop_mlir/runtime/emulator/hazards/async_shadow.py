"""The race shadow of shared memory where mbarriers and copy engines take part.

To the shadow of plain accesses it adds mbarrier objects, which nothing else may write,
and writes of copies that are ordered by the phase of an mbarrier: they are stamped with
an epoch of its column of the clocks.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from alcop_mlir.runtime.emulator.arithmetic.storage import Array
from alcop_mlir.runtime.emulator.hazards.reports import (
    MBARRIER_OVERWRITTEN,
    READ_AFTER_WRITE,
)
from alcop_mlir.runtime.emulator.hazards.shared_shadow import (
    ATOMIC,
    MBARRIER,
    WRITTEN,
    SharedAccess,
    SharedShadow,
)
from alcop_mlir.runtime.emulator.machine.clocks import EPOCH
from alcop_mlir.runtime.emulator.machine.lanes import Lanes


class AsyncShadow(SharedShadow):
    """Checks every shared access of a batch, those of mbarriers and engines too."""

    def on_mbarrier(self, lanes: Lanes, ends: bool = False) -> None:
        """Objects begin, or end, here."""
        at = SharedAccess(self, lanes).at
        state = self.state.take(at)
        self.state[at] = state & (0xFF ^ MBARRIER) if ends else state | MBARRIER

    def on_mbarrier_use(self, lanes: Lanes) -> None:
        """An operation on objects: races only with their init."""
        access = SharedAccess(self, lanes)
        at = access.at
        writer, written = self.writer.take(at), self.written.take(at)
        plain = (self.state.take(at) & ATOMIC) == 0
        raced = plain & self._is_unordered(access, writer, written)
        if raced.any():
            line = self.write_line.take(at)
            self._each(READ_AFTER_WRITE, raced, line, access, writer)

    def on_async_landing(self, lanes: Lanes, columns: Array, epochs: Array) -> None:
        """Copies are complete: writes of these epochs of columns of the clocks."""
        access = SharedAccess(self, lanes)
        self.state[access.at] = WRITTEN
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
        over = (self.state.take(access.at) & MBARRIER) != 0
        if over.any():
            other = np.broadcast_to(access.warp, over.shape)
            self._each(MBARRIER_OVERWRITTEN, over, None, access, other)
