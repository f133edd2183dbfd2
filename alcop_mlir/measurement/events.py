"""The events of the simulated SM: copies, barriers, fragment loads and `mma`.

One sub-core is simulated; the others do the same and take their part of what is shared.
All loops run at once, each as one row of the arrays; a round handles one event of every
row: the next fragment step of the warp that is ready first, with the load that the warp
issues after it. Long loops are run until they repeat and then extrapolated.

Where warps have roles (`Roles`), one warp copies, into slots that are free; one or two
groups of warps multiply, and free slots as many K steps later as groups of wgmma stay
in flight; then they store. Copies queue for the SM's share of L2 and DRAM, wgmma for
the tensor cores, the port of shared memory and the schedulers. Rows run a K step at a
time; of long loops some steps are run, and the rest follows from the last of them.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from alcop_mlir import hardware
from alcop_mlir.schedule import MAX_REGISTER_STAGES, MAX_SHARED_STAGES
from alcop_mlir.tuning.candidates import FloatArray, IntArray

COPY_BYTES = 16  # of one cp.async
COPY_ISSUE = 6.0  # cycles of a warp per cp.async and its address; an estimate
SETTLING_TILES = 6  # after two slot periods and these tiles the loop repeats
_KEPT = 0.7  # finished rows are dropped when less than this fraction is unfinished
_ROLE_STEPS = 24  # of a tile that are run
_ROLE_TILES = 3  # in a row that are run
_GROUPS = 2  # of warps that take turns, at most
_HELD = MAX_SHARED_STAGES + 4  # steps that are looked back


@dataclass(frozen=True, eq=False)
class Loops:
    """The K loops to simulate, by row. Times in clock cycles.

    blocks, warps: blocks on the sub-core, warps of each there
    stages, registers: slots of shared memory and of fragments
    tiles, fragments: steps of the K loop, steps inside a tile
    mma, fragment: tensor core and shared port, for one fragment step of one warp; the
        latter with its part of the tile that copies store there
    copy: memory port, for one tile of one block
    latency: of a copy once it is served; issue: of a tile's copies by a block
    """

    blocks: IntArray
    warps: IntArray
    stages: IntArray
    registers: IntArray
    tiles: IntArray
    fragments: IntArray
    mma: FloatArray
    fragment: FloatArray
    copy: FloatArray
    latency: FloatArray
    issue: FloatArray

    def __len__(self) -> int:
        return len(self.blocks)

    def take(self, rows: IntArray) -> Loops:
        """Those at `rows`, in that order."""
        return Loops(**{name: column[rows] for name, column in vars(self).items()})


def run(loops: Loops) -> FloatArray:
    """Clock cycles until the last warp of each loop has done its last `mma`."""
    simulated = np.minimum(loops.tiles, 2 * loops.stages + SETTLING_TILES)
    half = np.where(simulated < loops.tiles, np.maximum(simulated // 2, 1), 0)
    at_half, at_end = np.zeros(len(loops)), np.zeros(len(loops))
    rows = np.arange(len(loops))
    state = _State(loops, simulated)
    while len(rows):
        state.step()
        alive = ~state.done()
        if alive.mean() > _KEPT:
            continue
        at_half[rows], at_end[rows] = state.at_half, state.at_end
        rows = rows[alive]
        state.keep(alive)
    rate = (at_end - at_half) / np.maximum(simulated - half, 1)
    return at_end + rate * (loops.tiles - simulated)


class _State:
    """All rows between two events: arrays by row, row and warp, or row and block."""

    def __init__(self, loops: Loops, simulated: IntArray):
        rows, blocks = len(loops), int(loops.blocks.max())
        warps = int((loops.blocks * loops.warps).max())
        self.loops = loops
        self.last = simulated * loops.fragments  # fragment steps of a warp
        self.half = (simulated // 2) * loops.fragments
        self.block_of = np.arange(warps) // loops.warps[:, None]
        self.issued = np.zeros((rows, warps), np.int64)  # fragment steps
        self.ready = np.full((rows, warps), np.inf)
        self.loaded = np.zeros((rows, warps, MAX_REGISTER_STAGES))
        self.started = np.full((rows, warps), -np.inf)
        self.arrived = np.zeros((rows, blocks), np.int64)
        self.barrier = np.zeros((rows, blocks))
        self.tile_ready = np.zeros((rows, blocks, MAX_SHARED_STAGES))
        self.memory_free = np.zeros(rows)
        self.shared_free = np.zeros(rows)
        self.tensor_free = np.zeros(rows)
        self.at_half = np.zeros(rows)
        self.at_end = np.zeros(rows)
        self._fill()

    def keep(self, alive: np.ndarray) -> None:
        """Drop the rows that are not `alive`."""
        self.loops = self.loops.take(np.flatnonzero(alive))
        for name, value in list(vars(self).items()):
            if name != "loops":
                setattr(self, name, value[alive])

    def done(self) -> np.ndarray:
        """The rows in which all warps have finished."""
        return np.isinf(self.ready.min(axis=1))

    def step(self) -> None:
        """One `mma` of one warp in each row, then the warp's next load or a barrier."""
        row = np.flatnonzero(~self.done())
        warp = self.ready[row].argmin(axis=1)
        time = self._multiply(row, warp)
        load = self.issued[row, warp] + self.loops.registers[row]
        self.issued[row, warp] += 1
        over = self.issued[row, warp] >= self.last[row]
        self.ready[row[over], warp[over]] = np.inf
        none = load >= self.last[row]
        first = (load % self.loops.fragments[row] == 0) & ~none
        plain = ~first & ~none
        self._load(row[plain], warp[plain], load[plain], time[plain])
        goes_on = ~first & ~over
        self._set_ready(row[goes_on], warp[goes_on], time[goes_on])
        self._arrive(row[first], warp[first], load[first], time[first])

    def _fill(self) -> None:
        """Issue the copies of the first tiles, and the loads of the first fragments."""
        rows = np.arange(len(self.loops))
        for stage in range(int(self.loops.stages.max())):
            for block in range(self.arrived.shape[1]):
                lookahead = np.maximum(self.loops.stages - 1, 1)
                some = (stage < lookahead) & (stage < self.loops.tiles)
                some &= block < self.loops.blocks
                self._copy(rows[some], np.full(len(rows[some]), block), stage, 0.0)
        tile = (self.loops.registers - 1) // self.loops.fragments
        for warp in range(self.ready.shape[1]):
            some = warp < self.loops.blocks * self.loops.warps
            row = rows[some]
            block = self.block_of[row, warp]
            time = self.tile_ready[row, block, tile[row]] + hardware.BARRIER
            index = np.full(len(row), warp)
            for load in range(int(self.loops.registers.max())):
                early = (load < self.loops.registers[row]) & (load < self.last[row])
                number = np.full(early.sum(), load)
                self._load(row[early], index[early], number, time[early])
            self._set_ready(row, index, time)

    def _multiply(self, row: IntArray, warp: IntArray) -> FloatArray:
        """Issue the `mma` of the warp's next fragment step; the time when it ends."""
        start = np.maximum(self.ready[row, warp], self.tensor_free[row])
        start = np.maximum(start, self.started[row, warp] + hardware.MMA_LATENCY)
        end = start + self.loops.mma[row]
        self.started[row, warp] = start
        self.tensor_free[row] = end
        number = self.issued[row, warp] + 1
        half, last = number == self.half[row], number == self.last[row]
        self.at_half[row[half]] = np.maximum(self.at_half[row[half]], end[half])
        self.at_end[row[last]] = np.maximum(self.at_end[row[last]], end[last])
        return end

    def _load(
        self, row: IntArray, warp: IntArray, load: IntArray, time: FloatArray
    ) -> None:
        start = np.maximum(time, self.shared_free[row])
        end = start + self.loops.fragment[row]
        self.shared_free[row] = end
        slot = load % self.loops.registers[row]
        self.loaded[row, warp, slot] = end + hardware.SHARED_LATENCY

    def _set_ready(self, row: IntArray, warp: IntArray, time: FloatArray) -> None:
        """The warp continues at `time`, or once its next fragments are loaded."""
        slot = self.issued[row, warp] % self.loops.registers[row]
        self.ready[row, warp] = np.maximum(time, self.loaded[row, warp, slot])

    def _arrive(
        self, row: IntArray, warp: IntArray, load: IntArray, time: FloatArray
    ) -> None:
        """The warp waits for the others of its block before it reads the next tile."""
        block = self.block_of[row, warp]
        self.ready[row, warp] = np.inf
        self.arrived[row, block] += 1
        self.barrier[row, block] = np.maximum(self.barrier[row, block], time)
        last = self.arrived[row, block] == self.loops.warps[row]
        row, block, load = row[last], block[last], load[last]
        tile = load // self.loops.fragments[row]
        time = self.barrier[row, block] + hardware.BARRIER
        self.arrived[row, block] = 0
        self.barrier[row, block] = 0.0
        alone = self.loops.stages[row] == 1
        self._copy(row[alone], block[alone], tile[alone], time[alone])
        slot = tile % self.loops.stages[row]
        time = np.maximum(time, self.tile_ready[row, block, slot])
        time = time + np.where(alone, hardware.BARRIER, 0.0) + self.loops.issue[row]
        prefetched = tile + self.loops.stages[row] - 1
        more = ~alone & (prefetched < self.loops.tiles[row])
        self._copy(row[more], block[more], prefetched[more], time[more])
        for number in range(int(self.loops.warps.max()) if len(row) else 0):
            some = number < self.loops.warps[row]
            warp = block[some] * self.loops.warps[row[some]] + number
            self._load(row[some], warp, load[some], time[some])
            goes_on = self.issued[row[some], warp] < self.last[row[some]]
            self._set_ready(row[some][goes_on], warp[goes_on], time[some][goes_on])

    def _copy(
        self,
        row: IntArray,
        block: IntArray,
        tile: IntArray | int,
        time: FloatArray | float,
    ) -> None:
        end = np.maximum(time, self.memory_free[row]) + self.loops.copy[row]
        self.memory_free[row] = end
        slot = tile % self.loops.stages[row]
        self.tile_ready[row, block, slot] = end + self.loops.latency[row]


