"""Where a check stands on one way through a kernel."""

from __future__ import annotations

from copy import copy
from dataclasses import dataclass, field, replace
from typing import Any, Protocol

import numpy as np

from alcop_mlir.checker.logic.terms import Clause, Term
from alcop_mlir.checker.machine.arithmetic import Value
from alcop_mlir.checker.machine.cells import Cells
from alcop_mlir.checker.machine.held import Held
from alcop_mlir.checker.ptx.flow import Region
from alcop_mlir.checker.ptx.instructions import Instruction


@dataclass
class State:
    """Where all threads are, and what is known; made: unknowns that may be named;
    data: tags, where results are followed (`Held`); cases: how many of them are gone
    through at once (`Cases`)
    """

    pc: int
    registers: dict[str, Value]
    cells: Cells
    facts: list[Term] = field(default_factory=list)
    clauses: list[Clause] = field(default_factory=list)
    previous: int = -1
    lanes: np.ndarray | None = None
    residues: dict[str, tuple[Any, int]] = field(default_factory=dict)
    turns: dict[int, int] = field(default_factory=dict)
    made: set[str] = field(default_factory=set)
    data: Held = field(default_factory=Held)
    cases: int = 1

    def fork(self) -> State:
        """One that goes another way."""
        own = {n: copy(v) for n, v in vars(self).items() if n != "lanes"}
        return replace(self, **own)


class Results(Protocol):
    """What follows results on the ways of a check: see `Placing`."""

    def go(self, machine: Any) -> None:
        """To another machine, of as many cases as it has."""
        ...

    def execute(self, ins: Instruction, lanes: np.ndarray) -> None:
        """An instruction, before registers change."""
        ...

    def counted(self, ins: Instruction, value: Value, lanes: np.ndarray) -> Value:
        """Its result, before registers change: what is known, or more."""
        ...

    def tell(self, state: State, ins: Instruction, is_skipped: bool) -> list[State]:
        """Before an instruction: other blocks' ways, where it does other things."""
        ...

    def narrow(self, state: State, clause: Clause) -> None:
        """What is assumed on a way."""
        ...

    def unknown(self, state: State, ins: Instruction) -> None:
        """One of which it is not known who executes it."""
        ...

    def skipped(self, state: State, region: Region) -> None:
        """What is not gone through."""
        ...

    def joined(
        self, mask: np.ndarray | None, arms: list[State], written: set[str]
    ) -> Held:
        """Behind two arms, that write these registers."""
        ...

    def end(self, state: State) -> None:
        """The end of all threads."""
        ...
