"""Integer multiplications, and additions that take or give a carry.

PTX ISA "Integer Arithmetic Instructions" (mul, mad, mul24, mad24, dp4a, dp2a) and
"Extended-Precision Integer Arithmetic Instructions".
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from alcop_mlir.runtime.emulator.arithmetic import integers as ints
from alcop_mlir.runtime.emulator.arithmetic.storage import U32
from alcop_mlir.runtime.emulator.instructions.translator import (
    CARRY,
    Op,
    Translator,
)
from alcop_mlir.runtime.emulator.machine.cohort import Cohort
from alcop_mlir.runtime.emulator.machine.warps import Mask
from alcop_mlir.runtime.emulator.ptx.scalars import B32, SCALARS, Scalar
from alcop_mlir.runtime.emulator.ptx.syntax import Instruction

Array = np.ndarray


def as_unsigned(scalar: Scalar) -> Scalar:
    """Arithmetic that wraps is done unsigned: NumPy warns about signed overflow."""
    return SCALARS[f"u{scalar.bits}"]


def carry_chain(t: Translator, ins: Instruction) -> Op:
    """add.cc, addc, sub.cc, subc, mad.cc, madc: an addition with CC.CF.

    Subtraction adds the complement and a carry of one less the borrow in CC.CF.
    """
    name = ins.parts[0]
    scalar = as_unsigned(ins.type)
    one = scalar.dtype.type(1)
    takes, gives = name.endswith("c"), "cc" in ins.parts
    subtract = name.startswith("sub")
    if name.startswith("mad"):
        product = _product(ins)
        a, b = (t.read(o, ins.type, ins) for o in ins.operands[1:3])
        c = t.read(ins.operands[3], scalar, ins)
    else:
        product = None
        a, c = (t.read(o, scalar, ins) for o in ins.operands[1:3])
        b = a
    slot, _ = t.result(ins.operands[0], scalar.dtype, ins)
    carry = t.slot(CARRY, ins)

    def run(cohort: Cohort, mask: Mask) -> None:
        R = cohort.R
        x = a(R) if product is None else product(a(R), b(R)).view(scalar.dtype)
        y = ~c(R) if subtract else c(R)
        flag = np.zeros((1, 1, 1), scalar.dtype)
        if takes:
            flag = R[carry].view(U32).astype(scalar.dtype)
        total, out = ints.add_with_carry(x, y, one - flag if subtract else flag)
        if subtract:
            out = one - out
        if slot >= 0:
            cohort.put(slot, total, mask)
        if gives:
            cohort.put(carry, out.astype(U32), mask)

    return run


def _product(ins: Instruction) -> Callable[[Array, Array], Array]:
    if "hi" in ins.parts:
        return ints.multiply_high
    return lambda a, b: ints.unsigned(a) * ints.unsigned(b)


def _low_product(x: Array, y: Array) -> Array:
    return x * y


def multiply(t: Translator, ins: Instruction) -> Op:
    """mul and mad: lo, hi, wide; mul24 and mad24."""
    scalar, parts = ins.type, ins.parts
    adds = parts[0].startswith("mad")
    a, b = (t.read(o, scalar, ins) for o in ins.operands[1:3])
    if parts[0].endswith("24"):
        high = "hi" in parts
        out = as_unsigned(scalar)

        def fn(x: Array, y: Array) -> Array:
            return ints.multiply_24(x, y, high).view(out.dtype)
    elif "wide" in parts:
        out = SCALARS[f"u{2 * scalar.bits}"]

        def fn(x: Array, y: Array) -> Array:
            return ints.multiply_wide(x, y).view(out.dtype)
    else:
        out = as_unsigned(scalar)
        if "hi" in parts:

            def fn(x: Array, y: Array) -> Array:
                return ints.multiply_high(x, y).view(out.dtype)
        else:
            a, b = (t.read(o, out, ins) for o in ins.operands[1:3])
            fn = _low_product
    if not adds:
        return t.compute(ins, ins.operands[0], out.dtype, fn, a, b)
    c = t.read(ins.operands[3], out, ins)
    if "sat" in parts:
        return t.compute(
            ins,
            ins.operands[0],
            scalar.dtype,
            lambda x, y, z: ints.add_saturating(
                ints.multiply_high(x, y), z.view(scalar.dtype), False
            ),
            a,
            b,
            c,
        )
    return t.compute(
        ins, ins.operands[0], out.dtype, lambda x, y, z: fn(x, y) + z, a, b, c
    )


def dot(t: Translator, ins: Instruction) -> Op:
    """dp4a and dp2a: bytes multiplied in pairs, added to a 32-bit accumulator."""
    upper = None if ins.parts[0] == "dp4a" else "hi" in ins.parts
    a, b = (
        t.read(o, SCALARS[kind], ins)
        for o, kind in zip(ins.operands[1:3], ins.parts[-2:], strict=True)
    )
    c = t.read(ins.operands[3], B32, ins)
    return t.compute(
        ins,
        ins.operands[0],
        U32,
        lambda x, y, z: ints.dot(x, y, upper).astype(U32) + z,
        a,
        b,
        c,
    )
