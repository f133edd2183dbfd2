"""Asynchronous copies on their way: what was issued and has not landed yet."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from alcop_mlir.runtime.emulator.arithmetic.storage import Array
from alcop_mlir.runtime.emulator.machine.lanes import Lanes


class Flight:
    """What ends at some time after its issue, with arrivals at mbarriers."""

    def finish(self) -> None:
        """Ends now."""
        raise NotImplementedError

    def cells(self) -> set[int]:
        """The cells of `Mbarriers` that it changes."""
        raise NotImplementedError

    def report(self) -> None:
        """The kernel has ended before it."""

    def learn(self) -> None:
        """Its threads know of the end without an mbarrier."""


@dataclass
class PendingCopy:
    """The copies of one instruction (one per lane) that have not landed.

    `lanes`: where they go in shared memory; `source`: the global offset of each lane
    that has bytes to read; `filled`: which entries of `lanes` those are (None: all);
    `read_bytes`: how many bytes each of them reads, int64, or None if all read
    `lanes.size`; `group`: the commit group number of each lane, a register; `arrivals`:
    those that come when it has landed.
    """

    lanes: Lanes
    source: Array
    filled: Array | None
    read_bytes: Array | None
    group: Array
    arrivals: tuple[Flight, ...] = ()

    def only(self, keep: Array) -> PendingCopy | None:
        """The copies of the lanes whose register `keep` is true; None without one."""
        lanes = self.lanes
        if not lanes.per_block and lanes.owner.blocks > 1:
            lanes = lanes.widened()  # sources differ by block: one entry for each
        chosen = np.flatnonzero(lanes.pick(keep))
        if not chosen.size:
            return None
        source, filled, read_bytes = self.source, self.filled, self.read_bytes
        if filled is None:
            source = source[chosen]
        else:
            inside = np.isin(filled, chosen)
            filled = np.searchsorted(chosen, filled[inside])
            source = source[inside]
            read_bytes = None if read_bytes is None else read_bytes[inside]
        return PendingCopy(
            lanes.only(chosen), source, filled, read_bytes, self.group, self.arrivals
        )


@dataclass(eq=False, kw_only=True)
class PendingStore:
    """Bulk copies out of shared memory whose writes no wait covers.

    group: the number of the bulk group of each lane, a register
    """

    group: Array

    def read(self) -> None:
        """Shared memory is read, and may be written again."""
        raise NotImplementedError

    def write(self) -> None:
        """What has been read is there."""
        raise NotImplementedError

    def report(self) -> None:
        """The kernel has ended before a wait for the read."""


@dataclass(frozen=True)
class OpenGroup:
    """A commit group that no wait has completed; the arrays are (1|blocks, 1|warps).

    `position`, `multiplies`: how many instructions (`mma`) each warp had issued before
    the commit at `line`.
    """

    group: Array
    line: int
    position: Array
    multiplies: Array
