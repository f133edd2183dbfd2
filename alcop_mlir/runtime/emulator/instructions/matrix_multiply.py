"""mma.sync: multiply-accumulate on the fragments of a warp.

PTX ISA "Warp Level Matrix Instructions". In every `mma.sync` fragment lane l belongs
to row group g = l / 4 and column t = l % 4; with e elements in a 32-bit register:
  A: register q holds row g + 8 (q % 2), columns (q / 2) 4e + t e + 0..e-1
  B: register q holds column g, rows q 4e + t e + 0..e-1
  C, D: register q (one element) holds row g + 8 (q / 2), column 2 t + q % 2
Each a * b is exact and is added in float32 in the order of BLAS. Hardware adds in an
order (and with alignments) of its own, so results are compared with a tolerance.

Consecutive independent `mma` run as one group: each fragment is decoded once, and one
call of `np.matmul` computes a whole warp tile.
"""

from __future__ import annotations

import operator
from dataclasses import dataclass

import numpy as np

from alcop_mlir.runtime.emulator.arithmetic import floats as num
from alcop_mlir.runtime.emulator.arithmetic.storage import (
    F32,
    S32,
    S64,
    U16,
    U32,
    Array,
    parts,
)
from alcop_mlir.runtime.emulator.instructions.translator import Op, Translator
from alcop_mlir.runtime.emulator.machine.cohort import Cohort
from alcop_mlir.runtime.emulator.machine.loaded_kernel import Registers, merge
from alcop_mlir.runtime.emulator.machine.warps import Mask
from alcop_mlir.runtime.emulator.ptx.scalars import SCALARS, Scalar
from alcop_mlir.runtime.emulator.ptx.syntax import (
    Instruction,
    Operand,
    elements,
    unsupported,
)

# The types of B where A has this one, if it may be another.
_PARTNERS = {
    **dict.fromkeys(("s8", "u8"), ("s8", "u8")),
    **dict.fromkeys(("e4m3", "e5m2"), ("e4m3", "e5m2")),
}


@dataclass(frozen=True)
class MatrixMultiply:
    """One decoded `mma.sync`: the slots of its fragments and its types."""

    opcode: str
    a_kind: str
    b_kind: str
    result: str  # type of D
    addend: str  # type of C
    saturates: bool
    d: tuple[int, ...]
    a: tuple[int, ...]
    b: tuple[int, ...]
    c: tuple[int, ...]

    def may_join(self, first: MatrixMultiply, written: set[int]) -> bool:
        """Whether it is of the type of a group's first member, and neither reads nor
        writes a register that members write."""
        used = (*self.d, *self.a, *self.b, *self.c)
        return self.opcode == first.opcode and written.isdisjoint(used)


