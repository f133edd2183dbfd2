"""Executes instructions for a check: registers, accesses and synchronization."""

from __future__ import annotations

from copy import copy
from typing import Any

import numpy as np

from alcop_mlir.checker.machine.arithmetic import Unknown, Value
from alcop_mlir.checker.machine.mixed import either, mixed
from alcop_mlir.checker.machine.registers import SAME_STORES, WARP, Registers
from alcop_mlir.checker.machine.state import Results
from alcop_mlir.checker.ptx.instructions import Instruction, integer, place_of
from alcop_mlir.errors import CertificateError

# Cells, the thread of each, and which are there several times.
_Touched = tuple[np.ndarray, np.ndarray, np.ndarray]


class Machine(Registers):
    """All of them, and shared memory; ages: by load, how old what it reads is."""

    def __init__(self, *given: Any):
        super().__init__(*given)
        self.ages: dict[int, set[int]] = {}
        self.placing: Results | None = None
        self._cells: dict[tuple[int, bytes, bytes], _Touched] = {}
        sizes = [i.access_bytes for i in self.kernel.code if i.is_access]
        self.grain = min([s for s in sizes if s], default=16)

    def in_cases(self, count: int) -> Machine:
        """The same, of so many cases of all threads, one behind the other."""
        found = copy(self)
        found.threads, found.cases = count * self.threads, count
        found._arrays, found._values, found._known = {}, {}, {}
        found.lane = np.tile(self.lane, count)
        found.every = np.ones(found.threads, bool)
        found._fixed = found._special_registers(self.threads)
        return found

    def execute(self, ins: Instruction, lanes: np.ndarray) -> None:
        """The instruction in some threads."""
        if self.state.made and self.fresh in self.state.made:
            self.forget(self.fresh)
        if self.placing is not None:
            self.placing.execute(ins, lanes)
        elif ins.acts:
            try:
                self._act(ins, lanes)
            except CertificateError as error:
                raise CertificateError(ins.told(str(error))) from None
        written = ins.results
        value = None
        if len(written) == 1 or (written and ins.parts[0] == "shfl"):
            value = self.result(ins)
        if self.placing is not None and written:
            value = self.placing.counted(ins, value, lanes)
        for number, register in enumerate(written):
            new = value if not number else None
            self.state.registers[register] = self._kept(register, new, lanes)

    def _act(self, ins: Instruction, lanes: np.ndarray) -> None:
        if ins.orders:
            self._order(ins, lanes)
        if ins.parts[0] == "bar" and ins.is_warp_barrier and lanes.all():
            self._warp_barrier()

    def _kept(self, register: str, new: Value, lanes: np.ndarray) -> Value:
        old = self.state.registers.get(register)
        active = self.state.lanes
        if lanes is self.every or lanes is active or new is old or lanes.all():
            return new
        if active is not None and lanes[active].all():
            return new
        return self.interned(either(lanes, new, old)) if lanes.any() else old

    # Shared memory.

    def _order(self, ins: Instruction, lanes: np.ndarray) -> None:
        cells, parts = self.state.cells, ins.parts
        if ins.is_access:
            self._access(ins, lanes)
            return
        if not lanes.any():
            return
        active = self.state.lanes
        mine = lanes if parts[0] != "cp" or active is None else lanes | ~active
        if not mine.all():
            raise CertificateError("some threads skip what all have to execute")
        if parts[:3] == ["cp", "async", "commit_group"]:
            cells.commit(lanes)
        elif parts[:3] == ["cp", "async", "wait_group"]:
            cells.wait(integer(ins.operands[0]), lanes)
        elif parts[:3] == ["cp", "async", "wait_all"]:
            cells.wait(-1, lanes)
        elif parts[0] in ("bar", "barrier"):
            names = [p for p in parts[1:] if p not in ("cta", "aligned")]
            numbers = list(ins.operands)
            threads = str(self.threads // self.cases)
            if names != ["sync"] or numbers not in (["0"], ["0", threads]):
                raise CertificateError("not modelled")
            cells.barrier()
        else:
            raise CertificateError("not modelled")

    def _warp_barrier(self) -> None:
        if self.threads % WARP == 0:
            self.state.cells.warp_barrier()

    def _access(self, ins: Instruction, lanes: np.ndarray) -> None:
        size, parts = ins.access_bytes, ins.parts
        if not size:
            raise CertificateError("not modelled")
        if not lanes.any():
            return
        cells, threads, twice = self._touched(ins, size, lanes)
        if parts[0] in ("ld", "ldmatrix"):
            ages = self.state.cells.read(cells, threads, twice, parts[0] == "ldmatrix")
            self.ages.setdefault(self.state.pc, set()).update(ages)
            turns = self.state.turns
            self.sources.read(self.state.pc, self.state.cells, cells, turns)
        else:
            if len(twice) and not (self.shares_stores and parts[0] == "st"):
                raise CertificateError("two threads write one place")
            self.assumed.update([SAME_STORES] if len(twice) else [])
            self.state.cells.write(cells, threads, twice, parts[0] == "cp")
            if parts[0] == "cp" and self.sources.steps is not None:
                self._set_source(ins, cells, threads)

    def _set_source(
        self, ins: Instruction, cells: np.ndarray, threads: np.ndarray
    ) -> None:
        """By the second address of a copy."""
        found, value = place_of(ins.operands[1]), None
        held = self.state.cells
        if found is not None and found[0] in self.state.registers:
            try:
                value = mixed(self.value(found[0]), 64, self.threads)
            except Unknown:
                value = None
        self.sources.copied(held, cells, threads, value)
        if found is not None and value is not None:
            count = ins.access_bytes // self.grain
            inside = np.arange(len(cells)) % count * self.grain
            held.place[cells] = value.constant[threads] + found[1] + inside

    def _touched(self, ins: Instruction, size: int, lanes: np.ndarray) -> _Touched:
        text = next((o for o in ins.operands if o.startswith("[")), "")
        found = place_of(text)
        base = None if found is None else self.value(found[0])
        if found is None or not isinstance(base, np.ndarray):
            raise CertificateError("a shared address is not known")
        if ins.parts[0] == "ldmatrix":
            rows = {"x1": 8, "x2": 16, "x4": 32}
            count = max([rows[p] for p in ins.parts if p in rows], default=8)
            lanes = lanes & (self.lane % np.uint64(WARP) < count)
        key = (self.state.pc, base.tobytes(), lanes.tobytes())
        if key not in self._cells:
            places = base.astype(np.int64)[lanes] + found[1]
            if (places < 0).any() or (places + size > self.shared_bytes).any():
                raise CertificateError("an address outside of shared memory")
            if (places % size).any():
                raise CertificateError("an address that is not aligned")
            many = size // self.grain
            cells = (places[:, None] // self.grain + np.arange(many)).ravel()
            threads = np.repeat(np.flatnonzero(lanes), many).astype(np.int16)
            case = threads.astype(np.int64) * self.cases // self.threads
            cells += case * (self.shared_bytes // self.grain + 1)
            twice = np.flatnonzero(np.bincount(cells) > 1)
            self._cells[key] = cells, threads, twice
        return self._cells[key]
