"""Which runs are alike: of equal keys the same follows.

Of runs that differ in what processes know of each other, one in which they know less is
followed for all: each check is that something is known.

A loop whose bound is not known is seen from its end: how many iterations are left, of
what is known of its bound, not how many there were. That is all that matters of the
bound where no process begins such a loop anew, in the same iteration of the loops
around it, and where it is compared with small numbers alone; else the key has it all.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from alcop_mlir.verifier.rings import alike_states as states
from alcop_mlir.verifier.rings.code import Loop
from alcop_mlir.verifier.rings.numbers import (
    About,
    Open,
    Question,
    Tag,
    asked,
    plus,
    times,
)
from alcop_mlir.verifier.rings.processes import Process
from alcop_mlir.verifier.rings.run import Run


@dataclass
class Seen:
    """Runs that were followed: by key what their processes know."""

    known: dict[Hashable, list[int]] = field(default_factory=dict)
    count: int = 0

    def covers(self, run: Run) -> bool:
        """Whether a run that knows no more was followed; else this one now is."""
        knowledge = states.knowledge(run.state, run.alive())
        others = self.known.setdefault(_key(run), [])
        if any(other & knowledge == other for other in others):
            return True
        others[:] = [other for other in others if other & knowledge != knowledge]
        others.append(knowledge)
        self.count += 1
        return False


def _key(run: Run) -> Hashable:
    """Equal for runs of which the same follows, but for what processes know."""
    alive = run.alive()
    relative = {
        about
        for about in run.known
        if all(_is_past(run, number, about[1]) for number in alive)
    }
    places = tuple((n, _place(run, n, relative)) for n in alive)
    known = frozenset(
        (about[0], _seen(run, about[1], alive), _interval(run, about, relative))
        for about in run.known
    )
    return places, known, states.key(run.state, alive)


def forget(run: Run) -> None:
    """Drop what is known of iterations that all have left."""
    alive = run.alive()
    run.known = {
        about: interval
        for about, interval in run.known.items()
        if not all(_is_past(run, n, about[1]) for n in alive)
        or any(about in _bounds(run, n) for n in alive)
    }


def _is_past(run: Run, number: int, tag: Tag) -> bool:
    """Whether a process enters no more loops in that iteration of outer ones."""
    one, depth = run.at(number), len(tag)
    code, at = run.processes[number].code, run.places[number].at
    own = run.tag(number, one.loops[:depth])
    if len(own) < depth:
        return not any(later.kind == "loop" for later in code[at:])
    if own != tag or (one.kind == "loop" and len(one.loops) == depth):
        return _is_before(tag, own)
    return not any(
        later.kind == "loop"
        and len(later.loops) == depth + 1
        and later.loops[:depth] == one.loops[:depth]
        for later in code[at + 1 :]
    )


def _questions(run: Run, number: int) -> Iterator[tuple[Loop, Question, Any]]:
    """What the loops around a process ask next, where that is not known; indices."""
    registers = run.places[number].registers
    loops = run.at(number).loops
    for depth, loop in enumerate(loops):
        index, upper = registers[loop.index], registers[loop.upper]
        room = plus(upper, times(index, -1))
        if isinstance(room, Open):
            tag = run.tag(number, loops[:depth])
            yield loop, asked(run.known, room, tag)[0], index


def _bounds(run: Run, number: int) -> set[About]:
    """What the trip counts of the loops around a process depend on."""
    return {question.about for _, question, _ in _questions(run, number)}


def _seen(run: Run, tag: Tag, alive: Sequence[int]) -> Hashable:
    """How far each process is from an iteration of outer loops."""
    return tuple(
        tuple(
            plus(one, times(other, -1))
            for one, other in zip(
                run.tag(number, run.at(number).loops[: len(tag)]),
                tag,
                strict=False,
            )
        )
        for number in alive
    )


def _interval(run: Run, about: About, relative: set[About]) -> Hashable:
    more, most = run.known[about]
    if about not in relative or more is None:
        return (0, str(more), str(most))
    left = None if most is None else most - more
    return (1, str(left), str(max(-run.limit - 1, min(more, run.limit))))


def _base(run: Run, about: About) -> int:
    more, _ = run.known.get(about, (None, None))
    return 0 if more is None else more


def _place(run: Run, number: int, relative: set[About]) -> Hashable:
    place, process = run.places[number], run.processes[number]
    counted, left = set[int](), list[Hashable]()
    for loop, question, index in _questions(run, number):
        is_known = question.about in run.known
        if loop.most is not None and (question.about in relative or not is_known):
            counted.add(loop.index)
            if loop.upper in process.bounds:
                counted.add(loop.upper)
            low = min(index, loop.most) if isinstance(index, int) else None
            ahead = question.least - _base(run, question.about)
            left.append((loop.number, question.about[0], ahead, low))
    reader = run.state.readers[number]
    live = tuple(
        (register, _held(place.registers[register], register, process, reader))
        for register in sorted(process.live[place.at] - counted)
    )
    return place.at, live, tuple(left)


def _held(value: Any, register: int, process: Process, reader: Any) -> Any:
    """A register; of accumulators how many groups ago they were computed."""
    if register not in process.accumulators:
        return value
    return reader.made - value if reader.is_unfinished(value) else None


def _is_before(one: Tag, other: Tag) -> bool:
    """Whether an iteration is surely before another."""
    for left, right in zip(one, other, strict=True):
        room = plus(right, times(left, -1))
        if room != 0:
            return isinstance(room, int) and room > 0
    return False
