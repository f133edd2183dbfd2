"""Runs the processes of a kernel as far as what is known lets them: `Run`."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from typing import Any

from alcop_mlir.verifier.rings.code import Instruction, Loop, Register
from alcop_mlir.verifier.rings.kernel import LONG
from alcop_mlir.verifier.rings.numbers import (
    Atoms,
    Found,
    Knowledge,
    Open,
    Question,
    Tag,
    Terms,
    is_more,
    linear,
    plus,
    times,
)
from alcop_mlir.verifier.rings.processes import Place, Process
from alcop_mlir.verifier.rings.records import Slot, Wrong
from alcop_mlir.verifier.rings.state import State
from alcop_mlir.verifier.rings.unproven import Unproven

_TURN = 20_000  # instructions of a process without an event: it never ends


class _Paused(Exception):
    def __init__(self, question: Question):
        super().__init__(question)
        self.question = question


@dataclass
class Run:
    """All processes, together. `advance` raises `Wrong` at the first thing wrong.

    long:   numbers that are surely more than `LONG`
    blocks: of the cluster
    limit:  numbers that are not known are compared with smaller ones only, but by loops
    """

    processes: Sequence[Process]
    atoms: Atoms
    places: list[Place]
    state: State
    known: Knowledge
    long: Collection[Terms]
    limit: int
    blocks: int

    def clone(self) -> Run:
        """An independent copy, which may be told other answers."""
        places = [place.clone() for place in self.places]
        return replace(self, places=places, state=self.state.clone())

    def advance(self) -> None:
        """Run all until each has ended, or waits for an answer, or for another."""
        went_on = True
        while went_on:
            went_on = False
            for number in range(len(self.processes)):
                went_on |= self._go_on(number)

    def asking(self) -> list[int]:
        """The processes that wait for answers."""
        return [n for n, place in enumerate(self.places) if place.question is not None]

    def alive(self) -> list[int]:
        """The processes that have not ended."""
        return [n for n in range(len(self.places)) if self.at(n).kind != "end"]

    def at(self, number: int) -> Instruction:
        """The instruction that a process is at."""
        return self.processes[number].code[self.places[number].at]

    def end(self) -> None:
        """Check what is left over; or, where processes wait, that these never end."""
        alive = self.alive()
        for number in alive:
            if self.at(number).kind == "wait":
                self._stuck(number)
        for number in alive:
            raise self._located(
                Wrong("not all threads that it is for come here"), number
            )
        self.state.at_end()

    def _stuck(self, number: int) -> None:
        for mbarrier, one in enumerate(self.state.mbarriers):
            if number in one.waiting:
                raise self._located(self.state.stuck(number, mbarrier), number)

    # -- instructions ----------------------------------------------------------------

    def _go_on(self, number: int) -> bool:
        """Run a process until it has to wait; whether it went on at all."""
        place, code = self.places[number], self.processes[number].code
        place.question = None
        start, steps = place.at, 0
        while True:
            one = code[place.at]
            try:
                following = _KINDS[one.kind](self, number, one)
            except _Paused as paused:
                place.question = paused.question
                return steps > 0
            except Wrong as wrong:
                raise self._located(wrong, number) from wrong
            if following is None:
                return steps > 0
            place.at, steps = following, steps + 1
            if steps > _TURN:
                raise Unproven(code[start].op, "it never ends")

    def _located(self, wrong: Wrong, number: int) -> Wrong:
        """With the op, and the iteration in which that is so."""
        one, place = self.at(number), self.places[number]
        loops = [place.iterations.get(loop.number, 0) for loop in one.loops]
        named = [f"iteration {number}" for number in reversed(loops)]
        where = f" ({' of '.join(named)})" if loops else ""
        if wrong.op is not None:
            return wrong
        return Wrong(f"{wrong}{where}", one.op)

    def _value(self, number: int, use: Any) -> Any:
        if isinstance(use, Register):
            return self.places[number].registers[use.number]
        return use

    def _values(self, number: int, one: Instruction) -> list[Any]:
        registers = self.places[number].registers
        return [
            registers[use.number] if isinstance(use, Register) else use
            for use in one.uses
        ]

    def _whole(self, number: int, one: Instruction) -> list[int]:
        """The operands of an event, which have to be known."""
        found = self._values(number, one)
        if any(isinstance(value, Open) for value in found):
            raise Unproven(one.op, "depends on a number that is not known")
        return found

    def _set(self, number: int, one: Instruction, values: Sequence[Any]) -> int:
        registers = self.places[number].registers
        for register, value in zip(one.defs, values, strict=True):
            registers[register] = value
        return self.places[number].at + 1

    def _sure(self, found: bool | Question) -> bool:
        if isinstance(found, Question):
            raise _Paused(found)
        return found

    def _is_more(self, number: int, one: Any, other: Any) -> bool:
        """Whether one number is more than another, by an op that is no loop."""
        tag = self.tag(number, self.at(number).loops)
        found = self._answer(one, other, tag)
        if isinstance(found, Question) and abs(found.least) > self.limit:
            raise Unproven(self.at(number).op, "compares a number that is not known")
        return self._sure(found)

    def _answer(self, one: Any, other: Any, tag: Tag) -> Found:
        room = plus(one, times(other, -1))
        if isinstance(room, Open) and room.terms in self.long:
            about = (room.terms, tag)
            self.known = {about: (LONG, None), **self.known}
        return is_more(self.known, one, other, tag)

    def tag(self, number: int, loops: Sequence[Loop]) -> Tag:
        """The indices of loops: of which iteration something is asked."""
        registers = self.places[number].registers
        return tuple(registers[loop.index] for loop in loops)

    def _compute(self, number: int, one: Instruction) -> int:
        rule, what = one.data
        operands = self._values(number, one)
        if rule is not None and all(isinstance(value, int) for value in operands):
            result = rule(*operands)
        else:
            result = linear(what[0], operands)
        if result is None:
            result = self.atoms.named((what, tuple(operands)))
        return self._set(number, one, [result])

    def _compare(self, number: int, one: Instruction) -> int:
        left, right = self._values(number, one)
        predicate = one.data if one.data < 6 else one.data - 4
        if predicate in (0, 1):
            is_other = self._is_more(number, left, right) or self._is_more(
                number, right, left
            )
            found = is_other == bool(predicate)
        elif predicate in (2, 5):  # less, or not at most
            found = (
                self._is_more(number, right, left)
                if predicate == 2
                else (not self._is_more(number, right, left))
            )
        else:
            found = self._is_more(number, left, right) == (predicate == 4)
        return self._set(number, one, [int(found)])

    def _move(self, number: int, one: Instruction) -> int:
        return self._set(number, one, self._values(number, one))

    def _enter(self, number: int, one: Instruction) -> int:
        self.places[number].iterations[one.data.number] = -1
        return self._set(number, one, self._values(number, one))

    def _loop(self, number: int, one: Instruction) -> int:
        index, upper = self._values(number, one)
        place = self.places[number]
        tag = self.tag(number, one.loops[:-1])
        if not self._sure(self._answer(upper, index, tag)):
            return one.target
        place.iterations[one.data.number] += 1
        return place.at + 1

    def _branch(self, number: int, one: Instruction) -> int:
        (condition,) = self._values(number, one)
        if isinstance(condition, Open):
            condition = self._is_more(number, condition, 0)
        return self.places[number].at + 1 if condition else one.target

    def _jump(self, number: int, one: Instruction) -> int:
        return one.target

    def _end(self, number: int, one: Instruction) -> None:
        self.state.at_exit(number)

    # -- events ----------------------------------------------------------------------

    def _meet_warp(self, number: int, one: Instruction) -> int | None:
        return self._meet(number, self._warp(number), [one.op])

    def _meet_block(self, number: int, one: Instruction) -> int | None:
        block = self._block(number)
        met = [n for n in range(len(self.processes)) if self._block(n) == block]
        return self._meet_all(number, one, met)

    def _meet_cluster(self, number: int, one: Instruction) -> int | None:
        return self._meet_all(number, one, list(range(len(self.processes))))

    def _meet_all(self, number: int, one: Instruction, met: list[int]) -> int | None:
        if any(self.at(other).kind != one.kind for other in met):
            return None
        return self._meet(number, met, [self.at(other).op for other in met])

    def _block(self, number: int) -> int:
        return self.processes[number].lanes.block

    def _meet(self, number: int, met: list[int], ops: list[Any]) -> int | None:
        """Let processes go on together once all are here."""
        if not self._are_here(met, ops):
            return None
        self.state.join(met)
        for other in met:
            if other != number:
                self.places[other].at += 1
        return self.places[number].at + 1

    def _are_here(self, processes: list[int], ops: list[Any]) -> bool:
        return all(self.at(one).op in ops for one in processes)

    def _mbarrier(self, group: Any, slot: int, block: int) -> int:
        first, count = group
        if not 0 <= slot < count:
            raise Wrong(f"mbarrier {slot} does not exist, expected 0 to {count - 1}")
        if not 0 <= block < self.blocks:
            raise Wrong(f"block {block} of the cluster does not exist")
        return block * (len(self.state.mbarriers) // self.blocks) + first + slot

    def _fence_mbarriers(self, number: int, one: Instruction) -> int:
        self.state.fence_mbarriers(number)
        return self.places[number].at + 1

    def _initialise(self, number: int, one: Instruction) -> int:
        slot, count = self._whole(number, one)
        mbarrier = self._mbarrier(one.data, slot, self._block(number))
        threads = self.processes[number].lanes.threads
        self.state.initialise(number, mbarrier, count, threads)
        return self.places[number].at + 1

    def _arrive(self, number: int, one: Instruction) -> int:
        slot, size, block = self._whole(number, one)
        if block is None:
            block = self._block(number)
        mbarrier = self._mbarrier(one.data, slot, block)
        threads = self.processes[number].lanes.threads
        self.state.arrive(number, mbarrier, threads, size, one.op)
        return self.places[number].at + 1

    def _wait(self, number: int, one: Instruction) -> int | None:
        slot, parity = self._whole(number, one)
        mbarrier = self._mbarrier(one.data, slot, self._block(number))
        if number not in self.state.mbarriers[mbarrier].waiting:
            self.state.target(number, mbarrier, parity)
        if not self.state.passes(number, mbarrier, one.op):
            return None
        return self.places[number].at + 1

    def _fill(self, number: int, one: Instruction) -> int:
        at, first, mask = self._whole(number, one)
        group, buffer, of, elements, size = one.data
        slot, start = divmod(first, of.elements)
        if not 0 <= slot < of.slots or start + elements > of.elements:
            raise Wrong(f"copies beyond slot {slot} of {of}")
        threads = self.processes[number].lanes.threads
        part = (start, start + elements)
        if mask is None:
            mask = 1 << self._block(number)
        for block in (n for n in range(mask.bit_length()) if mask >> n & 1):
            mbarrier = self._mbarrier(group, at, block)
            there = (self._buffer(buffer, block), slot)
            self.state.fill(number, there, part, size, mbarrier, threads, one.op)
        return self.places[number].at + 1

    def _buffer(self, buffer: int, block: int) -> int:
        return block * (len(self.state.names) // self.blocks) + buffer

    def _own(self, number: int, buffers: list[int], slots: list[int]) -> list[Slot]:
        """Slots of the block of a process."""
        block = self._block(number)
        own = [self._buffer(buffer, block) for buffer in buffers]
        return list(zip(own, slots, strict=True))

    def _read(self, number: int, one: Instruction) -> int:
        for slot in self._own(number, one.data, self._whole(number, one)):
            self.state.read(number, slot)
        return self.places[number].at + 1

    def _multiply(self, number: int, one: Instruction) -> int | None:
        buffers, ends = one.data
        slots = self._whole(number, one)[: len(buffers)]
        warp = self._warp(number)
        # Each process has registers of its own.
        results = {
            other: self.at(other).defs[0] for other in warp if self.at(other).defs
        }
        following = self._meet_warp(number, one)
        if following is None:
            return None
        for other in warp:
            self.state.issue(other, self._own(number, buffers, slots), one.op)
            reader = self.state.readers[other]
            self.places[other].registers[results[other]] = reader.made
            if ends:
                self.state.commit(other)
        return following

    def _finish(self, number: int, one: Instruction) -> int | None:
        if not self._are_here(self._warp(number), [one.op]):
            return None
        # Each lane has finished when they meet.
        for other in self._warp(number):
            self.state.finish(other, one.data)
        return self._meet_warp(number, one)

    def _use_sums(self, number: int, one: Instruction) -> int:
        reader = self.state.readers[number]
        if any(reader.is_unfinished(group) for group in self._values(number, one)):
            raise Wrong("reads accumulators of a group of wgmma that is unfinished")
        return self.places[number].at + 1

    def _warp(self, number: int) -> list[int]:
        warp = self.processes[number].lanes.warp
        return [n for n, p in enumerate(self.processes) if p.lanes.warp == warp]


_KINDS: dict[str, Any] = {
    name: getattr(Run, f"_{name}")
    for name in (
        "compute compare move enter loop branch jump end meet_warp meet_block "
        "meet_cluster fence_mbarriers initialise arrive wait fill read multiply finish "
        "use_sums"
    ).split()
}
