"""Vector clocks: which earlier accesses are ordered before a warp's next one.

Happens-before after Lamport and FastTrack, per warp: entry (w, v) is the last epoch of
warp v that warp w has seen. Epochs are kept as *stamps*, `epoch * 64 + lane`, so that
one comparison also tells the lanes of a warp apart: a lane's access in the warp's
current epoch is not ordered with that of another lane. A warp begins a new epoch at
barriers and at the warp-synchronising instructions (see `docs/emulator.md`).

A `bar.warp.sync` of only some lanes orders those alone; from the first one on, pairs of
lanes have thresholds of their own.

An mbarrier is a warp of its own here: it has a *column*, and its epochs are its phases.
What a copy engine writes for a phase has the stamp of that phase, so that it is ordered
before whoever has waited for it, directly or through others.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from alcop_mlir.runtime.emulator.arithmetic.storage import Array
from alcop_mlir.runtime.emulator.machine.warps import LANES, WARPGROUP

EPOCH = 64
MANY_LANES = 63  # in place of a lane: several lanes made the access


class Clocks:
    """Clocks of every warp of a block; once for all blocks until they differ."""

    def __init__(self, warps: int, block_warps: int | None = None):
        """`block_warps`: those of a block, where a cluster has several."""
        self.warps = warps
        self.block_warps = block_warps or warps
        self.copies = 1
        # start[c, w]: the first stamp of warp w's current epoch.
        self.start = np.full((1, warps), EPOCH, np.int32)
        # horizon[c, w, v]: an access of warp v with a stamp at or above it may race
        # with warp w's next access. The own entry is the least over pairs of lanes.
        # Behind the warps are the other columns.
        self.columns = warps
        # By state space, the first of `warps` columns, -1 without: what each warp knows
        # of the others and a fence.proxy.async has followed, on the way to it.
        self.fenced = {"shared": -1, "global": -1}
        # The same, -1 without: what a fence.mbarrier_init has followed.
        self.inited = -1
        # The same, -1 where there is one block: what each warp knows of those of other
        # blocks by synchronisation of scope .cluster all the way; see `reading_column`.
        self.scoped = -1
        self.horizon = np.full((1, warps, warps), EPOCH, np.int32)
        # pairs[c, w, l, m]: the same for lanes l and m of warp w; None: all alike.
        self.pairs: Array | None = None
        # The first of a column for each warpgroup, -1 without; its wgmma are epochs.
        self.multiplied = -1
        # The first of a column for each block, -1 where there is one: who knows that it
        # has begun.
        self.began = -1
        if self.block_warps < warps:
            self.scoped = self.add_columns(warps)
            self.began = self.add_columns(warps // self.block_warps)
            own = np.arange(warps)
            self.horizon[:, own, self.began + own // self.block_warps] += EPOCH

    def reading_column(self, warp: Array, writer: Array) -> Array:
        """The column that says whether `warp` sees what column `writer` has written.

        PTX ISA "Memory Consistency Model", "Scope": what orders a thread with another
        one has to include both in its scope.
        """
        if self.scoped < 0:
            return writer
        each = self.block_warps
        is_far = (writer < self.warps) & (writer // each != warp // each)
        return np.where(is_far, self.scoped + writer, writer)

    def widen(self, blocks: int) -> None:
        """From one copy for all blocks to a copy for each."""
        if self.copies == blocks:
            return
        self.start = np.repeat(self.start, blocks, axis=0)
        self.horizon = np.repeat(self.horizon, blocks, axis=0)
        if self.pairs is not None:
            self.pairs = np.repeat(self.pairs, blocks, axis=0)
        self.copies = blocks

    def add_columns(self, count: int) -> int:
        """The first of so many new columns, of which no warp has seen anything."""
        first = self.columns
        fresh = np.full((self.copies, self.warps, count), EPOCH, np.int32)
        self.horizon = np.concatenate([self.horizon, fresh], axis=2)
        self.columns += count
        return first

    def fence_proxy(self, active: Array, spaces: Sequence[str]) -> None:
        """fence.proxy.async by warps: engines see what they have done and seen.

        active: bool (1|copies, warps); spaces: of the memory for which that holds
        """
        for space in spaces:
            if self.fenced[space] < 0:
                self.fenced[space] = self.add_columns(self.warps)
            part = slice(self.fenced[space], self.fenced[space] + self.warps)
            known = (self.seen()[:, :, : self.warps] + 1) * EPOCH
            known = np.maximum(known, self.horizon[:, :, part])
            on = active[:, :, None]
            self.horizon[:, :, part] = np.where(on, known, self.horizon[:, :, part])
        self.step(active)

    def fence_init(self, active: Array) -> None:
        """fence.mbarrier_init by warps: what they have begun may be known by others.

        active: bool (1|copies, warps)
        """
        if self.inited < 0:
            self.inited = self.add_columns(self.warps)
        own = np.arange(self.warps)
        old = self.horizon[:, own, self.inited + own]
        known = np.where(active, self.start + EPOCH, old)
        self.horizon[:, own, self.inited + own] = known
        self.step(active)

    def inits_of(self, released: Array) -> Array:
        """Of what is released, (n, columns), that of fence.mbarrier_init alone.

        And which blocks have begun.
        """
        out = np.zeros_like(released)
        groups = {self.inited: self.warps, self.began: self.warps // self.block_warps}
        for first, count in groups.items():
            if first >= 0:
                out[:, first : first + count] = released[:, first : first + count]
        return out

    def split_scoped(self, released: Array) -> tuple[Array, Array]:
        """What is released without that of scope .cluster, and that alone."""
        near, far = released.copy(), np.zeros_like(released)
        part = slice(self.scoped, self.scoped + self.warps)
        near[..., part], far[..., part] = 0, released[..., part]
        return near, far

    def multiplied_column(self, warp: Array) -> Array:
        """The columns of the warpgroups of these warps."""
        if self.multiplied < 0:
            self.multiplied = self.add_columns(-(-self.warps // WARPGROUP))
        return self.multiplied + warp // WARPGROUP

    def least(self) -> int:
        """Accesses with stamps below it are ordered before all to come."""
        return int(self.horizon[:, :, : self.warps].min())

    def padded(self, released: Array) -> Array:
        """With the columns that there are since, of which it has seen nothing."""
        missing = self.columns - released.shape[1]
        return np.pad(released, ((0, 0), (0, missing))) if missing else released

    def advance(self, first: int, warps: int, active: Array | None) -> None:
        """New epochs for warps [first, first + warps); `active` (1|copies, warps)."""
        span = slice(first, first + warps)
        on = np.ones((1, 1), bool) if active is None else active
        self.start[:, span] += (on * EPOCH).astype(np.int32)
        self._order(span, on[:, :, None, None])

    def advance_pairs(self, first: int, warps: int, met: Array) -> None:
        """New epochs by pairs of lanes: met (1|copies, warps, 32, 32)."""
        span = slice(first, first + warps)
        if self.pairs is None:
            shape = (self.copies, self.warps, LANES, LANES)
            own = self.horizon.diagonal(axis1=1, axis2=2)
            self.pairs = np.broadcast_to(own[:, :, None, None], shape).copy()
        active = np.asarray(met.any(axis=(2, 3), keepdims=True))
        self.start[:, span] += (active[:, :, 0, 0] * EPOCH).astype(np.int32)
        self._order(span, active & (met | np.eye(LANES, dtype=bool)))

    def _order(self, span: slice, met: Array) -> None:
        """Pairs of lanes that have met are ordered up to the start of their epoch.

        met: bool, broadcasts to (copies, warps of the span, 32, 32)
        """
        own = np.arange(span.start, span.stop)
        start = self.start[:, span]
        if self.pairs is None:
            self.horizon[:, own, own] = start
            return
        fresh = np.where(met, start[:, :, None, None], self.pairs[:, span])
        self.pairs[:, span] = fresh
        self.horizon[:, own, own] = fresh.min(axis=(2, 3))

    def own_horizon(self, copy: Array, warp: Array, lane: Array, stamp: Array) -> Array:
        """The horizon of `lane` for an access with `stamp` by its own warp.

        For a lane that stands for all of the warp, the least over its lanes.
        """
        start = self.start[copy, warp]
        if self.pairs is None:
            return np.broadcast_to(start, stamp.shape)
        other = stamp % EPOCH
        index = np.minimum(other, LANES - 1)
        exact = self.pairs[copy, warp, np.minimum(lane, LANES - 1), index]
        if (lane == MANY_LANES).any():
            every = self.pairs.min(axis=2)[copy, warp, index]
            exact = np.where(lane == MANY_LANES, every, exact)
        return np.where(other == MANY_LANES, start, exact)

    def seen(self) -> Array:
        """What each warp has done or seen, as epochs, (copies, warps, columns)."""
        epochs = self.horizon // EPOCH - 1
        own = np.arange(self.warps)
        epochs[:, own, own] = self.start // EPOCH
        if self.scoped >= 0:
            epochs[:, own, self.scoped + own] = self.start // EPOCH
        return epochs

    def step(self, active: Array) -> None:
        """New epochs for warps of which lanes have released.

        The lanes of a warp have not met: they are ordered as before.
        active: bool (1|copies, warps)
        """
        self.start = self.start + (active * EPOCH).astype(np.int32)

    def acquire(self, waiting: Array, released: Array) -> None:
        """Like `join` for warps whose lanes have not met: they are ordered as before.

        waiting: bool (1|copies, warps); released: (1|copies, columns), or the same for
        each warp, (1|copies, warps, columns).
        """
        given = released if released.ndim > 2 else released[:, None, :]
        known = np.maximum(self.horizon, (given + 1) * EPOCH)
        self.horizon = np.where(waiting[:, :, None], known, self.horizon)
        self.horizon = self.horizon.astype(np.int32, copy=False)
        self.step(waiting)
        if self.pairs is not None:
            own = self.horizon.diagonal(axis1=1, axis2=2)
            self.pairs = np.maximum(self.pairs, own[:, :, None, None])

    def join(self, waiting: Array, released: Array) -> None:
        """Warps in `waiting` learn the epochs `released`, and begin a new epoch.

        waiting: bool (1|copies, warps); released: (1|copies, columns), or the same for
        each warp, (1|copies, warps, columns).
        """
        given = released if released.ndim > 2 else released[:, None, :]
        learned = (np.maximum(self.seen(), given) + 1) * EPOCH
        self.horizon = np.where(waiting[:, :, None], learned, self.horizon).astype(
            np.int32
        )
        self.start = self.start + (waiting * EPOCH).astype(np.int32)
        self._order(slice(0, self.warps), waiting[:, :, None, None])
