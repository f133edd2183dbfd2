"""Conflicts in global memory: between blocks here, between warps in `warp_shadow`.

Blocks of a grid run in any order, so bytes that one block writes and another reads or
writes are a conflict, unless both order themselves through memory fences. For every
access width used there is one array with the block that last wrote (read) each element:
0 nobody, -1 several blocks, else block number + 1. Writes of the value that is there
already are not conflicts. A block that has executed a fence of gpu or sys scope, or an
acquire or release operation, is taken to know what it does and is not checked from then
on (PTX ISA "Memory Consistency Model" would need a full model of the atomics). The
blocks of a cluster are one here: they have barriers, which `warp_shadow` follows.
"""

from __future__ import annotations

import numpy as np

from alcop_mlir.runtime.emulator.arithmetic.storage import Array
from alcop_mlir.runtime.emulator.hazards.engine_shadow import EngineShadow
from alcop_mlir.runtime.emulator.hazards.proxy_marks import ProxyMarks
from alcop_mlir.runtime.emulator.hazards.reports import (
    BLOCK_CONFLICT,
    NO_PROXY_FENCE,
    Hazard,
    Reports,
)
from alcop_mlir.runtime.emulator.hazards.warp_shadow import WarpShadow
from alcop_mlir.runtime.emulator.machine.lanes import Lanes
from alcop_mlir.runtime.emulator.machine.memory import GLOBAL_WINDOW
from alcop_mlir.runtime.emulator.machine.warps import Dim3, Shape
from alcop_mlir.runtime.emulator.ptx.syntax import Instruction

SEVERAL = -1


class _Marks:
    """The blocks and lines of the last accesses, for elements of one width."""

    def __init__(self, size: int):
        self.block = np.zeros(size, np.int32)
        self.line = np.zeros(size, np.int32)


