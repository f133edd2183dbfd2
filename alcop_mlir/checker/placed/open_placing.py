"""Results of arrays whose sizes are not known: see `OpenBook` for what tags say there.

All blocks go all ways: what a guard asks of sizes is asked of facts, in general. Which
elements an access is of says `Accesses`. Of each listed state all that holds other tags
goes on by itself.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from alcop_mlir.checker.form.open_statement import OpenStatement
from alcop_mlir.checker.logic import terms
from alcop_mlir.checker.logic.terms import Clause, Term
from alcop_mlir.checker.machine.arithmetic import Holds, Value
from alcop_mlir.checker.machine.cases import Cases
from alcop_mlir.checker.machine.held import Held, Tags
from alcop_mlir.checker.machine.machine import Machine
from alcop_mlir.checker.machine.predicates import is_same_value
from alcop_mlir.checker.machine.state import State
from alcop_mlir.checker.placed.kinds import Element
from alcop_mlir.checker.placed.open_accesses import Accesses, Indices, Rest
from alcop_mlir.checker.placed.open_addresses import OpenAddresses, OpenMoves
from alcop_mlir.checker.placed.open_book import OpenBook
from alcop_mlir.checker.placed.open_cover import OpenCover
from alcop_mlir.checker.placed.open_here import Here
from alcop_mlir.checker.placed.open_sums import OpenSums
from alcop_mlir.checker.placed.origins import Misplaced
from alcop_mlir.checker.placed.placing import Placing
from alcop_mlir.checker.placed.tags import ZERO, is_same, nothing
from alcop_mlir.checker.placed.tiles import Tiles
from alcop_mlir.checker.ptx.flow import Flow, Region
from alcop_mlir.checker.ptx.instructions import Instruction
from alcop_mlir.errors import NotPlacedError

_TOGETHER = ("shfl", "ldmatrix", "movmatrix", "mma")
_STOPS = ("trap", "call")
_MOST_APART, _MOST_STATES = 12, 400


class OpenPlacing(Placing):
    """Of one check, whose accesses have been seen.

    rest:  threads that do not execute what is looked at
    apart: the block behind which threads have parted ways, if they have
    """

    statement: OpenStatement

    def __init__(
        self,
        machine: Machine,
        flow: Flow,
        statement: OpenStatement,
        accesses: Accesses,
        cases: Cases,
    ):
        super().__init__(machine, flow, statement)
        self.accesses, self.here = accesses, Here(machine, flow, accesses)
        self.rest: Rest | None = None
        self.apart = 0
        self.book = OpenBook(
            statement, self.book.grain, self.here.is_nothing, self.here.is_ended
        )
        self.cases = cases
        self._single = machine  # of one case
        self._moves: dict[int, tuple[Machine, OpenMoves, Tiles]] = {}
        self.go(machine)
        self._key: tuple[Held, bytes] = Held(), b""
        self.cover = OpenCover(self.book, accesses)
        self.sums = OpenSums(self.book, accesses)

    def go(self, machine: Machine) -> None:
        """Moves and tiles go with it."""
        key = machine.threads
        if key not in self._moves:
            here = machine, self.book, self.classes.blocks
            moves = OpenMoves(*here, addresses=OpenAddresses(*here, here=self.here))
            self._moves[key] = machine, moves, Tiles(moves)
        machine, self.moves, self.tiles = self._moves[key]
        super().go(machine)
        self.here.machine = machine
        self.addresses = self.moves.addresses

    # Instructions.

    def _execute(self, ins: Instruction, lanes: np.ndarray) -> None:
        apart = self.rest is not None or self.machine.state.lanes is not None
        if apart and ins.parts[0] in _TOGETHER:
            # Nobody knows whether the other threads of the warp are there.
            for name in ins.results:
                self._set(name, None, lanes)
            return
        super()._execute(ins, lanes)

    # Ways.

    def counted(self, ins: Instruction, value: Value, lanes: np.ndarray) -> Value:
        """What nobody knows of the thread that stands for all may be known here."""
        is_all = lanes is self.machine.every or bool(lanes.all())
        self.here.tell(self.machine.state.pc, value if is_all else None)
        return value

    def narrow(self, state: State, clause: Clause) -> None:
        """All blocks go all ways."""

    def tell(self, state: State, ins: Instruction, is_skipped: bool) -> list[State]:
        """Both ways of a branch that decides which results are stored."""
        if state.previous >= 0 and state.pc in self.accesses.joins:
            self._came(state)
        if state.lanes is None:
            self.apart = self.flow.block[state.pc]
        value = state.registers.get(ins.guard)
        if ins.parts[0] != "bra" or not is_skipped or not isinstance(value, Holds):
            return []
        if state.lanes is not None:
            return []
        other = state.fork()
        for one, number in ((state, 1), (other, 0)):
            one.registers[ins.guard] = self.machine.constant(number)
        return [other]

    def _came(self, state: State) -> None:
        """From one block, or, where threads have parted ways, from several."""
        via = dict(state.data.via)
        is_several = via.pop(-1, None) is not None
        body = self.flow.loops.get(state.pc, ())
        if state.previous not in body:
            via[state.pc] = -1 if is_several else state.previous
        state.data.via = via

    def joined(
        self, mask: np.ndarray | None, arms: list[State], written: set[str]
    ) -> Held:
        """Behind two arms."""
        found, (one, other) = super().joined(mask, arms, written), arms
        mine = one.data.via.items() & other.data.via.items()
        return replace(found, via={**dict(mine), -1: -1})

    def _meanings(
        self, state: State, is_back: bool
    ) -> tuple[dict[str, Term], set[str], dict[str, Term]]:
        """Turns are told apart as long as what is held is not the same in all."""
        pc, name = state.pc, f"n{state.pc}"
        if pc in self.accesses.joins and not is_back:
            self._came(state)
        turns = dict(state.data.turns)
        if is_back:
            # What was known on ways of the turn before is not of this one.
            body = self.flow.loops[pc] - {pc}
            via = {b: p for b, p in state.data.via.items() if b not in body}
            state.data.via = via
            inner = {f"n{head}" for head in self.flow.loops if head in body} - {name}
            turns = {n: t for n, t in turns.items() if n not in inner}
            known = turns.pop(name, None)
            if known is not None and known[""] < _MOST_APART:
                turns[name] = terms.number(known[""] + 1)
            return {name: {name: 1, "": -1}}, set(), turns
        lost = set()
        if pc in self.flow.loops:
            turns[name], lost = terms.number(0), {name}
        values = {
            n: t
            for n, t in turns.items()
            if n != name and pc not in self.flow.loops[int(n[1:])]
        }
        return values, lost, turns

    def turned(self, state: State, is_back: bool) -> None:
        """At a head, or behind loops: symbols get other meanings."""
        super().turned(state, is_back)
        data, name = state.data, f"n{state.pc}"
        if is_back and name in data.turns:
            state.data = self.sums.named(data, name) or data
        self.machine.state = state
        if state.pc not in self.flow.loops:
            self._end(state)

    def _end(self, state: State) -> None:
        """A sum that is whole is so however many turns there were, and what has been
        multiplied is of no use then.
        """
        self.machine.state, data = state, state.data
        registers, is_all = self.sums.ended(data.registers)
        state.data = replace(data, registers=registers)
        if is_all:
            later, every = self.flow.later(state.pc), self.accesses.resolves
            via = {b: p for b, p in data.via.items() if later & every.get(b, set())}
            state.data = replace(
                state.data, shared=nothing(data.shared.number), turns={}, via=via
            )

    def _bounds(self, state: State) -> list[Term]:
        return []

    def _counters(
        self, state: State, is_back: bool, live: set[str]
    ) -> dict[str, Value]:
        return {}

    def key(self, state: State) -> bytes:
        """All that is held; what arrives is asked twice."""
        if self._key[0] is not state.data:
            self._key = state.data, self._digest(state)
        return self._key[1]

    def _digest(self, state: State) -> bytes:
        data = state.data
        held = [("", data.shared), *sorted(data.registers.items())]
        found = _digest(held, self.book)
        for array, term, index in data.stored:
            found.update(f"{array} {term}".encode() + index[0].tobytes())
        turns = sorted((n, t[""]) for n, t in data.turns.items())
        found.update(f"{turns} {self.here.edges(state)}".encode())
        return found.digest()

    def matches(self, number: int, state: State) -> bool:
        """Whether what arrives is what a listed state has."""
        if len(self.first) > _MOST_STATES:
            raise NotPlacedError("turns differ in what registers or shared memory hold")
        key = number, self.key(state)
        if self.first.setdefault(key, state.data) is state.data:
            return True
        stored, first = state.data.stored, self.first[key].stored
        return len(stored) == len(first) and super().matches(number, state)

    def covers(self, key: tuple[int, bytes], state: State) -> bool:
        """Where nothing is added a register that holds 0 holds the whole sum of any
        element. All else is the same there, or less is known.
        """
        data, other = state.data, self.first[key]
        if data.stored or other.stored or other.bounds or other.told:
            return False
        known = {n: v for n, v in other.kept.items() if v is not None}
        less = (other.via, data.via), (other.turns, data.turns), (known, data.kept)
        if not all(_is_part(one, of) for one, of in less):
            return False
        values = {n: t for n, t in data.turns.items() if n not in other.turns}
        held = other.shared, *other.registers.values()
        shared, *registers = self.book.renamed(held, values, set())
        if shared.number.any() and not is_same(shared, data.shared):
            return False
        self.go(self._single)
        self.machine.state = state
        listed = dict(zip(other.registers, registers, strict=True))
        return self.sums.are_instances(data.registers, listed)

    # Elements.

    def is_skipped_by_none(self, indices: Indices, count: int, is_zero: bool) -> bool:
        """Whether threads that go past leave out no element that is there; 0 may be
        instead of it beyond the end of the sum.
        """
        rest = self._resting()
        if rest is None:
            return True
        asked = self.accesses.skips(rest, indices, count, is_zero)
        return all(self.accesses.never(*one) for one in asked)

    def _resting(self) -> Rest | None:
        """Threads that go past what is executed, if any may."""
        if self.rest is not None or self.machine.state.lanes is None:
            return self.rest
        block = self.flow.block[self.machine.state.pc]
        return Rest(self.here.way, self.flow.past(self.apart, block))

    # Threads that part ways.

    def skipped(self, state: State, region: Region) -> None:
        """Blocks without loops, that nobody knows who goes, are gone by all: what is
        there has to be so too in threads that go past.
        """
        block = self.flow.block[state.pc]
        inside = self.flow.inside(block)
        passed = {b: p for b, p in state.data.via.items() if b not in inside}
        state.data.via = {**passed, -1: -1}
        if region.loops or any(i.parts[0] in _STOPS for i in region.code):
            super().skipped(state, region)
            return
        first = block if state.lanes is None else self.apart
        start, rest = state.pc, self.rest
        active = self.machine.every if state.lanes is None else state.lanes
        before = {n: self._operand(n) for n in region.written}
        unsure: dict[str, tuple[int, Tags]] = {}
        written: set[str] = set()
        for one in [b for b in reversed(self.flow.reached) if b in inside]:
            self.rest = Rest(self.here.way, self.flow.past(first, one))
            self._forget(state, unsure)
            here = {
                n: t
                for n, (b, t) in unsure.items()
                if self.flow.is_between(block, b, one)
            }
            state.data.registers.update(here)
            code = range(one, self.flow.stop[one])
            for pc in code:
                state.pc, ins = pc, self.flow.code[pc]
                self.here.tell(pc, None)
                if ins.parts[0] != "bra":
                    self.execute(ins, active)
                    self._lose(state, ins)
            names = {n for pc in code for n in self.flow.code[pc].results}
            for name in names & state.data.registers.keys():
                tags = state.data.registers[name]
                unsure.pop(name, None)
                if name in written or not self._stands(tags, before[name]):
                    unsure[name] = one, tags
            written |= names
        state.pc, self.rest = start, rest
        self._forget(state, unsure)

    def _lose(self, state: State, ins: Instruction) -> None:
        """Its results are no numbers, unless it moves one."""
        for name in ins.results:
            is_move = ins.parts[0] == "mov" and len(ins.sources) == 1
            value = self.machine.value(ins.operands[1]) if is_move else None
            state.registers[name] = value if isinstance(value, np.ndarray) else None

    def _operand(self, name: str) -> Tags:
        return self.moves.operand(name, self.machine.kernel.width(name) // 8)

    def _stands(self, tags: Tags, before: Tags) -> bool:
        """Whether it is in registers of threads that have gone another way too."""
        number = int(tags.number.flat[0])
        kind = self.book.kinds[number]
        if not isinstance(kind, Element):
            return False
        whole = self.book.whole(tags, kind.size)
        if (whole.number != number).any():
            return False
        is_zero = bool((before.number == ZERO).all())
        return all(
            self.is_skipped_by_none(self._indices(kind, at), 1, is_zero)
            for at in whole.at.T
        )

    def _indices(self, kind: Element, at: np.ndarray) -> Indices:
        of_threads = self.accesses.thread.facts.of_threads
        return {
            loop: terms.plus(term, of_threads(numbers))
            for loop, (term, numbers) in self.book.loops(kind, at).items()
        }

    def _forget(self, state: State, names: Iterable[str]) -> None:
        for name in state.data.registers.keys() & {*names}:
            tags = state.data.registers[name]
            state.data.registers[name] = nothing(tags.number)

    def unknown(self, state: State, ins: Instruction) -> None:
        """An instruction of which it is not known who executes it."""
        raise NotPlacedError(ins.told("it is not known who executes it"))

    # Results.

    def _put(self, ins: Instruction, tags: Tags, lanes: np.ndarray) -> None:
        """A store to an output: each result that is there, and nothing else."""
        pc, way = self.machine.state.pc, self.here.way
        found = self.accesses.indices(pc, way)
        if found is None:
            raise Misplaced("a store to what is not known")
        array, indices = found
        count, rest = self.addresses.count(ins, array), self._resting()
        if rest is not None:
            ask = partial(self.accesses.skips, rest, count=count, is_zero=True)
            if not self.accesses.are_never(pc, rest.key, indices, way, ask):
                raise Misplaced(f"elements of {array} that are not stored")
        ask = partial(self.accesses.beyond, pc, count=count, way=way)
        if not self.accesses.are_never(pc, "beyond", indices, way, ask):
            raise Misplaced(f"elements of {array} beyond its end")
        size = self.statement.arrays[array].bytes
        super()._put(ins, self.sums.results(tags, indices, size), lanes)

    def end(self, state: State) -> None:
        """All threads end."""
        try:
            super().end(state)
        except Misplaced as error:
            raise NotPlacedError(f"{error}") from None


def _digest(every: Iterable[tuple[str, Tags]], book: OpenBook) -> Any:
    """A hash of names and tags; of what several have once."""
    found, known = hashlib.sha256(), dict[int, bytes]()
    for name, tags in every:
        for one in tags:
            if id(one) not in known:
                known[id(one)] = book.digest(one)
            found.update(f"{name} {one.shape} ".encode() + known[id(one)])
    return found


def _is_part(one: Mapping[Any, Any], other: Mapping[Any, Any]) -> bool:
    """Whether all that one knows the other one knows too."""
    return all(k in other and is_same_value(v, other[k]) for k, v in one.items())
