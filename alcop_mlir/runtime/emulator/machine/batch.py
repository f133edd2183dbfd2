"""A batch: blocks of the grid that run together, with their memory and clocks.

The race checks watch its memory: `hazards` implements the protocols here.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

import numpy as np

from alcop_mlir.runtime.emulator.arithmetic.collisions import LastQueues
from alcop_mlir.runtime.emulator.arithmetic.storage import Array
from alcop_mlir.runtime.emulator.machine.clocks import Clocks
from alcop_mlir.runtime.emulator.machine.cluster_barrier import ClusterBarrier
from alcop_mlir.runtime.emulator.machine.lanes import Lanes
from alcop_mlir.runtime.emulator.machine.loaded_kernel import LoadedKernel
from alcop_mlir.runtime.emulator.machine.map_views import MapViews
from alcop_mlir.runtime.emulator.machine.mbarriers import Mbarriers
from alcop_mlir.runtime.emulator.machine.memory import (
    POISON,
    SHARED_UNIT,
    BlockMemory,
    GlobalMemory,
)
from alcop_mlir.runtime.emulator.machine.pending_copy import Flight
from alcop_mlir.runtime.emulator.machine.register_pool import RegisterPool
from alcop_mlir.runtime.emulator.machine.releases import Releases
from alcop_mlir.runtime.emulator.machine.warpgroups import OperandRead, WarpgroupOrder
from alcop_mlir.runtime.emulator.machine.warps import BlockSet, Shape
from alcop_mlir.runtime.emulator.ptx.syntax import Instruction


class SharedWatcher(Protocol):
    """Watches the shared memory of a batch, in granules of so many bytes."""

    granule: int

    def widen(self, blocks: int) -> None:
        """From now on the blocks differ: one record for each, not one for all."""

    def on_read(self, lanes: Lanes, collective: bool = False) -> Array | None:
        """Before a read; `collective`: by the whole warp, as ldmatrix does.

        Returns the origins of bytes that nothing has written, int32 (entries, granules
        of an entry), with an entry for each block if they differ; None: all are.
        """

    def taint(self, lanes: Lanes, origin: Array) -> None:
        """After a store of values with these origins: 0 is a value that is fine."""

    def report_unwritten(self, number: int, how: str, ins: Instruction) -> None:
        """What the load with that number has read from unwritten bytes is used."""

    def on_write(
        self,
        lanes: Lanes,
        in_flight: bool = False,
        changes: Callable[[], Array] | None = None,
    ) -> Array | None:
        """Before a store, or the issue of a copy (`in_flight`).

        changes: which entries change what memory holds, where that is known; (entries,)
        or (blocks, entries)
        Returns which entries share bytes with another lane (None: none): whether that
        is a conflict depends on the values.
        """

    def on_strong_read(self, lanes: Lanes, is_wide: bool) -> Array | None:
        """Before a strong read; `is_wide`: of scope .cluster or more. As `on_read`."""

    def on_strong_write(
        self, lanes: Lanes, is_wide: bool, updates: bool = False
    ) -> None:
        """Before a strong write; `updates`: of an atomic. These race with no other."""

    def on_mbarrier(self, lanes: Lanes, ends: bool = False) -> None:
        """From now on mbarriers are here, which nothing else may write; or not."""

    def on_mbarrier_use(self, lanes: Lanes, by_engine: bool = False) -> None:
        """Before an operation on mbarriers: their init has to come before it.

        by_engine: they are for what is issued, not for the lanes themselves
        """

    def on_landing(self, lanes: Lanes) -> None:
        """After these copies are complete: from now on writes by their threads."""

    def on_async_read(self, lanes: Lanes) -> None:
        """The copy engine or tensor core begins to read: at the issue.

        Whoever writes these bytes before the end of the read meets a hazard, and so
        does a read of what the generic proxy has written with no fence.proxy.async on
        the way. Both calls are given the same bytes; reads may overlap.
        """

    def on_async_read_end(self, lanes: Lanes) -> None:
        """The wait for that read: from now on it is a read by these lanes."""

    def on_engine_read_end(self, lanes: Lanes, columns: Array, epochs: Array) -> None:
        """These copies have read; `columns` and `epochs` as for `on_async_landing`."""

    def on_far_access(self, lanes: Lanes) -> None:
        """Before an access of which some entries reach into another block's memory."""

    def on_block_end(self, ended: Array, ins: Instruction) -> None:
        """Which blocks have ended so far, bool (blocks, ranks), the last at `ins`."""

    def on_async_landing(self, lanes: Lanes, columns: Array, epochs: Array) -> None:
        """These copies are complete: writes of epochs of columns of the clocks.

        columns, epochs: (entries,); whoever has acquired the phase knows of them
        """

    def on_async_update(
        self, lanes: Lanes, columns: Array, epochs: Array, at_issue: bool = False
    ) -> None:
        """The same of read-modify-writes, which do not race with their kind.

        at_issue: they begin now
        """

    def report_overlap(self, lanes: Lanes, entry: int, differ: bool = True) -> None:
        """Two lanes wrote the same bytes in one instruction, with values that differ.

        If they do not, it is a note, if lanes of two warps did so.
        """

    def report_exit(self, lanes: Lanes, what: str) -> None:
        """The kernel ended while `what`, which these lanes have issued."""

    def report_never_waited(self, lanes: Lanes) -> None:
        """A copy was still in flight when the kernel ended."""


