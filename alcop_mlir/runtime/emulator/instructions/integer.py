"""Integer arithmetic, logic, shifts, bit fields and bytes.

PTX ISA "Integer Arithmetic Instructions", "Extended-Precision Integer Arithmetic
Instructions", "Logic and Shift Instructions".
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from alcop_mlir.runtime.emulator.arithmetic import integers as ints
from alcop_mlir.runtime.emulator.arithmetic.storage import U32
from alcop_mlir.runtime.emulator.instructions.multiply import as_unsigned
from alcop_mlir.runtime.emulator.instructions.translator import Handler, Op, Translator
from alcop_mlir.runtime.emulator.machine.registers import Read
from alcop_mlir.runtime.emulator.ptx.scalars import U32T, Scalar
from alcop_mlir.runtime.emulator.ptx.syntax import Instruction, Integer, unsupported

Array = np.ndarray


def _reads(t: Translator, ins: Instruction, scalar: Scalar, count: int) -> list[Read]:
    if len(ins.operands) != count + 1:
        raise unsupported(ins, f"expected {count + 1} operands")
    return [t.read(o, scalar, ins) for o in ins.operands[1:]]


def _wrapping(fn: Callable[..., Array], count: int) -> Handler:
    def translate(t: Translator, ins: Instruction) -> Op:
        scalar = as_unsigned(ins.type)
        reads = _reads(t, ins, scalar, count)
        return t.compute(ins, ins.operands[0], scalar.dtype, fn, *reads)

    return translate


def _typed(fn: Callable[..., Array], count: int) -> Handler:
    """`fn` on operands of the instruction's own type."""

    def translate(t: Translator, ins: Instruction) -> Op:
        scalar = ins.type
        reads = _reads(t, ins, scalar, count)
        return t.compute(ins, ins.operands[0], scalar.dtype, fn, *reads)

    return translate


def halves(fn: Callable[..., Array], dtype: np.dtype) -> Callable[..., Array]:
    """`fn` on the two 16-bit halves of 32-bit operands."""

    def apply(*values: Array) -> Array:
        split = [np.ascontiguousarray(v)[..., None].view(dtype) for v in values]
        out = np.ascontiguousarray(fn(*split))
        return out.view(U32)[..., 0]

    return apply


def add_or_sub(t: Translator, ins: Instruction) -> Op:
    subtract = ins.parts[0] == "sub"
    fn = np.subtract if subtract else np.add
    scalar = ins.type
    if "sat" in ins.parts:
        reads = _reads(t, ins, scalar, 2)
        return t.compute(
            ins,
            ins.operands[0],
            scalar.dtype,
            lambda a, b: ints.add_saturating(a, b, subtract),
            *reads,
        )
    if scalar.half is not None:
        reads = _reads(t, ins, U32T, 2)
        return t.compute(
            ins, ins.operands[0], U32, halves(fn, np.dtype(np.uint16)), *reads
        )
    return _wrapping(fn, 2)(t, ins)


def min_or_max(t: Translator, ins: Instruction) -> Op:
    fn = np.minimum if ins.parts[0] == "min" else np.maximum
    scalar = ins.type
    relu = "relu" in ins.parts

    def pick(a: Array, b: Array) -> Array:
        out = fn(a, b)
        return np.maximum(out, out.dtype.type(0)) if relu else out

    if scalar.half is None:
        return _typed(pick, 2)(t, ins)
    reads = _reads(t, ins, U32T, 2)
    return t.compute(ins, ins.operands[0], U32, halves(pick, scalar.half.dtype), *reads)


def shift_bits(t: Translator, ins: Instruction) -> Op:
    scalar = ins.type
    right = ins.parts[0] == "shr"
    if not right or scalar.kind == "b":
        scalar = as_unsigned(scalar)
    value, amount = ins.operands[1:]
    a = t.read(value, scalar, ins)
    if isinstance(amount, Integer) and 0 <= amount.value < scalar.bits:
        n = scalar.dtype.type(amount.value)
        shift = np.right_shift if right else np.left_shift
        return t.compute(ins, ins.operands[0], scalar.dtype, lambda x: shift(x, n), a)
    b = t.read(amount, U32T, ins)
    fn = ints.shift_right if right else ints.shift_left
    return t.compute(ins, ins.operands[0], scalar.dtype, fn, a, b)


def shift_funnel(t: Translator, ins: Instruction) -> Op:
    _, side, mode, *_ = ins.parts
    fn = ints.funnel_left if side == "l" else ints.funnel_right
    reads = _reads(t, ins, U32T, 3)
    return t.compute(
        ins, ins.operands[0], U32, lambda a, b, n: fn(a, b, n, mode == "wrap"), *reads
    )


