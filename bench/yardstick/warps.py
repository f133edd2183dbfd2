"""An SM whose warps copy by cp.async, load fragments and multiply by mma.

Each warp issues in order. What it needs is a queue: the scheduler and the tensor core
of its quarter, the load and store units, the port of shared memory, the SM's way to L2
and its share of DRAM. An event is a run of equal instructions of one warp, which takes
a queue for as many cycles as these take. A K step of a warp is

    wait for the warp's own copies of the tile, then for the block's warps (a barrier)
    for each step of mma: a part of the copies of the tile that comes slots - 1 steps
    later, where the tile before was; fragments, as many steps ahead as there are
    registers; mma

With registers for two steps or more the first fragments of a tile are loaded before the
last mma of the tile before, behind the barrier.

The loop is followed until it repeats; the rest is as many times its period.
"""

from __future__ import annotations

from dataclasses import dataclass
from heapq import heappop, heappush

from yardstick import copies
from yardstick.kernel import LANES, MMA, MMA_BYTES, Kernel
from yardstick.machines import Machine

_FILL = 3  # K steps, besides those that fill the ring, until the loop repeats
_PERIOD = 5  # K steps that are counted
_LDMATRIX = 512.0  # bytes of one, of four 8x8 matrices; PTX ISA
_STORE = 512.0  # bytes of a warp's store of 16 bytes a lane
_SWINGS = 64  # latencies in turn


@dataclass(frozen=True)
class Feed:
    """What an SM gets of the memory in one wave.

    l2, dram: bytes per cycle of this SM
    latency: cycles until a tile's first byte comes
    missed: the part of the bytes that comes from DRAM
    """

    l2: float
    dram: float
    latency: float
    missed: float


def loop_cycles(kernel: Kernel, machine: Machine, blocks: int, feed: Feed) -> float:
    """Cycles of the K loops of `blocks` blocks that start together on one SM."""
    full = kernel.slots + _FILL + _PERIOD  # then the ring runs empty
    followed = min(kernel.steps, full + kernel.slots)
    ends = _Sm(kernel, machine, blocks, feed, followed).run()
    if followed == kernel.steps:
        return ends[-1]
    period = (ends[full - 1] - ends[full - 1 - _PERIOD]) / _PERIOD
    return ends[-1] + (kernel.steps - followed) * period


class _Sm:
    """The queues, each by the cycle at which it is free, and where each warp is."""

    def __init__(
        self, kernel: Kernel, machine: Machine, blocks: int, feed: Feed, steps: int
    ):
        self.kernel, self.machine, self.feed = kernel, machine, feed
        self.blocks, self.steps = blocks, steps
        self.warps = kernel.warps
        self.program = _program(kernel)
        self.costs = _costs(kernel, machine)
        quarters = machine.quarters
        self.scheduler = [0.0] * quarters
        self.tensor = [0.0] * quarters
        self.units = [0.0] * quarters
        self.port = self.way = self.share = self.tags = 0.0
        count = blocks * self.warps
        self.loaded = [[0.0] * 2 * kernel.fragments for _ in range(count)]
        self.multiplied = [-1e9] * count  # when the last run of mma began
        self.arrived = [[0.0] * steps for _ in range(count)]  # of the warp's copies
        self.waiting: list[list[tuple[float, int]]] = [[] for _ in range(blocks)]
        self.ends = [0.0] * steps

    def run(self) -> list[float]:
        """The cycle at which all blocks have ended each K step."""
        events = [(0.0, warp, -1, 0) for warp in range(self.blocks * self.warps)]
        program = self.program
        while events:
            now, warp, step, at = heappop(events)
            if step < 0:
                for tile in range(min(max(1, self.kernel.slots - 1), self.steps)):
                    now = self._copy(now, warp, tile, self.kernel.fragments)
                heappush(events, (now, warp, 0, 0))
                continue
            kind, fragment = program[at]
            number = step * self.kernel.fragments + fragment
            if kind == "barrier":
                self._barrier(events, now, warp, step, at)
                continue
            if kind == "copy":
                tile = step + self.kernel.slots - 1
                now = self._copy(now, warp, tile) if tile < self.steps else now
            elif kind == "load":
                now = self._load(now, warp, number)
            elif number >= 0:
                begun = self._mma_begins(now, warp, number)
                if begun > now:  # others may come first
                    heappush(events, (begun, warp, step, at))
                    continue
                now = self._mma(now, warp, number)
            self._next(events, now, warp, step, at)
        return self.ends

    def _next(
        self,
        events: list[tuple[float, int, int, int]],
        now: float,
        warp: int,
        step: int,
        at: int,
    ) -> None:
        if at + 1 < len(self.program):
            heappush(events, (now, warp, step, at + 1))
            return
        if step + 1 < self.steps:
            heappush(events, (now, warp, step + 1, 0))
        elif self.program[-1] != ("mma", self.kernel.fragments - 1):
            number = self.steps * self.kernel.fragments - 1
            now = self._mma(self._mma_begins(now, warp, number), warp, number)
            now += self.machine.mma_latency
        self.ends[step] = max(self.ends[step], now)

    def _barrier(
        self,
        events: list[tuple[float, int, int, int]],
        now: float,
        warp: int,
        step: int,
        at: int,
    ) -> None:
        """The last warp of a block that comes lets all go on."""
        block = warp // self.warps
        here = self.waiting[block]
        single = self.kernel.slots == 1
        if not single:
            now = max(now, self.arrived[warp][step])
        here.append((now, warp))
        if len(here) < self.warps:
            return
        released = max(time for time, _ in here) + self.machine.barrier
        self.waiting[block] = []
        for _, one in here:
            after = released
            if single and step:  # nothing is early: all wait for the tile
                after = self._copy(after, one, step, self.kernel.fragments)
            if single:
                after = max(after, self.arrived[one][step]) + self.machine.barrier
            self._next(events, after, one, step, at)

    def _copy(self, now: float, warp: int, tile: int, parts: int = 1) -> float:
        """So many parts of the warp's copies of a tile; when it may go on.

        There are as many parts as steps of mma.
        """
        cost, quarter = self.costs, warp % self.machine.quarters
        issued = max(now, self.scheduler[quarter]) + parts * cost.copy_issue
        self.scheduler[quarter] = issued
        self.units[quarter] = max(self.units[quarter], now) + parts * cost.copy_units
        self.tags = max(self.tags, now) + parts * cost.copy_tags
        asked = max(self.units[quarter], self.tags)
        moved = parts * cost.copy_bytes
        self.way = max(self.way, asked) + moved / self.feed.l2
        self.share = max(self.share, asked) + moved * self.feed.missed / self.feed.dram
        self.port += parts * cost.copy_port  # written when it comes
        swing = ((warp * 7 + tile * 13) * 29 % _SWINGS) / _SWINGS - 0.5
        latency = self.feed.latency * (1 + self.machine.swing * swing)
        self.arrived[warp][tile] = max(self.way, self.share) + latency
        if self.kernel.by_elements:  # through registers
            stored = self.kernel.fragments * cost.copy_port
            self.arrived[warp][tile] += stored + self.machine.shared_latency
        return max(issued, asked - self.machine.queue)

    def _load(self, now: float, warp: int, number: int) -> float:
        """Fragments of that number, for a step of mma, from shared memory."""
        cost, quarter = self.costs, warp % self.machine.quarters
        issued = max(now, self.scheduler[quarter]) + cost.load_issue
        self.scheduler[quarter] = issued
        self.units[quarter] = max(self.units[quarter], now) + cost.load_units
        self.port = max(self.port, now) + cost.load_port
        ready = max(self.port, self.units[quarter])
        place = number % len(self.loaded[warp])
        self.loaded[warp][place] = ready + self.machine.shared_latency
        return max(issued, ready - self.machine.queue)

    def _mma_begins(self, now: float, warp: int, number: int) -> float:
        """When the mma of a step can: its fragments and the core are there."""
        loaded = self.loaded[warp][number % len(self.loaded[warp])]
        chained = self.multiplied[warp] + self.machine.mma_latency
        free = self.tensor[warp % self.machine.quarters]
        return max(now, loaded - self.costs.load_part, chained, free)

    def _mma(self, begun: float, warp: int, number: int) -> float:
        """All mma of a step; when the last is issued."""
        cost, quarter = self.costs, warp % self.machine.quarters
        loaded = self.loaded[warp][number % len(self.loaded[warp])]
        last = max(begun + cost.mma, loaded + self.machine.mma) - self.machine.mma
        self.multiplied[warp] = begun
        self.tensor[quarter] = begun + cost.mma
        issued = max(begun, self.scheduler[quarter]) + cost.mma_issue
        self.scheduler[quarter] = issued
        return max(last, issued)


