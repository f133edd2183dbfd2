"""Finds which columns of windows accesses are of: those that the other operand's are.

What is copied between two barriers, or in one group, is mostly one tile of each
operand: so columns of windows are where the other one has its rows. It is only tried.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from alcop_mlir.checker.bounds.accesses import by_numbers
from alcop_mlir.checker.bounds.every_thread import Access
from alcop_mlir.checker.form.certificate import Certificate
from alcop_mlir.checker.form.statement import Statement
from alcop_mlir.checker.logic.facts import Answers
from alcop_mlir.checker.placed.gathers import Columns, Gathers
from alcop_mlir.checker.ptx.flow import Flow
from alcop_mlir.checker.ptx.instructions import Instruction, most_bytes
from alcop_mlir.checker.ptx.text import Kernel
from alcop_mlir.errors import NotPlacedError

_MOST_SEEN = 4  # of the accesses of one instruction that are tried
_Share = tuple[int, int, int, int, int]  # as of `Columns`
_NEAR = 2  # steps: where threads part ways, they are counted otherwise
_BETWEEN = ("bar", "barrier")


@dataclass
class _Seen:
    """The accesses of one instruction: in which step of the kernel, and the first."""

    ins: Instruction
    steps: list[tuple[int, dict[int, int | None]]] = field(default_factory=list)
    first: list[Access] = field(default_factory=list)


class Recorded:
    """Of one kernel: what all threads access, in the order of steps."""

    def __init__(self, kernel: Kernel, given: Certificate, statement: Statement):
        self.flow, self.statement = Flow(kernel), statement
        self.seen: dict[int, _Seen] = {}
        self.rows: dict[int, tuple[int, int]] = {}  # of the other operand, by step
        # What the next blocks along each axis add to rows.
        self.blocks: tuple[int, int, int] | None = None
        self._step, self._last = 0, 0
        self._weights = _weights(statement)
        assert given.bounds is not None
        by_numbers(kernel, self.flow, given.threads, given.bounds, self)

    def see(self, pc: int, ins: Instruction, access: Access | None) -> None:
        """One more."""
        between = self.flow.code[self._last : pc]
        self._step += pc <= self._last or any(map(_parts_steps, between))
        self._last = pc
        if access is None:
            return
        statement = self.statement
        if access.array in statement.windows:
            mine = self.seen.setdefault(pc, _Seen(ins))
            mine.steps.append((self._step, access.turns))
            if len(mine.first) < _MOST_SEEN:
                mine.first.append(access)
        elif access.array in (statement.lhs, statement.rhs):
            self._note(ins, access)

    def _note(self, ins: Instruction, access: Access) -> None:
        """Which rows of the sum the other operand has, in the first block; and in the
        next ones along each axis.
        """
        count = most_bytes(ins) // self.statement.arrays[access.array].bytes
        offset, runs = (
            np.broadcast_to(one, access.shape).transpose(2, 1, 0, 3)
            for one in (access.offset, access.runs & (access.size > 0))
        )
        blocks = [(0, 0, 0), (1, 0, 0), (0, 1, 0), (0, 0, 1)]
        found = [
            self._span(access.array, offset[b][runs[b]], count)
            for b in (
                tuple(np.minimum(b, np.array(runs.shape[:3]) - 1)) for b in blocks
            )
        ]
        if found[0] is None:
            return
        low, high = self.rows.get(self._step, found[0])
        self.rows[self._step] = min(low, found[0][0]), max(high, found[0][1])
        if self.blocks is None and None not in found:
            x, y, z = (one[0] - found[0][0] for one in found[1:] if one)
            self.blocks = x, y, z

    def _span(
        self, array: str, offset: np.ndarray, count: int
    ) -> tuple[int, int] | None:
        """From the least row of the sum to the last one."""
        if not offset.size:
            return None
        at = offset[:, None] // self.statement.arrays[array].bytes + np.arange(count)
        rows = np.zeros_like(at)
        for loop, stride in self.statement.arrays[array].strides.items():
            rows += at // stride * self._weights.get(loop, 0)
            at = at % stride
        return int(rows.min()), int(rows.max())

    def columns(self, pc: int) -> list[Any]:
        """Those of one instruction, as a certificate lists them."""
        mine = self.seen[pc]
        for one in self._guesses(mine):
            tries = Gathers(self.statement, _Tried(pc, one))
            try:
                for access in mine.first:
                    tries.see(pc, mine.ins, access)
            except NotPlacedError:
                continue
            return [*one]
        raise NotPlacedError(f"nobody knows of which columns: {mine.ins.opcode}")

    def _guesses(self, mine: _Seen) -> Iterator[Columns]:
        """Those of the other operand in the same step, or in one that is near."""
        step, turns = mine.steps[0]
        more, blocks = self._turns(mine), self.blocks or (0, 0, 0)
        threads = mine.first[0].offset.shape[3]
        size = self.statement.arrays[mine.first[0].array].bytes
        count = most_bytes(mine.ins) // size
        for near in sorted(self.rows, key=lambda other: abs(other - step)):
            if abs(near - step) > _NEAR:
                break
            start, last = self.rows[near]
            width = last + 1 - start
            start -= sum(by * (turns[head] or 0) for head, by in more.items())
            for first, by, every, many, most in _shares(width, count, threads):
                yield Columns(start + first, by, every, many, most, blocks, more)

    def _turns(self, mine: _Seen) -> dict[int, int]:
        """What a turn of each loop adds."""
        found: dict[int, int] = {}
        step, turns = mine.steps[0]
        for head, turn in turns.items():
            for other, now in mine.steps[1:]:
                is_one = now == {**turns, head: now[head]}
                since = (now[head] or 0) - (turn or 0)
                if is_one and since and {step, other} <= self.rows.keys():
                    found[head] = (self.rows[other][0] - self.rows[step][0]) // since
                    break
        return found


def _shares(width: int, count: int, threads: int) -> Iterator[_Share]:
    """How threads may share columns: one behind the other, or several rows of each."""
    least = max(width // count, 1)
    every = [least >> by for by in range(least.bit_length())]
    whole = 1 << (least - 1).bit_length()  # threads of what is filled with zeros
    for many in dict.fromkeys([*every, whole, 2 * whole, 4 * whole]):
        for first in range(0, width, many * count):
            yield first, count, 1, many, min(width - first, many * count)
    each = 1
    while each <= threads:
        for first in range(0, width, threads // each):
            yield first, 1, each, threads // each, threads // each
        each *= 2


def _weights(statement: Statement) -> dict[str, int]:
    """What one more of a loop is along the sum, where that is made in parts too."""
    (name, window), *_ = statement.windows.items()
    named = {part.loop for _, part in window.parts()} - {statement.reduced}
    strides = statement.arrays[name].strides
    return {loop: stride for loop, stride in strides.items() if loop not in named}


class _Tried(Answers):
    """No answers but those that are tried."""

    def __init__(self, pc: int, one: Columns) -> None:
        super().__init__([], [], [], {}, {pc: [*one]})


def _parts_steps(ins: Instruction) -> bool:
    return ins.parts[0] in _BETWEEN or "commit_group" in ins.parts
