"""Counters of a run: what a profiler would tell about shared memory and copies.

Figures are per warp instruction, summed over the grid. Shared memory has 32 banks of
4 bytes; an access of 8 (16) bytes a lane goes in 2 (4) phases of a half (quarter) warp,
`ldmatrix` in phases of 8 row addresses. A phase takes as many *wavefronts* as the most
different words that it needs from one bank (CUDA C++ Programming Guide, "Shared
Memory"). Global memory moves in sectors of 32 bytes.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np

from alcop_mlir.runtime.emulator.arithmetic.storage import Array
from alcop_mlir.runtime.emulator.machine.batch import Batch
from alcop_mlir.runtime.emulator.machine.cohort import Cohort, Observer
from alcop_mlir.runtime.emulator.machine.lanes import Lanes
from alcop_mlir.runtime.emulator.machine.loaded_kernel import Listing
from alcop_mlir.runtime.emulator.machine.pending_copy import OpenGroup, PendingCopy
from alcop_mlir.runtime.emulator.machine.warps import LANES, Mask
from alcop_mlir.runtime.emulator.ptx.syntax import Instruction

BANKS, BANK_BYTES = 32, 4
SECTOR_BYTES = 32
NEVER = np.int64(2**62)  # the number of no group
PHASE_BYTES = BANKS * BANK_BYTES  # the most that one wavefront moves


@dataclass
class LineCounters:
    """The memory traffic of one PTX line, over the whole grid."""

    line: int
    text: str
    shared_wavefronts: int = 0
    shared_wavefronts_ideal: int = 0
    global_sectors: int = 0
    global_sectors_ideal: int = 0


@dataclass(frozen=True)
class GroupCounters:
    """The commit groups of one commit line, completed by one wait line.

    `groups` is how many (of one warp each). `*_ahead` say how many instructions (`mma`
    instructions) of its warp came between the commit and the wait: least, mean, most.
    """

    commit_line: int
    wait_line: int
    groups: int
    instructions_ahead: tuple[int, float, int]
    multiplies_ahead: tuple[int, float, int]


@dataclass
class RingCounters:
    """One mbarrier, by its first byte in shared memory, in all blocks.

    copies, copied_bytes: that ended there; waits: how often warps, or
    lanes of a warp that have diverged, have ended a wait for it
    """

    byte: int
    copies: int = 0
    copied_bytes: int = 0
    waits: int = 0


@dataclass(frozen=True)
class Counters:
    """The counters of one kernel run.

    `instructions`: warp instructions by class. `copy_bytes`: bytes that `cp.async`
    read from global memory (without zero fill). `multiply_groups`: the groups of
    wgmma; `rings`: the mbarriers that warps have waited for, or that have counted
    bytes; `loaded_bytes`, `stored_bytes`: of bulk copies to and from shared memory;
    `in_flight`: the most bytes on their way to one block at a time.
    """

    instructions: dict[str, int]
    shared_wavefronts: int
    shared_wavefronts_ideal: int
    global_sectors: int
    global_sectors_ideal: int
    copy_bytes: int
    groups: tuple[GroupCounters, ...]
    lines: tuple[LineCounters, ...]
    multiply_groups: tuple[GroupCounters, ...] = ()
    rings: tuple[RingCounters, ...] = ()
    loaded_bytes: int = 0
    stored_bytes: int = 0
    in_flight: int = 0

    @property
    def bank_conflicts(self) -> int:
        """Wavefronts beyond those that a conflict-free layout would take."""
        return self.shared_wavefronts - self.shared_wavefronts_ideal


def _spread(values: Array) -> tuple[int, float, int]:
    """Least, mean and most."""
    return int(values.min()), float(values.mean()), int(values.max())


class CounterSet(Observer):
    """Collects the counters of all batches of a launch."""

    def __init__(self, listing: Listing):
        self.listing = listing
        self.executed: Counter[tuple[int, int]] = Counter()
        self.lines: dict[int, LineCounters] = {}
        # By commit and wait line: how many warps were how many instructions, and mma,
        # apart.
        self.distances: dict[tuple[int, int], Counter[tuple[int, int]]] = {}
        self.copy_bytes = 0
        self.multiply_distances: dict[tuple[int, int], Counter[tuple[int, int]]] = {}
        self.rings: dict[int, RingCounters] = {}
        self.loaded_bytes = self.stored_bytes = self.in_flight = 0
        self._batch: Batch | None = None  # that which the next one is of
        self._flying = np.zeros(0, np.int64)

    def on_span(
        self, cohort: Cohort, start: int, count: int, mask: Mask, warps: int
    ) -> None:
        self.executed[start, count] += warps

    def on_shared(self, lanes: Lanes) -> None:
        """A shared access: wavefronts and bank conflicts."""
        size = lanes.size
        if not lanes.offset.size:
            return
        each = max(size // BANK_BYTES, 1)
        phases_per_warp = max(size * LANES // PHASE_BYTES, 1)
        lanes_per_phase = LANES // phases_per_warp
        phase = _group(lanes) * phases_per_warp + lanes.lane() // lanes_per_phase
        word = (lanes.offset // BANK_BYTES)[:, None] + np.arange(each)
        span = np.int64(1) << 32
        distinct = np.unique((phase[:, None] * span + word).reshape(-1))
        bank = distinct // span * BANKS + distinct % span % BANKS
        banks, needs = np.unique(bank, return_counts=True)
        starts = np.flatnonzero(np.diff(banks // BANKS, prepend=-1))
        wavefronts = int(np.maximum.reduceat(needs, starts).sum())
        times = _stands_for(lanes)
        line = self._line(lanes)
        line.shared_wavefronts += wavefronts * times
        line.shared_wavefronts_ideal += len(starts) * times

    def on_global(self, lanes: Lanes) -> None:
        """A global access: 32-byte sectors touched, and the fewest possible."""
        offset, size = lanes.offset, lanes.size
        if not offset.size:
            return
        group = _group(lanes)
        span = np.int64(1) << 44
        sectors = np.unique(group * span + offset // SECTOR_BYTES).size
        elements = np.unique(group * span + offset // size) // span
        per_warp = np.unique(elements, return_counts=True)[1]
        ideal = int((-(-per_warp * size // SECTOR_BYTES)).sum())
        times = _stands_for(lanes)
        line = self._line(lanes)
        line.global_sectors += sectors * times
        line.global_sectors_ideal += ideal * times

    def _line(self, lanes: Lanes) -> LineCounters:
        ins = lanes.ins
        return self.lines.setdefault(ins.line, LineCounters(ins.line, ins.text))

    def on_copy(self, cohort: Cohort, copy: PendingCopy) -> None:
        """The bytes that it reads."""
        read = copy.read_bytes
        self.copy_bytes += (
            copy.source.size * copy.lanes.size if read is None else int(read.sum())
        )

    def on_commit(self, cohort: Cohort, mask: Mask, ins: Instruction) -> None:
        """A commit; groups without copies are not counted."""
        group = cohort.committed
        if any(copy.group is group for copy in cohort.copies):
            opened = OpenGroup(group, ins.line, *cohort.positions(ins))
            cohort.open_groups.append(opened)

    def on_wait(
        self, cohort: Cohort, limit: Array, mask: Mask, ins: Instruction
    ) -> None:
        left: list[OpenGroup] = []
        for group in cohort.open_groups:
            done = group.group < limit
            if mask is not None:
                done = done & mask
            if not done.any():
                left.append(group)
                continue
            warps = np.asarray(done.any(axis=2))
            self._completed(self.distances, cohort, group, warps, ins)
        cohort.open_groups = left

    def _completed(
        self,
        distances: dict[tuple[int, int], Counter[tuple[int, int]]],
        cohort: Cohort,
        group: OpenGroup,
        done: Array,
        ins: Instruction,
    ) -> None:
        """The wait `ins` has completed a group of these warps."""
        here, multiplies = cohort.positions(ins)
        shape = (cohort.blocks, cohort.warps)
        warps = np.broadcast_to(done, shape)
        ahead = (here - group.position - 1, multiplies - group.multiplies)
        issued, multiplied = (np.broadcast_to(x, shape)[warps] for x in ahead)
        found = distances.setdefault((group.line, ins.line), Counter())
        found.update(zip(issued.tolist(), multiplied.tolist(), strict=True))

    def on_multiply_commit(
        self, cohort: Cohort, active: Array, ins: Instruction
    ) -> None:
        """A commit of these warps; groups without wgmma are counted, too."""
        number = np.where(active, cohort.wgmma.committed, NEVER)
        opened = OpenGroup(number, ins.line, *cohort.positions(ins))
        cohort.open_multiplies.append(opened)

    def on_multiply_wait(
        self, cohort: Cohort, limit: Array, active: Array, ins: Instruction
    ) -> None:
        left: list[OpenGroup] = []
        for group in cohort.open_multiplies:
            done = (group.group < limit) & active
            if done.any():
                self._completed(self.multiply_distances, cohort, group, done, ins)
            rest = np.where(done, NEVER, group.group)
            if (rest < NEVER).any():
                left.append(replace(group, group=rest))
        cohort.open_multiplies = left

    def on_load(self, cohort: Cohort, objects: Lanes, count: int) -> None:
        if cohort.batch is not self._batch:
            self._batch = cohort.batch
            self._flying = np.zeros(cohort.blocks, np.int64)
        self.loaded_bytes += count * objects.offset.size
        for ring, copies in self._rings(cohort, objects):
            ring.copies += copies
            ring.copied_bytes += copies * count
        np.add.at(self._flying, objects.block(), count)
        self.in_flight = max(self.in_flight, int(self._flying.max()))

    def on_load_end(self, cohort: Cohort, objects: Lanes, count: int) -> None:
        np.subtract.at(self._flying, objects.block(), count)

    def on_store(self, cohort: Cohort, issuers: Lanes, count: int) -> None:
        self.stored_bytes += count * issuers.offset.size

    def on_phase(self, cohort: Cohort, objects: Lanes, ready: Array) -> None:
        over = objects.only(np.flatnonzero(ready))
        _, first = np.unique(
            np.stack([over.block(), over.warp(), over.offset]),
            axis=1,
            return_index=True,
        )
        for ring, waits in self._rings(cohort, over.only(first)):
            ring.waits += waits

    def _rings(
        self, cohort: Cohort, objects: Lanes
    ) -> Iterator[tuple[RingCounters, int]]:
        """The mbarriers, and how many of the entries are of each."""
        offsets = objects.offset % cohort.batch.shared_step
        for byte, times in zip(*np.unique(offsets, return_counts=True), strict=True):
            ring = self.rings.setdefault(int(byte), RingCounters(int(byte)))
            yield ring, int(times)

    def result(self) -> Counters:
        """The totals."""
        instructions: Counter[str] = Counter()
        for (start, count), warps in self.executed.items():
            for name in self.listing.classes[start : start + count]:
                instructions[name] += warps
        lines = tuple(line for _, line in sorted(self.lines.items()))
        return Counters(
            dict(sorted(instructions.items())),
            sum(c.shared_wavefronts for c in lines),
            sum(c.shared_wavefronts_ideal for c in lines),
            sum(c.global_sectors for c in lines),
            sum(c.global_sectors_ideal for c in lines),
            self.copy_bytes,
            _groups(self.distances),
            lines,
            _groups(self.multiply_distances),
            tuple(ring for _, ring in sorted(self.rings.items())),
            self.loaded_bytes,
            self.stored_bytes,
            self.in_flight,
        )


def _groups(
    distances: dict[tuple[int, int], Counter[tuple[int, int]]],
) -> tuple[GroupCounters, ...]:
    groups: list[GroupCounters] = []
    for (commit, wait), found in sorted(distances.items()):
        issued, multiplied = np.array(list(found.elements())).T
        spreads = _spread(issued), _spread(multiplied)
        groups.append(GroupCounters(commit, wait, issued.size, *spreads))
    return tuple(groups)


def _group(lanes: Lanes) -> Array:
    """One number per warp (of a block) that makes the access, per entry."""
    warps = lanes.owner.block_set.warps
    return (lanes.block() * warps + lanes.warp()).astype(np.int64)


def _stands_for(lanes: Lanes) -> int:
    """How many warps of the batch each warp of the entries stands for."""
    owner = lanes.owner
    blocks = owner.blocks if lanes.shape[0] == 1 else 1
    warps = owner.warps if lanes.shape[1] == 1 else 1
    return blocks * warps
