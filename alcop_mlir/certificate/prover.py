"""The search for a proof: all ways through a kernel, until states at heads repeat."""

from __future__ import annotations

import time
from collections.abc import Mapping

import numpy as np

from alcop_mlir.certificate.heads import Heads, Learnt
from alcop_mlir.certificate.linear import Clause, Condition, Linear
from alcop_mlir.certificate.machine import Machine
from alcop_mlir.certificate.places import placed
from alcop_mlir.certificate.program import (
    ENDS,
    Code,
    is_barrier,
    is_group,
    synchronizes,
)
from alcop_mlir.certificate.proof import Proof
from alcop_mlir.certificate.shared_state import SharedState
from alcop_mlir.certificate.spread import blended
from alcop_mlir.certificate.state import Requirement, State
from alcop_mlir.certificate.values import Exact, Truth, Value
from alcop_mlir.certificate.verdicts import Alarm, Finding, OutOfTime, Outside
from alcop_mlir.runtime.emulator.ptx.syntax import Instruction, Module, PtxKernel

_MOST_RESTARTS = 200
# Registers that a region without synchronization may write, to be run through: larger
# ones are epilogues, of which nothing is needed.
_MOST_SKIPPED = 24
_LOADS = ("ld", "ldmatrix")
_MOST_IN_ARM = 4096  # instructions of one arm that some threads run


def prove(
    module: Module,
    kernel: PtxKernel,
    threads: int,
    shared_bytes: int,
    bases: Mapping[str, int],
    requirements: Mapping[str, Requirement],
    seconds: float,
    shares_stores: bool = False,
    known: Proof | None = None,
    follows_sources: bool = True,
) -> Proof:
    """The proof; raises Alarm or Outside where there is none within `seconds`.

    shares_stores: whether threads that store to one place at once are taken to store
           the same
    known: one that does not tell the first turns of loops apart: this one does, and
           follows where copied bytes come from, if it is to
    """
    code = Code(module, kernel) if known is None else known.machine.code
    steps = {} if known is None else dict(known.steps)
    limit = time.process_time() + seconds
    for restarts in range(_MOST_RESTARTS):
        machine = Machine(code, threads, shared_bytes, bases, requirements)
        machine.tells_turns = known is not None
        machine.shares_stores = shares_stores
        machine.follows_sources = known is not None and follows_sources
        search = Search(machine, Heads(machine, steps), limit)
        try:
            search.run()
        except Learnt:
            continue
        except Alarm as alarm:
            raise placed(alarm, machine) from None
        heads = [
            one
            for listed in search.heads.found.values()
            for one in listed
            if not one.is_dropped
        ]
        return Proof(
            machine,
            tuple(heads),
            steps,
            search.executed,
            restarts,
            frozenset(search.hints),
            frozenset(search.heads.unending),
        )
    raise Outside("no stable information about loops")


