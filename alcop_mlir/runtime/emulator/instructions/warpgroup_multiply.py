"""wgmma: the multiplications of a warpgroup, which run while it goes on.

PTX ISA, "Asynchronous Warpgroup Level Matrix Instructions". D and a fragment A lie in
registers as those of `mma` with 16 rows do, warp w of the warpgroup having rows 16 w
to 16 w + 15; `arithmetic.matrix_descriptors` says where the others are.

Each a * b is exact and is added in float32 in the order of BLAS (integers exactly).
Operands in shared memory are read at the wait that completes the multiplication
(visibility "late") or at its issue ("early"); D is written at the wait.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from itertools import product

import numpy as np

from alcop_mlir.runtime.emulator.arithmetic.matrix_descriptors import (
    CHUNK,
    chunk_addresses,
)
from alcop_mlir.runtime.emulator.arithmetic.storage import S64, U64, Array
from alcop_mlir.runtime.emulator.instructions import bounds, warpgroup_product
from alcop_mlir.runtime.emulator.instructions.matrix_multiply import fragment_slots
from alcop_mlir.runtime.emulator.instructions.translator import Op, Translator
from alcop_mlir.runtime.emulator.machine.cohort import Cohort
from alcop_mlir.runtime.emulator.machine.faults import fault, location_of_mask
from alcop_mlir.runtime.emulator.machine.loaded_kernel import Read
from alcop_mlir.runtime.emulator.machine.memory import SHARED_START
from alcop_mlir.runtime.emulator.machine.warpgroups import (
    MISSING_FENCE,
    NEVER_WAITED,
    REGISTER_IN_FLIGHT,
    WARPS,
    OperandRead,
    PendingMultiply,
    WarpgroupForm,
)
from alcop_mlir.runtime.emulator.machine.warps import Mask, compact
from alcop_mlir.runtime.emulator.ptx.scalars import PRED, U64T
from alcop_mlir.runtime.emulator.ptx.syntax import (
    Instruction,
    Integer,
    Operand,
    Vector,
    unsupported,
)

_ROWS = 16  # of A and D, in a warp
_FRAGMENT: tuple[object, ...] = ("A",)  # what registers with A are used as
_SHAPE = re.compile(r"m64n(\d+)k(\d+)$")
_FP8, _BYTES = ("e4m3", "e5m2"), ("s8", "u8")
# Types of D, A and B, and K. PTX ISA, "wgmma.mma_async", "Description".
_FORMS = {
    **{(d, "f16", "f16"): 16 for d in ("f16", "f32")},
    ("f32", "bf16", "bf16"): 16,
    ("f32", "tf32", "tf32"): 8,
    **{(d, a, b): 32 for d, a, b in product(("f16", "f32"), _FP8, _FP8)},
    **{("s32", a, b): 32 for a, b in product(_BYTES, _BYTES)},
    ("s32", "b1", "b1"): 256,
}
_TRANSPOSED = ("f16", "bf16")  # types that may lie MN-major
# Of integers, columns are 8, 24 or a multiple of 16.
_COLUMNS = range(8, 257, 8)


def refuse_sparse(t: Translator, ins: Instruction) -> Op:
    raise unsupported(ins, "wgmma of a sparse matrix")


def _types(ins: Instruction) -> tuple[str, str, str]:
    """Of D, A and B; anything else that the opcode names has to fit them."""
    at = next((i for i, part in enumerate(ins.parts) if _SHAPE.match(part)), None)
    if at is None:
        raise unsupported(ins)
    rest = [part for part in ins.parts[at + 1 :] if part != "satfinite"]
    types, tail = (rest[0], rest[1], rest[2]), tuple(rest[3:])
    shape = _SHAPE.match(ins.parts[at])
    assert shape is not None
    n, k = int(shape[1]), int(shape[2])
    is_integer = types[0] == "s32"
    if (
        _FORMS.get(types) != k
        or n not in _COLUMNS
        or (is_integer and n % 16 and n not in (8, 24))
        or tail != (("and", "popc") if types[1] == "b1" else ())
        or ("satfinite" in ins.parts and types[1] not in _BYTES)
    ):
        raise unsupported(ins)
    return types


def decode(t: Translator, ins: Instruction) -> tuple[WarpgroupForm, Operand]:
    """Checks a `wgmma.mma_async`, and finds its registers; also its scale of D."""
    types = _types(ins)
    d_type, a_type, _ = types
    shape = next(found for part in ins.parts if (found := _SHAPE.match(part)))
    n, k = int(shape[1]), int(shape[2])
    d, a, _, adds, *immediates = ins.operands
    in_registers = isinstance(a, Vector)
    values = _immediates(ins, a_type, immediates, in_registers)
    signs, majors = values[:2], values[2:]
    k_major = (True, True)
    if majors:
        k_major = (in_registers or not majors[0], not majors[-1])
    slots = fragment_slots(t, ins, d, n // 4 if d_type == "f16" else n // 2)
    fragment = fragment_slots(t, ins, a, 4) if in_registers else ()
    sign = signs[0] * signs[1] if signs else 1
    saturates = "satfinite" in ins.parts
    form = WarpgroupForm(
        ins, (64, n, k), types, slots, fragment, k_major, sign, saturates
    )
    return form, adds


def _immediates(
    ins: Instruction, a_type: str, given: Sequence[Operand], in_registers: bool
) -> list[int]:
    """imm-scale-a, imm-scale-b, imm-trans-a (of a descriptor only), imm-trans-b."""
    count = 0 if a_type in (*_BYTES, "b1") else 2
    if a_type in _TRANSPOSED:
        count += 1 if in_registers else 2
    values = [one.value for one in given if isinstance(one, Integer)]
    if len(values) != len(given) or len(values) != count:
        raise unsupported(ins, f"expected {count} immediates after scale-d")
    fits = all(v in (-1, 1) for v in values[:2]) and all(
        v in (0, 1) for v in values[2:]
    )
    if not fits:
        raise unsupported(ins, "a scale is 1 or -1, and a transposition 0 or 1")
    return values


def multiply(t: Translator, ins: Instruction) -> Op:
    form, scale = decode(t, ins)
    adds = t.read(scale, PRED, ins)
    a = None if form.a else t.read(ins.operands[1], U64T, ins)
    b = t.read(ins.operands[2], U64T, ins)
    return lambda cohort, mask: _issue(cohort, mask, form, adds, a, b)


def _issue(
    cohort: Cohort,
    mask: Mask,
    form: WarpgroupForm,
    scale: Read,
    a_read: Read | None,
    b_read: Read,
) -> None:
    R, ins, state = cohort.R, form.ins, cohort.wgmma
    active = active_warps(cohort, mask)
    adds = _by_warp(cohort, mask, scale(R), ins)
    b = _by_warp(cohort, mask, b_read(R).view(U64), ins)
    given, a_at = [b, adds], None
    if a_read is not None:
        a = _by_warp(cohort, mask, a_read(R).view(U64), ins)
        given.append(a)
        quarter = (cohort.first_warp + np.arange(cohort.warps)) % WARPS
        rows = quarter[:, None] * _ROWS + np.arange(_ROWS)
        a_at = chunk_addresses(a, rows, form.k_major[0])
    cohort.batch.warpgroup_order.issue(cohort, ins, active, given)
    _check_registers(cohort, form, active)
    rows = np.arange(form.shape[1])
    b_at = chunk_addresses(_agreed(b, active), rows, form.k_major[1])
    for at in (a_at, b_at):
        if at is not None:
            _check_bounds(cohort, active, at, ins)
    if cohort.block_set.ranks > 1:
        base = (cohort.ranks() * cohort.batch.shared_step)[None, :, None, None]
        a_at, b_at = None if a_at is None else a_at + base, b_at + base
    registers = tuple(R[slot] for slot in form.a)
    group = np.broadcast_to(state.committed, active.shape)
    number = compact(cohort.batch.warpgroup_order.count[:, cohort.span].copy())
    pending = PendingMultiply(form, active, group, a_at, b_at, registers, adds, number)
    watcher = cohort.batch.warpgroup_watcher
    if watcher is not None:
        for read in reads_of(cohort, pending):
            watcher.on_issue(read)
    if cohort.batch.early:
        pending = warpgroup_product.read_now(cohort, pending)
    state.settle([*state.pending, pending])


def active_warps(cohort: Cohort, mask: Mask) -> Array:
    """The warps that are on, bool (1|blocks, warps)."""
    on = mask if mask is not None else np.ones((1, 1, 1), bool)
    rows = np.asarray(on.any(axis=2))
    return np.broadcast_to(rows, (len(rows), cohort.warps))


def _by_warp(cohort: Cohort, mask: Mask, x: Array, ins: Instruction) -> Array:
    """A register whose lanes agree in each active warp: (1|blocks, 1|warps)."""
    if x.shape[2] == 1:
        return x[:, :, 0]
    first = x[:, :, :1]
    other = x != first
    if mask is not None:
        other = other & mask
    if other.any():
        where = location_of_mask(cohort, other)
        raise fault(ins, "the lanes of a warp have different descriptors", where)
    return first[:, :, 0]


def _agreed(x: Array, active: Array) -> Array:
    """x (1|blocks, 1|warps) as (1|blocks, 1) where active warps agree."""
    if x.shape[1] == 1:
        return x
    first = x[:, active.any(axis=0).argmax(), None]
    return first if ((x == first) | ~active).all() else x


def reads_of(cohort: Cohort, one: PendingMultiply) -> Iterator[OperandRead]:
    """What each warp reads: its rows of A, and all of B."""
    for at in (one.a, one.b):
        if at is not None:
            offset = at.reshape(*at.shape[:2], -1) - SHARED_START
            ins, number = one.form.ins, one.number
            yield OperandRead(cohort, one.active, offset, CHUNK, ins, number)


def _check_bounds(cohort: Cohort, active: Array, at: Array, ins: Instruction) -> None:
    """`at`: addresses of chunks in the own block, (1|blocks, 1|warps, x, y)."""
    last = cohort.batch.shared_size - CHUNK
    offset = at.reshape(*at.shape[:2], -1) - SHARED_START
    if int(offset.min()) < 0 or int(offset.max()) > last:
        read = OperandRead(cohort, active, offset, CHUNK, ins, np.zeros((1, 1)))
        bounds.check_shared(cohort, read.lanes())


def _check_registers(cohort: Cohort, form: WarpgroupForm, active: Array) -> None:
    """PTX ISA, "wgmma.fence": what has to stand between registers and their use."""
    watcher, state, ins = cohort.batch.warpgroup_watcher, cohort.wgmma, form.ins
    if watcher is None:
        return
    unfenced = active & ~state.fenced
    if unfenced.any():
        what = "has executed no wgmma.fence before its first wgmma"
        watcher.report(MISSING_FENCE, ins, None, _first(cohort, unfenced), what)
    # Registers that several use in turn as the same need no fence.
    uses = dict.fromkeys(form.a, _FRAGMENT) | dict.fromkeys(form.d, form.layout)
    for slot, use in uses.items():
        known = state.touched.get(slot)
        if known is None or known[2] == use:
            continue
        both = active & known[0]
        if both.any():
            what = "uses a register that is accessed before, with no wgmma.fence since"
            watcher.report(MISSING_FENCE, ins, known[1], _first(cohort, both), what)
            break
    for slot, use in uses.items():
        state.touched[slot] = (active, ins, use)


def _first(cohort: Cohort, found: Array) -> tuple[int, int]:
    block, warp = (int(i) for i in np.argwhere(found)[0])
    return block, cohort.first_warp + warp


def touch(cohort: Cohort, mask: Mask, slots: frozenset[int], ins: Instruction) -> None:
    """Another instruction accesses registers that some wgmma uses."""
    watcher, state = cohort.batch.warpgroup_watcher, cohort.wgmma
    if watcher is None:
        return
    active = active_warps(cohort, mask)
    if not active.any():
        return
    if not slots.isdisjoint(state.slots):
        _report_in_flight(cohort, active, slots, ins)
    for slot in slots:
        old = state.touched.get(slot)
        on = active if old is None or old[2] is not None else active | old[0]
        state.touched[slot] = (on, ins, None)


def _report_in_flight(
    cohort: Cohort, active: Array, slots: frozenset[int], ins: Instruction
) -> None:
    watcher = cohort.batch.warpgroup_watcher
    assert watcher is not None
    for one in cohort.wgmma.pending:
        both = active & one.active
        if both.any() and not slots.isdisjoint((*one.form.d, *one.form.a)):
            is_d = not slots.isdisjoint(one.form.d)
            what = f"accesses {'an accumulator' if is_d else 'a fragment A'} of a wgmma"
            what += " in flight (no wgmma.wait_group covers it)"
            where = _first(cohort, both)
            watcher.report(REGISTER_IN_FLIGHT, ins, one.form.ins, where, what)
            return


def fence(t: Translator, ins: Instruction) -> Op:
    def run(cohort: Cohort, mask: Mask) -> None:
        state, active = cohort.wgmma, active_warps(cohort, mask)
        state.fenced = state.fenced | active
        for slot, (on, by, layout) in list(state.touched.items()):
            left = on & ~active
            if left.any():
                state.touched[slot] = (left, by, layout)
            else:
                del state.touched[slot]

    return run


def commit_group(t: Translator, ins: Instruction) -> Op:
    def run(cohort: Cohort, mask: Mask) -> None:
        state, active = cohort.wgmma, active_warps(cohort, mask)
        for observer in cohort.observers:
            observer.on_multiply_commit(cohort, active, ins)
        state.committed = state.committed + active.astype(S64)

    return run


def report_never_waited(cohort: Cohort) -> None:
    """What is in flight when the kernel ends: its D is nowhere."""
    watcher = cohort.batch.warpgroup_watcher
    if watcher is None:
        return
    for one in cohort.wgmma.pending:
        where = _first(cohort, one.active)
        what = "ends with this in flight (no wgmma.wait_group covers it)"
        watcher.report(NEVER_WAITED, one.form.ins, None, where, what)
