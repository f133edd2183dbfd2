"""The race shadow of shared memory that several blocks of a cluster access.

A block may end while others still access its shared memory: what they do has to be
ordered before its end, and after its begin (CUDA C++ Programming Guide, "Distributed
Shared Memory": all blocks have to exist). And what a copy from one block to another has
read is known to whoever has waited for its mbarrier, which lies in the other block.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from alcop_mlir.runtime.emulator.arithmetic.storage import Array
from alcop_mlir.runtime.emulator.hazards.async_shadow import AsyncShadow
from alcop_mlir.runtime.emulator.hazards.reports import (
    BLOCK_ENDED,
    BLOCK_NOT_BEGUN,
    WRITE_AFTER_READ,
)
from alcop_mlir.runtime.emulator.hazards.shared_shadow import (
    ATOMIC,
    IN_FLIGHT,
    WRITTEN,
    SharedAccess,
)
from alcop_mlir.runtime.emulator.machine.clocks import EPOCH, MANY_LANES
from alcop_mlir.runtime.emulator.machine.lanes import Lanes
from alcop_mlir.runtime.emulator.ptx.syntax import Instruction


class ClusterShadow(AsyncShadow):
    """Checks every shared access of a batch, those across blocks too.

    ended: which blocks have, bool (copies, ranks); None until one has
    engine_reads: by the column of an mbarrier, or of the wgmma of a warpgroup, up to
    which of its epochs copies that end there (these wgmma) have read each granule, and
    the line of the last one
    """

    ended: Array | None = None
    engine_reads: dict[int, tuple[Array, Array]] | None = None

    @property
    def _ranks(self) -> int:
        return self.clocks.warps // self.clocks.block_warps

    def on_mbarrier_use(self, lanes: Lanes, by_engine: bool = False) -> None:
        """An operation on objects: on those of other blocks, an access to them."""
        super().on_mbarrier_use(lanes, by_engine)
        if self._ranks == 1 or by_engine or not lanes.offset.size:
            return
        access = SharedAccess(self, lanes)
        cell = access.at * self.clocks.warps + access.warp
        far = self._rank_of(access) != access.warp // self.clocks.block_warps
        cell = cell[np.broadcast_to(far, cell.shape)]
        now = np.broadcast_to(access.now + MANY_LANES, access.at.shape)
        self.read.reshape(-1)[cell] = now[np.broadcast_to(far, access.at.shape)]
        self.read_line.reshape(-1)[cell] = access.ins.line
        self.note_reads()

    def _rank_of(self, access: SharedAccess) -> Array:
        """The rank of the block that has each granule, (entries, granules)."""
        local = access.at - access.copy * self.granules
        return local // (self.granules // self._ranks)

    # --- blocks that end --------------------------------------------------------------

    def on_far_access(self, lanes: Lanes) -> None:
        """An access by lanes of which some reach into another block."""
        access, clocks = SharedAccess(self, lanes), self.clocks
        if self.copies > 1:
            lanes = lanes.widened()
        rank = self._rank_of(access)[:, 0]
        copy = np.broadcast_to(access.copy[:, 0], rank.shape)
        far = rank != access.warp[:, 0] // clocks.block_warps
        known = clocks.horizon.reshape(-1).take(access.row[:, 0] + clocks.began + rank)
        self._report_far(BLOCK_NOT_BEGUN, far & (known <= EPOCH), access, lanes)
        if self.ended is not None:
            self._report_far(BLOCK_ENDED, far & self.ended[copy, rank], access, lanes)

    def _report_far(
        self, kind: str, bad: Array, access: SharedAccess, lanes: Lanes
    ) -> None:
        if not bad.any():
            return
        entry = int(bad.argmax())
        why = "which has ended"
        if kind == BLOCK_NOT_BEGUN:
            why = "which may not have begun: no barrier.cluster before"
        what = (
            f"warp {self.texts.names.warp(int(access.warp[entry, 0]))} accesses "
            f"shared byte {self.texts.byte_of(lanes, entry)}, {why}: "
            f"`{lanes.ins.text}`"
        )
        self.reports.add(self.texts.at_entry(kind, what, lanes, entry, None))

    def on_block_end(self, ended: Array, ins: Instruction) -> None:
        """These blocks have ended, bool (blocks, ranks); `ins` is the last they did."""
        if self.copies == 1 and (ended != ended[:1]).any():
            self.widen(len(ended))
        ended = ended[: self.copies]
        if self.ended is None:
            self.ended = np.zeros_like(ended)
        elif len(self.ended) < self.copies:
            self.ended = np.repeat(self.ended, self.copies, axis=0)
        fresh = ended & ~self.ended
        self.ended = ended
        for copy, rank in np.argwhere(fresh).tolist():
            self._check_end(copy, rank, ins)

    def _check_end(self, copy: int, rank: int, ins: Instruction) -> None:
        """What others did to the memory of a block has to be known to one of it."""
        each, clocks = self.clocks.block_warps, self.clocks
        step = self.granules // self._ranks
        mine = slice(rank * each, (rank + 1) * each)
        first = copy * self.granules + rank * step
        part = slice(first, first + step)
        known = clocks.horizon[copy, mine].max(axis=0)
        writer = self.writer[part]
        touched = (self.state[part] & (WRITTEN | IN_FLIGHT | ATOMIC)) != 0
        by_others = touched & ((writer < mine.start) | (writer >= mine.stop))
        late = by_others & (self.written[part] >= known.take(writer))
        late |= by_others & ((self.state[part] & IN_FLIGHT) != 0)
        if late.any():
            at = int(late.argmax())
            line = int(self.write_line[part][at])
            self._report_end(copy, rank, at, int(writer[at]), line, ins)
        others = np.ones(clocks.warps, bool)
        others[mine] = False
        raced = (self.read[part] >= known[: clocks.warps]) & others
        if raced.any():
            at, reader = (int(i) for i in np.argwhere(raced)[0])
            line = int(self.read_line[part][at, reader])
            self._report_end(copy, rank, at, reader, line, ins)

    def _report_end(
        self, copy: int, rank: int, at: int, other: int, line: int, ins: Instruction
    ) -> None:
        warp = rank * self.clocks.block_warps
        granule = rank * (self.granules // self._ranks) + at
        where = (copy, warp, granule)
        self.reports.add(self.texts.hazard(BLOCK_ENDED, ins, where, other, line))

    # --- copies from block to block ---------------------------------------------------

    def on_engine_read_end(self, lanes: Lanes, columns: Array, epochs: Array) -> None:
        """A copy has read these; who has waited for these epochs comes after it.

        columns, epochs: (entries,)
        """
        access = SharedAccess(self, lanes)
        assert self.reading is not None
        np.subtract.at(self.reading, access.at.reshape(-1), np.int32(1))
        for column in np.unique(columns).tolist():
            mine = columns == column
            stamp = (epochs[mine] * EPOCH)[:, None]
            self.note_engine_read(column, access.at[mine], stamp, access.ins.line)

    def note_engine_read(
        self, column: int, at: Array, stamp: Array | np.int32, line: int
    ) -> None:
        """Granules `at` have been read in an epoch of a column."""
        if self.engine_reads is None:
            self.engine_reads = {}
        known = self.engine_reads.get(column)
        if known is None:
            fresh = np.zeros((2, self.state.size), np.int32)
            known = self.engine_reads[column] = fresh[0], fresh[1]
        known[0][at] = np.maximum(known[0][at], stamp)
        known[1][at] = line

    def widen(self, blocks: int) -> None:
        """From one shadow for all blocks to one for each."""
        if self.engine_reads is not None and self.copies != blocks:
            self.engine_reads = {
                column: (np.tile(stamps, blocks), np.tile(lines, blocks))
                for column, (stamps, lines) in self.engine_reads.items()
            }
        super().widen(blocks)

    def _check_write(
        self,
        access: SharedAccess,
        plain: Array | None,
        changes: Callable[[], Array] | None,
    ) -> None:
        super()._check_write(access, plain, changes)
        for column, (stamps, lines) in (self.engine_reads or {}).items():
            seen = self.clocks.horizon.reshape(-1).take(access.row + column)
            late = stamps.take(access.at) >= np.maximum(seen, 1)
            if late.any():
                reader = np.full(late.shape, column)
                line = lines.take(access.at)
                self._each(WRITE_AFTER_READ, late, line, access, reader)