class Search:
    """Goes through all ways from the entry, each until a head state covers it."""

    def __init__(self, machine: Machine, heads: Heads, limit: float):
        self.machine, self.heads, self.limit = machine, heads, limit
        self.code = machine.code
        self.executed = 0
        self.hints: set[int] = set()
        cells = machine.shared_bytes // machine.grain + 1
        self.pending = [State(0, {}, SharedState(cells))]

    def run(self) -> None:
        """Raises Alarm or Outside, and Learnt to begin anew.

        What is behind loops comes after them, so that what they teach comes first.
        """
        while self.pending:
            waiting = range(len(self.pending))
            first = min(waiting, key=lambda n: (self.pending[n].pc, -n))
            self._run(self.pending.pop(first))

    def _run(self, state: State) -> None:
        while state is not None and state.pc < self.code.end:
            if state.pc in self.code.loops or state.pc in self.code.exits:
                if time.process_time() > self.limit:
                    raise OutOfTime
                if self.heads.arrive(state) is None:
                    return
            self._step(state)
            if state.pc in self.code.stop and self._is_behind(state.pc):
                self.pending.append(state)
                return
        if state.pc == self.code.end:
            self._end(state)

    def _is_behind(self, pc: int) -> bool:
        return any(one.pc < pc for one in self.pending)

    def _step(self, state: State) -> None:
        """One instruction; a state that ends has no number of an instruction left."""
        pc = state.pc
        ins = self.code.instructions[pc]
        self.executed += 1
        machine = self.machine
        machine.state, machine.pc = state, pc
        if pc not in self.code.matters:
            for name in self.code.written[pc]:
                state.registers.pop(name, None)
            self._go(state, pc + 1)
            return
        if ins.parts[0] == "bra":
            self._branch(state, ins)
            return
        if ins.parts[0] in ENDS:
            self._finish(state, ins)
            return
        self._decide_selection(state, ins)
        self._decide_residues(state, ins)
        lanes = self._lanes(state, ins)
        if lanes is not None:
            machine.execute(ins, lanes)
        self._go(state, pc + 1)

    def _go(self, state: State, pc: int) -> None:
        """On to another instruction."""
        block = self.code.block_of[state.pc]
        if self.code.block_of[pc] != block or pc <= state.pc:
            state.previous = block
        state.pc = pc

    def _end(self, state: State) -> None:
        last = self.code.instructions[-1]
        self.machine.state = state
        state.shared.end(last)

    # Predicates.

    def _lanes(self, state: State, ins: Instruction) -> np.ndarray | None:
        """The threads that execute it; None where what it writes is forgotten."""
        active = state.lanes
        every = np.ones(self.machine.threads, bool) if active is None else active
        if ins.guard is None:
            return every
        value = self._settled(state, self.machine.guard(ins))
        if isinstance(value, Exact):
            return every & (value.lanes & np.uint64(1)).astype(bool)
        if synchronizes(ins):
            what = f"by which threads it is executed is not known: {ins.text}"
            raise Outside(what, ins.line)
        for name in self.code.written[state.pc]:
            state.registers[name] = None
        return None

    def _settled(self, state: State, value: Value) -> Value:
        """A truth as a number: known from facts, or the search goes both ways."""
        if not isinstance(value, Truth):
            return value
        holds = self._known(state, value.condition)
        if holds is None:
            if state.lanes is not None:
                return None
            other = state.fork()
            self._assume(other, value.condition.false)
            self.pending.append(other)
            self._assume(state, value.condition.true)
            holds = True
        elif any(_names_turn(f) for one in value.condition.true for f in one):
            # A fact of this turn that follows from others may not do so in later ones.
            taken = value.condition.true if holds else value.condition.false
            self._assume(state, taken)
        return Exact(np.full(self.machine.threads, int(holds), np.uint64))

    def _known(self, state: State, condition: Condition) -> bool | None:
        """Whether the condition holds in this state, where that is certain."""
        refuted = self.machine.refuter.refuted
        if refuted(state.facts, state.clauses, condition.true):
            return False
        if refuted(state.facts, state.clauses, condition.false):
            return True
        return None

    def _assume(self, state: State, clause: Clause) -> None:
        refuted = self.machine.refuter.refuted
        left = [o for o in clause if not refuted(state.facts, state.clauses, (o,))]
        if len(left) == 1:
            state.facts += [f for f in left[0] if f.terms]
        else:
            state.clauses.append(tuple(left))

    def _decide_selection(self, state: State, ins: Instruction) -> None:
        """Addresses that depend on a choice are computed both ways."""
        if ins.parts[0] != "selp" or self.code.written[state.pc][0] not in (
            self.code.needed
        ):
            return
        operand = ins.operands[3]
        name = getattr(operand, "name", None)
        value = self.machine.value(operand, 1)
        if name is not None and isinstance(value, Truth):
            self.hints.add(state.pc)
            settled = self._settled(state, value)
            if settled is not None:
                state.registers[name] = settled

    def _decide_residues(self, state: State, ins: Instruction) -> None:
        """Low bits of an address that depend on those of a size: each case is a way."""
        pc = state.pc
        if ins.parts[0] != "and" or ins.guard or state.lanes is not None:
            return
        if self.code.written[pc][0] not in self.code.needed:
            return
        for symbol, modulus in sorted(self.machine.open_residues(ins).items()):
            self.hints.add(pc)
            first, before = state.residues.get(symbol, (0, 1))
            for residue in range(first + before, modulus, before):
                other = state.fork()
                other.residues[symbol] = residue, modulus
                self.pending.append(other)
            state.residues[symbol] = first, modulus

    # Branches.

    def _branch(self, state: State, ins: Instruction) -> None:
        target = self.code.target(state.pc)
        value = self.machine.guard(ins)
        if isinstance(value, Truth) and self._is_skipped(state):
            self.hints.add(state.pc)
        else:
            value = self._settled(state, value)
        if isinstance(value, Exact) and value.is_uniform:
            self._go(state, target if value.lanes[0] else state.pc + 1)
            return
        block = self.code.block_of[state.pc]
        if not self.code.is_loud(block):
            self._skip(state, block, value, target)
        else:
            self._run_arms(state, block, value, target, ins)

    def _is_skipped(self, state: State) -> bool:
        """Whether what comes until all ways meet writes nothing that is needed."""
        block = self.code.block_of[state.pc]
        if self.code.is_loud(block):
            return False
        written = self._written(block)
        return len(written) > _MOST_SKIPPED and not written & self.code.needed

    def _written(self, block: int) -> set[str]:
        between = self.code.between(block)
        return {r for pc in self.code.pcs(between) for r in self.code.written[pc]}

    def _skip(self, state: State, block: int, value: Value, target: int) -> None:
        """Past what synchronizes nothing; registers that it writes are merged."""
        join = self.code.after[block]
        self.heads.unending |= self.code.between(block) & self.code.loops.keys()
        written = self._written(block)
        merged: dict[str, Value] = {}
        if isinstance(value, Exact) and written & self.code.needed:
            merged = self._merged(state, value, target, join)
        for name in written:
            state.registers[name] = merged.get(name)
        self._leave(state, block, join)

    def _leave(self, state: State, block: int, join: int) -> None:
        state.previous, state.pc = block, join

    def _merged(
        self, state: State, value: Exact, target: int, join: int
    ) -> dict[str, Value]:
        """What registers hold after two arms without branches; else nothing."""
        taken = (value.lanes & np.uint64(1)).astype(bool)
        arms = []
        for start in (target, state.pc + 1):
            arm = state.fork()
            arm.pc = start
            if not self._run_straight(arm, join):
                return {}
            arms.append(arm.registers)
        self.machine.state = state
        return {
            name: _either(taken, arms[0], arms[1], name) for name in arms[0] | arms[1]
        }

    def _run_straight(self, arm: State, join: int) -> bool:
        for _ in range(_MOST_IN_ARM):
            if arm.pc == join:
                return True
            ins = self.code.instructions[arm.pc]
            if ins.guard is not None or ins.parts[0] in ENDS:
                return False
            self.machine.state, self.machine.pc = arm, arm.pc
            if ins.parts[0] == "bra":
                arm.pc = self.code.target(arm.pc)
                continue
            self.machine.execute(ins, np.ones(self.machine.threads, bool))
            arm.pc += 1
        return False

    def _run_arms(
        self, state: State, block: int, value: Value, target: int, ins: Instruction
    ) -> None:
        """Both ways, each by the threads that take it, until they meet.

        Where it is not known which threads these are, each may: what one may read has
        to be there for all, and nothing may be written.
        """
        join = self.code.after[block]
        inner = [
            self.code.instructions[p] for p in self.code.pcs(self.code.between(block))
        ]
        meets = any(is_barrier(i) and not is_group(i) for i in inner)
        if join == self.code.end or meets:
            what = "threads may part ways around synchronization"
            raise Alarm(Finding("barrier", what, ins.line, ins.text))
        if not isinstance(value, Exact):
            stores = [i for i in inner if synchronizes(i) and i.parts[0] not in _LOADS]
            if stores:
                what = f"by which threads it is executed is not known: {stores[0].text}"
                raise Outside(what, stores[0].line)
        active, before, start = state.lanes, state.registers, state.pc
        every = np.ones(self.machine.threads, bool) if active is None else active
        taken = every
        if isinstance(value, Exact):
            taken = every & (value.lanes & np.uint64(1)).astype(bool)
        other = every & ~taken if isinstance(value, Exact) else every
        arms, late = [], state.shared.late
        groups: set[int] = set()
        for first, lanes in ((target, taken), (start + 1, other)):
            state.lanes, state.pc, state.registers = lanes, first, dict(before)
            state.shared.late = late
            self._run_arm(state, join)
            arms.append(state.registers)
            groups |= {state.shared.late} if lanes.any() else set()
        if len(groups) > 1:
            what = "the two ways do not commit as many groups"
            raise Alarm(Finding("barrier", what, ins.line, ins.text))
        state.shared.late = groups.pop() if groups else late
        if active is None:
            state.shared.join()
        mask = taken if isinstance(value, Exact) else None
        state.registers = arms[0]
        for name in arms[0].keys() | arms[1].keys():
            if arms[0].get(name) is not arms[1].get(name):
                state.registers[name] = _either(mask, arms[0], arms[1], name)
        state.lanes = active
        self._leave(state, block, join)

    def _run_arm(self, state: State, join: int) -> None:
        for _ in range(_MOST_IN_ARM):
            if state.pc == join:
                return
            if state.pc in self.code.loops:
                line = self.code.instructions[state.pc].line
                raise Outside("a loop that only some threads run, with accesses", line)
            self._step(state)
        raise Outside("a long part that only some threads run")

    def _finish(self, state: State, ins: Instruction) -> None:
        """The end of some or all threads."""
        value = self._settled(state, self.machine.guard(ins))
        if isinstance(value, Exact) and value.is_uniform and state.lanes is None:
            if not value.lanes[0]:
                self._go(state, state.pc + 1)
                return
            if ins.parts[0] != "trap":
                state.shared.end(ins)
            state.pc = self.code.end + 1
            return
        if ins.parts[0] == "trap":
            self._go(state, state.pc + 1)
            return
        what = "some threads may end before others"
        raise Alarm(Finding("barrier", what, ins.line, ins.text))


def _names_turn(fact: Linear) -> bool:
    return any(name[0] == "n" and name[1:].isdigit() for name in fact.terms)


def _either(
    taken: np.ndarray | None,
    first: dict[str, Value],
    second: dict[str, Value],
    name: str,
) -> Value:
    one, other = first.get(name), second.get(name)
    if one is other:
        return one
    return None if taken is None else blended(taken, one, other)