# -- warps in roles --------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Roles:
    """The loops to simulate, by row. Times in clock cycles.

    stages, in_flight: slots; groups of wgmma that are left unfinished
    turns: groups of warps that take tiles in turn, one or two
    steps, tiles: K steps of a tile, tiles of a block
    tensor, port, issue: of a K step, on the tensor cores, the port of shared memory
        and the schedulers
    copy, latency: of a K step's copies: on their way to the SM, and until they land
    drain: from the end of a group of wgmma to one that waits for it
    store: of a tile
    """

    stages: IntArray
    in_flight: IntArray
    turns: IntArray
    steps: IntArray
    tiles: FloatArray
    tensor: FloatArray
    port: FloatArray
    issue: FloatArray
    copy: FloatArray
    latency: FloatArray
    drain: FloatArray
    store: FloatArray

    def __len__(self) -> int:
        return len(self.stages)


def run_roles(roles: Roles) -> FloatArray:
    """Clock cycles until the last tile of each row is stored."""
    state = _RoleState(roles)
    ends = [state.tile(number) for number in range(_ROLE_TILES)]
    first, *later = ends
    period = (later[-1] - first) / (_ROLE_TILES - 1)
    return first + period * np.maximum(roles.tiles - 1.0, 0.0)


class _RoleState:
    """All rows between two K steps. Columns are those of steps that are looked back."""

    def __init__(self, roles: Roles):
        count = len(roles)
        self._roles = roles
        self._rows: npt.NDArray[np.int64] = np.arange(count)
        self._freed = np.zeros((count, _HELD))
        self._ends = np.zeros((count, _HELD))
        self._copied = np.zeros(count)
        self._multiplied = np.zeros(count)
        self._stored = np.zeros((count, _GROUPS))
        self._step: IntArray = np.zeros(count, np.int64)

    def tile(self, number: int) -> FloatArray:
        """Run a tile; when it is stored."""
        roles = self._roles
        group = number % roles.turns
        free = self._stored[self._rows, group]
        run = np.minimum(roles.steps, _ROLE_STEPS)
        half = np.zeros(len(roles))
        for step in range(int(run.max())):
            alive = step < run
            self._one(alive, free if step == 0 else np.zeros(len(roles)))
            half = np.where(alive & (step == run // 2), self._multiplied, half)
        rate = (self._multiplied - half) / np.maximum(run - 1 - run // 2, 1)
        rest = np.where(roles.steps > run, rate * (roles.steps - run), 0.0)
        self._pass(rest)
        stored = self._multiplied + roles.drain + roles.store
        self._stored[self._rows, group] = stored
        return stored

    def _pass(self, time: FloatArray) -> None:
        """All goes on as it has, for so long."""
        self._freed += time[:, None]
        self._ends += time[:, None]
        self._copied, self._multiplied = self._copied + time, self._multiplied + time

    def _one(self, alive: npt.NDArray[np.bool_], free: FloatArray) -> None:
        """One K step of the rows that have it.

        free: when the warps that multiply are
        """
        roles = self._roles
        sent = np.maximum(self._copied, self._at(self._freed, roles.stages))
        sent = sent + roles.copy
        begun = np.maximum(sent + roles.latency, np.maximum(self._multiplied, free))
        waits = roles.in_flight == 0
        begun = np.where(waits, np.maximum(begun, self._drained()), begun)
        busy = np.maximum(np.maximum(roles.tensor, roles.port), roles.issue)
        end = begun + busy
        self._copied = np.where(alive, sent, self._copied)
        self._multiplied = np.where(alive, end, self._multiplied)
        self._put(self._ends, np.zeros(len(roles), np.int64), end, alive)
        # A slot is free once its group has ended, and one that follows is issued.
        ended = np.maximum(self._at(self._ends, roles.in_flight), begun)
        self._put(self._freed, roles.in_flight, ended, alive)
        self._step = np.where(alive, self._step + 1, self._step)

    def _drained(self) -> FloatArray:
        """When one may begin that waits for the group before."""
        last = self._at(self._ends, np.ones(len(self._roles), np.int64))
        return np.where(self._step > 0, last + self._roles.drain, 0.0)

    def _at(self, held: FloatArray, before: IntArray) -> FloatArray:
        """What is held of a step, so many before this one; 0 of none."""
        column = (self._step - before) % _HELD
        return np.where(self._step >= before, held[self._rows, column], 0.0)

    def _put(
        self,
        held: FloatArray,
        before: IntArray,
        value: FloatArray,
        alive: npt.NDArray[np.bool_],
    ) -> None:
        column = (self._step - before) % _HELD
        kept = held[self._rows, column]
        held[self._rows, column] = np.where(alive & (self._step >= before), value, kept)
