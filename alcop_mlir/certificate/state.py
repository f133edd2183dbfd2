"""Where all threads stand in a kernel, and what is known of what they hold."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from alcop_mlir.certificate.linear import Clause, Linear
from alcop_mlir.certificate.shared_state import SharedState
from alcop_mlir.certificate.values import Spread, Uniform, Value


@dataclass(frozen=True)
class Requirement:
    """What a caller promises of an integer parameter: low <= value <= high, and that
    `multiple` divides it.
    """

    low: int
    high: int
    multiple: int = 1


@dataclass
class State:
    """Where threads stand, all at one instruction.

    facts, clauses: what is known of symbols
    entries:        by head of the loops around, registers before its first turn
    previous:       the block from which it came
    lanes:          which threads run, where not all
    residues:       of symbols that were told apart: residue, and a power of two
    turns:          of loops, by their heads, the number where that is known
    """

    pc: int
    registers: dict[str, Value]
    shared: SharedState
    facts: list[Linear] = field(default_factory=list)
    clauses: list[Clause] = field(default_factory=list)
    entries: dict[int, dict[str, Uniform | Spread]] = field(default_factory=dict)
    previous: int = -1
    lanes: np.ndarray | None = None
    residues: dict[str, tuple[int, int]] = field(default_factory=dict)
    turns: dict[int, int] = field(default_factory=dict)

    def fork(self) -> State:
        """One that goes another way."""
        return State(
            self.pc,
            dict(self.registers),
            self.shared.copy(),
            list(self.facts),
            list(self.clauses),
            dict(self.entries),
            self.previous,
            self.lanes,
            dict(self.residues),
            dict(self.turns),
        )