class GlobalShadow:
    """Kept for a whole launch, since blocks of different batches conflict too."""

    def __init__(self, size: int, reports: Reports, launch: Shape):
        self.size = size
        self.reports = reports
        self.launch = launch
        self.readers: dict[int, _Marks] = {}
        self.writers: dict[int, _Marks] = {}
        self.fenced: set[int] = set()
        # Of the batch that runs; None where its blocks have one warp.
        self.warps: WarpShadow | None = None
        # The same where the kernel has copies by engines, None where it has not.
        self.engines: EngineShadow | None = None
        # Where blocks of a kernel with engines order themselves by flags.
        self.proxies: ProxyMarks | None = None

    def on_read(self, lanes: Lanes) -> None:
        """Checks and records a read."""
        if self.warps is not None and lanes.offset.size:
            self.warps.on_read(lanes)
        self._on_read(lanes)

    def _on_read(self, lanes: Lanes) -> None:
        """The same, of blocks: those that order themselves are not checked."""
        offset, who = lanes.offset, self._blocks(lanes)
        keep = self._unfenced(who)
        if keep is not None:
            offset, who = offset[keep], who[keep]
        if not offset.size:
            return
        self._check(self.writers, offset, who, lanes, "read", "written")
        self._mark(self.readers, offset, who, lanes)

    def on_write(self, lanes: Lanes, differs: Array) -> Array | None:
        """Checks and records a store; returns entries that blocks or warps share."""
        if not lanes.offset.size:
            return None
        met = self.warps and self.warps.on_write(lanes, differs)
        self._mark_proxy(lanes)
        clash = self._on_write(lanes, differs)
        if clash is None or met is None:
            return met if clash is None else clash
        return clash | met

    def on_strong(self, lanes: Lanes, writes: bool, updates: bool = False) -> None:
        """A strong access, which races with no other but those of engines."""
        if self.engines is not None and lanes.offset.size:
            self.engines.on_strong(lanes, writes, updates)
            if writes:
                self._mark_proxy(lanes)

    def on_engine_read(self, lanes: Lanes, columns: Array, epochs: Array) -> None:
        """A copy to shared memory begins."""
        if not lanes.offset.size:
            return
        assert self.engines is not None
        self.engines.on_engine_read(lanes, columns, epochs)
        self._on_read(lanes)
        self._check_proxy(lanes)

    def on_engine_write(self, lanes: Lanes, reduces: bool) -> int:
        """A copy out of shared memory begins."""
        if not lanes.offset.size:
            return 0
        assert self.engines is not None
        if reduces:
            self._check_proxy(lanes)
        return self.engines.on_engine_write(lanes, reduces)

    def on_engine_landing(self, lanes: Lanes, number: int, reduces: bool) -> None:
        """Its thread has waited for it."""
        if lanes.offset.size:
            assert self.engines is not None
            self.engines.on_engine_landing(lanes, number, reduces)

    def on_engine_change(self, lanes: Lanes, differs: Array) -> Array | None:
        """As `on_write`, of copies that have been checked within their block."""
        if not lanes.offset.size:
            return None
        self._mark_proxy(lanes, by_engine=True)
        return self._on_write(lanes, differs)

    def _on_write(self, lanes: Lanes, differs: Array) -> Array | None:
        """As `on_write`, of blocks."""
        offset, who = lanes.offset, self._blocks(lanes)
        keep = self._unfenced(who)
        if keep is not None:
            offset, who, differs = offset[keep], who[keep], differs[keep]
        changed, by = offset[differs], who[differs]
        self._check(self.readers, changed, by, lanes, "overwritten", "read")
        self._check(self.writers, changed, by, lanes, "overwritten", "written")
        clash = self._mark(self.writers, offset, who, lanes)
        if clash is None or keep is None:
            return clash
        every = np.zeros(keep.shape, bool)
        every[keep] = clash
        return every

    def on_fence(self, blocks: Array) -> None:
        """These blocks (numbers in the grid) order themselves from now on."""
        self.fenced.update((blocks + 1).tolist())

    def on_proxy_fence(self, blocks: Array) -> None:
        """These execute a fence.proxy.async of global memory."""
        if self.proxies is not None:
            self.proxies.on_fence(blocks + 1)

    def _mark_proxy(self, lanes: Lanes, by_engine: bool = False) -> None:
        if self.proxies is not None:
            blocks, line = self._blocks(lanes), lanes.ins.line
            self.proxies.on_write(lanes.offset, lanes.size, blocks, line, by_engine)

    def _check_proxy(self, lanes: Lanes) -> None:
        """Of blocks that order themselves; what others race for is a conflict."""
        if self.proxies is None or not self.fenced:
            return
        lanes = lanes.widened()
        blocks = self._blocks(lanes)
        chosen = np.flatnonzero(np.isin(blocks, list(self.fenced)))
        where = lanes.offset[chosen], lanes.size, blocks[chosen]
        found = self.proxies.unfenced(*where) if chosen.size else None
        if found is None:
            return
        entry, ins = int(chosen[found.entry]), lanes.ins
        address = GLOBAL_WINDOW + int(lanes.offset[entry])
        block = self._block(int(blocks[entry]) - 1)
        writer = self._block(found.block - 1)
        message = (
            "no fence.proxy.async (or fence.proxy.async.global) between: global "
            f"address 0x{address:x} was written by block {writer} and is read through "
            f"the async proxy by block {block}: `{ins.text}`; the other access is PTX "
            f"line {found.line}: `{self.reports.text(found.line)}`"
        )
        self._add(message, ins, found.line, block, address, NO_PROXY_FENCE)

    def _block(self, number: int) -> Dim3:
        """The first block of a cluster."""
        return self.launch.block_at(number, 0)

    def _blocks(self, lanes: Lanes) -> Array:
        if lanes.per_block or lanes.owner.blocks == 1:
            return lanes.owner.block_set.marks.take(lanes.block())
        return np.full(lanes.offset.shape, SEVERAL, np.int32)

    def _unfenced(self, who: Array) -> Array | None:
        if not self.fenced:
            return None
        return ~np.isin(who, list(self.fenced)) & (who != SEVERAL)

    def _check(
        self,
        table: dict[int, _Marks],
        offset: Array,
        who: Array,
        lanes: Lanes,
        verb: str,
        past: str,
    ) -> None:
        """Reports the first conflict of these bytes with the marks of each width."""
        for width, marks in table.items():
            at = (offset // width)[:, None]
            if lanes.size > width:
                at = at + np.arange(lanes.size // width)
            other = marks.block.take(at)
            bad = (other != 0) & ((other != who[:, None]) | (other == SEVERAL))
            if not bad.any():
                continue
            row, column = (int(i) for i in np.argwhere(bad)[0])
            place, mine = int(at[row, column]), int(who[row])
            address = GLOBAL_WINDOW + max(place * width, int(offset[row]))
            line = int(marks.line[place])
            # One access by all blocks stands for the first of them.
            block = self._block(max(mine - 1, 0))
            names, theirs = "several blocks", int(other[row, column])
            if theirs > 0:
                names = f"block {self._block(theirs - 1)}"
                names += " or another one of its cluster" * (self.launch.ranks > 1)
            message = (
                f"global address 0x{address:x} is {verb} by block {block} and was "
                f"{past} by {names} in the same launch: `{lanes.ins.text}`; the other "
                f"access is PTX line {line}: `{self.reports.text(line)}`"
            )
            self._add(message, lanes.ins, line, block, address)

    def _mark(
        self, table: dict[int, _Marks], offset: Array, who: Array, lanes: Lanes
    ) -> Array | None:
        """Records the access; returns entries that share an element across blocks."""
        size = lanes.size
        marks = table.get(size)
        if marks is None:
            marks = table[size] = _Marks(self.size // size)
        at = offset // size
        before = marks.block.take(at)
        after = np.where((before == 0) | (before == who), who, SEVERAL)
        marks.block[at] = after
        marks.line[at] = lanes.ins.line
        clash = marks.block.take(at) != after
        if not clash.any():
            return None
        marks.block[at[clash]] = SEVERAL
        return clash

    def report_clash(self, lanes: Lanes, entry: int) -> None:
        """Two blocks or warps wrote different values at a time; `entry` lost."""
        blocks = self._blocks(lanes)
        same = blocks[lanes.offset == lanes.offset[entry]]
        if self.warps is not None and (same == same[0]).all():
            self.warps.report_clash(lanes, entry)
            return
        address = GLOBAL_WINDOW + int(lanes.offset[entry])
        block = self._block(int(blocks[entry]) - 1)
        message = (
            f"global address 0x{address:x} is written by block {block} and, with "
            f"another value, by another block: `{lanes.ins.text}`"
        )
        self._add(message, lanes.ins, lanes.ins.line, block, address)

    def was_written(self, offset: int, size: int) -> bool:
        """Whether stores of blocks without fences of gpu scope have written there."""
        return any(
            bool(marks.block[offset // width : (offset + size) // width].any())
            for width, marks in self.writers.items()
        )

    def report_map(self, lanes: Lanes, entry: int, address: int, why: str) -> None:
        """A tensor copy reads a map that was changed with a fence missing."""
        block = self._block(int(self._blocks(lanes)[entry]) - 1)
        ins = lanes.ins
        message = (
            f"block {block} uses the tensor map at 0x{address:x}, which this launch "
            f"has changed: {why}: `{ins.text}`"
        )
        self._add(message, ins, ins.line, block, address, NO_PROXY_FENCE)

    def _add(
        self,
        message: str,
        ins: Instruction,
        other: int,
        block: Dim3,
        address: int,
        kind: str = BLOCK_CONFLICT,
    ) -> None:
        where = (block, 0, address, "global", ins.source)
        self.reports.add(Hazard(kind, message, ins.line, other, *where))
