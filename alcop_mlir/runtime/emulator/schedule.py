"""Runs a batch of blocks: which lanes go on where, and who goes first.

Lanes of a cohort that stand at the same instruction form a *front*. The lowest front
runs first, which brings diverged lanes together again; any order is a legal execution
(PTX ISA "Independent Thread Scheduling"). At an instruction with .sync the lanes of a
front wait ("park") until the lanes named by its member mask are there too.

Schedules: `lockstep` runs all warps of a block as one cohort; `ascending`,
`descending` and `random` give each warp a cohort of its own and let the first (last,
any) one that can run go on.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from alcop_mlir.errors import EmulationError
from alcop_mlir.runtime.emulator.arithmetic.storage import Array
from alcop_mlir.runtime.emulator.budget import Budget
from alcop_mlir.runtime.emulator.instructions.calls import Callee, return_addresses
from alcop_mlir.runtime.emulator.instructions.opcodes.opcode import Opcode
from alcop_mlir.runtime.emulator.instructions.warpgroup_multiply import (
    report_never_waited,
    touch,
)
from alcop_mlir.runtime.emulator.machine.barriers import BarrierUnit
from alcop_mlir.runtime.emulator.machine.batch import Batch
from alcop_mlir.runtime.emulator.machine.cohort import Cohort, Observer
from alcop_mlir.runtime.emulator.machine.faults import (
    fault,
    location_of_mask,
    warp_name,
)
from alcop_mlir.runtime.emulator.machine.warps import (
    LANE_BIT,
    LANES,
    Mask,
    compact,
    live,
)
from alcop_mlir.runtime.emulator.ptx.scalars import U32T
from alcop_mlir.runtime.emulator.ptx.syntax import Instruction
from alcop_mlir.runtime.emulator.translated_kernel import End, Span, TranslatedKernel
from alcop_mlir.runtime.emulator.turns import Picker, Turns, front_of
from alcop_mlir.runtime.emulator.unwritten import follow, lanes_on, settle, use
from alcop_mlir.runtime.emulator.waits import Waits


class Runner:
    """One batch from start to end."""

    def __init__(
        self,
        program: TranslatedKernel,
        batch: Batch,
        schedule: str,
        picker: Picker,
        budget: Budget,
        observers: Sequence[Observer],
    ):
        self.batch = batch
        self.program = program
        self.turns = Turns(picker)
        self.budget = budget
        self.warp_instructions = 0
        self.turn = 0
        if schedule == "lockstep":
            groups = [(0, batch.warps)]
        else:
            groups = [(w, 1) for w in range(batch.warps)]
        self.cohorts = [
            Cohort(batch, first, warps, observers) for first, warps in groups
        ]
        self.observers = observers
        for cohort in self.cohorts:
            cohort.peers = self.cohorts
        self.barriers = BarrierUnit(batch, self.cohorts)
        self.waits = Waits(batch)

    def run(self) -> int:
        """Runs every block to its end; how many warp instructions that took."""
        for cohort in self.cohorts:
            cohort.start(self.program.program.entry)
        while True:
            if self.waits.is_over:
                self.waits.test_again()
            ready = [c for c in self.cohorts if c.fronts]
            if ready:
                self.step(self.turns.next(ready))
            elif all(c.done for c in self.cohorts):
                break
            elif not self.waits.stir():
                raise self._deadlock()
        self._finish()
        return self.warp_instructions

    def step(self, cohort: Cohort) -> None:
        """One span for the lowest front of a cohort."""
        fronts = cohort.fronts
        pc = min(fronts)
        if len(fronts) > 1:
            self.turn += 1
            pc = front_of(fronts, self.turn)
        mask = fronts.pop(pc)
        if mask is not None:
            normal = live(mask)
            if normal is False:
                return
            mask = None if normal is None else compact(mask)
        code = self.program.code
        if pc >= len(code):  # falling off the end is a return
            self._exit(cohort, mask, code[-1] if code else None)
            return
        span = self.program.span(pc)
        cohort.grow()
        if mask is not None and span.meetings and _splits_warps(cohort, mask, span):
            self._run_apart(cohort, span, mask)
            return
        self._account(cohort, span, mask, span.stop - span.start)
        if cohort.origins or (span.multiplied and self.batch.warpgroup_watcher):
            self._follow(cohort, span.start, span, mask)
        else:
            for number, op in enumerate(span.ops):
                op(cohort, mask)
                if cohort.unwritten:
                    at = span.after[number]
                    settle(cohort, self.program.flow(at - 1), mask)
                    self._follow(cohort, at, span, mask)
                    break
        self._leave(cohort, span, mask)

    def _follow(self, cohort: Cohort, start: int, span: Span, mask: Mask) -> None:
        """The rest of a span, one by one, while values come from unwritten bytes."""
        stop = span.stop - (span.end is not None)
        for at in range(start, stop):
            flow = self.program.flow(at)
            cohort.grow()
            if span.multiplied and (slots := self.program.multiplied_by(at)):
                touch(cohort, lanes_on(cohort, mask, flow, {}), slots, flow.ins)
            follow(cohort, mask, flow)
            if self.program.rows[at].orders:
                cohort.warp_sync(mask)

    def _run_apart(self, cohort: Cohort, span: Span, mask: Array) -> None:
        """A span with .sync instructions for warps of which only a part is here."""
        pc, meeting = span.start, span.meetings[0]
        if pc < meeting:
            self._account(cohort, span, mask, meeting - pc)
            for at in range(pc, meeting):
                flow = self.program.flow(at)
                cohort.grow()
                follow(cohort, mask, flow)
            cohort.push(meeting, mask)
            return
        row = self.program.rows[pc]
        together, apart = self._meet(cohort, pc, row, mask)
        if apart is not None:
            known = cohort.parked.get(pc)
            cohort.parked[pc] = apart if known is None else known | apart
        if together is None:
            return
        cohort.grow()
        self._account(cohort, span, together, 1)
        if row.ends:
            self._leave(cohort, span, together)
            return
        follow(cohort, together, self.program.flow(pc))
        if row.orders:
            cohort.warp_sync(together)
        cohort.push(pc + 1, together)

    def _meet(
        self, cohort: Cohort, pc: int, row: Opcode, mask: Array
    ) -> tuple[Mask, Mask]:
        """The lanes that wait for no other lane here, and those that do."""
        ins = self.program.code[pc]
        shape = (cohort.blocks, cohort.warps, LANES)
        full = np.broadcast_to(mask, shape)
        wanted = np.ones((1, 1, LANES), bool)
        if cohort.alive is not None:
            wanted = np.broadcast_to(cohort.alive, shape)
        if row.meets == "members":
            read = self.program.translator(pc).read(ins.operands[-1], U32T, ins)
            cohort.grow()
            member = (read(cohort.R) & LANE_BIT) != 0
            # Each lane brings its own mask; the lanes of one call agree on it.
            missing = (member[..., None, :] | np.zeros((*full.shape, 1), bool)) & (
                wanted & ~full
            )[..., None, :]
            held = missing.any(axis=-1)
        else:
            held = np.broadcast_to((wanted & ~full).any(axis=2, keepdims=True), shape)
        together, apart = full & ~held, full & held
        if row.meets == "warp":
            _require_whole_warps(cohort, ins, together)
        return (
            together if together.any() else None,
            apart if apart.any() else None,
        )

    def _whole_warps(self, cohort: Cohort, pc: int, mask: Array) -> Mask | bool:
        """The lanes at an .aligned barrier whose warps are there as one.

        The others wait for the rest; those that have waited are among them.
        """
        known = cohort.parked.pop(pc, None)
        shape = (cohort.blocks, cohort.warps, LANES)
        full = np.broadcast_to(mask if known is None else mask | known, shape)
        wanted = np.ones((1, 1, 1), bool) if cohort.alive is None else cohort.alive
        held = full & (wanted & ~full).any(axis=2, keepdims=True)
        if held.any():
            cohort.parked[pc] = held
        together = live(full & ~held)
        return together if isinstance(together, bool | None) else compact(together)

    def _account(self, cohort: Cohort, span: Span, mask: Mask, count: int) -> None:
        """Counts `count` instructions for every warp with an active lane."""
        cohort.issued += count
        warps = cohort.blocks * cohort.warps
        if mask is not None:
            shape = (cohort.blocks, cohort.warps)
            warps = int(np.broadcast_to(mask.any(axis=2), shape).sum())
        self.warp_instructions += count * warps
        self.budget.check(self.warp_instructions, self.program.code[span.start])
        if self.observers:
            self._advance_clocks(cohort, span, mask, count, warps)

    def _advance_clocks(
        self, cohort: Cohort, span: Span, mask: Mask, count: int, warps: int
    ) -> None:
        """Notes the span that is about to run, for counters and traces.

        The clocks stay at its start until `settle` adds it, so that the instructions
        inside know their position.
        """
        cohort.settle()
        cohort.span_start = span.start
        before = self.program.listing.multiplies_before
        multiplies = before[span.start + count] - before[span.start]
        cohort.pending = (mask, count, multiplies)
        for observer in self.observers:
            observer.on_span(cohort, span.start, count, mask, warps)

    def _leave(self, cohort: Cohort, span: Span, mask: Mask) -> None:
        """Sends the lanes where the end of the span says."""
        end = span.end
        if end is None:
            cohort.push(span.stop, mask)
            return
        taken: Mask | bool = mask
        rest: Mask | bool = False
        if end.guard is not None:
            use(cohort, end.guard[0], end.ins, mask, "decides a branch")
            taken, rest = _split_by_guard(cohort, end.guard, mask)
        if not isinstance(rest, bool):
            cohort.push(span.stop, rest)
        if isinstance(taken, bool):
            return
        self._take(cohort, span, end, taken)

    def _take(self, cohort: Cohort, span: Span, end: End, mask: Mask) -> None:
        if end.kind == "branch":
            cohort.push(end.target, mask)
        elif end.kind == "exit":
            self._exit(cohort, mask, end.ins)
        elif end.kind == "barrier":
            assert end.barrier is not None
            pc, call = span.stop - 1, end.barrier
            here: Mask | bool = mask
            if call.aligned and mask is not None:
                here = self._whole_warps(cohort, pc, mask)
            if not isinstance(here, bool):
                self.barriers.arrive(cohort, pc, call, here)
        elif end.wait is not None:
            self.waits.reach(cohort, span.stop - 1, end.wait, mask)
        elif end.kind == "table":
            self._branch_by_table(cohort, end, mask)
        elif end.site is not None:
            cohort.grow()
            end.site.enter(cohort, mask)
        elif end.runtime is not None:
            cohort.grow()
            end.runtime(cohort, mask)
            cohort.push(span.stop, mask)
        elif end.callee is not None:
            self._return(cohort, end.callee, mask)
        else:
            raise fault(end.ins, "the kernel executed a trap")

    def _branch_by_table(self, cohort: Cohort, end: End, mask: Mask) -> None:
        assert end.index is not None
        index = end.index(cohort.R)
        on = np.ones((1, 1, 1), bool) if mask is None else mask
        for i, target in enumerate(end.table):
            part = (index == i) & on
            if part.any():
                cohort.push(target, part)
        if ((index >= len(end.table)) & on).any():
            raise fault(end.ins, "the index is past the end of the branch table")

    def _return(self, cohort: Cohort, callee: Callee, mask: Mask) -> None:
        """Sends the lanes back to the calls that they came from."""
        for pc, part in return_addresses(cohort, callee.back, mask):
            self.program.sites[pc].leave(cohort, part, callee)

    def _exit(self, cohort: Cohort, mask: Mask, ins: Instruction | None) -> None:
        """Lanes end; `ins` is the last they did, None of a kernel without any."""
        batch = self.batch
        cohort.exit(mask)
        batch.cluster_barrier.leave(cohort, mask)
        if batch.ranks > 1 and batch.shadow is not None and ins is not None:
            batch.shadow.on_block_end(batch.cluster_barrier.ended(), ins)
        if self.barriers.barriers:
            self.barriers.release_ready()

    def _finish(self) -> None:
        """Reports the copies that nobody waited for."""
        self.waits.finish()
        for cohort in self.cohorts:
            for copy in cohort.copies:
                if self.batch.shadow is not None:
                    self.batch.shadow.report_never_waited(copy.lanes)
            report_never_waited(cohort)
            for store in cohort.stores:
                store.report()
                store.read()
            for store in (*cohort.stores_read, *cohort.stores):
                store.write()
            for observer in self.observers:
                observer.on_end(cohort)
            cohort.peers = []  # a circle
        self.batch.warpgroup_order.check_end(self.cohorts[0])
        self.batch.registers.check_end(self.cohorts[0])

    def _deadlock(self) -> EmulationError:
        reasons = self.barriers.describe() + self.waits.describe()
        for cohort in self.cohorts:
            for pc, mask in cohort.parked.items():
                ins = self.program.code[pc]
                block, warp, _ = (int(i) for i in np.argwhere(mask)[0])
                name = warp_name(cohort, block, cohort.first_warp + warp)
                reasons.append(
                    f"a part of {name} waits for "
                    f"the rest of the warp, PTX line {ins.line}: {ins.text}"
                )
        return EmulationError(
            "deadlock: no thread can go on; " + "; ".join(reasons[:4])
        )


def _splits_warps(cohort: Cohort, mask: Array, span: Span) -> bool:
    """Whether some warp has active lanes and other live ones elsewhere.

    For .aligned instructions lanes that have ended, or never were, count as well.
    """
    if mask.shape[2] == 1:
        return False
    absent = ~mask
    if cohort.alive is not None and not span.aligned:
        absent = absent & cohort.alive
    return bool((mask.any(axis=2, keepdims=True) & absent).any())


def _require_whole_warps(cohort: Cohort, ins: Instruction, lanes: Array) -> None:
    """PTX ISA: all 32 lanes of a warp execute the same .aligned instruction."""
    partial = lanes.any(axis=2, keepdims=True) & ~lanes
    if partial.any():
        raise fault(
            ins,
            f"{ins.parts[0]} is executed by only a part of a warp; missing is",
            location_of_mask(cohort, partial),
        )


def _split_by_guard(
    cohort: Cohort, guard: tuple[int, bool], mask: Mask
) -> tuple[Mask | bool, Mask | bool]:
    """The lanes whose predicate holds, and the others (False: none)."""
    p = cohort.R[guard[0]]
    if guard[1]:
        p = ~p
    yes = p if mask is None else mask & p
    if not yes.any():
        return False, mask
    no = ~p if mask is None else mask & ~p
    if not no.any():
        return mask, False
    return yes, no
