"""What the machine tells the race checks about each access to memory.

`hazards` implements these; a batch without race checks has None instead.
"""

from __future__ import annotations

from typing import Protocol

import numpy as np

from alcop_mlir.runtime.emulator.machine.lanes import Lanes
from alcop_mlir.runtime.emulator.ptx.syntax import Instruction

Array = np.ndarray


class SharedWatcher(Protocol):
    """Watches the shared memory of a batch."""

    def widen(self, blocks: int) -> None:
        """From now on the blocks differ: one record for each, not one for all."""
        ...

    def on_read(
        self, lanes: Lanes, size: int, ins: Instruction, collective: bool = False
    ) -> None:
        """Before a read of `size` bytes per lane; `collective`: by the whole warp."""
        ...

    def on_write(
        self, lanes: Lanes, size: int, ins: Instruction, in_flight: bool = False
    ) -> Array | None:
        """Before a store, or the issue of a copy (`in_flight`).

        Returns which entries share bytes with another lane of their warp (None: none).
        """
        ...

    def on_atomic(self, lanes: Lanes, size: int, ins: Instruction) -> None:
        """Before a read-modify-write."""
        ...

    def on_landing(self, lanes: Lanes, size: int, line: int) -> None:
        """After the copies issued at `line` are complete."""
        ...

    def report_overlap(self, lanes: Lanes, entry: int, ins: Instruction) -> None:
        """Two lanes wrote different values to the same bytes in one instruction."""
        ...

    def report_never_waited(self, lanes: Lanes, ins: Instruction) -> None:
        """A copy was still in flight when the kernel ended."""
        ...


class GlobalWatcher(Protocol):
    """Watches the global memory of a launch; offsets count from its window's start."""

    def on_read(self, lanes: Lanes, offset: Array, size: int, ins: Instruction) -> None:
        """Before a read of `size` bytes at each offset."""
        ...

    def on_write(
        self, lanes: Lanes, offset: Array, size: int, ins: Instruction, differs: Array
    ) -> Array | None:
        """Before a store; `differs`: the entries that change what memory holds.

        Returns the entries that another block writes with the same instruction.
        """
        ...

    def on_fence(self, blocks: Array) -> None:
        """After a fence of gpu or sys scope by these blocks (numbers in the grid)."""
        ...

    def report_clash(self, lanes: Lanes, entry: int, ins: Instruction) -> None:
        """Two blocks wrote different values with one instruction; `entry` lost."""
        ...
