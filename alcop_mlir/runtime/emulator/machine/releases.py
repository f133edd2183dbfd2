"""What is released at addresses of memory, and by fences: flags that order warps.

PTX ISA "Memory Consistency Model": a *release pattern* at a location is a strong write
with .release, or behind a fence; an *acquire pattern* a strong read with .acquire, or
before one. If the read sees the value of the write, directly or through atomics
("Observation Order"), and the scope of each includes the other thread ("Morally
Strong"), then what comes before the one comes before what follows the other
("Synchronizes").

At each location a number says what was released there: a *record*, of what some warps
had done and seen, as epochs of the clocks. Lanes of a warp are not told apart. A
location is told by the first word of an access.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from alcop_mlir.runtime.emulator.arithmetic.storage import Array
from alcop_mlir.runtime.emulator.machine.clocks import Clocks
from alcop_mlir.runtime.emulator.machine.lanes import Lanes
from alcop_mlir.runtime.emulator.machine.warps import BlockSet

CTA, CLUSTER, GPU = range(3)  # scopes; .sys is as .gpu, there is one
_WORD = 4  # bytes
_NOBODY = -1
_MOST_RECORDS = 4096  # before those are dropped that no location holds


@dataclass(frozen=True)
class Order:
    """What a strong access, or a fence, orders, and for threads of which scope."""

    scope: int
    acquires: bool = False
    releases: bool = False

    @property
    def is_wide(self) -> bool:
        """Whether that goes beyond the block."""
        return self.scope > CTA


class _Warps(NamedTuple):
    """Who takes part: block and warp of each entry, and the different ones of them."""

    block: Array
    warp: Array
    rows: Array  # block * warps + warp, each once
    of: Array  # the row of each entry

    @classmethod
    def at(cls, lanes: Lanes, warps: int) -> _Warps:
        block, warp = lanes.block(), lanes.warp()
        rows, of = np.unique(block * warps + warp, return_inverse=True)
        return cls(block, warp, rows, of)


class _Records:
    """Epochs by record, (records, parts, columns); record 0 is of nothing.

    Part 0 is what anybody may learn with scope .cluster, part 1 + rank what threads of
    that block may with any scope; where a cluster has one block there is one part.
    block, row: of who has released, `_NOBODY` of several
    """

    def __init__(self, parts: int):
        self.epochs = np.zeros((1, parts, 0), np.int32)
        self.block = np.full(1, _NOBODY)
        self.row = np.full(1, _NOBODY)

    def add(self, epochs: Array, block: Array, row: Array) -> Array:
        """Their numbers."""
        first = len(self.epochs)
        self.widen(epochs.shape[2])
        self.epochs = np.concatenate([self.epochs, epochs.astype(np.int32)])
        self.block = np.concatenate([self.block, block])
        self.row = np.concatenate([self.row, row])
        return np.arange(first, len(self.epochs))

    def widen(self, columns: int) -> None:
        """With the columns that the clocks have by now."""
        missing = columns - self.epochs.shape[2]
        if missing:
            self.epochs = np.pad(self.epochs, ((0, 0), (0, 0), (0, missing)))

    def keep(self, numbers: Array) -> None:
        """Only these."""
        self.epochs = self.epochs[numbers]
        self.block, self.row = self.block[numbers], self.row[numbers]


class Releases:
    """Those of all blocks of a batch, in its shared and in global memory."""

    def __init__(
        self,
        block_set: BlockSet,
        clocks: Clocks,
        sizes: dict[str, int],
        widen: Callable[[int], None],
    ):
        """`sizes`: bytes of each memory, those of shared memory of a cluster.

        widen: how to tell the blocks apart
        """
        self.block_set, self.clocks, self._widen = block_set, clocks, widen
        self.blocks, self.warps = block_set.blocks, block_set.warps
        self.words = {space: -(-size // _WORD) for space, size in sizes.items()}
        self.held: dict[str, Array] = {}  # the record at each location
        self.touched: dict[str, list[Array]] = {}  # locations that ever held one
        self.records = _Records(1 if block_set.ranks == 1 else 1 + block_set.ranks)
        # By scope: what the last release fence of each warp has released, and what an
        # acquire fence of it will acquire, as epochs (copies, warps, columns).
        self._fenced: list[Array | None] = [None, None, None]
        self._awaited: list[Array | None] = [None, None, None]
        # What each block has released with scope .gpu, (blocks, columns).
        self._beyond = np.zeros((self.blocks, 0), np.int32)

    # --- fences -----------------------------------------------------------------------

    def fence(self, active: Array, order: Order) -> None:
        """A fence by warps `active`, bool (copies, warps)."""
        for scope in range(order.scope + 1):
            if order.acquires:
                self._learn(active, self._fit(self._awaited[scope]))
        seen = self.clocks.seen()
        for scope in range(order.scope + 1):
            if order.releases:
                old = self._fit(self._fenced[scope])
                self._fenced[scope] = np.where(active[:, :, None], seen, old)
        if order.releases:
            self.clocks.step(active)

    def fenced(self, scope: int) -> Array:
        """What relaxed writes of each warp release, (copies, warps, columns)."""
        return self._fit(self._fenced[scope])

    def wait_for_fence(self, scope: int, waiting: Array, released: Array) -> None:
        """Warps have read, relaxed, what an acquire fence of them then acquires.

        waiting: bool (copies, warps); released: (copies, warps, columns)
        """
        found = np.maximum(self._fit(self._awaited[scope]), released)
        old = self._fit(self._awaited[scope])
        self._awaited[scope] = np.where(waiting[:, :, None], found, old)

    def _fit(self, epochs: Array | None) -> Array:
        """As many copies and columns as the clocks have by now."""
        shape = (self.clocks.copies, self.warps, self.clocks.columns)
        if epochs is None:
            return np.zeros(shape, np.int32)
        missing = self.clocks.columns - epochs.shape[2]
        if missing:
            epochs = np.pad(epochs, ((0, 0), (0, 0), (0, missing)))
        return np.broadcast_to(epochs, shape)

    def _learn(self, waiting: Array, released: Array) -> None:
        """These warps learn these epochs, unless they know all that."""
        known = self.clocks.seen()
        news = waiting & (released > known).any(axis=2)
        if news.any():
            self.clocks.acquire(news, released)

    # --- writes -----------------------------------------------------------------------

    def write(
        self, lanes: Lanes, space: str, order: Order, updates: bool = False
    ) -> None:
        """A strong write; `updates`: an atomic, which hands on what was released."""
        if not lanes.offset.size:
            return
        lanes = lanes.widened()
        given = self._given(order)
        if given is None and space not in self.held:
            return
        cells, who = self._cells(lanes, space), _Warps.at(lanes, self.warps)
        held = self.held[space]
        if given is None:
            if not updates:  # only the own release lives on
                old = held.take(cells)
                mine = self.records.row[old] == who.rows[who.of]
                held[cells] = np.where(mine, old, 0)
            return
        old = held.take(cells) if updates else np.zeros(cells.size, np.int64)
        pairs, which = np.unique(
            old.astype(np.int64) * who.rows.size + who.of, return_inverse=True
        )
        old, row = np.divmod(pairs, who.rows.size)
        held[cells] = self._added(old, who.rows[row], given, order)[which]
        self.touched[space].append(np.unique(cells))
        if order.releases:
            self.clocks.step(self._active(who.rows))
        if len(self.records.block) > _MOST_RECORDS:
            self._drop_unused()

    def _given(self, order: Order) -> list[Array] | None:
        """By scope, what a write releases, (copies, warps, columns); None: nothing."""
        if order.releases:
            return [self.clocks.seen()] * (order.scope + 1)
        if all(known is None for known in self._fenced):
            return None
        return [self._fit(self._fenced[scope]) for scope in range(order.scope + 1)]

    def _added(
        self, old: Array, rows: Array, given: list[Array], order: Order
    ) -> Array:
        """New records: what is released at records `old` and by the warps `rows`."""
        records, columns = self.records, self.clocks.columns
        records.widen(columns)
        block, warp = np.divmod(rows, self.warps)
        copy = block if self.clocks.copies > 1 else 0 * block
        epochs = records.epochs[old].copy()
        near = np.arange(rows.size), 0 * rows
        if epochs.shape[1] > 1:
            near = near[0], 1 + warp // self.block_set.block_warps
            if order.is_wide:
                wide = given[CLUSTER][copy, warp]
                epochs[:, 0] = np.maximum(epochs[:, 0], wide)
        epochs[near] = np.maximum(epochs[near], given[CTA][copy, warp])
        if order.scope == GPU:
            missing = columns - self._beyond.shape[1]
            self._beyond = np.pad(self._beyond, ((0, 0), (0, missing)))
            np.maximum.at(self._beyond, block, given[GPU][copy, warp])
        alone = old == 0
        same = alone | (records.block[old] == block)
        return records.add(
            epochs, np.where(same, block, _NOBODY), np.where(alone, rows, _NOBODY)
        )

    def forget(self, lanes: Lanes, space: str) -> None:
        """A weak write, which releases nothing."""
        held = self.held.get(space)
        if held is None or not lanes.offset.size:
            return
        lanes = lanes.widened()
        for step in range(0, max(lanes.size, _WORD), _WORD):
            held[self._cells(lanes, space, step)] = 0

    def _cells(self, lanes: Lanes, space: str, step: int = 0) -> Array:
        """The location of each entry, with those of blocks apart in shared memory."""
        words = self.words[space]
        if space not in self.held:
            count = words * (self.blocks if space == "shared" else 1)
            self.held[space] = np.zeros(count, np.int32)
            self.touched[space] = []
        cells = (lanes.offset + step) // _WORD
        return cells + lanes.block() * words if space == "shared" else cells

    def _drop_unused(self) -> None:
        """Numbers the records anew that some location holds."""
        used = np.zeros(len(self.records.block), bool)
        used[0] = True
        for space, held in self.held.items():
            cells = np.unique(np.concatenate([*self.touched[space], [0]]).astype(int))
            self.touched[space] = [cells]
            used[held[cells]] = True
        numbers = np.cumsum(used) - 1
        for space, held in self.held.items():
            cells = self.touched[space][0]
            held[cells] = numbers[held[cells]]
        self.records.keep(np.flatnonzero(used))

    # --- reads ------------------------------------------------------------------------

    def read(self, lanes: Lanes, space: str, order: Order) -> None:
        """A strong read: what it acquires, or a later fence will."""
        held = self.held.get(space)
        if held is None or not lanes.offset.size:
            return
        lanes = lanes.widened()
        found = held.take(self._cells(lanes, space))
        chosen = np.flatnonzero(found)
        if not chosen.size:
            return
        lanes, found = lanes.only(chosen), found[chosen]
        who = _Warps.at(lanes, self.warps)
        levels = self._seen_at(found, who, order)
        released = [self._by_warp(who, epochs) for epochs in levels]
        waiting = self._active(who.rows)
        for scope, epochs in enumerate(released):
            if order.acquires:
                self._learn(waiting, epochs)
            else:
                self.wait_for_fence(scope, waiting, epochs)

    def _seen_at(self, found: Array, who: _Warps, order: Order) -> list[Array]:
        """By scope, what reads of these records see, (entries, columns)."""
        records = self.records
        records.widen(self.clocks.columns)
        foreign = (records.block[found] != who.block)[:, None]
        near = records.epochs[found, 0]
        if records.epochs.shape[1] > 1:
            rank = who.warp // self.block_set.block_warps
            near = records.epochs[found, 1 + rank]
        # What is learned from a block that is not of the cluster has come from
        # this one before it, if at all: how far is not followed.
        levels = [np.where(foreign, 0, near)]
        if order.is_wide and records.epochs.shape[1] > 1:
            levels.append(np.where(foreign, 0, records.epochs[found, 0]))
        if order.scope == GPU and foreign.any():
            missing = self.clocks.columns - self._beyond.shape[1]
            beyond = np.pad(self._beyond, ((0, 0), (0, missing)))
            levels += [0 * near] * (GPU - len(levels))
            levels.append(np.where(foreign, beyond[who.block], 0))
        return levels

    # --- as the clocks have it --------------------------------------------------------

    def _active(self, rows: Array) -> Array:
        """Warps as bool (copies, warps)."""
        active = np.zeros(self.blocks * self.warps, bool)
        active[rows] = True
        active = active.reshape(self.blocks, self.warps)
        if self.clocks.copies == 1 and (active != active[:1]).any():
            self._widen(self.blocks)
        return active[: self.clocks.copies]

    def _by_warp(self, who: _Warps, epochs: Array) -> Array:
        """Entries (entries, columns) as (copies, warps, columns)."""
        out = np.zeros((self.blocks * self.warps, epochs.shape[1]), epochs.dtype)
        np.maximum.at(out, who.rows[who.of], epochs)
        out = out.reshape(self.blocks, self.warps, -1)
        if self.clocks.copies == 1 and (out != out[:1]).any():
            self._widen(self.blocks)
        return out[: self.clocks.copies]
