"""All ways from a state to the next heads of loops, or to the end."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Set
from dataclasses import replace

import numpy as np

from alcop_mlir.checker.logic import terms
from alcop_mlir.checker.machine.arithmetic import Holds, Value, is_equal
from alcop_mlir.checker.machine.cases import Cases
from alcop_mlir.checker.machine.machine import Machine
from alcop_mlir.checker.machine.mixed import either
from alcop_mlir.checker.machine.state import State
from alcop_mlir.checker.ptx.flow import Flow, Region
from alcop_mlir.checker.ptx.instructions import ENDS, Instruction
from alcop_mlir.errors import CertificateError, NotPlacedError

_MOST_STEPS = 1 << 18  # of one way: beyond it something goes round without a head
_MOST_WAYS = 1 << 12
_MOST_NESTED = 64


class Walk:
    """Goes them to one of the `stops`.

    skipped_loops: those that were not gone through, by their heads
    """

    def __init__(
        self,
        machine: Machine,
        flow: Flow,
        stops: Set[int],
        skips: frozenset[int],
        known: Iterable[str],
        cases: Cases | None = None,
    ):
        self.machine, self.flow, self.skips = machine, flow, skips
        self.stops = stops
        self.pending: list[State] = []
        self.matters = set(range(flow.end))
        if machine.placing is None:
            self.matters = flow.matters(known, skips)
        self.skipped_loops: set[int] = set()
        self._nested, self.cases = 0, cases

    def run(self, state: State, arrive: Callable[[State], None]) -> None:
        """From the state on; at a head it has been, its first step is a turn.

        arrive: takes what comes to a stop
        """
        self.pending = [state]
        ways = 0
        start = state
        while self.pending:
            ways += 1
            if ways > _MOST_WAYS:
                raise CertificateError("too many ways through the kernel")
            if self._run(one := self.pending.pop(), start):
                arrive(one)

    def _run(self, state: State, start: State) -> bool:
        """Whether it comes to a stop."""
        is_first = state is start and state.pc != 0
        if state.cases != self.machine.cases and self.cases is not None:
            self.machine = self.cases.machine_of(state)
        blocks, is_here = None, True
        for _ in range(_MOST_STEPS):
            if state.pc == self.flow.end:
                self._end(state)
                return False
            if state.data.blocks is not blocks:
                blocks = state.data.blocks
                is_here = bool(blocks.any())
            if state.pc > self.flow.end or not is_here:
                return False
            if state.pc in self.stops and not is_first:
                return True
            is_first = False
            self._step(state)
        raise CertificateError("a way without an end")

    def _end(self, state: State) -> None:
        state.cells.end()
        if self.machine.placing is not None:
            self.machine.placing.end(state)

    def _step(self, state: State) -> None:
        ins = self.flow.code[state.pc]
        self.machine.state = state
        if self.machine.placing is not None:
            is_skipped = state.pc in self.skips
            self.pending += self.machine.placing.tell(state, ins, is_skipped)
        if state.pc not in self.matters:
            for name in ins.results:
                state.registers.pop(name, None)
            self._go(state, state.pc + 1)
        elif ins.parts[0] == "bra":
            self._branch(state, ins)
        elif ins.parts[0] in ENDS:
            self._finish(state, ins)
        else:
            self._plain(state, ins)

    def _plain(self, state: State, ins: Instruction) -> None:
        if ins.parts[0] == "selp":
            self._decide(state, ins.operands[3])
        if ins.parts[0] == "and" and state.pc in self.skips and not ins.guard:
            self._tell_apart(state, ins)
        active = self.machine.every if state.lanes is None else state.lanes
        if not ins.guard:
            self.machine.execute(ins, active)
            self._go(state, state.pc + 1)
            return
        value = self.settled(state, self.machine.guard(ins))
        if isinstance(value, np.ndarray):
            self.machine.execute(ins, active & (value & np.uint64(1)).astype(bool))
        elif ins.orders:
            raise CertificateError("it is not known which threads order or access")
        else:
            for name in ins.results:
                state.registers[name] = None
            if self.machine.placing is not None:
                self.machine.placing.unknown(state, ins)
        self._go(state, state.pc + 1)

    def _go(self, state: State, pc: int) -> None:
        block = self.flow.block[state.pc]
        if self.flow.block[pc] != block or pc <= state.pc:
            state.previous = block
        state.pc = pc

    def _decide(self, state: State, operand: str) -> None:
        """A choice that facts decide is one."""
        value = self.machine.value(operand)
        if operand in state.registers and isinstance(value, Holds):
            if self.known(state, value) is not None or state.pc in self.skips:
                state.registers[operand] = self.settled(state, value)

    def _tell_apart(self, state: State, ins: Instruction) -> None:
        """Each residue of a symbol that low bits depend on is a way."""
        if state.lanes is not None:
            return
        for symbol, by in self.machine.open_symbols(ins).items():
            if self.cases is not None and self.cases.split(state, symbol, by):
                self.machine = self.cases.machine_of(state)
                self.machine.state = state
                continue
            first, before = state.residues.get(symbol, (0, 1))
            for residue in range(first + before, by, before):
                other = state.fork()
                other.residues[symbol] = residue, by
                self.pending.append(other)
            state.residues[symbol] = first, by

    def known(self, state: State, value: Holds) -> bool | None:
        """Whether a predicate holds, where that is certain."""
        facts = self.machine.facts
        if facts.excludes(value.true, state.facts, state.clauses):
            return False
        if facts.excludes(value.false, state.facts, state.clauses):
            return True
        return None

    def settled(self, state: State, value: Value) -> Value:
        """A predicate as a number: from facts, or both ways are gone."""
        if not isinstance(value, Holds):
            return value
        holds = self.known(state, value)
        if holds is None and state.lanes is not None:
            return None
        if holds is None:
            other = state.fork()
            self._assume(other, value.false)
            self.pending.append(other)
        if holds is not False:
            self._assume(state, value.true)
        else:
            self._assume(state, value.false)
        return self.machine.constant(int(holds is not False))

    def _assume(self, state: State, clause: terms.Clause) -> None:
        facts = self.machine.facts
        if self.machine.placing is not None:
            self.machine.placing.narrow(state, clause)
        left = [
            o for o in clause if not facts.excludes([o], state.facts, state.clauses)
        ]
        if len(left) == 1:
            state.facts += [f for f in left[0] if not terms.is_constant(f)]
        else:
            state.clauses.append(left)

    def _branch(self, state: State, ins: Instruction) -> None:
        target, block = self.flow.target(ins), self.flow.block[state.pc]
        value = self.machine.guard(ins)
        is_skipped = isinstance(value, Holds) and state.pc in self.skips
        if not is_skipped:
            value = self.settled(state, value)
        here = value
        if isinstance(value, np.ndarray) and state.lanes is not None:
            here = value[state.lanes]
        if isinstance(here, np.ndarray) and is_equal(here):
            self._go(state, target if here[0] & np.uint64(1) else state.pc + 1)
            return
        region = self.flow.region(block)
        if region.is_quiet and not isinstance(value, np.ndarray):
            self._skip(state, region)
        elif is_skipped:
            raise CertificateError("what is skipped orders accesses")
        else:
            self._arms(state, value, target, region)
        state.previous, state.pc = block, region.join

    def _skip(self, state: State, region: Region) -> None:
        self.skipped_loops |= region.loops
        if self.machine.placing is not None:
            self.machine.placing.skipped(state, region)
        state.registers.update(dict.fromkeys(region.written))

    def _arms(self, state: State, value: Value, target: int, region: Region) -> None:
        """Both ways, each in the threads that go it; where it is not known which go, in
        all, and nothing may be written.
        """
        if not region.is_quiet and (
            region.join == self.flow.end or region.is_collective
        ):
            raise CertificateError("threads may part ways around a barrier")
        if not isinstance(value, np.ndarray) and not region.only_loads:
            raise CertificateError("it is not known which threads write")
        self._nested += 1
        if self._nested > _MOST_NESTED:
            raise CertificateError("threads part ways too often")
        before, active, start = state.registers, state.lanes, state.pc
        known = state.data
        first = second = self.machine.every if active is None else active
        mask = None
        if isinstance(value, np.ndarray):
            mask = first & (value & np.uint64(1)).astype(bool)
            first, second = mask, first & ~mask
        found, groups, late = [], set(), state.cells.late
        arms: list[State] = []
        for pc, lanes in ((target, first), (start + 1, second)):
            state.pc, state.lanes, state.registers = pc, lanes, dict(before)
            state.cells.late = late
            if self.machine.placing is not None:
                own = {"registers": dict(known.registers), "told": dict(known.told)}
                state.data = replace(state.data, **own)
            if lanes.any() and not self._arm(state, region.join):
                if not region.is_quiet:
                    raise CertificateError("a loop that only some threads run")
                state.registers = dict(before)
                self._skip(state, region)
            found.append(state.registers)
            arms.append(replace(state))
            if lanes.any():
                groups.add(state.cells.late)
        if len(groups) > 1:
            raise CertificateError("arms do not commit as many groups")
        state.cells.late = groups.pop() if groups else late
        if active is None:
            state.cells.join()
        state.registers, other = found
        if self.machine.placing is not None:
            state.data = self.machine.placing.joined(mask, arms, region.written)
        for name in region.written | self.machine.forgotten:
            values = state.registers.get(name), other.get(name)
            state.registers[name] = self.machine.interned(either(mask, *values))
        state.lanes = active
        self._nested -= 1

    def _arm(self, state: State, join: int) -> bool:
        for _ in range(_MOST_STEPS):
            if state.pc == join:
                return True
            is_end = self.flow.code[state.pc].parts[0] in ENDS
            is_loop = state.pc in self.flow.loops and state.pc in self.stops
            if is_end or is_loop:
                return False
            self._step(state)
        return False

    def _finish(self, state: State, ins: Instruction) -> None:
        value = self.settled(state, self.machine.guard(ins))
        if isinstance(value, np.ndarray) and is_equal(value) and state.lanes is None:
            if not value[0] & np.uint64(1):
                self._go(state, state.pc + 1)
                return
            if ins.parts[0] != "trap":
                self._end(state)
            elif self.machine.placing is not None:
                raise NotPlacedError("a trap")
            state.pc = self.flow.end + 1
        elif ins.parts[0] == "trap":
            self._go(state, state.pc + 1)
        else:
            raise CertificateError("some threads may end before others")
