"""Lanes that wait, and what ends when no other can run.

A test_wait or try_wait whose phase is not complete fails once, the first time that
lanes are there since it went well, unless copies land early: who tries once, and waits
elsewhere if that fails, has to wait. After that it puts its lanes aside, so that spin
loops cost nothing: PTX lets try_wait suspend a thread, and any thread may be slow. They
test again when some phase has ended. When no lane of the batch can go on, first ends
what is in flight for an mbarrier that somebody waits for, the oldest first: the last
moment that PTX allows. Without one the lanes go on with false, as loops may have other
work; after `TRIES` times in a row in which no phase has ended, it is a deadlock.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from alcop_mlir.runtime.emulator.arithmetic.storage import Array
from alcop_mlir.runtime.emulator.machine.batch import Batch
from alcop_mlir.runtime.emulator.machine.cohort import Cohort
from alcop_mlir.runtime.emulator.machine.waiting import Waited
from alcop_mlir.runtime.emulator.machine.warps import LANES, Mask, live

TRIES = 1000


@dataclass
class _Waiting:
    """Lanes of a cohort that wait at an instruction; mask (1|blocks, warps, 32)."""

    cohort: Cohort
    pc: int
    call: Waited
    mask: Array


class Waits:
    """The lanes of a batch that wait for mbarriers."""

    def __init__(self, batch: Batch):
        self.batch = batch
        self.waiting: list[_Waiting] = []
        self._told: dict[tuple[Cohort, int], Array] = {}  # who goes on with false
        self._tried: dict[tuple[Cohort, int], Array] = {}  # who has failed there
        self._fruitless = 0

    def reach(self, cohort: Cohort, pc: int, call: Waited, mask: Mask) -> None:
        """Lanes `mask` execute the wait at `pc`."""
        shape = (1, cohort.warps, LANES)
        on = np.ones(shape, bool) if mask is None else mask & np.ones(shape, bool)
        ready = call.test(cohort, mask)
        go = on & ready
        told = self._told.pop((cohort, pc), None)
        if told is not None and call.may_fail:
            go = go | (on & told)
        if call.may_fail and not self.batch.early:
            go = go | self._first(cohort, pc, on, ready)
        go, stay = _alike(go), _alike(on & ~go)
        if stay.any():
            self.waiting.append(_Waiting(cohort, pc, call, stay))
        going = live(go)
        if going is False:
            return
        gone = None if going is None else go
        cohort.grow()
        if call.slot >= 0:
            cohort.put(call.slot, ready, gone)
        cohort.push(pc + 1, gone)

    def _first(self, cohort: Cohort, pc: int, on: Array, ready: Array) -> Array:
        """Those of the lanes that fail here for the first time since it went well."""
        failed = on & ~ready
        known = self._tried.get((cohort, pc))
        if known is None:
            known = np.zeros((1, 1, 1), bool)
        fresh = failed & ~known
        self._tried[cohort, pc] = _alike(failed | (known & ~on))
        return fresh

    @property
    def is_over(self) -> bool:
        """Whether something may have ended for which lanes wait."""
        batch = self.batch
        moved = batch.mbarriers.moved or batch.registers.moved
        return moved or batch.cluster_barrier.moved or batch.warpgroup_order.moved

    def test_again(self) -> None:
        """A phase has ended, or registers are free: all lanes test again."""
        batch = self.batch
        batch.mbarriers.moved = batch.registers.moved = False
        batch.cluster_barrier.moved = False
        batch.warpgroup_order.moved = batch.warpgroup_order.is_awaited = False
        self._fruitless = 0
        self._told.clear()
        self._resume()

    def _resume(self) -> None:
        waiting, self.waiting = self.waiting, []
        for w in waiting:
            w.cohort.push(w.pc, w.mask)

    def stir(self) -> bool:
        """No lane can go on: whether one can after this."""
        if not self.waiting:
            return False
        cells: set[int] = set()
        for w in self.waiting:
            cells |= w.call.cells(w.cohort, w.mask)
        for flight in self.batch.flights:
            if flight.cells() & cells:
                flight.finish()
                self.test_again()
                return True
        self._fruitless += 1
        if self._fruitless > TRIES:
            return False
        for w in self.waiting:
            known = self._told.get((w.cohort, w.pc))
            self._told[w.cohort, w.pc] = w.mask if known is None else known | w.mask
        self._resume()
        return True

    def finish(self) -> None:
        """The batch has ended: reports what has not."""
        batch = self.batch
        for flight in batch.flights:
            flight.report()
        if batch.shadow is None or batch.flights:
            return
        for lanes, text in batch.mbarriers.left():
            batch.shadow.report_exit(lanes, f"bytes are left at the {text}")

    def describe(self) -> list[str]:
        """What the lanes wait for, for the message of a deadlock."""
        return [w.call.describe(w.cohort, w.mask) for w in self.waiting]


def _alike(mask: Array) -> Array:
    """Once for all blocks, where these agree: so that checks are made once."""
    return mask[:1] if (mask == mask[:1]).all() else mask
