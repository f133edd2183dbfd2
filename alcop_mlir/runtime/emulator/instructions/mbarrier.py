"""mbarrier: how its instructions are read, and what they do to the objects.

PTX ISA "mbarrier". The objects themselves are in `machine.mbarriers`; lanes that wait
are put aside by the schedule.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from alcop_mlir.runtime.emulator.arithmetic.storage import BOOL, S64, U32, U64, Array
from alcop_mlir.runtime.emulator.instructions import access
from alcop_mlir.runtime.emulator.instructions.access import Access
from alcop_mlir.runtime.emulator.instructions.memory import reaches_cluster
from alcop_mlir.runtime.emulator.instructions.translator import Op, Translator
from alcop_mlir.runtime.emulator.machine.cohort import Cohort
from alcop_mlir.runtime.emulator.machine.faults import lane_fault
from alcop_mlir.runtime.emulator.machine.lanes import Lanes
from alcop_mlir.runtime.emulator.machine.mbarriers import (
    SIZE,
    Arrival,
    Widen,
    count_of,
    phase_of,
)
from alcop_mlir.runtime.emulator.machine.memory import SHARED_WINDOW
from alcop_mlir.runtime.emulator.machine.waiting import Waited
from alcop_mlir.runtime.emulator.machine.warps import Mask
from alcop_mlir.runtime.emulator.ptx.scalars import B64, U32T
from alcop_mlir.runtime.emulator.ptx.syntax import (
    Instruction,
    Operand,
    space_of,
    unsupported,
)

# Of the lanes that `mask` leaves on, those at an object: (cohort, mask) -> lanes.
Objects = Callable[[Cohort, Mask], Lanes]


def object_bytes(ins: Instruction) -> int:
    """What one lane accesses."""
    return SIZE


def objects(t: Translator, operand: Operand, ins: Instruction) -> Objects:
    """How to find the objects at an address, shared or generic."""
    address, _ = t.base_address(operand, ins)
    window = 0 if space_of(ins.parts) == "shared" else SHARED_WINDOW
    reaches = reaches_cluster(ins)

    def find(cohort: Cohort, mask: Mask) -> Lanes:
        # A generic address of another space is out of bounds here.
        own = address(cohort.R).astype(S64) - window
        where = Access(cohort, mask, own, "shared", SIZE, ins, reaches=reaches)
        return access.shared_lanes(where)

    return find


def widen_of(cohort: Cohort) -> Widen | None:
    """How to tell the blocks apart, where there is a watch for races."""
    shadow = cohort.batch.shadow
    return None if shadow is None else shadow.widen


def begin(t: Translator, ins: Instruction) -> Op:
    """mbarrier.init."""
    find, count = objects(t, ins.operands[0], ins), t.read(ins.operands[1], U32T, ins)

    def run(cohort: Cohort, mask: Mask) -> None:
        batch, lanes = cohort.batch, find(cohort, mask)
        if batch.shadow is not None:
            batch.shadow.on_write(lanes)
            batch.shadow.on_mbarrier(lanes)
        lanes = lanes.widened()
        counts = lanes.pick(count(cohort.R)).astype(np.int64)
        batch.mbarriers.begin(lanes, counts, widen_of(cohort))

    return run


def end(t: Translator, ins: Instruction) -> Op:
    """mbarrier.inval."""
    find = objects(t, ins.operands[0], ins)

    def run(cohort: Cohort, mask: Mask) -> None:
        batch, lanes = cohort.batch, find(cohort, mask)
        batch.mbarriers.end(lanes.widened())
        if batch.shadow is not None:
            batch.shadow.on_mbarrier(lanes, ends=True)
            batch.shadow.on_write(lanes)

    return run


def arrive(t: Translator, ins: Instruction) -> Op:
    """mbarrier.arrive, mbarrier.arrive_drop; with bytes, .expect_tx."""
    parts, (to, at, *more) = ins.parts, ins.operands
    expects = "expect_tx" in parts
    if len(more) > 1 or (expects and not more):
        raise unsupported(ins)
    find, write = objects(t, at, ins), t.writer(to, U64, ins)
    given = t.read(more[0], U32T, ins) if more else None
    kind = Arrival(
        ends="noComplete" not in parts,
        drops=parts[1] == "arrive_drop",
        orders="relaxed" not in parts,
        is_wide="cluster" in parts,
    )

    def run(cohort: Cohort, mask: Mask) -> None:
        batch, lanes = cohort.batch, use(cohort, find(cohort, mask)).widened()
        for observer in cohort.observers:
            observer.on_arrive(cohort, lanes)
        counts = np.ones(lanes.offset.size, np.int64)
        if given is not None:
            value = lanes.pick(given(cohort.R)).astype(np.int64)
            if expects:
                batch.mbarriers.expect(lanes, value)
            else:
                counts = value
        widen = widen_of(cohort)
        states = batch.mbarriers.arrive(lanes, kind, counts, widen, batch.releases)
        write(cohort, lanes.place(states), mask)
        new_epochs(cohort, lanes)

    return run


def use(cohort: Cohort, lanes: Lanes, by_engine: bool = False) -> Lanes:
    """The same lanes, after a check that these objects have begun before.

    by_engine: whether what they issue is over when a phase is, and they are not
    """
    if cohort.batch.shadow is not None:
        cohort.batch.shadow.on_mbarrier_use(lanes, by_engine)
    return lanes


def new_epochs(cohort: Cohort, lanes: Lanes) -> None:
    """What the warps of these lanes do from here on is not part of what they gave."""
    batch = cohort.batch
    if batch.shadow is None:
        return
    active = np.zeros((cohort.blocks, batch.warps), bool)
    active[lanes.block(), lanes.warp()] = True
    if (active != active[:1]).any():
        batch.shadow.widen(cohort.blocks)
    batch.clocks.step(active[: batch.clocks.copies])


def count_bytes(t: Translator, ins: Instruction) -> Op:
    """mbarrier.expect_tx and mbarrier.complete_tx."""
    find, amount = objects(t, ins.operands[0], ins), t.read(ins.operands[1], U32T, ins)
    sign = 1 if ins.parts[1] == "expect_tx" else -1

    def run(cohort: Cohort, mask: Mask) -> None:
        mbarriers = cohort.batch.mbarriers
        lanes = use(cohort, find(cohort, mask)).widened()
        mbarriers.expect(lanes, sign * lanes.pick(amount(cohort.R)).astype(np.int64))
        if sign < 0:
            mbarriers.settle(mbarriers.cells(lanes), widen_of(cohort))

    return run


def pending_count(t: Translator, ins: Instruction) -> Op:
    """mbarrier.pending_count: of an opaque state."""
    return t.compute(ins, U32, lambda state: count_of(state).astype(U32), B64)


@dataclass(frozen=True)
class WaitCall(Waited):
    """A decoded test_wait or try_wait.

    slot: the predicate that it writes, -1 for none
    """

    ins: Instruction
    slot: int
    find: Objects
    is_over: Callable[[Cohort, Lanes], Array]
    acquires: bool
    is_wide: bool = False  # of scope .cluster
    may_fail: bool = True  # lanes may go on although it is not over

    def cells(self, cohort: Cohort, mask: Array) -> set[int]:
        """The cells of the objects that these lanes wait for."""
        lanes = self.find(cohort, mask).widened()
        return set(cohort.batch.mbarriers.cells(lanes).tolist())

    def test(self, cohort: Cohort, mask: Mask) -> Array:
        """Whose phase is complete, a register; these lanes have acquired it."""
        batch = cohort.batch
        lanes = use(cohort, self.find(cohort, mask)).widened()
        ready = self.is_over(cohort, lanes)
        widen = widen_of(cohort)
        fences = None if self.acquires else batch.releases
        if (self.acquires or fences) and widen is not None and ready.any():
            batch.mbarriers.acquire(lanes, ready, self.is_wide, widen, fences)
        if ready.any():
            for observer in cohort.observers:
                observer.on_phase(cohort, lanes, ready)
        out = lanes.place(ready)
        if len(out) > 1 and (out == out[:1]).all():
            return out[:1]
        return out

    def describe(self, cohort: Cohort, mask: Array) -> str:
        """Who waits for what, for the message of a deadlock."""
        batch = cohort.batch
        lanes = self.find(cohort, mask).widened()
        cells, block = batch.mbarriers.cells(lanes), int(lanes.block()[0])
        cell = int(cells[0])
        warps = sorted(set(lanes.warp()[cells == cell].tolist()))
        return (
            f"{batch.names.listed(block, warps)} wait for "
            f"{batch.mbarriers.describe(cell)}, PTX line {self.ins.line}: "
            f"{self.ins.text}"
        )


def decode_wait(t: Translator, ins: Instruction) -> WaitCall:
    """Reads any form of mbarrier.test_wait and mbarrier.try_wait."""
    to, at, which, *hint = ins.operands
    if len(hint) > (ins.parts[1] == "try_wait"):
        raise unsupported(ins)
    slot = t.result(to, BOOL, ins)[0]
    parity = "parity" in ins.parts
    read = t.read(which, U32T if parity else B64, ins)

    def is_over(cohort: Cohort, lanes: Lanes) -> Array:
        mbarriers = cohort.batch.mbarriers
        cells, given = mbarriers.cells(lanes), lanes.pick(read(cohort.R))
        if parity:
            return mbarriers.is_odd(cells) != ((given & 1) != 0)
        return _is_over(lanes, mbarriers.flat("phase")[cells], phase_of(given))

    find = objects(t, at, ins)
    acquires, is_wide = "relaxed" not in ins.parts, "cluster" in ins.parts
    return WaitCall(ins, slot, find, is_over, acquires, is_wide)


def _is_over(lanes: Lanes, now: Array, asked: Array) -> Array:
    """Whether the phases of opaque states are complete, at those that go on `now`.

    PTX ISA "mbarrier.test_wait": states are of the current or of the phase before it.
    """
    wrong = (asked != now) & (asked != now - 1)
    if wrong.any():
        entry = int(np.argmax(wrong))
        why = (
            f"a wait with a state of phase {int(asked[entry])} for an mbarrier in "
            f"phase {int(now[entry])}: expected one of this phase or the one before,"
        )
        raise lane_fault(lanes, entry, why)
    return asked != now
