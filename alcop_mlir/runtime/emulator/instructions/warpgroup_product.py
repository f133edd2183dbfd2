"""The arithmetic of wgmma: operands from shared memory, and D to registers.

All multiplications of a group are done together where they add to the same D: their
operands stand side by side along K, and one call of BLAS multiplies those of all blocks
and warpgroups. So how many groups a wait leaves in flight changes no bit.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from alcop_mlir.runtime.emulator.arithmetic import floats as num
from alcop_mlir.runtime.emulator.arithmetic import fragments
from alcop_mlir.runtime.emulator.arithmetic.matrix_descriptors import CHUNK
from alcop_mlir.runtime.emulator.arithmetic.storage import (
    F32,
    S32,
    S64,
    U8,
    U16,
    U32,
    Array,
    parts,
)
from alcop_mlir.runtime.emulator.machine.cohort import Cohort
from alcop_mlir.runtime.emulator.machine.memory import SHARED_START
from alcop_mlir.runtime.emulator.machine.warpgroups import (
    WARPS,
    Accumulators,
    PendingMultiply,
    WarpgroupForm,
)
from alcop_mlir.runtime.emulator.machine.warps import LANES
from alcop_mlir.runtime.emulator.ptx.scalars import SCALARS

_ROWS = 16  # of D, in a warp
# Multiplications in a matrix beyond which OpenBLAS starts threads for it: these cost
# more than they gain, and many times as much where other processes are busy.
_MOST = 2**18
_GROUP, _PLACE = 8, 4  # lanes of a warp: row groups, and columns of them


class _Where(NamedTuple):
    """The blocks and warps of a cohort for which something is computed.

    rows: index of the blocks; warps: numbers in the cohort; quarters: which of its
    warpgroup's rows each warp has; whole: whether these are whole warpgroups, one
    after the other
    """

    rows: Array
    warps: Array
    quarters: Array
    whole: bool

    @classmethod
    def of(cls, cohort: Cohort, active: Array) -> _Where:
        rows = np.flatnonzero(active.any(axis=1))
        if len(active) == 1:
            rows = np.arange(cohort.blocks)
        warps = np.flatnonzero(active.any(axis=0))
        number = cohort.first_warp + warps
        whole = number.size % WARPS == 0 and bool(
            (
                number
                == number[::WARPS].repeat(WARPS) // WARPS * WARPS + number % WARPS
            ).all()
        )
        return cls(rows, warps, number % WARPS, whole)

    def pick(self, x: Array) -> Array:
        """Of x (1|blocks, 1|warps, ...) what belongs to these: (1|rows, warps, ...)."""
        x = x[self.rows] if len(x) > 1 else x
        return x[:, self.warps] if x.shape[1] > 1 else x

    def units(self, x: Array) -> Array:
        """Of x (.., 1|warps, ...) what each unit with a B of its own has."""
        return x[:, :: WARPS if self.whole else 1] if x.shape[1] > 1 else x


def read_now(cohort: Cohort, one: PendingMultiply) -> PendingMultiply:
    """With its operands, as they are now, for all who issue it."""
    a, b = _operands(cohort, one, _Where.of(cohort, one.active))
    return replace(one, operands=(a, b, one.active))


def complete(
    cohort: Cohort, ready: Sequence[PendingMultiply], left: Sequence[PendingMultiply]
) -> None:
    """Computes what is ready and writes D, but where what is left adds to it."""
    kept = cohort.wgmma.kept
    for run in _runs(ready):
        form, active = run[0].form, run[0].active
        old = kept.get(form.d)
        if old is not None and old.registers is None:
            if not np.array_equal(old.active, active):
                _write(cohort, form, old)
        kept[form.d] = _accumulate(cohort, run, kept.get(form.d))
    for form in {one.form.d: one.form for one in ready}.values():
        found = kept[form.d]
        if found.registers is None and not _continues(form, found, left):
            _write(cohort, form, found)


def _continues(
    form: WarpgroupForm, found: Accumulators, left: Sequence[PendingMultiply]
) -> bool:
    """Whether all of D is still added to."""
    return any(
        one.form.d == form.d and np.array_equal(one.active, found.active)
        for one in left
    )


def _runs(ready: Sequence[PendingMultiply]) -> Iterator[list[PendingMultiply]]:
    """Multiplications that may be done as one, in their order."""
    run: list[PendingMultiply] = []
    for one in ready:
        if run and not _joins(run, one):
            yield run
            run = []
        run.append(one)
    if run:
        yield run


def _joins(run: Sequence[PendingMultiply], one: PendingMultiply) -> bool:
    first = run[0]
    f, g = first.form, one.form
    return (
        math.prod(f.shape) * (len(run) + 1) <= _MOST
        and f.types[0] == "f32"
        and (f.shape, f.types, f.d, f.sign) == (g.shape, g.types, g.d, g.sign)
        and bool((one.adds | ~one.active).all())
        and np.array_equal(first.active, one.active)
        and np.array_equal(first.group, one.group)
    )


def _accumulate(
    cohort: Cohort, run: Sequence[PendingMultiply], kept: Accumulators | None
) -> Accumulators:
    """D after a run, as matrices."""
    first, form = run[0], run[0].form
    where = _Where.of(cohort, first.active)
    pairs = [_held(cohort, one, where) for one in run]
    total = _product(*_side_by_side(pairs), where)
    if form.sign < 0:
        total = -total
    if form.types[0] == "s32":
        total = total.astype(S64)
    adds = where.pick(first.adds)[..., None, None]
    if adds.any():
        old = _current(cohort, form, where, first.active, kept)
        total = total + (old if adds.all() else np.where(adds, old, 0))
    return Accumulators(first.active, _rounded(form, total), None)


def _rounded(form: WarpgroupForm, total: Array) -> Array:
    """As D holds it."""
    if form.types[0] == "f16":
        return num.decode_f16(num.encode_f16(total))
    if form.types[0] == "s32":
        if form.saturates:
            return np.clip(total, -(1 << 31), (1 << 31) - 1)
        return total.astype(S32).astype(S64)
    return total


def _side_by_side(pairs: Sequence[tuple[Array, Array]]) -> tuple[Array, Array]:
    """Operands of several multiplications, one after the other along K."""
    if len(pairs) == 1:
        return pairs[0]
    units = max(b.shape[1] for _, b in pairs)
    all_b = [np.broadcast_to(b, (len(b), units, *b.shape[2:])) for _, b in pairs]
    return np.concatenate([a for a, _ in pairs], -1), np.concatenate(all_b, -2)


def _product(a: Array, b: Array, where: _Where) -> Array:
    """float32 (rows, warps, 16, columns) of (rows, warps, 16, k), (rows, units, k, n).

    There is one unit, or one for each warp (warpgroup, where these are whole). BLAS is
    given matrices of whole warpgroups: of others it may add in another order, and what
    a warp gets must not depend on which others have come as far.
    """
    lead = a.shape[:2]
    if where.whole:
        a = a.reshape(len(a), -1, WARPS * _ROWS, a.shape[-1])
        return np.matmul(a, b).reshape(*lead, _ROWS, -1)
    warps = np.arange(lead[1])[:, None]
    quarters = where.quarters[:, None] * _ROWS + np.arange(_ROWS)
    groups = np.zeros((*lead, WARPS * _ROWS, a.shape[-1]), a.dtype)
    groups[:, warps, quarters] = a
    return np.matmul(groups, b)[:, warps, quarters]


# --- operands ------------------------------------------------------------------------


def _held(cohort: Cohort, one: PendingMultiply, where: _Where) -> tuple[Array, Array]:
    """The operands: those that were read at the issue, or what is there now."""
    if one.operands is None:
        return _operands(cohort, one, where)
    a, b, issued = one.operands
    if issued is one.active:
        return a, b
    old = _Where.of(cohort, issued)
    rows = np.searchsorted(old.rows, where.rows)
    warps = np.searchsorted(old.warps, where.warps)
    b = b[rows]
    if b.shape[1] > 1:
        b = where.units(b[:, warps // WARPS if old.whole else warps])
    return a[rows][:, warps], b


def _operands(
    cohort: Cohort, one: PendingMultiply, where: _Where
) -> tuple[Array, Array]:
    """A (rows, warps, 16, k) and B (rows, 1|units, k, columns), float32."""
    form = one.form
    if one.a is None:
        a = _fragment(one, where)
    else:
        at = where.pick(one.a)
        a = _gather(cohort, at, where, form.types[1])
        a = a if form.k_major[0] else a.swapaxes(-1, -2)
        a = np.broadcast_to(a, (len(a), where.warps.size, *a.shape[2:]))
    found = _gather(cohort, where.units(where.pick(one.b)), where, form.types[2])
    return a, found.swapaxes(-1, -2) if form.k_major[1] else found


def _fragment(one: PendingMultiply, where: _Where) -> Array:
    """A from registers."""
    form = one.form
    element = fragments.ELEMENTS[form.types[1]]
    shape = (where.rows.size, where.warps.size, LANES)
    given = [np.broadcast_to(where.pick(x.view(U32)), shape) for x in one.registers]
    values = np.concatenate([element.decode(x) for x in given], axis=-1)
    placement = fragments.operand_a(_ROWS, form.shape[2], element.per_register)
    return placement.gather(values.astype(F32))[:, :, 0]


def _gather(cohort: Cohort, address: Array, where: _Where, kind: str) -> Array:
    """The elements of chunks (1|rows, units, x, y): float32 (rows, units, x, ...)."""
    memory = cohort.batch.shared.views[CHUNK]
    at = (address - SHARED_START) // CHUNK
    flat = at.reshape(len(at), -1)
    if len(at) == 1:
        chosen = memory if where.rows.size == len(memory) else memory[where.rows]
        found = chosen.take(flat[0], axis=1, mode="clip")
    else:
        found = memory[where.rows[:, None], flat.clip(0, memory.shape[1] - 1)]
    raw = np.ascontiguousarray(found).view(U8)
    raw = raw.reshape(where.rows.size, *address.shape[1:3], -1)
    return _decoded(raw, kind)


def _decoded(raw: Array, kind: str) -> Array:
    """Bytes (..., 16 n) to float32 (..., elements), exactly."""
    if kind == "b1":
        return np.unpackbits(raw, axis=-1, bitorder="little").astype(F32)
    scalar = SCALARS[kind]
    return scalar.decode(raw.view(scalar.dtype)).astype(F32, copy=False)


# --- D -------------------------------------------------------------------------------


def _current(
    cohort: Cohort,
    form: WarpgroupForm,
    where: _Where,
    active: Array,
    kept: Accumulators | None,
) -> Array:
    """D before it is added to: what is kept if registers hold that, or they do."""
    if kept is not None and np.array_equal(kept.active, active):
        mine = [cohort.R[slot] for slot in form.d]
        held = kept.registers
        if held is None or all(x is y for x, y in zip(mine, held, strict=True)):
            return kept.total
    shape = (where.rows.size, where.warps.size, LANES)
    cells = np.empty((len(form.d), *shape), U32)
    for i, slot in enumerate(form.d):
        cells[i] = where.pick(cohort.R[slot].view(U32))
    return _from_registers(form, cells)


def _from_registers(form: WarpgroupForm, cells: Array) -> Array:
    """uint32 (registers, rows, warps, 32) to matrices (rows, warps, 16, columns)."""
    lead = cells.shape[1:3]
    if form.types[0] == "f16":
        values = num.decode_f16(parts(cells, U16))  # both columns of a pair
    else:
        values = cells.reshape(-1, 2, *cells.shape[1:])  # pairs of registers
        values = np.moveaxis(values, 1, -1)
        is_integer = form.types[0] == "s32"
        values = np.ascontiguousarray(values).view(S32 if is_integer else F32)
    # Pair q: row half q % 2, columns 8 (q / 2) + 2 t and the next.
    split = values.reshape(-1, 2, *lead, _GROUP, _PLACE, 2)
    out = split.transpose(2, 3, 1, 4, 0, 5, 6).reshape(*lead, _ROWS, -1)
    return out.astype(S64) if form.types[0] == "s32" else out


def _to_registers(form: WarpgroupForm, total: Array) -> Array:
    """The opposite: uint32 (registers, rows, warps, 32)."""
    lead = total.shape[:2]
    split = total.reshape(*lead, 2, _GROUP, -1, _PLACE, 2)
    split = split.transpose(4, 2, 0, 1, 3, 5, 6)
    if form.types[0] == "f16":
        pairs = np.ascontiguousarray(num.encode_f16(split))
        return pairs.view(U32).reshape(-1, *lead, LANES)
    values = np.moveaxis(split, -1, 2)  # (column block, half, of a pair, ...)
    dtype = S32 if form.types[0] == "s32" else F32
    return values.astype(dtype).view(U32).reshape(-1, *lead, LANES)


def _write(cohort: Cohort, form: WarpgroupForm, found: Accumulators) -> None:
    """Puts D into its registers, for the warps that are active."""
    where = _Where.of(cohort, found.active)
    cells = _to_registers(form, found.total)
    everywhere = bool(found.active.all())
    shape = (cohort.blocks, cohort.warps, LANES)
    # Rows and columns of warps that are on, for a copy of only those.
    on = np.broadcast_to(found.active, shape[:2])[np.ix_(where.rows, where.warps)]
    index = np.ix_(where.rows, where.warps)
    full, R = bool(on.all()), cohort.R
    for slot, cell in zip(form.d, cells, strict=True):
        if everywhere:
            R[slot] = cell
            continue
        out = np.broadcast_to(R[slot].view(U32), shape).copy()
        out[index] = cell if full else np.where(on[..., None], cell, out[index])
        R[slot] = out
    found.registers = [R[slot] for slot in form.d]
