"""wgmma.wait_group: the end of multiplications.

PTX ISA "wgmma.commit_group", "wgmma.wait_group": a wgmma-group is one of the warpgroup.
So a warp that waits for it goes on when all four have issued what is in it, and then
all that they multiply has been read, for whichever of them: the others still need D,
which is in their registers after their own wait.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from alcop_mlir.runtime.emulator.arithmetic.storage import Array
from alcop_mlir.runtime.emulator.instructions import warpgroup_product
from alcop_mlir.runtime.emulator.instructions.translator import Translator
from alcop_mlir.runtime.emulator.instructions.warpgroup_multiply import (
    active_warps,
    reads_of,
)
from alcop_mlir.runtime.emulator.machine.clocks import EPOCH
from alcop_mlir.runtime.emulator.machine.cohort import Cohort
from alcop_mlir.runtime.emulator.machine.waiting import Waited
from alcop_mlir.runtime.emulator.machine.warpgroups import WARPS, PendingMultiply
from alcop_mlir.runtime.emulator.machine.warps import LANES, Mask, compact
from alcop_mlir.runtime.emulator.ptx.syntax import Instruction, groups_left


@dataclass(frozen=True)
class GroupWait(Waited):
    """A decoded wgmma.wait_group; `newest`: how many groups may be left in flight.

    slot: -1, as it writes no predicate; may_fail: no warp goes on before
    """

    ins: Instruction
    newest: int
    slot: int = -1
    may_fail: bool = False

    def test(self, cohort: Cohort, mask: Mask) -> Array:
        """The lanes of warps whose groups, but the newest ones, are complete."""
        batch, state, on = cohort.batch, cohort.wgmma, active_warps(cohort, mask)
        limit = state.committed - self.newest
        due = np.zeros((1, 1), np.int64)
        for one in state.pending:
            mine = on & one.active & (one.group < limit)
            due = np.maximum(due, np.where(mine, one.number, 0))
        ready = on
        if due.any():
            issued = batch.warpgroup_order.issued()[:, _groups(cohort)]
            ready = compact(on & (due <= issued))
            batch.warpgroup_order.is_awaited |= not np.array_equal(ready, on)
        if ready.any():
            self._complete(cohort, ready, limit)
        lanes = np.broadcast_to(ready[:, :, None], (len(ready), cohort.warps, LANES))
        return lanes if mask is None else lanes & mask

    def _complete(self, cohort: Cohort, active: Array, limit: Array) -> None:
        """Ends the groups before `limit` of these warps."""
        state = cohort.wgmma
        for observer in cohort.observers:
            observer.on_multiply_wait(cohort, limit, active, self.ins)
        ready: list[PendingMultiply] = []
        left: list[PendingMultiply] = []
        for one in state.pending:
            done, rest = one.split(active & (one.group < limit))
            ready += [] if done is None else [done]
            left += [] if rest is None else [rest]
        if ready:
            warpgroup_product.complete(cohort, ready, left)
            state.settle(left)
            _end_reads(cohort, ready)
        # What its lanes did before is ordered, as by all that .aligned warps do.
        cohort.warp_sync(_as_mask(active))

    def cells(self, cohort: Cohort, mask: Array) -> set[int]:
        """The mbarriers that it waits for: none."""
        return set()

    def describe(self, cohort: Cohort, mask: Array) -> str:
        """Who waits for what, for the message of a deadlock."""
        order, names = cohort.batch.warpgroup_order, cohort.block_set.names
        block, warp, _ = (int(i) for i in np.argwhere(mask)[0])
        warp += cohort.first_warp
        first = warp // WARPS * WARPS
        counts = order.count[block, first : first + WARPS]
        behind = first + np.flatnonzero(counts < counts[warp - first])
        return (
            f"warp {names.warp(warp)} waits for a wgmma of its warpgroup, which "
            f"{names.listed(block, behind.tolist())} have not issued, PTX line "
            f"{self.ins.line}: {self.ins.text}"
        )


def decode(t: Translator, ins: Instruction) -> GroupWait:
    """Reads wgmma.wait_group."""
    return GroupWait(ins, groups_left(ins))


def _groups(cohort: Cohort) -> Array:
    """The warpgroup of each warp of a cohort."""
    return (cohort.first_warp + np.arange(cohort.warps)) // WARPS


def _as_mask(active: Array) -> Mask:
    return None if active.all() else np.repeat(active[:, :, None], LANES, axis=2)


def _end_reads(cohort: Cohort, ready: Sequence[PendingMultiply]) -> None:
    """All warps of the warpgroups have read what these multiply."""
    batch, order = cohort.batch, cohort.batch.warpgroup_order
    done = np.zeros((1, 1), np.int64)
    for one in ready:
        done = np.maximum(done, np.where(one.active, one.number, 0))
    done = np.broadcast_to(done, (cohort.blocks, cohort.warps))
    for warp, group in enumerate(_groups(cohort).tolist()):
        order.over[:, group] = np.maximum(order.over[:, group], done[:, warp])
    for one in ready:
        _end_read(cohort, one)
    if any(_is_partial(cohort, one) for one in ready):
        for other in cohort.peers:
            _read_ahead(other)
    if batch.shadow is not None:
        _learn(cohort, done)


def _is_partial(cohort: Cohort, one: PendingMultiply) -> bool:
    """Whether other warps of some warpgroup have not waited for it yet."""
    if one.is_read:
        return False
    if cohort.first_warp % WARPS or cohort.warps % WARPS:
        return True
    groups = one.active.reshape(len(one.active), -1, WARPS)
    return bool((groups.any(axis=2) & ~groups.all(axis=2)).any())


def _read_ahead(cohort: Cohort) -> None:
    """Reads now what is known to be complete, and its warps have not waited for."""
    state, over = cohort.wgmma, cohort.batch.warpgroup_order.over
    pending: list[PendingMultiply] = []
    for one in state.pending:
        known = over[:, _groups(cohort)] >= one.number
        done, rest = one.split(compact(one.active & known & (not one.is_read)))
        if done is not None:
            _end_read(cohort, done)
            if done.operands is None:
                done = warpgroup_product.read_now(cohort, done)
            pending.append(replace(done, is_read=True))
        pending += [] if rest is None else [rest]
    state.settle(pending)


def _end_read(cohort: Cohort, one: PendingMultiply) -> None:
    watcher = cohort.batch.warpgroup_watcher
    if watcher is not None and not one.is_read:
        for read in reads_of(cohort, one):
            watcher.on_complete(read)


def _learn(cohort: Cohort, done: Array) -> None:
    """Warps know the end of the first `done` wgmma of theirs, (blocks, warps)."""
    batch, clocks = cohort.batch, cohort.batch.clocks
    if clocks.copies == 1 and (done != done[:1]).any() and batch.shadow is not None:
        batch.shadow.widen(cohort.blocks)
    warp = cohort.first_warp + np.arange(cohort.warps)
    columns = clocks.multiplied_column(warp)
    known = ((done[: clocks.copies] + 1) * EPOCH).astype(np.int32)
    old = clocks.horizon[:, warp, columns]
    clocks.horizon[:, warp, columns] = np.maximum(old, known)
