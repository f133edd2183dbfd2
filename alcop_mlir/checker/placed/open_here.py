"""Where the machine of a check with open sizes is, and what facts say there."""

from __future__ import annotations

import numpy as np

from alcop_mlir.checker.logic import terms
from alcop_mlir.checker.logic.terms import Term
from alcop_mlir.checker.machine.arithmetic import Value, signed
from alcop_mlir.checker.machine.held import Frozen, Held
from alcop_mlir.checker.machine.machine import Machine
from alcop_mlir.checker.machine.state import State
from alcop_mlir.checker.placed.open_accesses import Accesses
from alcop_mlir.checker.placed.open_questions import Edge, Way
from alcop_mlir.checker.ptx.flow import Flow


class Here:
    """Of one check; machine: which goes, of as many cases as it has."""

    def __init__(self, machine: Machine, flow: Flow, accesses: Accesses):
        self.machine, self.flow, self.accesses = machine, flow, accesses
        self._block: tuple[Held, int] = Held(), 0
        self._zeros: dict[Frozen, bool] = {}  # there, while as much is told

    @property
    def way(self) -> Way:
        """Where it is."""
        state = self.machine.state
        turns = {n: t[""] for n, t in state.data.turns.items()}
        turns |= {f"n{head}": turn for head, turn in state.turns.items()}
        told = dict(state.data.told)
        return Way(self.flow.block[state.pc], self.edges(state), turns, told)

    def edges(self, state: State) -> tuple[Edge, ...]:
        """By which edges a state has come to blocks where ways meet."""
        known, via = self.accesses.ways.edges, state.data.via
        return tuple(sorted((b, p) for b, p in via.items() if (p, b) in known))

    def is_nothing(self, term: Term) -> bool:
        """Whether a term is 0; asked once in a block: each `mma.sync` of a step along
        the sum asks the same.
        """
        state, key = self.machine.state, terms.frozen(term)
        data, block = self._block
        if data is not state.data or block != self.flow.block[state.pc]:
            self._block = state.data, self.flow.block[state.pc]
            self._zeros = {}
        if key not in self._zeros:
            self._zeros[key] = self.accesses.is_zero(term, self.way)
        return self._zeros[key]

    def is_ended(self, upto: Term) -> bool:
        """Whether no index along the sum is left."""
        way, extent = self.way, self.accesses.extent(self.accesses.statement.reduced)
        left = terms.plus(terms.minus(extent, upto), terms.number(-1))
        turns = {n: terms.number(t) for n, t in way.turns.items()}
        return self.accesses.never([[terms.replaced(left, turns)]], way)

    def tell(self, pc: int, value: Value) -> None:
        """What an instruction leaves that nobody knows of the thread that stands for
        all, if it is known here.
        """
        name, told = f"u{pc}.0", self.machine.state.data.told
        if name in self.accesses.unknown:
            told.pop(name, None)
            if isinstance(value, np.ndarray):
                width = self.machine.kernel.width(self.flow.code[pc].results[0])
                told[name] = signed(value, max(width, 8))
            self._zeros = {}
