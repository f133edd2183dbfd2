"""A timeline of one block in the Chrome trace format, for ui.perfetto.dev.

One row per warp. Time is emulated: a warp's clock advances by one for every
instruction it issues, and barriers bring the clocks of their warps to the latest one;
so the picture shows what overlaps in program order, not how long hardware takes. Who
waits for an mbarrier is brought to its last arrival, and behind the issue of the bulk
copies that end there: these land at that time, which is the latest.

Copies in flight are asynchronous slices from issue to landing, groups of wgmma from
commit to wait; waits, barriers, the issue of bulk copies and runs of mma are slices on
the warp's row. The bytes of bulk copies in flight are a counter. Where warps have
roles, the row says what they do.
"""

from __future__ import annotations

import json
import math
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path
from typing import Any

import numpy as np

from alcop_mlir.errors import ConfigError, EmulationError
from alcop_mlir.files import write_whole
from alcop_mlir.runtime.emulator.arithmetic.storage import Array
from alcop_mlir.runtime.emulator.machine.cohort import Cohort, Observer
from alcop_mlir.runtime.emulator.machine.lanes import Lanes
from alcop_mlir.runtime.emulator.machine.loaded_kernel import MULTIPLY, Listing
from alcop_mlir.runtime.emulator.machine.pending_copy import PendingCopy
from alcop_mlir.runtime.emulator.machine.warps import LANES, BlockSet, Mask, Shape
from alcop_mlir.runtime.emulator.ptx.syntax import Instruction


@dataclass(frozen=True)
class TraceRequest:
    """Write a trace of block number `block` (x fastest) to `path`."""

    path: str | Path
    block: int = 0


@dataclass(frozen=True)
class _Load:
    """Bulk copies of one warp that end at an mbarrier of the traced block."""

    ins: Instruction
    warp: int
    start: int
    size: int  # bytes


