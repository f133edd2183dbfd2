"""Conflicts between blocks in global memory.

Blocks of a grid run in any order, so bytes that one block writes and another reads or
writes are a conflict, unless both order themselves through memory fences. For every
access width used there is one array with the block that last wrote (read) each element:
0 nobody, -1 several blocks, else block number + 1. Writes of the value that is there
already are not conflicts. A block that has executed a fence of gpu or sys scope, or an
acquire or release operation, is taken to know what it does and is not checked from then
on (PTX ISA "Memory Consistency Model" would need a full model of the atomics).
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from alcop_mlir.runtime.emulator.hazards.reports import BLOCK_CONFLICT, Hazard, Reports
from alcop_mlir.runtime.emulator.machine.lanes import Lanes
from alcop_mlir.runtime.emulator.machine.memory import GLOBAL_WINDOW
from alcop_mlir.runtime.emulator.ptx.syntax import Instruction

Array = np.ndarray
SEVERAL = -1


class _Marks:
    """The blocks and lines of the last accesses, for elements of one width."""

    def __init__(self, size: int):
        self.block = np.zeros(size, np.int32)
        self.line = np.zeros(size, np.int32)


class GlobalShadow:
    """Kept for a whole launch, since blocks of different batches conflict too."""

    def __init__(self, size: int, reports: Reports, coordinates: Callable):
        self.size = size
        self.reports = reports
        self.coordinates = coordinates
        self.readers: dict[int, _Marks] = {}
        self.writers: dict[int, _Marks] = {}
        self.fenced: set[int] = set()

    def on_read(self, lanes: Lanes, offset: Array, size: int, ins: Instruction) -> None:
        """`offset` (entries,) from the start of the global window."""
        who = self._blocks(lanes)
        keep = self._unfenced(who)
        if keep is not None:
            offset, who = offset[keep], who[keep]
        if not offset.size:
            return
        for width, marks in self.writers.items():
            found = self._conflict(marks, width, offset, size, who)
            if found is not None:
                self._report(found, "read", "written", ins)
        self._mark(self.readers, offset, size, who, ins.line)

    def on_write(
        self, lanes: Lanes, offset: Array, size: int, ins: Instruction, differs: Array
    ) -> Array | None:
        """Before a store; `differs`: entries that change what memory holds.

        Returns the entries that another block writes with the same instruction, or
        None: only what is in memory afterwards tells whether their values differ.
        """
        who = self._blocks(lanes)
        keep = self._unfenced(who)
        if keep is not None:
            offset, who, differs = offset[keep], who[keep], differs[keep]
        if not offset.size:
            return None
        for width, marks in self.readers.items():
            found = self._conflict(marks, width, offset[differs], size, who[differs])
            if found is not None:
                self._report(found, "overwritten", "read", ins)
        for width, marks in self.writers.items():
            found = self._conflict(marks, width, offset[differs], size, who[differs])
            if found is not None:
                self._report(found, "overwritten", "written", ins)
        clash = self._mark(self.writers, offset, size, who, ins.line)
        if clash is None or keep is None:
            return clash
        every = np.zeros(keep.shape, bool)
        every[keep] = clash
        return every

    def on_fence(self, blocks: Array) -> None:
        """These blocks (numbers in the grid) order themselves from now on."""
        self.fenced.update((blocks + 1).tolist())

    def _blocks(self, lanes: Lanes) -> Array:
        if lanes.per_block or lanes.owner.blocks == 1:
            return lanes.owner.block_set.marks.take(lanes.block())
        return np.full(lanes.offset.shape, SEVERAL, np.int32)

    def _unfenced(self, who: Array) -> Array | None:
        if not self.fenced:
            return None
        return ~np.isin(who, list(self.fenced)) & (who != SEVERAL)

    def _conflict(
        self, marks: _Marks, width: int, offset: Array, size: int, who: Array
    ) -> tuple[int, int, int, int] | None:
        """The first (address, this block, other block, its line), or None."""
        at = (offset // width)[:, None]
        if size > width:
            at = at + np.arange(size // width)
        other = marks.block.take(at)
        bad = (other != 0) & ((other != who[:, None]) | (other == SEVERAL))
        if not bad.any():
            return None
        row, column = (int(i) for i in np.argwhere(bad)[0])
        place = int(at[row, column])
        address = GLOBAL_WINDOW + max(place * width, int(offset[row]))
        line = int(marks.line[place])
        return address, int(who[row]), int(other[row, column]), line

    def _mark(
        self, table: dict[int, _Marks], offset: Array, size: int, who: Array, line: int
    ) -> Array | None:
        """Records the access; returns entries that share an element across blocks."""
        marks = table.get(size)
        if marks is None:
            marks = table[size] = _Marks(self.size // size)
        at = offset // size
        before = marks.block.take(at)
        after = np.where((before == 0) | (before == who), who, SEVERAL)
        marks.block[at] = after
        marks.line[at] = line
        clash = marks.block.take(at) != after
        if not clash.any():
            return None
        marks.block[at[clash]] = SEVERAL
        return clash

    def _report(
        self, found: tuple[int, int, int, int], verb: str, past: str, ins: Instruction
    ) -> None:
        address, who, other, line = found
        block = self.coordinates(who - 1) if who > 0 else self.coordinates(0)
        names = "several blocks"
        if other > 0:
            names = f"block {self.coordinates(other - 1)}"
        message = (
            f"global address 0x{address:x} is {verb} by block {block} and was {past} "
            f"by {names} in the same launch: `{ins.text}`; the other access is PTX "
            f"line {line}: `{self.reports.text(line)}`"
        )
        self._add(message, ins, line, block, address)

    def report_clash(self, lanes: Lanes, entry: int, ins: Instruction) -> None:
        """Two blocks wrote different values with one instruction; `entry` lost."""
        address = GLOBAL_WINDOW + int(lanes.offset[entry])
        block = self.coordinates(int(self._blocks(lanes)[entry]) - 1)
        message = (
            f"global address 0x{address:x} is written by block {block} and, with "
            f"another value, by another block: `{ins.text}`"
        )
        self._add(message, ins, ins.line, block, address)

    def _add(
        self,
        message: str,
        ins: Instruction,
        other: int,
        block: tuple[int, int, int],
        address: int,
    ) -> None:
        self.reports.add(
            Hazard(
                BLOCK_CONFLICT,
                message,
                ins.line,
                other,
                block,
                0,
                address,
                "global",
                1,
                ins.source,
            )
        )
