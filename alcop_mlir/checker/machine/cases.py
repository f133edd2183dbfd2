"""Residues that low bits of addresses depend on, side by side.

Each residue of a symbol that is told apart would be a way of its own, and goes through
an epilogue as the others do, with other numbers. Where no listed state comes later they
are *cases* of one way: lanes of its machine are the threads of the first, then those of
the next one. What is known of a thread is known in its case, as of one more thread;
shared memory is there once for each case, and so is what a block stores.
"""

from __future__ import annotations

from collections.abc import Set
from typing import Any

import numpy as np

from alcop_mlir.checker.machine.arithmetic import Mixed, Value
from alcop_mlir.checker.machine.held import Tags
from alcop_mlir.checker.machine.machine import Machine
from alcop_mlir.checker.machine.registers import WARP
from alcop_mlir.checker.machine.state import State
from alcop_mlir.checker.ptx.flow import Flow
from alcop_mlir.checker.ptx.instructions import ENDS, made_of

_MOST_LANES = 1 << 13


class Cases:
    """Of one machine; stops: where states are listed."""

    def __init__(self, machine: Machine, flow: Flow, stops: Set[int]):
        self.first, self.flow, self.stops = machine, flow, stops
        self._machines = {1: machine}
        self._are_free: dict[int, bool] = {}  # by block

    def machine_of(self, state: State) -> Machine:
        """The machine whose threads are those of all cases, which goes from here on."""
        machine = self._machine(state.cases)
        if machine.placing is not None:
            machine.placing.go(machine)
        return machine

    def _machine(self, count: int) -> Machine:
        if count not in self._machines:
            self._machines[count] = self.first.in_cases(count)
        return self._machines[count]

    def split(self, state: State, symbol: str, by: int) -> bool:
        """Tells residues of a symbol apart, if cases may be gone through together."""
        start, before = state.residues.get(symbol, (0, 1))
        many = by // before
        lanes = state.cases * many * self.first.threads
        if lanes > _MOST_LANES or self.first.threads % WARP:
            return False
        if not self._is_free(self.flow.block[state.pc]):
            return False
        state.cases *= many
        machine = self._machine(state.cases)
        start = np.resize(start, machine.threads // many)
        for name, (residue, modulo) in state.residues.items():
            if isinstance(residue, np.ndarray):
                state.residues[name] = np.tile(residue, many), modulo
        residue = np.concatenate([start + before * case for case in range(many)])
        state.residues[symbol] = residue, by
        for name, value in state.registers.items():
            state.registers[name] = machine.interned(_repeated(value, many))
        state.cells = state.cells.repeated(many, machine.threads // many)
        self._repeat_tags(state, many)
        return True

    def _is_free(self, block: int) -> bool:
        """Whether no state is listed later, and cases do not part ways at a barrier."""
        if block not in self._are_free:
            later = set().union(*map(self.flow.later, self.flow.next[block]))
            tests = self._collective_tests(later | {block})
            made = self._made_of_bits(later | {block})
            are_apart = later.isdisjoint(self.stops) and made.isdisjoint(tests)
            self._are_free[block] = are_apart
        return self._are_free[block]

    def _collective_tests(self, blocks: set[int]) -> set[str]:
        """Guards of branches around what all threads have to execute, and of ends."""
        lasts = {b: self.flow.stop[b] - 1 for b in blocks if len(self.flow.next[b]) > 1}
        return {
            self.flow.code[last].guard
            for block, last in lasts.items()
            if self.flow.code[last].parts[0] in ENDS
            or self.flow.region(block).is_collective
        }

    def _made_of_bits(self, blocks: set[int]) -> set[str]:
        """Registers that are computed of what some bits are: of each case."""
        code = [i for b in blocks for i in self.flow.code[b : self.flow.stop[b]]]
        bits = (i for i in code if i.parts[0] == "and" and i.parts[-1] != "pred")
        return made_of((name for ins in bits for name in ins.results), code)

    def _repeat_tags(self, state: State, many: int) -> None:
        data = state.data
        data.registers = {n: _tiled(t, many) for n, t in data.registers.items()}
        data.shared, data.is_own = _tiled(data.shared, many), True
        data.told = {
            name: np.tile(numbers, many)
            for name, numbers in data.told.items()
            if numbers.ndim == 1
        }
        data.stored = tuple((a, t, i * many) for a, t, i in data.stored)

    def parts(self, index: np.ndarray, lanes: np.ndarray) -> tuple[np.ndarray, ...]:
        """Numbers of these threads, by case."""
        case, threads = np.flatnonzero(lanes), self.first.threads
        return tuple(
            index[case // threads == one].ravel()
            for one in range(len(lanes) // threads)
        )


def _repeated(value: Value, many: int) -> Value:
    if isinstance(value, np.ndarray):
        return np.tile(value, many)
    if isinstance(value, Mixed):
        parts: dict[Any, np.ndarray] = {
            s: np.tile(np.broadcast_to(c, value.constant.shape), many)
            for s, c in value.parts.items()
        }
        constant = np.tile(value.constant, many)
        return Mixed(parts, constant, value.low, value.high, value.width)
    return value


def _tiled(tags: Tags, many: int) -> Tags:
    shape = (many,) + (1,) * (tags.number.ndim - 1)
    return Tags(np.tile(tags.number, shape), np.tile(tags.place, shape))