@dataclass(frozen=True)
class _Costs:
    """Cycles of one warp, for a step of mma: of a part of its copies, fragments, mma.

    load_part: by which the first mma can start before the last fragment comes
    """

    copy_issue: float
    copy_units: float
    copy_tags: float
    copy_bytes: float
    copy_port: float
    load_issue: float
    load_units: float
    load_port: float
    load_part: float
    mma: float
    mma_issue: float


def _costs(kernel: Kernel, machine: Machine) -> _Costs:
    step = copies.of_step(kernel)
    rows, columns = kernel.warp
    parts = kernel.warps * kernel.fragments  # of a block's copies
    instructions = step.instructions / parts
    bytes_of_fragments = (rows + columns) * MMA_BYTES
    # ldmatrix transposes elements of two bytes; of others each is loaded by itself.
    single = sum(
        side * MMA_BYTES
        for side, along_k in zip((rows, columns), kernel.along_k, strict=True)
        if not along_k and kernel.size != 2
    )
    loads = (bytes_of_fragments - single) / _LDMATRIX
    loads += single / (LANES * kernel.size) * (1 if kernel.size == 4 else 1.5)
    load_port = (bytes_of_fragments + single) / machine.shared_bytes
    multiplications = max(1.0, rows / MMA[0]) * max(1.0, columns / MMA[1])
    mma = multiplications * machine.mma
    fixed = machine.unroll / kernel.fragments
    return _Costs(
        copy_issue=instructions * (1 + machine.address),
        copy_units=instructions * LANES / 8,  # a quarter has 8 units; [WA]
        copy_tags=step.lines / parts / machine.tags,
        copy_bytes=step.moved / parts,
        copy_port=step.stored / parts / machine.shared_bytes,
        load_issue=loads + fixed,
        load_units=loads,
        load_port=load_port,
        load_part=0.5 * load_port,
        mma=mma,
        mma_issue=multiplications,
    )


def _program(kernel: Kernel) -> list[tuple[str, int]]:
    """A warp's K step, as events."""
    # A tile's first fragments may be loaded before the last mma of the tile before.
    late = 0 if kernel.registers == 1 or kernel.slots == 1 else 1
    copies = [("copy", 0)] if kernel.slots > 1 else []
    events = [("barrier", 0)]
    for fragment in range(kernel.fragments):
        events += [*copies, ("load", fragment), ("mma", fragment - late)]
    return events
