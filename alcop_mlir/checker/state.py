"""Where a check stands on one way through a kernel."""

from __future__ import annotations

from copy import copy
from dataclasses import dataclass, field, replace

import numpy as np

from alcop_mlir.checker.arithmetic import Value
from alcop_mlir.checker.cells import Cells
from alcop_mlir.checker.terms import Clause, Term


@dataclass
class State:
    """Where all threads are, and what is known; made: unknowns that may be named."""

    pc: int
    registers: dict[str, Value]
    cells: Cells
    facts: list[Term] = field(default_factory=list)
    clauses: list[Clause] = field(default_factory=list)
    previous: int = -1
    lanes: np.ndarray | None = None
    residues: dict[str, tuple[int, int]] = field(default_factory=dict)
    turns: dict[int, int] = field(default_factory=dict)
    made: set[str] = field(default_factory=set)

    def fork(self) -> State:
        """One that goes another way."""
        own = {n: copy(v) for n, v in vars(self).items() if n != "lanes"}
        return replace(self, **own)
