"""Integer arithmetic with and without carry, logic, shifts, bit fields and bytes.

PTX ISA "Integer Arithmetic Instructions", "Extended-Precision Integer Arithmetic
Instructions", "Logic and Shift Instructions".
"""

from __future__ import annotations

import numpy as np

from alcop_mlir.runtime.emulator.arithmetic import integers as ints
from alcop_mlir.runtime.emulator.arithmetic.storage import BOOL, U32, Array, on_halves
from alcop_mlir.runtime.emulator.instructions.predicate import COMBINE
from alcop_mlir.runtime.emulator.instructions.translator import (
    CARRY,
    Function,
    Op,
    Translator,
    lanewise,
    wrapping,
)
from alcop_mlir.runtime.emulator.machine.cohort import Cohort
from alcop_mlir.runtime.emulator.machine.warps import Mask
from alcop_mlir.runtime.emulator.ptx.scalars import PRED, SCALARS, U32T, Scalar
from alcop_mlir.runtime.emulator.ptx.syntax import (
    Instruction,
    Integer,
    Pair,
    unsupported,
)

# --- multiplications, and additions that take or give a carry ------------------------


def carry_chain(t: Translator, ins: Instruction) -> Op:
    """add.cc, addc, sub.cc, subc, mad.cc, madc: an addition with CC.CF.

    Subtraction adds the complement. PTX ISA has its borrow in CC.CF, and leaves open
    what an addition then takes from there; ptxas gives it the carry of that addition,
    which is one where nothing is borrowed, and the division of 128 bits that nvcc
    compiles needs that. So CC.CF is that carry here.
    """
    name, scalar = ins.parts[0], wrapping(ins)
    takes, gives = name.endswith("c"), "cc" in ins.parts
    subtract = name.startswith("sub")
    product: Function = ints.multiply_high if "hi" in ins.parts else np.multiply
    factor = ins.type if "hi" in ins.parts else scalar
    first = (factor, factor) if name.startswith("mad") else (scalar,)
    reads = t.sources(ins, *first, scalar)
    write = t.writer(ins.operands[0], scalar.dtype, ins)
    carry = t.slot(CARRY, ins)

    def run(cohort: Cohort, mask: Mask) -> None:
        R = cohort.R
        *terms, y = (read(R) for read in reads)
        x = ints.unsigned(product(*terms)) if len(terms) == 2 else terms[0]
        if takes:
            flag = R[carry].view(U32).astype(scalar.dtype)
        else:
            flag = np.full((1, 1, 1), subtract, scalar.dtype)
        total, out = ints.add_with_carry(x, ~y if subtract else y, flag)
        write(cohort, total, mask)
        if gives:
            cohort.put(carry, out.astype(U32), mask)

    return run


def multiply(t: Translator, ins: Instruction) -> Op:
    """mul and mad: lo, hi, wide; mul24 and mad24."""
    scalar, parts = ins.type, ins.parts
    adds, high = parts[0].startswith("mad"), "hi" in parts
    out = wrapping(ins)
    if parts[0].endswith("24"):
        product: Function = lambda x, y: ints.multiply_24(x, y, high)
    elif "wide" in parts:
        out, product = SCALARS[f"u{2 * scalar.bits}"], ints.multiply_wide
    elif high:
        product = ints.multiply_high
    else:
        scalar, product = out, np.multiply
    if not adds:
        return t.compute(
            ins, out.dtype, lambda x, y: ints.unsigned(product(x, y)), scalar, scalar
        )
    fn: Function = lambda x, y, z: ints.unsigned(product(x, y)) + z
    if "sat" in parts:
        out = scalar
        fn = lambda x, y, z: ints.add_saturating(product(x, y), z, False)
    return t.compute(ins, out.dtype, fn, scalar, scalar, out)


def dot(t: Translator, ins: Instruction) -> Op:
    """dp4a and dp2a: bytes multiplied in pairs, added to a 32-bit accumulator."""
    upper = None if ins.parts[0] == "dp4a" else "hi" in ins.parts
    a, b = (SCALARS[name] for name in ins.parts[-2:])

    def fn(x: Array, y: Array, z: Array) -> Array:
        return ints.dot(x, y, upper).astype(U32) + z

    return t.compute(ins, U32, fn, a, b, U32T)


# --- other arithmetic ----------------------------------------------------------------


def _by_type(t: Translator, ins: Instruction, fn: Function) -> Op:
    """`fn` of two operands of the instruction's type, or of their 16-bit halves."""
    scalar = ins.type
    if scalar.half is None:
        return t.compute(ins, scalar.dtype, fn, scalar, scalar)
    return t.compute(ins, U32, on_halves(fn, scalar.half.dtype), U32T, U32T)


