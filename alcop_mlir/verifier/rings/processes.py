"""Processes, and how far they are."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from alcop_mlir.verifier.rings.code import Instruction
from alcop_mlir.verifier.rings.numbers import Question
from alcop_mlir.verifier.rings.threads import Lanes


@dataclass(frozen=True)
class Process:
    """Threads that do the same.

    live:         the registers that are still read, before each instruction
    accumulators: registers that hold some
    bounds:       registers that are compared with the index of a loop alone
    """

    lanes: Lanes
    code: Sequence[Instruction]
    live: Sequence[frozenset[int]]
    accumulators: frozenset[int]
    bounds: frozenset[int]


@dataclass
class Place:
    """Where a process is.

    at:         its instruction
    registers:  what they hold
    question:   what has to be known for it to go on
    iterations: of loops, for messages
    """

    at: int
    registers: list[Any]
    question: Question | None = None
    iterations: dict[int, int] = field(default_factory=dict)

    def clone(self) -> Place:
        """An independent copy."""
        registers, iterations = [*self.registers], {**self.iterations}
        return replace(self, registers=registers, iterations=iterations)