class GlobalWatcher(Protocol):
    """Watches the global memory of a launch."""

    def on_read(self, lanes: Lanes) -> None:
        """Before a read."""

    def on_write(self, lanes: Lanes, differs: Array) -> Array | None:
        """Before a store; `differs`: the entries that change what memory holds.

        Returns the entries that another block or warp writes with the same instruction,
        or None: only what is in memory afterwards tells whether their values differ.
        """

    def on_strong(self, lanes: Lanes, writes: bool, updates: bool = False) -> None:
        """Before a strong access; `updates`: of an atomic."""

    def on_engine_read(self, lanes: Lanes, columns: Array, epochs: Array) -> None:
        """At the issue of copies to shared memory.

        columns, epochs: (entries,); who has acquired the phase comes after the read
        """

    def on_engine_write(self, lanes: Lanes, reduces: bool) -> int:
        """At the issue of copies out of shared memory; returns a number for them."""
        ...

    def on_engine_landing(self, lanes: Lanes, number: int, reduces: bool) -> None:
        """At the wait for all of that: from now on writes by these threads."""

    def on_engine_change(self, lanes: Lanes, differs: Array) -> Array | None:
        """Before such copies, no reductions, change memory; as `on_write`."""

    def on_fence(self, blocks: Array) -> None:
        """After a fence of gpu or sys scope by these blocks (numbers in the grid)."""

    def on_proxy_fence(self, blocks: Array) -> None:
        """After a fence.proxy.async of global memory by these blocks."""

    def report_clash(self, lanes: Lanes, entry: int) -> None:
        """Two blocks or warps wrote different values at a time; `entry` lost."""

    def was_written(self, offset: int, size: int) -> bool:
        """Whether stores have written any of these bytes, as far as they are known."""
        ...

    def report_map(self, lanes: Lanes, entry: int, address: int, why: str) -> None:
        """A tensor copy reads a map that was changed with a fence missing."""


class WarpgroupWatcher(Protocol):
    """Watches what wgmma reads of the shared memory of a batch, and its registers."""

    def on_issue(self, read: OperandRead) -> None:
        """A read by these warps, each of them as one, begins."""

    def on_complete(self, read: OperandRead) -> None:
        """It is over."""

    def report(
        self,
        kind: str,
        ins: Instruction,
        other: Instruction | None,
        where: tuple[int, int],
        what: str,
    ) -> None:
        """A hazard of registers at `ins`; `where`: the block of the batch, the warp."""


class Batch(BlockSet):
    """The state that the blocks `numbers` of the grid share, and that of each.

    `early`: copies land when they are issued. `shadow` and `global_shadow` check
    accesses for races; both are None where nobody looks for races.
    """

    def __init__(
        self,
        kernel: LoadedKernel,
        numbers: Array,
        launch: Shape,
        memory: GlobalMemory,
        map_views: MapViews,
        early: bool,
    ):
        super().__init__(numbers, launch)
        self.kernel = kernel
        self.memory = memory
        self.map_views = map_views
        self.early = early
        memory_map = kernel.memory_map
        # Of a block, in bytes, and from one block of a cluster to the next.
        self.shared_size = self.shared_step = memory_map.shared_size
        if self.ranks > 1:
            self.shared_step = -(-self.shared_size // SHARED_UNIT) * SHARED_UNIT
        self.shared = BlockMemory(self.blocks, self.ranks * self.shared_step, POISON)
        self.parameters = BlockMemory(1, len(memory_map.parameter_bytes), 0)
        data = np.frombuffer(memory_map.parameter_bytes, np.uint8)
        self.parameters.data[0, : data.size] = data
        self.clocks = Clocks(self.warps, self.block_warps)
        entry = kernel.registers_at_entry
        self.registers = RegisterPool(self, self.clocks, entry)
        self.last_queues = LastQueues()  # of its atomics
        self.flights: list[Flight] = []  # in the order of their issue
        block_set = BlockSet(numbers, launch)  # with the batch it would be a circle
        self.mbarriers = Mbarriers(block_set, self.clocks, self.shared_step)
        self.cluster_barrier = ClusterBarrier(block_set, self.clocks)
        self.shadow: SharedWatcher | None = None
        self.global_shadow: GlobalWatcher | None = None
        self.warpgroup_watcher: WarpgroupWatcher | None = None
        # Where there are checks, and the kernel has what releases and what acquires.
        self.releases: Releases | None = None
        self.warpgroup_order = WarpgroupOrder(self)