def add_or_sub(t: Translator, ins: Instruction) -> Op:
    subtract = ins.parts[0] == "sub"
    if "sat" in ins.parts:
        return _by_type(t, ins, lambda a, b: ints.add_saturating(a, b, subtract))
    fn = np.subtract if subtract else np.add
    if ins.type.half is not None:
        return _by_type(t, ins, fn)
    return lanewise(fn, wrapping, wrapping)(t, ins)


def min_or_max(t: Translator, ins: Instruction) -> Op:
    fn = np.minimum if ins.parts[0] == "min" else np.maximum
    if "relu" not in ins.parts:
        return _by_type(t, ins, fn)
    return _by_type(t, ins, lambda a, b: np.maximum(fn(a, b), a.dtype.type(0)))


# --- logic, shifts, fields, bytes ----------------------------------------------------


def shift_bits(t: Translator, ins: Instruction) -> Op:
    right = ins.parts[0] == "shr"
    scalar = ins.type if right and ins.type.kind != "b" else wrapping(ins)
    amount = ins.operands[2]
    if isinstance(amount, Integer) and 0 <= amount.value < scalar.bits:
        n = scalar.dtype.type(amount.value)
        shift = np.right_shift if right else np.left_shift
        value, _ = t.sources(ins, scalar, U32T)
        to = ins.operands[0]
        return t.assign(ins, to, scalar.dtype, lambda x: shift(x, n), value)
    fn = ints.shift_right if right else ints.shift_left
    return t.compute(ins, scalar.dtype, fn, scalar, U32T)


def shift_funnel(t: Translator, ins: Instruction) -> Op:
    _, side, mode, *_ = ins.parts
    fn = ints.funnel_left if side == "l" else ints.funnel_right
    return t.compute(
        ins, U32, lambda a, b, n: fn(a, b, n, mode == "wrap"), U32T, U32T, U32T
    )


def make_mask(t: Translator, ins: Instruction) -> Op:
    """bmsk: `length` ones from `position`."""
    wrap = "wrap" in ins.parts

    def fn(position: Array, length: Array) -> Array:
        if wrap:
            position, length = position & U32.type(31), length & U32.type(31)
        return ints.shift_left(ints.low_mask(length, U32), position)

    return t.compute(ins, U32, fn, U32T, U32T)


def find_highest(t: Translator, ins: Instruction) -> Op:
    as_shift = "shiftamt" in ins.parts
    return t.compute(ins, U32, lambda a: ints.find_highest(a, as_shift), ins.type)


def logic3(t: Translator, ins: Instruction) -> Op:
    table = ins.operands[4]
    if not isinstance(table, Integer):
        raise unsupported(ins, "expected an immediate truth table")
    fn: Function = lambda a, b, c, _: ints.logic3(a, b, c, table.value)
    types = (U32T, U32T, U32T, U32T)
    if len(ins.operands) == len(types) + 1:
        return t.compute(ins, U32, fn, *types)
    return _logic3_with_predicate(t, ins, fn, types)


def _logic3_with_predicate(
    t: Translator, ins: Instruction, fn: Function, types: tuple[Scalar, ...]
) -> Op:
    """lop3.op.b32 d|p, a, b, c, table, q: p is (d != 0) op q."""
    first, combine = ins.operands[0], COMBINE[ins.parts[1]]
    if not isinstance(first, Pair):
        raise unsupported(ins)
    write, write_flag = t.writer(first[0], U32, ins), t.writer(first[1], BOOL, ins)
    *reads, predicate = t.sources(ins, *types, PRED)

    def run(cohort: Cohort, mask: Mask) -> None:
        R = cohort.R
        value, q = fn(*(read(R) for read in reads)), predicate(R)
        write(cohort, value, mask)
        write_flag(cohort, combine(value != 0, q), mask)

    return run


def find_set(t: Translator, ins: Instruction) -> Op:
    """fns: where the nth set bit of a mask is."""
    return t.compute(ins, U32, ints.find_nth_set, U32T, U32T, SCALARS["s32"])


def permute_bytes(t: Translator, ins: Instruction) -> Op:
    fn: Function = ints.permute_bytes
    modes = ints.PERMUTE_MODES.get(ins.parts[-1])
    if modes is not None:
        table = np.array(modes, U32)
        fn = lambda a, b, c: ints.permute_bytes(a, b, table.take(c & U32.type(3)))
    return t.compute(ins, U32, fn, U32T, U32T, U32T)


def extend_sign(t: Translator, ins: Instruction) -> Op:
    wrap, scalar = "wrap" in ins.parts, ins.type
    fn: Function = lambda a, length: ints.extend_sign(a, length, wrap)
    return t.compute(ins, scalar.dtype, fn, scalar, U32T)
