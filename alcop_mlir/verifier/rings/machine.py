"""Runs the numbers and branches of processes; what they do together is in `run`."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, TypeVar

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
from alcop_mlir.verifier.rings.records import Wrong
from alcop_mlir.verifier.rings.state import State
from alcop_mlir.verifier.rings.unproven import Unproven

_TURN = 20_000  # instructions of a process without an event: it never ends


_Own = TypeVar("_Own", bound="Machine")


class _Paused(Exception):
    def __init__(self, question: Question):
        super().__init__(question)
        self.question = question


@dataclass
class Machine:
    """All processes, together. `advance` raises `Wrong` at the first thing wrong.

    long:   numbers that are surely more than `LONG`
    blocks: of the cluster
    limit:  numbers that are not known are compared with smaller ones only, but by loops
    barriers: who comes to each named barrier of a block; the same in all runs
    """

    processes: Sequence[Process]
    atoms: Atoms
    places: list[Place]
    state: State
    known: Knowledge
    long: Collection[Terms]
    limit: int
    blocks: int
    barriers: dict[tuple[int, int], frozenset[int]] = field(default_factory=dict)

    def clone(self: _Own) -> _Own:
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
                following = getattr(self, f"_{one.kind}")(number, one)
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
