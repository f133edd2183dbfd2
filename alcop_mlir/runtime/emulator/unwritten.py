"""Where values of bytes that nothing has written go: shared memory read too early.

To load such bytes is no mistake: compilers widen loads, and programs drop what lies
beyond a partial tile. It is a hazard where the value reaches memory, a branch or an
address. While a register holds such a value the instructions run one by one, and what
they compute from it is one as well. Shared memory to which it is stored counts as not
written.

A register of *origins*, int32, belongs to such a register: of each lane the number of
the load that read unwritten bytes, 0 for a value that is fine.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from alcop_mlir.runtime.emulator.arithmetic.storage import BOOL, UNSIGNED, Array
from alcop_mlir.runtime.emulator.instructions.opcodes.opcode import Opcode
from alcop_mlir.runtime.emulator.instructions.translator import Op, Translator
from alcop_mlir.runtime.emulator.machine.cohort import Cohort
from alcop_mlir.runtime.emulator.machine.warps import Mask
from alcop_mlir.runtime.emulator.ptx.scalars import SCALARS
from alcop_mlir.runtime.emulator.ptx.syntax import (
    Address,
    Instruction,
    Name,
    Negated,
    Operand,
    Pair,
    Vector,
)

_NONE = np.zeros((1, 1, 1), np.int32)


@dataclass(frozen=True)
class Flow:
    """The registers of one instruction, as slots, by what they are for.

    addresses: those in brackets; guard: the predicate, or None; width: bytes of one
    element of a load, or of a register of a matrix
    """

    ins: Instruction
    row: Opcode
    op: Op
    results: tuple[int, ...]
    sources: tuple[int, ...]
    addresses: tuple[int, ...]
    guard: int | None
    width: int

    @classmethod
    def of(cls, t: Translator, ins: Instruction, row: Opcode, op: Op) -> Flow:
        """What the operands say; `op` includes the guard."""
        operands = list(ins.operands)
        to: list[Operand] = []
        if operands and not isinstance(operands[0], Address) and not row.ends:
            to.append(operands.pop(0))

        def slots(given: list[Operand]) -> tuple[int, ...]:
            names = (name for o in given for name in _registers(t, o))
            return tuple(t.slot(name, ins) for name in names)

        bases = [o.base for o in operands if isinstance(o, Address) and o.base]
        addresses = [t.slot(base, ins) for base in bases if t.is_register(base)]
        guard = t.slot(ins.guard[0], ins) if ins.guard else None
        scalar = SCALARS.get(ins.parts[-1])
        width = scalar.size if scalar is not None else 4
        names = [name for o in to for name in _registers(t, o)]
        if row.meets and names:  # of a matrix
            width = t.type_of(names[0], ins).size
        return cls(
            ins, row, op, slots(to), slots(operands), tuple(addresses), guard, width
        )

    @property
    def only_loads(self) -> bool:
        """Whether its results come from memory alone."""
        return bool(self.row.reads) and not self.row.writes


def _registers(t: Translator, operand: Operand) -> Iterator[str]:
    """The registers that an operand is made of, but for addresses."""
    match operand:
        case Name(name):
            if t.is_register(name):
                yield name
        case Vector(items):
            for item in items:
                yield from _registers(t, item)
        case Pair(first, second):
            yield from _registers(t, first)
            yield from _registers(t, second)
        case Negated(inner):
            yield from _registers(t, inner)
        case _:
            pass


def follow(cohort: Cohort, mask: Mask, flow: Flow) -> None:
    """Runs one instruction, and notes what its results are made of."""
    origins, R = cohort.origins, cohort.R
    for slot in flow.addresses:
        use(cohort, slot, flow.ins, mask, "is an address")
    if flow.guard is not None and not flow.results:
        use(cohort, flow.guard, flow.ins, mask, "decides whether to run")
    tainted = sorted({slot for slot in flow.sources if slot in origins})
    given = _together(cohort, tainted, flow)
    is_store = bool(flow.row.writes) and not flow.row.reads and not flow.row.meets
    if given is not None and flow.row.writes and not is_store:
        cohort.report_used(given, mask, flow.ins, "reaches memory")
    before = {slot: R[slot] for slot in (*flow.results, *tainted)}
    cohort.unwritten.clear()
    cohort.storing = given if is_store else None
    flow.op(cohort, mask)
    cohort.storing = None
    selected: dict[int, Array] = {}
    if flow.row.selects and given is not None:
        selected = _selected(cohort, mask, flow, tainted, before, given)
    on = lanes_on(cohort, mask, flow, before)
    for number, slot in enumerate(flow.results):
        fresh = selected.get(slot, given)
        if flow.only_loads:
            fresh = _loaded(cohort, number, flow)
        _set(cohort, slot, fresh, on)
    if flow.guard in origins:
        for slot in flow.results:
            old = origins.get(slot, _NONE)
            _set(cohort, slot, np.maximum(old, origins[flow.guard]), mask)
    cohort.unwritten.clear()


def settle(cohort: Cohort, flow: Flow, mask: Mask) -> None:
    """After a load that ran with others: notes what its results are made of."""
    on = lanes_on(cohort, mask, flow, {})
    for number, slot in enumerate(flow.results):
        _set(cohort, slot, _loaded(cohort, number, flow), on)
    cohort.unwritten.clear()


def use(
    cohort: Cohort, slot: int | None, ins: Instruction, mask: Mask, how: str
) -> None:
    """Reports a register whose value matters here, if it is one."""
    if slot is not None and slot in cohort.origins:
        cohort.report_used(cohort.origins[slot], mask, ins, how)


def lanes_on(cohort: Cohort, mask: Mask, flow: Flow, before: dict[int, Array]) -> Mask:
    """The lanes whose guard holds; `before`: registers that have changed since."""
    if flow.guard is None or flow.ins.guard is None:
        return mask
    p = before.get(flow.guard, cohort.R[flow.guard])
    p = ~p if flow.ins.guard[1] else p
    return p if mask is None else p & mask


def _set(cohort: Cohort, slot: int, fresh: Array | None, mask: Mask) -> None:
    """The origins of a result, for the lanes that are on."""
    origins = cohort.origins
    old = origins.get(slot)
    if fresh is None and old is None:
        return
    new = _NONE if fresh is None else fresh
    if mask is not None:
        new = np.where(mask, new, _NONE if old is None else old)
    if new.any():
        origins[slot] = new
    else:
        origins.pop(slot, None)


def _together(cohort: Cohort, tainted: list[int], flow: Flow) -> Array | None:
    """The origins of all sources in one; of a whole warp where lanes exchange."""
    total: Array | None = None
    for slot in tainted:
        one = cohort.origins[slot]
        total = one if total is None else np.maximum(total, one)
    if total is not None and flow.row.meets:
        return np.asarray(total.max(axis=2, keepdims=True))
    return total


def _selected(
    cohort: Cohort,
    mask: Mask,
    flow: Flow,
    tainted: list[int],
    before: dict[int, Array],
    given: Array,
) -> dict[int, Array]:
    """The origins of each result where other unwritten bits would make another one.

    Tried with the bits of each source turned over, and with those of all.
    """
    R, origins = cohort.R, cohort.origins
    after = {slot: R[slot] for slot in flow.results}
    differs: dict[int, Array] = {s: np.zeros((1, 1, 1), BOOL) for s in flow.results}
    for chosen in (*([slot] for slot in tainted), tainted):
        for slot, value in before.items():
            R[slot] = value
        for slot in chosen:
            bits = _bits(before[slot])
            R[slot] = np.where(origins[slot] != 0, ~bits, bits)
        flow.op(cohort, mask)
        for slot in flow.results:
            differs[slot] = differs[slot] | (_bits(R[slot]) != _bits(after[slot]))
    for slot, value in before.items():
        R[slot] = after.get(slot, value)
    return {slot: np.where(other, given, 0) for slot, other in differs.items()}


def _bits(x: Array) -> Array:
    return x if x.dtype == BOOL else x.view(UNSIGNED[x.dtype.itemsize])


def _loaded(cohort: Cohort, number: int, flow: Flow) -> Array | None:
    """The origins of element `number` of a load: those of its bytes."""
    out: Array | None = None
    for byte, size, origin in cohort.unwritten:
        start = number * flow.width
        if byte + size <= start or byte >= start + flow.width:
            continue
        out = origin if out is None else np.maximum(out, origin)
    return out
