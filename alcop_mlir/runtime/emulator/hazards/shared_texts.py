"""What reports of shared memory say: who, where, and the other access.

In a cluster of several blocks an offset is one into the shared memory of all of them,
and a warp one of all of them; reports name the block, and count in it.
"""

from __future__ import annotations

from alcop_mlir.runtime.emulator.hazards.reports import (
    BLOCK_ENDED,
    EQUAL_WRITES,
    MBARRIER_OVERWRITTEN,
    NO_PROXY_FENCE,
    READ_AFTER_WRITE,
    READ_IN_FLIGHT,
    UNINITIALISED,
    WRITE_AFTER_READ,
    WRITE_AFTER_WRITE,
    WRITE_IN_FLIGHT,
    WRITE_WHILE_READ,
    Hazard,
    Reports,
)
from alcop_mlir.runtime.emulator.machine.clocks import Clocks
from alcop_mlir.runtime.emulator.machine.lanes import Lanes
from alcop_mlir.runtime.emulator.machine.warps import WARPGROUP, Names
from alcop_mlir.runtime.emulator.ptx.syntax import Instruction

# What `warp` does to a shared byte, and what `other` did; `pair` says who they are.
WHAT = {
    READ_IN_FLIGHT: "read of a copy in flight, issued by {other} and not waited "
    "for; shared byte {byte} is read by warp {warp}",
    UNINITIALISED: "read of shared memory that was never written; byte {byte} is read "
    "by warp {warp}",
    READ_AFTER_WRITE: "{pair}: shared byte {byte} was written by {other} and is "
    "read by warp {warp}",
    WRITE_IN_FLIGHT: "write over a copy in flight, issued by {other} and not "
    "waited for; shared byte {byte} is written by warp {warp}",
    WRITE_AFTER_WRITE: "{pair}: shared byte {byte} was written by {other} and is "
    "written again by warp {warp}",
    EQUAL_WRITES: "{pair}: shared byte {byte} was written by {other} and is "
    "written again by warp {warp}, with the value that it has",
    MBARRIER_OVERWRITTEN: "write over an mbarrier that has no mbarrier.inval before; "
    "shared byte {byte} is written by warp {warp}",
    NO_PROXY_FENCE: "no fence.proxy.async between: shared byte {byte} was written by "
    "{other} and is read through the async proxy, for warp {warp}",
    WRITE_WHILE_READ: "write over what an operation issued by {other}, and not "
    "waited for, still reads; shared byte {byte} is written by warp {warp}",
    WRITE_AFTER_READ: "{pair}: shared byte {byte} was read by {other} and is "
    "overwritten by warp {warp}",
    BLOCK_ENDED: "the block ends while {other} may still access its shared byte "
    "{byte}, with no order between",
}


class SharedTexts:
    """Makes the reports of one batch, with granules of so many bytes.

    step: bytes of shared memory from one block of a cluster to the next
    """

    def __init__(
        self, granule: int, size: int, clocks: Clocks, reports: Reports, names: Names
    ):
        self.granule = granule
        self.step = max(size // names.shape.ranks, 1)
        self.clocks = clocks
        self.reports = reports
        self.names = names

    def hazard(
        self,
        kind: str,
        ins: Instruction,
        where: tuple[int, int, int],
        other: int,
        line: int | None,
    ) -> Hazard:
        """What the warp did to the granule at `where` (block, warp, granule).

        other: the warp of the other access, or a column of the clocks; line: its line
        """
        block, warp, granule = where
        by = "the copy"
        if self._multiplies(other):
            first = (other - self.clocks.multiplied) * WARPGROUP
            by = f"wgmma of warp {self.names.warp_seen_from(block, warp, first)} on"
        elif other < self.clocks.warps:
            by = f"warp {self.names.warp_seen_from(block, warp, other)}"
        text = WHAT[kind].format(
            other=by,
            warp=self.names.warp(warp),
            byte=self._place(block, warp, granule * self.granule),
            pair=self._pair(warp, other),
        )
        text += f": `{ins.text}`"
        if line:
            text += f"; the other access is PTX line {line}: "
            text += f"`{self.reports.text(line)}`"
        byte = granule * self.granule % self.step
        return self._made(kind, text, ins, line, (block, warp, byte))

    def _multiplies(self, column: int) -> bool:
        """Whether that is a column of the wgmma of a warpgroup."""
        first = self.clocks.multiplied
        count = -(-self.clocks.warps // WARPGROUP)
        return 0 <= first <= column < first + count

    def _pair(self, warp: int, other: int) -> str:
        """What is missing between the accesses of two warps."""
        if self._multiplies(other):
            return "no order after a wgmma.wait_group"
        if warp == other:
            return "different lanes of one warp with no bar.warp.sync between"
        if other >= self.clocks.warps:
            return "no wait for the mbarrier of a copy"
        each = self.clocks.block_warps
        if other >= 0 and warp // each != other // each:
            return "nothing of scope .cluster between"
        return "no barrier between"

    def _place(self, block: int, warp: int, offset: int) -> str:
        """The byte in its block, with the block if that is not the warp's."""
        rank, byte = divmod(offset, self.step)
        each = self.names.shape.warps
        if rank == warp // each:
            return str(byte)
        return f"{byte} of block {self.names.block(block, rank * each)}"

    def byte_of(self, lanes: Lanes, entry: int) -> str:
        """Where one entry accesses shared memory."""
        block, warp = int(lanes.block()[entry]), int(lanes.warp()[entry])
        return self._place(block, warp, int(lanes.offset[entry]))

    def overlap(self, lanes: Lanes, entry: int, other: int, differ: bool) -> Hazard:
        """An entry and one of another warp (-1: the same) write the same bytes."""
        block, warp = int(lanes.block()[entry]), int(lanes.warp()[entry])
        who = "several lanes"
        if other >= 0:
            number = self.names.warp_seen_from(block, warp, other)
            who = f"warps {self.names.warp(warp)} and {number}"
        kind, tail = WRITE_AFTER_WRITE, "which value stays is not defined"
        if not differ:
            kind, tail = EQUAL_WRITES, "both write the same value"
        what = (
            f"{who} write shared byte {self.byte_of(lanes, entry)} with no order "
            f"between them; {tail}: `{lanes.ins.text}`"
        )
        return self.at_entry(kind, what, lanes, entry, lanes.ins.line)

    def at_entry(
        self, kind: str, what: str, lanes: Lanes, entry: int, other: int | None
    ) -> Hazard:
        """A report of one entry of an access."""
        block, warp = int(lanes.block()[entry]), int(lanes.warp()[entry])
        byte = int(lanes.offset[entry]) % self.step
        return self._made(kind, what, lanes.ins, other, (block, warp, byte))

    def _made(
        self,
        kind: str,
        what: str,
        ins: Instruction,
        other: int | None,
        where: tuple[int, int, int],
    ) -> Hazard:
        block, warp, byte = where
        name = self.names.block(block, warp)
        place = (name, self.names.warp(warp), byte, "shared", ins.source)
        return Hazard(kind, f"block {name} {what}", ins.line, other, *place)
