"""Races in global memory where copy engines take part.

To what `warp_shadow` knows of the accesses of warps it adds those of bulk and tensor
copies, for kernels that have some (PTX ISA "Async proxy", "cp.async.bulk"):

- A copy to shared memory reads its source from its issue to the end of the phase of its
  mbarrier: a read with the stamp of that phase, in the column of the mbarrier. What the
  generic proxy has written needs a fence.proxy.async on the way to it.
- A copy out of shared memory writes from its issue to the `wait_group` of its thread,
  one without .read: until then the bytes are marked with a column that nobody learns
  of. From then on it is a write by that warp, which is no write of the generic proxy.
- A reduction does both, and does not race with other ones.

Copies that are issued earlier by the same thread come in no order.
"""

from __future__ import annotations

import numpy as np

from alcop_mlir.runtime.emulator.arithmetic.storage import Array
from alcop_mlir.runtime.emulator.hazards.reports import (
    NO_PROXY_FENCE,
    READ_IN_FLIGHT,
    WRITE_IN_FLIGHT,
    WRITE_WHILE_READ,
    Reports,
)
from alcop_mlir.runtime.emulator.hazards.warp_shadow import (
    BY_ENGINE,
    COLUMN,
    REDUCED,
    STAMP,
    STAMP_BITS,
    GlobalAccess,
    Table,
    WarpShadow,
)
from alcop_mlir.runtime.emulator.machine.clocks import EPOCH, Clocks
from alcop_mlir.runtime.emulator.machine.lanes import Lanes
from alcop_mlir.runtime.emulator.machine.warps import Names


class EngineShadow(WarpShadow):
    """Kept for a batch; engines are given an entry for each block.

    loads: the last two copies to shared memory that read each element; stores: the last
    one out of it that is on its way there; strong: the last strong write
    """

    def __init__(self, size: int, clocks: Clocks, reports: Reports, names: Names):
        super().__init__(size, clocks, reports, names)
        self.loads: Table = {}
        self.stores: Table = {}
        self.strong: Table = {}
        self._on_way = clocks.add_columns(clocks.warps)  # of stores, by warp
        self._issued = EPOCH  # numbers of stores; nobody has seen an epoch of these

    # --- copies to shared memory ----------------------------------------------------

    def on_engine_read(self, lanes: Lanes, columns: Array, epochs: Array) -> None:
        """A copy begins to read; (entries,): the columns and epochs of its phase."""
        access = GlobalAccess(self.clocks, lanes)
        self._check_read(access)
        self._check_proxy(access)
        self._record(self.loads, access, access.cells_of(columns, epochs * EPOCH))

    def _check_proxy(self, access: GlobalAccess) -> None:
        """The generic proxy has written nothing of it without a fence between."""
        for table in (self.writers, self.strong):
            for width, last in table.items():
                at = access.elements(width)
                found = last.cells[0].take(at)
                by = found >> STAMP_BITS
                bad = (found != 0) & ((found & BY_ENGINE) == 0)
                bad &= access.is_own_block(by)
                if bad.any() and self.clocks.fenced["global"] >= 0:
                    column = self.clocks.fenced["global"] + (by & COLUMN)
                    bad &= (found & STAMP) >= self._seen(access, column * bad)
                if bad.any():
                    self._report_first(
                        NO_PROXY_FENCE, access, bad, at, by, last.lines[0]
                    )
                    return

    # --- copies out of shared memory ------------------------------------------------

    def on_engine_write(self, lanes: Lanes, reduces: bool) -> int:
        """A copy begins to write; returns its number."""
        self._record_reads()
        access, mark = GlobalAccess(self.clocks, lanes), REDUCED if reduces else 0
        self._check_write(access, None, mark)
        if reduces:
            self._check_proxy(access)
        self._issued += 1
        warp = access.who & COLUMN
        last = self._table(self.stores, lanes.size, 1)
        at = access.offset // lanes.size
        last.cells[0][at] = access.cells_of(self._on_way + warp, self._issued | mark)
        last.lines[0][at] = lanes.ins.line
        return self._issued

    def on_engine_landing(self, lanes: Lanes, number: int, reduces: bool) -> None:
        """It has been waited for by its thread."""
        access, mark = GlobalAccess(self.clocks, lanes), REDUCED if reduces else 0
        at = access.offset // lanes.size
        (cells,) = self._table(self.stores, lanes.size, 1).cells
        found = cells.take(at)
        cells[at] = np.where((found & STAMP) == number, 0, found)
        last = self._table(self.writers, lanes.size, 1)
        last.cells[0][at] = access.cell | BY_ENGINE | mark
        last.lines[0][at] = lanes.ins.line

    # --- what threads do ------------------------------------------------------------

    def on_strong(self, lanes: Lanes, writes: bool, updates: bool = False) -> None:
        """A strong access, or an atomic (`updates`), races with engines alone."""
        access = GlobalAccess(self.clocks, lanes.widened())
        kind = WRITE_IN_FLIGHT if writes else READ_IN_FLIGHT
        self._check(kind, self.stores, access, apart=REDUCED if updates else 0)
        if not writes:
            return
        self._check(WRITE_WHILE_READ, self.loads, access)
        last = self._table(self.strong, lanes.size, 1)
        at = access.offset // lanes.size
        last.cells[0][at], last.lines[0][at] = access.cell, lanes.ins.line

    def _check_read(self, access: GlobalAccess) -> None:
        self._check(READ_IN_FLIGHT, self.stores, access)
        super()._check_read(access)

    def _check_write(
        self, access: GlobalAccess, differs: Array | None, apart: int = 0
    ) -> None:
        self._check(WRITE_IN_FLIGHT, self.stores, access, differs, apart)
        self._check(WRITE_WHILE_READ, self.loads, access, differs)
        super()._check_write(access, differs, apart)

    def _named(self, index: int, warp: int, column: int) -> str:
        if 0 <= column - self._on_way < self.clocks.warps:
            column -= self._on_way
        if column >= self.clocks.warps:
            return "the copy"
        return super()._named(index, warp, column)