def extract_field(t: Translator, ins: Instruction) -> Op:
    a = t.read(ins.operands[1], ins.type, ins)
    p, n = (t.read(o, U32T, ins) for o in ins.operands[2:])
    return t.compute(ins, ins.operands[0], ins.type.dtype, ints.extract_field, a, p, n)


def insert_field(t: Translator, ins: Instruction) -> Op:
    a, b = (t.read(o, ins.type, ins) for o in ins.operands[1:3])
    p, n = (t.read(o, U32T, ins) for o in ins.operands[3:])
    return t.compute(
        ins, ins.operands[0], ins.type.dtype, ints.insert_field, a, b, p, n
    )


def make_mask(t: Translator, ins: Instruction) -> Op:
    """bmsk: `length` ones from `position`."""
    wrap = "wrap" in ins.parts

    def fn(position: Array, length: Array) -> Array:
        if wrap:
            position, length = position & U32.type(31), length & U32.type(31)
        return ints.shift_left(ints.low_mask(length, U32), position)

    return t.compute(ins, ins.operands[0], U32, fn, *_reads(t, ins, U32T, 2))


def _to_count(fn: Callable[[Array], Array]) -> Handler:
    """popc and clz: a 32-bit result whatever the operand."""

    def translate(t: Translator, ins: Instruction) -> Op:
        scalar = as_unsigned(ins.type)
        return t.compute(
            ins, ins.operands[0], U32, fn, t.read(ins.operands[1], scalar, ins)
        )

    return translate


def find_highest(t: Translator, ins: Instruction) -> Op:
    as_shift = "shiftamt" in ins.parts
    return t.compute(
        ins,
        ins.operands[0],
        U32,
        lambda a: ints.find_highest(a, as_shift),
        t.read(ins.operands[1], ins.type, ins),
    )


def logic3(t: Translator, ins: Instruction) -> Op:
    table = ins.operands[4]
    if not isinstance(table, Integer):
        raise unsupported(ins, "expected an immediate truth table")
    reads = [t.read(o, U32T, ins) for o in ins.operands[1:4]]
    return t.compute(
        ins,
        ins.operands[0],
        U32,
        lambda a, b, c: ints.logic3(a, b, c, table.value),
        *reads,
    )


def permute_bytes(t: Translator, ins: Instruction) -> Op:
    reads = _reads(t, ins, U32T, 3)
    modes = ints.PERMUTE_MODES.get(ins.parts[-1])
    if modes is None:
        return t.compute(ins, ins.operands[0], U32, ints.permute_bytes, *reads)
    table = np.array(modes, np.uint32)
    return t.compute(
        ins,
        ins.operands[0],
        U32,
        lambda a, b, c: ints.permute_bytes(a, b, table.take(c & U32.type(3))),
        *reads,
    )


def add_difference(t: Translator, ins: Instruction) -> Op:
    scalar = ins.type

    def fn(a: Array, b: Array, c: Array) -> Array:
        apart = np.where(
            a < b,
            ints.unsigned(b) - ints.unsigned(a),
            ints.unsigned(a) - ints.unsigned(b),
        )
        return (ints.unsigned(c) + apart).view(scalar.dtype)

    return t.compute(ins, ins.operands[0], scalar.dtype, fn, *_reads(t, ins, scalar, 3))


def extend_sign(t: Translator, ins: Instruction) -> Op:
    wrap = "wrap" in ins.parts
    a = t.read(ins.operands[1], ins.type, ins)
    n = t.read(ins.operands[2], U32T, ins)
    return t.compute(
        ins,
        ins.operands[0],
        ins.type.dtype,
        lambda x, length: ints.extend_sign(x, length, wrap),
        a,
        n,
    )


def _absolute(a: Array) -> Array:
    return ints.magnitude(a).view(a.dtype)


def _negative(a: Array) -> Array:
    return (~a + a.dtype.type(1)).view(a.dtype)


def _logical_not(a: Array) -> Array:
    return (a == 0).astype(a.dtype)


# Those that are one function on lanes.
divide = _typed(ints.divide, 2)
remainder = _typed(ints.remainder, 2)
absolute = _typed(_absolute, 1)
negative = _wrapping(_negative, 1)
bitwise_and = _typed(np.bitwise_and, 2)
bitwise_or = _typed(np.bitwise_or, 2)
bitwise_xor = _typed(np.bitwise_xor, 2)
invert = _typed(np.invert, 1)
logical_not = _wrapping(_logical_not, 1)
count_ones = _to_count(ints.count_ones)
leading_zeros = _to_count(ints.leading_zeros)
reverse_bits = _wrapping(ints.reverse_bits, 1)
