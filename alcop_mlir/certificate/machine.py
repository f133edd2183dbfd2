"""One instruction after the other, on what is known of registers and shared memory."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeGuard

import numpy as np

from alcop_mlir.certificate import spread
from alcop_mlir.certificate.program import (
    Code,
    is_generic,
    synchronizes,
    touches_shared,
)
from alcop_mlir.certificate.refutation import Refuter
from alcop_mlir.certificate.registers import SAME_STORES, Registers
from alcop_mlir.certificate.shared_state import IN_FLIGHT, STORED, Touch, touch
from alcop_mlir.certificate.state import Requirement
from alcop_mlir.certificate.values import (
    WARP,
    Exact,
    Spread,
    Uniform,
    Value,
    width_of,
)
from alcop_mlir.certificate.verdicts import Alarm, Finding, Outside
from alcop_mlir.runtime.emulator.ptx.syntax import (
    Address,
    Instruction,
    Integer,
    Name,
)


class Machine(Registers):
    """Executes instructions that are no branches.

    grain: bytes of a cell of shared memory
    ages:  by instruction, the ages of the copies that it has read
    """

    def __init__(
        self,
        code: Code,
        threads: int,
        shared_bytes: int,
        bases: Mapping[str, int],
        requirements: Mapping[str, Requirement],
    ):
        super().__init__(code, threads, bases, requirements)
        self.shared_bytes = shared_bytes
        self.refuter = Refuter(self.symbols)
        self.grain = _grain(code)
        self.ages: dict[int, set[int]] = {}
        self._touches: dict[tuple[int, bytes, bytes], Touch] = {}

    def execute(self, ins: Instruction, lanes: np.ndarray) -> None:
        """The instruction in these threads; its effect on registers comes last."""
        self.forget()
        if synchronizes(ins):
            self._synchronize(ins, lanes)
        elif ins.parts[:3] == ("bar", "warp", "sync") and lanes.all():
            self._warp_barrier(ins)
        elif is_generic(ins) and self.shared_bytes:
            self._check_generic(ins)
        elif ins.parts[0] == "call":
            self._check_call(ins)
        written = self.code.written[self.pc]
        if not written:
            return
        is_one = len(written) == 1 or ins.parts[0] == "shfl"
        value = self.compute(ins) if is_one else None
        for number, name in enumerate(written):
            new = value if number == 0 else None
            self.state.registers[name] = self._merged(name, new, lanes)

    def _merged(self, name: str, new: Value, lanes: np.ndarray) -> Value:
        """What the register holds, where only some of those that run write it."""
        active = self.state.lanes
        if lanes.all() or (active is not None and lanes[active].all()):
            return new
        old = self.state.registers.get(name)
        if not lanes.any() or old is new:
            return old
        return spread.blended(lanes, new, old)

    def _check_generic(self, ins: Instruction) -> None:
        place = next((o for o in ins.operands if isinstance(o, Address)), None)
        base = self.value(Name(place.base), 64) if place and place.base else None
        if isinstance(base, Uniform) or (
            (base is None or isinstance(base, Spread)) and self._from_pointer(place)
        ):
            return
        raise Outside(f"an address of no known state space: {ins.text}", ins.line)

    def _from_pointer(self, place: Address | None) -> bool:
        """Whether the address is surely computed of a parameter, not of a variable."""
        found = self.code.slice_of({place.base}) if place and place.base else set()
        return not found & self.bases.keys() and bool(found)

    def _check_call(self, ins: Instruction) -> None:
        for operand in ins.operands:
            if isinstance(operand, Name):
                function = self.code.module.functions.get(operand.name)
                inner = getattr(function, "instructions", ())
                if any(map(synchronizes, inner)):
                    raise Outside(f"a call of what synchronizes: {ins.text}", ins.line)

    def _synchronize(self, ins: Instruction, lanes: np.ndarray) -> None:
        shared, parts = self.state.shared, ins.parts
        if touches_shared(ins):
            self._access(ins, lanes)
        elif not lanes.any():
            return
        elif parts[:3] == ("cp", "async", "commit_group"):
            self._running(ins, lanes)
            shared.commit(ins, lanes)
        elif parts[:3] in (("cp", "async", "wait_group"), ("cp", "async", "wait_all")):
            self._running(ins, lanes)
            count = ins.operands[0] if ins.operands else Integer(-1)
            if not isinstance(count, Integer):
                raise Outside(f"expected a number of groups: {ins.text}", ins.line)
            shared.wait(count.value, lanes, ins)
        elif parts[0] in ("bar", "barrier"):
            self._all(ins, lanes)
            self._barrier(ins)
        else:
            raise Outside(f"not modelled: {ins.text}", ins.line)

    def _running(self, ins: Instruction, lanes: np.ndarray) -> None:
        """All that go this way."""
        active = self.state.lanes
        self._all(ins, lanes if active is None else lanes | ~active)

    def _all(self, ins: Instruction, lanes: np.ndarray) -> None:
        if not lanes.all():
            missing = tuple(np.flatnonzero(~lanes)[:1].tolist())
            what = "some threads skip what all have to execute"
            raise Alarm(Finding("barrier", what, ins.line, ins.text, None, missing))

    def _barrier(self, ins: Instruction) -> None:
        names = [p for p in ins.parts[1:] if p not in ("cta", "aligned")]
        values = [o.value if isinstance(o, Integer) else None for o in ins.operands]
        if names != ["sync"] or values not in ([0], [0, self.threads]):
            raise Outside(f"a barrier of other than all threads: {ins.text}", ins.line)
        self.state.shared.barrier()

    def _warp_barrier(self, ins: Instruction) -> None:
        """Of whole warps; what it says of less is not used."""
        mask = ins.operands[0]
        is_whole = isinstance(mask, Integer) and mask.value % 2**WARP == 2**WARP - 1
        if is_whole and self.threads % WARP == 0:
            self.state.shared.warp_barrier()

    def _access(self, ins: Instruction, lanes: np.ndarray) -> None:
        name, shared = ins.parts[0], self.state.shared
        bytes_ = _access_bytes(ins)
        if bytes_ is None:
            raise Outside(f"not modelled: {ins.text}", ins.line)
        if not lanes.any():
            return
        at = self._touch(ins, bytes_, lanes)
        if name in ("ld", "ldmatrix"):
            ages = shared.read(at, name == "ldmatrix", self.pc, ins)
            self.ages.setdefault(self.pc, set()).update(ages)
            if self.follows_sources:
                seen = shared.source[at.cells], shared.place[at.cells]
                self.sources.see(self.pc, *seen, self.state.turns)
        else:
            status = IN_FLIGHT if name == "cp" else STORED
            shares = self.shares_stores and name == "st"
            if shares and not at.is_single:
                self.notes.add(SAME_STORES)
            shared.write(at, status, self.pc, ins, shares)
            if name == "cp" and self.follows_sources:
                self._keep_source(ins, at)

    def _keep_source(self, ins: Instruction, at: Touch) -> None:
        """Where the copied bytes come from: the second address."""
        place = ins.operands[1]
        base = self.value(Name(place.base or ""), 64) if _has_base(place) else None
        found = spread.lifted(base, 64, self.threads)
        shared = self.state.shared
        sources = self.sources.of_threads(found, self.threads)
        shared.source[at.cells] = sources[at.threads]
        if found is not None and isinstance(place, Address):
            first = np.r_[True, at.threads[1:] != at.threads[:-1]]
            start = at.cells[first][np.cumsum(first) - 1]
            inside = (at.cells - start) * self.grain
            places = found.constant[at.threads] + place.offset + inside
            shared.place[at.cells] = places

    def _touch(self, ins: Instruction, bytes_: int, lanes: np.ndarray) -> Touch:
        place = next((o for o in ins.operands if isinstance(o, Address)), None)
        if place is None:
            raise Outside(f"no address: {ins.text}", ins.line)
        base = self.value(Name(place.base), 64) if place.base else Exact(self._lane * 0)
        if not isinstance(base, Exact):
            what = f"a shared address that is not computed of known numbers: {ins.text}"
            raise Outside(what, ins.line)
        if ins.parts[0] == "ldmatrix":
            lanes = lanes & (self._lane % WARP < 8 * _matrices(ins))
        key = (self.pc, base.lanes.tobytes(), lanes.tobytes())
        if key not in self._touches:
            places = base.lanes.astype(np.int64) + place.offset
            self._check_places(ins, places, bytes_, lanes)
            self._touches[key] = touch(places, bytes_, lanes, self.grain)
        return self._touches[key]

    def _check_places(
        self, ins: Instruction, places: np.ndarray, bytes_: int, lanes: np.ndarray
    ) -> None:
        out = lanes & ((places < 0) | (places + bytes_ > self.shared_bytes))
        odd = lanes & (places % bytes_ != 0)
        for wrong, rule, what in (
            (out, "bounds", f"outside of {self.shared_bytes} bytes of shared memory"),
            (odd, "alignment", f"an address that is no multiple of {bytes_}"),
        ):
            if wrong.any():
                thread = int(np.flatnonzero(wrong)[0])
                place = int(places[thread])
                raise Alarm(
                    Finding(rule, what, ins.line, ins.text, None, (thread,), place)
                )


def _has_base(place: object) -> TypeGuard[Address]:
    return isinstance(place, Address) and bool(place.base)


def _access_bytes(ins: Instruction) -> int | None:
    """Bytes per thread, or None for what is not modelled."""
    name = ins.parts[0]
    if ("async" in ins.parts[1:] and name != "cp") or "shared::cluster" in ins.parts:
        return None
    if name == "ldmatrix":
        return 16 if "m8n8" in ins.parts else None
    if name in ("ld", "st"):
        width = width_of(ins.parts[-1])
        count = next((int(p[1:]) for p in ins.parts if p in ("v2", "v4", "v8")), 1)
        return None if width < 8 else width // 8 * count
    if (
        name == "cp"
        and ins.parts[:2] == ("cp", "async")
        and ins.parts[2] in ("ca", "cg")
    ):
        size = ins.operands[2]
        return size.value if isinstance(size, Integer) else None
    return None


def _matrices(ins: Instruction) -> int:
    """How many matrices of 8 rows it loads: as many lanes give an address."""
    return next((int(p[1:]) for p in ins.parts if p in ("x1", "x2", "x4")), 1)


def _grain(code: Code) -> int:
    sizes = [_access_bytes(i) for i in code.instructions if touches_shared(i)]
    return min([one for one in sizes if one], default=16)