class Tracer(Observer):
    """Collects the events of one block."""

    def __init__(self, request: TraceRequest, listing: Listing, launch: Shape):
        blocks = math.prod(launch.grid)
        if not 0 <= request.block < blocks:
            raise EmulationError(
                f"expected a block to trace from 0 to {blocks - 1}, got {request.block}"
            )
        self.request = request
        self.listing = listing
        self.events: list[dict[str, Any]] = []
        # The block's cluster: its number, and its index in the batch; its own warps.
        self.cluster, self.rank = launch.place_of(request.block)
        self.index = -1
        self.own = range(self.rank * launch.warps, (self.rank + 1) * launch.warps)
        self.delay: Counter[int] = Counter()
        self.flights: defaultdict[tuple[int, int], list[tuple[int, int]]]
        self.flights = defaultdict(list)  # by line and warp: number and start
        self.next_id = 0
        # Of each mbarrier, by its byte: bulk copies that are to end there; the time of
        # the last arrival. How the bytes in flight change, by time.
        self.loads: defaultdict[int, list[_Load]] = defaultdict(list)
        self.reached: Counter[int] = Counter()
        self.changes: list[tuple[int, int]] = []
        # Groups of wgmma in flight, by warp: number, line of the commit, start.
        self.groups: defaultdict[int, list[tuple[int, Instruction, int]]]
        self.groups = defaultdict(list)

    def follows(self, block_set: BlockSet) -> bool:
        """Whether the traced block is one of these."""
        at = np.flatnonzero(block_set.numbers == self.cluster)
        if at.size:
            self.index = int(at[0])
        return bool(at.size)

    def on_span(
        self, cohort: Cohort, start: int, count: int, mask: Mask, warps: int
    ) -> None:
        """Runs of mma in a stretch of code that is about to run."""
        for first, last in self._multiply_runs(start, start + count):
            for warp in self._warps(cohort, mask):
                time = self._time(cohort, warp, first)
                name = f"{MULTIPLY} x{last - first}"
                self._slice(warp, name, time, last - first, MULTIPLY)

    def on_copy(self, cohort: Cohort, copy: PendingCopy) -> None:
        """A copy is issued: one asynchronous slice per warp begins."""
        index = self.listing.index_of[copy.lanes.ins.line]
        for warp in self._warps(cohort, self._lanes_of(cohort, copy)):
            self.next_id += 1
            key = (copy.lanes.ins.line, warp)
            start = self._time(cohort, warp, index)
            self.flights[key].append((self.next_id, start))

    def on_landing(self, cohort: Cohort, copy: PendingCopy, wait: Instruction) -> None:
        """The copy is complete: its slices end at the wait."""
        index = self.listing.index_of[wait.line]
        for warp in self._warps(cohort, self._lanes_of(cohort, copy)):
            open_flights = self.flights[copy.lanes.ins.line, warp]
            if open_flights:
                number, start = open_flights.pop(0)
                stop = self._time(cohort, warp, index)
                self._flight(copy.lanes.ins, warp, number, start, stop)

    def on_commit(self, cohort: Cohort, mask: Mask, ins: Instruction) -> None:
        """A commit, as an instant."""
        self._mark(cohort, mask, ins, "commit")

    def on_wait(
        self, cohort: Cohort, limit: Array, mask: Mask, ins: Instruction
    ) -> None:
        """A wait_group, one instruction long."""
        self._mark(cohort, mask, ins, "wait")

    def on_load(self, cohort: Cohort, objects: Lanes, count: int) -> None:
        """The issue of bulk copies, and how many bytes a warp asks for."""
        self._bulk(cohort, objects, count, "load")
        index = self.listing.index_of[objects.ins.line]
        for warp, byte in self._at_own(cohort, objects):
            start = self._time(cohort, warp, index)
            self.loads[byte].append(_Load(objects.ins, warp, start, count))

    def on_arrive(self, cohort: Cohort, objects: Lanes) -> None:
        """Who waits for these comes later."""
        index = self.listing.index_of[objects.ins.line]
        for warp, byte in self._at_own(cohort, objects):
            if warp in self.own:
                time = self._time(cohort, warp, index)
                self.reached[byte] = max(self.reached[byte], time)

    def on_store(self, cohort: Cohort, issuers: Lanes, count: int) -> None:
        """The issue of bulk copies to global memory."""
        self._bulk(cohort, issuers, count, "store")

    def on_phase(self, cohort: Cohort, objects: Lanes, ready: Array) -> None:
        """The end of a wait for an mbarrier, and the landing of what ends there."""
        index = self.listing.index_of[objects.ins.line]
        over = objects.only(np.flatnonzero(ready))
        for warp, byte in dict(self._at_own(cohort, over)).items():
            if warp not in self.own:
                continue
            time = self._time(cohort, warp, index)
            loads = self.loads.pop(byte, [])
            last = max([time, self.reached[byte], *(one.start + 1 for one in loads)])
            self.delay[warp] += last - time
            name = f"mbarrier at byte {byte}"
            self._slice(warp, name, time, last - time + 1, "wait")
            for one in loads:
                self._land(one, last)

    def _at_own(self, cohort: Cohort, objects: Lanes) -> list[tuple[int, int]]:
        """Warps at mbarriers of the traced block, and where in its memory these are."""
        rank, byte = np.divmod(objects.offset, max(cohort.batch.shared_step, 1))
        mine = (objects.block() == self.index) & (rank == self.rank)
        return list(
            zip(objects.warp()[mine].tolist(), byte[mine].tolist(), strict=True)
        )

    def _land(self, one: _Load, stop: int) -> None:
        """A bulk copy, from its issue to its landing."""
        if one.warp in self.own:
            self.next_id += 1
            name, kind = f"load of {one.size:,} bytes in flight", "bulk load"
            times = (one.start, stop)
            self._between(one.ins, one.warp, self.next_id, times, name, kind)
        self.changes += [(one.start, one.size), (stop, -one.size)]

    def on_multiply_commit(
        self, cohort: Cohort, active: Array, ins: Instruction
    ) -> None:
        """A group of wgmma begins to be in flight."""
        self._mark(cohort, active[:, :, None], ins, "commit")
        index = self.listing.index_of[ins.line]
        for warp in self._warps(cohort, active[:, :, None]):
            number = self._at(cohort, warp, cohort.wgmma.committed)
            start = self._time(cohort, warp, index)
            self.groups[warp].append((number, ins, start))

    def on_multiply_wait(
        self, cohort: Cohort, limit: Array, active: Array, ins: Instruction
    ) -> None:
        """The groups that the wait covers end."""
        self._mark(cohort, active[:, :, None], ins, "wait")
        index = self.listing.index_of[ins.line]
        for warp in self._warps(cohort, active[:, :, None]):
            last = self._at(cohort, warp, limit)
            stop = self._time(cohort, warp, index)
            done = [group for group in self.groups[warp] if group[0] < last]
            self.groups[warp] = self.groups[warp][len(done) :]
            for _, commit, start in done:
                self._group(commit, warp, start, stop)

    def on_barrier(
        self, cohorts: Sequence[Cohort], waiting: Array, ins: Instruction
    ) -> None:
        row = waiting[self.index if waiting.shape[0] > 1 else 0]
        times: dict[int, int] = {}
        for cohort in cohorts:
            for warp in range(cohort.first_warp, cohort.first_warp + cohort.warps):
                if row[warp] and warp in self.own:
                    cohort.settle()
                    times[warp] = self._clock(cohort, warp)
        if not times:
            return
        last = max(times.values())
        for warp, time in times.items():
            # The clock counts the barrier itself, which the slice covers.
            self._slice(warp, ins.opcode, time - 1, last - time + 1, "barrier")
            self.delay[warp] += last - time

    def on_end(self, cohort: Cohort) -> None:
        """The end of the kernel: what is still in flight stays so to the end."""
        cohort.settle()
        for warp in range(cohort.first_warp, cohort.first_warp + cohort.warps):
            for _, commit, start in self.groups.pop(warp, []):
                self._group(commit, warp, start, self._clock(cohort, warp))
        for (line, warp), flights in list(self.flights.items()):
            if cohort.first_warp <= warp < cohort.first_warp + cohort.warps:
                stop = self._clock(cohort, warp)
                ins = self.listing.code[self.listing.index_of[line]]
                for number, start in flights:
                    self._flight(ins, warp, number, start, stop)
                del self.flights[line, warp]

    def write(self) -> None:
        """Writes the file, whole. Raises `EmulationError` if it cannot be written."""
        block = f"{self.listing.name}, block {self.request.block}"
        warps = sorted({e["tid"] for e in self.events})
        names = [_named("process_name", block)]
        roles = self._roles()
        names += [_named("thread_name", f"warp {w}{roles[w]}", tid=w) for w in warps]
        events = [*names, *self.events, *self._in_flight()]
        text = json.dumps({"traceEvents": events, "displayTimeUnit": "ns"})
        try:
            write_whole(self.request.path, text)
        except ConfigError as e:
            raise EmulationError(f"the trace: {e}") from None

    def _in_flight(self) -> Iterator[dict[str, Any]]:
        """The bytes of bulk copies on their way to the block, as they change."""
        total = 0
        for time, changes in groupby(
            sorted(self.changes), key=lambda change: change[0]
        ):
            total += sum(size for _, size in changes)
            name, given = "bytes in flight", {"bytes": total}
            yield dict(ph="C", name=name, pid=0, tid=0, ts=time, args=given)

    def _roles(self) -> defaultdict[int, str]:
        """By row, where there are bulk copies: `: loads`, `: multiplies`, ..."""
        verbs = {"load": "loads", "store": "stores", MULTIPLY: "multiplies"}
        roles: defaultdict[int, str] = defaultdict(str)
        done = {(event["tid"], event["name"].split()[0]) for event in self.events}
        if any(name == "load" for _, name in done):
            for warp in {warp for warp, _ in done}:
                found = [verbs[name] for name in verbs if (warp, name) in done]
                roles[warp] = f": {', '.join(found)}" * bool(found)
        return roles

    def _multiply_runs(self, start: int, stop: int) -> Iterator[tuple[int, int]]:
        """The stretches of mma in the instructions [start, stop)."""
        classes = self.listing.classes
        for name, run in groupby(range(start, stop), lambda i: classes[i]):
            first, *others = run
            if name == MULTIPLY:
                yield first, first + len(others) + 1

    def _warps(self, cohort: Cohort, mask: Mask) -> list[int]:
        """The warps of the traced block that have an active lane."""
        first = cohort.first_warp
        if mask is None:
            return [w for w in range(first, first + cohort.warps) if w in self.own]
        shape = (cohort.blocks, cohort.warps, mask.shape[2])
        on = np.broadcast_to(mask, shape)[self.index].any(axis=1)
        return [first + int(w) for w in np.flatnonzero(on) if first + w in self.own]

    def _lanes_of(self, cohort: Cohort, copy: PendingCopy) -> Mask:
        lanes = copy.lanes
        if lanes.index is None:
            return None
        mask = np.zeros(lanes.shape[0] * cohort.warps * LANES, bool)
        mask[lanes.index] = True
        return mask.reshape(lanes.shape)

    def _clock(self, cohort: Cohort, warp: int) -> int:
        """What the warp has issued, and lost at barriers, before the running span."""
        clock = np.broadcast_to(cohort.clock, (cohort.blocks, cohort.warps))
        return int(clock[self.index, warp - cohort.first_warp]) + self.delay[warp]

    def _time(self, cohort: Cohort, warp: int, index: int) -> int:
        """The emulated time at which a warp issues instruction `index`."""
        return self._clock(cohort, warp) + index - cohort.span_start

    def _at(self, cohort: Cohort, warp: int, x: Array) -> int:
        """Of an array (1|blocks, 1|warps), the entry of a warp of the traced block."""
        every = np.broadcast_to(x, (cohort.blocks, cohort.warps))
        return int(every[self.index, warp - cohort.first_warp])

    def _bulk(self, cohort: Cohort, lanes: Lanes, count: int, what: str) -> None:
        """One slice for each warp that issues bulk copies."""
        mine = lanes.warp()[lanes.block() == self.index]
        warps, copies = np.unique(mine, return_counts=True)
        index = self.listing.index_of[lanes.ins.line]
        for warp, number in zip(warps.tolist(), copies.tolist(), strict=True):
            if warp in self.own:
                time = self._time(cohort, warp, index)
                name = f"{what} of {number * count:,} bytes"
                self._slice(warp, name, time, 1, "bulk copy")

    def _mark(self, cohort: Cohort, mask: Mask, ins: Instruction, kind: str) -> None:
        index = self.listing.index_of[ins.line]
        for warp in self._warps(cohort, mask):
            name = ins.text.removeprefix("cp.async.").replace(".sync.aligned", "")
            self._slice(warp, name, self._time(cohort, warp, index), 1, kind)

    def _slice(self, warp: int, name: str, start: int, length: int, kind: str) -> None:
        tid = warp - self.own.start
        self.events.append(
            dict(ph="X", name=name, cat=kind, pid=0, tid=tid, ts=start, dur=length)
        )

    def _flight(
        self, ins: Instruction, warp: int, number: int, start: int, stop: int
    ) -> None:
        name, kind = f"copy, PTX line {ins.line}", "cp.async"
        self._between(ins, warp, number, (start, stop), name, kind)

    def _group(self, ins: Instruction, warp: int, start: int, stop: int) -> None:
        """A wgmma-group, from its commit to the wait for it."""
        self.next_id += 1
        name, kind = f"wgmma-group, PTX line {ins.line}", "wgmma"
        self._between(ins, warp, self.next_id, (start, stop), name, kind)

    def _between(
        self,
        ins: Instruction,
        warp: int,
        number: int,
        times: tuple[int, int],
        name: str,
        kind: str,
    ) -> None:
        """An asynchronous slice."""
        start, stop = times
        tid = warp - self.own.start
        common = dict(name=name, cat=kind, id=number, pid=0, tid=tid)
        begin = dict(common, ph="b", ts=start, args={"ptx": ins.text})
        self.events += [begin, dict(common, ph="e", ts=max(stop, start + 1))]


def _named(what: str, name: str, **where: int) -> dict[str, Any]:
    """The event that names a process or a thread."""
    return {"ph": "M", "name": what, "pid": 0, **where, "args": {"name": name}}
