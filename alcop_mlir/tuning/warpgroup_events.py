"""The events of a simulated SM whose warps have roles: copies, wgmma, stores.

One warp copies, into slots that are free; one or two groups of warps multiply, and free
slots as many K steps later as groups of wgmma stay in flight; then they store. Copies
queue for the SM's share of L2 and DRAM, wgmma for the tensor cores, and both for the
port of shared memory. All rows run at once, a K step at a time. Of long loops some
steps are run, and the rest follows from the last of them.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from alcop_mlir.schedule import MAX_SHARED_STAGES
from alcop_mlir.tuning.space import FloatArray, IntArray

_STEPS = 24  # of a tile that are run
_TILES = 3  # in a row that are run
_GROUPS = 2  # of warps that take turns, at most
_HELD = MAX_SHARED_STAGES + 4  # steps that are looked back


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


def run(roles: Roles) -> FloatArray:
    """Clock cycles until the last tile of each row is stored."""
    state = _State(roles)
    ends = [state.tile(number) for number in range(_TILES)]
    first, *later = ends
    period = (later[-1] - first) / (_TILES - 1)
    return first + period * np.maximum(roles.tiles - 1.0, 0.0)


class _State:
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
        run = np.minimum(roles.steps, _STEPS)
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