def decode_multiply(t: Translator, ins: Instruction) -> MatrixMultiply:
    """Checks an `mma.sync` and finds its registers."""
    types = ins.parts[-4:]
    d, a, b, c = types
    shape, extra = ins.parts[3], set(ins.parts[6:-4])
    if a not in SCALARS or not {d, c} <= set(SCALARS[a].accumulators):
        raise unsupported(ins)
    is_integer = SCALARS[a].is_integer
    per_register = 4 * (4 // SCALARS[a].size)  # elements of a row in four lanes
    depths = {f"m16n8k{k}": k for k in (per_register, 2 * per_register)}
    if (
        ins.parts[4:6] != ("row", "col")
        or shape not in depths
        or b not in _PARTNERS.get(a, (a,))
        or not extra <= ({"satfinite"} if is_integer else set())
    ):
        raise unsupported(ins)
    depth = depths[shape]
    counts = (
        2 if d == "f16" else 4,
        2 * depth // per_register,
        depth // per_register,
        2 if c == "f16" else 4,
    )
    slots = [
        fragment_slots(t, ins, operand, count)
        for operand, count in zip(ins.operands, counts, strict=True)
    ]
    return MatrixMultiply(ins.opcode, a, b, d, c, "satfinite" in extra, *slots)


def fragment_slots(
    t: Translator, ins: Instruction, operand: Operand, count: int
) -> tuple[int, ...]:
    """The slots of so many registers, which a fragment lies in."""
    items = elements(operand)
    if len(items) != count:
        raise unsupported(ins, f"expected {count} registers, got {len(items)}")
    return tuple(t.result(item, U32, ins)[0] for item in items)


class MultiplyGroup:
    """Consecutive independent `mma` of one type, run together by the whole cohort."""

    def __init__(self, members: list[MatrixMultiply]):
        first = members[0]
        self.kind_a, self.kind_b = SCALARS[first.a_kind], SCALARS[first.b_kind]
        self.first = first
        self.a = list(dict.fromkeys(m.a for m in members))
        self.b = list(dict.fromkeys(m.b for m in members))
        pairs = {(m.b, m.a): m for m in members}
        self.grid = len(pairs) == len(members) == len(self.a) * len(self.b)
        if self.grid:
            # The order in which `_product` stacks its tiles: columns, then rows.
            members = [pairs[b, a] for b in self.b for a in self.a]
        self.members = members
        self.pick_a = np.array([self.a.index(m.a) for m in members])
        self.pick_b = np.array([self.b.index(m.b) for m in members])

    def __call__(self, cohort: Cohort, mask: Mask) -> None:
        add = self._add_integer if self.first.result == "s32" else self._add_float
        self._write(cohort, mask, add(cohort, self._product(cohort)))

    def _product(self, cohort: Cohort) -> Array:
        """A times B for every member: float32 (blocks, warps, members, 16, 8)."""
        a = _stack(cohort, self.a, self.kind_a, halves=2)
        b = _stack(cohort, self.b, self.kind_b, halves=1)
        shape = (cohort.blocks, cohort.warps, len(self.members), 16, 8)
        if self.grid:
            rows = a.reshape(*a.shape[:2], 1, -1, a.shape[-1])
            out = np.matmul(rows, b.swapaxes(-1, -2))
            return np.broadcast_to(out.reshape(*out.shape[:2], *shape[2:]), shape)
        left, right = a[:, :, self.pick_a], b[:, :, self.pick_b]
        return np.broadcast_to(np.matmul(left, right.swapaxes(-1, -2)), shape)

    def _add_float(self, cohort: Cohort, product: Array) -> Array:
        if not product.flags.writeable:
            product = product.copy()
        kept = self._kept(cohort)
        if kept is not None:
            product += kept
            return product
        shape = (*product.shape[:3], 2, 32, 2)
        cells = product.reshape(shape)
        for i, m in enumerate(self.members):
            _add_fragment(cells[:, :, i], cohort.R, m.c, self.first.addend)
        return product

    def _kept(self, cohort: Cohort) -> Array | None:
        """The accumulators of an earlier group, if our addends are its results."""
        if self.first.addend != "f32":
            return None
        R = cohort.R
        first = cohort.accumulators.get(id(R[self.members[0].c[0]]))
        if first is None:
            return None
        total, registers = first
        if len(registers) != 4 * len(self.members):
            return None
        mine = [R[slot] for m in self.members for slot in m.c]
        return total if all(map(operator.is_, mine, registers)) else None

    def _add_integer(self, cohort: Cohort, product: Array) -> Array:
        total = product.astype(S64)
        cells = total.reshape(*product.shape[:3], 2, 32, 2)
        for i, m in enumerate(self.members):
            for q, slot in enumerate(m.c):
                cells[:, :, i, q >> 1, :, q & 1] += cohort.R[slot].view(S32)
        if self.first.saturates:
            total = np.clip(total, -(1 << 31), (1 << 31) - 1)
        return total.astype(S32)

    def _write(self, cohort: Cohort, mask: Mask, total: Array) -> None:
        R = cohort.R
        cells = total.reshape(*total.shape[:3], 2, 32, 2)
        if self.first.result == "f16":
            packed = num.encode_f16(cells).view(U32)[..., 0]
            for i, m in enumerate(self.members):
                for q, slot in enumerate(m.d):
                    cohort.put(slot, packed[:, :, i, q], mask)
            return
        slots = [slot for m in self.members for slot in m.d]
        spread = cells.transpose(2, 3, 5, 0, 1, 4)
        registers = [x for member in spread for half in member for x in half]
        for slot, x in zip(slots, registers, strict=True):
            R[slot] = x if mask is None else merge(mask, x, R[slot])
        if self.first.result == "f32" and mask is None:
            while len(cohort.accumulators) >= _KEPT_GROUPS:  # the oldest first
                del cohort.accumulators[next(iter(cohort.accumulators))]
            cohort.accumulators[id(registers[0])] = (total, registers)


_KEPT_GROUPS = 8  # accumulators that a cohort remembers; each keeps its array alive


def _add_fragment(
    cells: Array, R: Registers, slots: tuple[int, ...], addend: str
) -> None:
    """cells (blocks, warps, 2, 32, 2) += the C fragment."""
    if addend == "f32":
        for q, slot in enumerate(slots):
            cells[:, :, q >> 1, :, q & 1] += R[slot].view(F32)
        return
    for q, slot in enumerate(slots):
        cells[:, :, q] += num.decode_f16(parts(R[slot], U16))


def _stack(
    cohort: Cohort, fragments: list[tuple[int, ...]], kind: Scalar, halves: int
) -> Array:
    """Decoded matrices: float32 (blocks, warps, fragments, 8 halves, k).

    halves: 2 of A; 1 of B, which is transposed
    """
    lead = (cohort.blocks, cohort.warps, len(fragments))
    out = np.empty((*lead, halves, 8, len(fragments[0]) // halves, 4), U32)
    for i, slots in enumerate(fragments):
        for q, slot in enumerate(slots):
            out[:, :, i, q % halves, :, q // halves] = _by_group(cohort.R[slot])
    return _decode(out, kind).reshape(*lead, 8 * halves, -1)


def _decode(x: Array, kind: Scalar) -> Array:
    """uint32 (..., 4) -> float32 (..., 4 elements of a register).

    Of integers, 32 terms of 16 bits stay below 2^24: exact in float32.
    """
    return kind.decode(x.view(kind.dtype)).astype(F32, copy=False)


def _by_group(x: Array) -> Array:
    """A register as (blocks, warps, 8 row groups, 4 columns)."""
    if x.shape[2] == 1:
        return x.view(U32)[..., None]
    return x.view(U32).reshape(*x.shape[:2], 8, 4)


def multiply(t: Translator, ins: Instruction) -> Op:
    """A single `mma`; `translated_kernel` joins neighbours into larger groups."""
    return MultiplyGroup([decode_multiply(t, ins)])
