"""The video instructions, on bytes and half-words of 32-bit registers.

PTX ISA "Video Instructions". What is selected is extended by its type and computed on
exactly; then it is clamped, combined with operand c, or placed within it. Scalar ones
select one part of each operand; `...2` and `...4` as many parts of both registers.
"""

from __future__ import annotations

import numpy as np

from alcop_mlir.runtime.emulator.arithmetic.storage import S64, U32, U64, Array
from alcop_mlir.runtime.emulator.instructions.predicate import COMPARE
from alcop_mlir.runtime.emulator.instructions.translator import (
    Function,
    Op,
    Translator,
)
from alcop_mlir.runtime.emulator.machine.loaded_kernel import Read
from alcop_mlir.runtime.emulator.ptx.scalars import U32T
from alcop_mlir.runtime.emulator.ptx.syntax import (
    Instruction,
    Minus,
    Operand,
    Selected,
    unsupported,
)

_WIDTHS = {"b": 8, "h": 16}  # bits of what a selector counts
_TYPES = ("u32", "s32")


def _average(a: Array, b: Array) -> Array:
    """Halfway, rounded away from zero."""
    total = a + b
    return np.where(total >= 0, total + 1, total) >> 1


_ARITHMETIC: dict[str, Function] = {
    "vadd": np.add,
    "vsub": np.subtract,
    "vabsdiff": lambda a, b: np.abs(a - b),
    "vmin": np.minimum,
    "vmax": np.maximum,
    "vavrg": _average,
}
_SECOND: dict[str, Function] = {
    "add": np.add,
    "min": np.minimum,
    "max": np.maximum,
}


def _types(ins: Instruction) -> list[str]:
    return [part for part in ins.parts if part in _TYPES]


def _range(bits: int, signed: bool) -> tuple[int, int]:
    half = 1 << (bits - 1)
    return (-half, half - 1) if signed else (0, 2 * half - 1)


def _extended(x: Array, bits: int, signed: bool) -> Array:
    """The low `bits` of int64 as the number that they mean."""
    low = x & ((1 << bits) - 1)
    return np.where(low >> (bits - 1) != 0, low - (1 << bits), low) if signed else low


def _low(x: Array) -> Array:
    """The lowest 32 bits of an exact number."""
    return (x & 0xFFFFFFFF).astype(U32)


# --- one part of each operand --------------------------------------------------------


def _part(t: Translator, ins: Instruction, operand: Operand, type_name: str) -> Read:
    """A part of a register, or all of it, as an exact number (int64)."""
    signed = type_name == "s32"
    if isinstance(operand, Minus):
        operand = operand.operand
    if not isinstance(operand, Selected):
        read = t.read(operand, U32T, ins)
        return lambda R: _extended(read(R).astype(S64), 32, signed)
    bits = _WIDTHS[operand.part[0]]
    shift = bits * int(operand.part[1:])
    if shift >= 32:
        raise unsupported(ins, f"part .{operand.part}")
    whole = t.read(operand.operand, U32T, ins)
    return lambda R: _extended(whole(R).astype(S64) >> shift, bits, signed)


def _target(ins: Instruction) -> tuple[Operand, str]:
    """The register that is written, and the part that takes the result, if any."""
    first = ins.operands[0]
    return (first.operand, first.part) if isinstance(first, Selected) else (first, "")


def _scalar(t: Translator, ins: Instruction, fn: Function, of: list[str]) -> Op:
    """`fn` of two parts; then clamped, combined with c, or placed in c."""
    target, part = _target(ins)
    signed = _types(ins)[0] == "s32" and len(_types(ins)) > len(of)
    bits = _WIDTHS[part[0]] if part else 32
    low, high = _range(bits, signed)
    _, a, b, *third = ins.operands
    reads = [_part(t, ins, a, of[0]), _part(t, ins, b, of[1])]
    reads += [t.read(c, U32T, ins) for c in third]
    second = next((_SECOND[p] for p in ins.parts if p in _SECOND), None)
    if (part or second) and not third:
        raise unsupported(ins)

    def whole(x: Array, y: Array, *c: Array) -> Array:
        value = fn(x, y)
        if "sat" in ins.parts:
            value = np.clip(value, low, high)
        if second is not None:
            held = _extended(value, 32, signed)
            value = second(held, _extended(c[0].astype(S64), 32, signed))
        elif part:
            shift = bits * int(part[1:])
            field = ((1 << bits) - 1) << shift
            value = (value << shift & field) | (c[0].astype(S64) & ~field)
        return _low(value)

    return t.assign(ins, target, U32, whole, *reads)


def compute_part(t: Translator, ins: Instruction) -> Op:
    """vadd, vsub, vabsdiff, vmin and vmax."""
    return _scalar(t, ins, _ARITHMETIC[ins.parts[0]], _types(ins)[1:])


def compare_part(t: Translator, ins: Instruction) -> Op:
    """vset: 1 where the comparison holds, else 0."""
    test = COMPARE[ins.parts[3]]
    return _scalar(t, ins, lambda a, b: test(a, b).astype(S64), _types(ins))


def shift_part(t: Translator, ins: Instruction) -> Op:
    """vshl and vshr, by at most 32 (.clamp) or by the low five bits (.wrap)."""
    left, wraps = ins.parts[0] == "vshl", "wrap" in ins.parts

    def fn(a: Array, b: Array) -> Array:
        count = b & 31 if wraps else np.minimum(b, 32)
        if not left:
            return a >> count
        # 2^62 has zeros below and is out of every range, as what is shifted by 32.
        far = np.sign(a) * np.int64(1 << 62)
        return np.where(count == 32, far, a << np.minimum(count, 31))

    return _scalar(t, ins, fn, _types(ins)[1:])


def multiply_add_part(t: Translator, ins: Instruction) -> Op:
    """vmad: a * b + c exactly, negated in parts or one more (.po), shifted, clamped."""
    _, a_type, b_type = _types(ins)
    target, a, b, c = ins.operands
    inverts = isinstance(a, Minus) != isinstance(b, Minus)
    negative_c = isinstance(c, Minus)
    signed = "s32" in (a_type, b_type) or inverts or negative_c
    shift = next((int(p[3:]) for p in ins.parts if p in ("shr7", "shr15")), 0)
    low, high = _range(32, signed)
    addend = _part(t, ins, c, "s32" if signed else "u32")

    def fn(x: Array, y: Array, z: Array) -> Array:
        # Numbers of more than 64 bits: Python's own.
        product = x.astype(object) * y.astype(object)
        total = (-product if inverts else product) + (-z if negative_c else z)
        if "po" in ins.parts:
            total = total + 1
        total = total // (1 << shift)
        if "sat" in ins.parts:
            total = np.minimum(np.maximum(total, low), high)
        return (total & 0xFFFFFFFF).astype(U64).astype(U32)

    reads = (_part(t, ins, a, a_type), _part(t, ins, b, b_type), addend)
    return t.assign(ins, target, U32, fn, *reads)


# --- several parts of both registers -------------------------------------------------


def _chosen(
    t: Translator, ins: Instruction, default: str, operand: Operand
) -> tuple[Read, str]:
    """How to read a register, and which parts of a and b its operand takes."""
    if isinstance(operand, Selected):
        return t.read(operand.operand, U32T, ins), operand.part[1:]
    return t.read(operand, U32T, ins), default


def _several(
    t: Translator, ins: Instruction, count: int, fn: Function, of: list[str]
) -> Op:
    """`fn` of `count` parts each; then added up in c, or placed in it."""
    bits = 32 // count
    places = range(2 * count)
    default = "".join(map(str, reversed(places)))
    target, mask = _target(ins)
    kept = [int(digit) for digit in mask[1:] or default[count:]]
    _, a, b, c = ins.operands
    first, a_parts = _chosen(t, ins, default[count:], a)
    second, b_parts = _chosen(t, ins, default[:count], b)
    third = t.read(c, U32T, ins)
    signed = _types(ins)[0] == "s32" and len(_types(ins)) > len(of)
    low, high = _range(bits, signed)
    accumulates, saturates = "add" in ins.parts, "sat" in ins.parts
    if len(a_parts) != count or len(b_parts) != count:
        raise unsupported(ins)

    def pick(both: list[Array], digits: str, type_name: str) -> list[Array]:
        """The parts that the digits name, the last one lowest."""
        numbers = [divmod(int(digit), count) for digit in reversed(digits)]
        sources = [both[register] >> (bits * place) for register, place in numbers]
        return [_extended(x, bits, type_name == "s32") for x in sources]

    def whole(x: Array, y: Array, z: Array) -> Array:
        both = [x.astype(S64), y.astype(S64)]
        left, right = pick(both, a_parts, of[0]), pick(both, b_parts, of[1])
        out = z.astype(S64)
        for place in kept:
            value = fn(left[place], right[place])
            if accumulates:
                out = out + value
                continue
            if saturates:
                value = np.clip(value, low, high)
            field = ((1 << bits) - 1) << (bits * place)
            out = (value << (bits * place) & field) | (out & ~field)
        return _low(out)

    return t.assign(ins, target, U32, whole, first, second, third)


def compute_parts(t: Translator, ins: Instruction) -> Op:
    """vadd2, vsub2, vavrg2, vabsdiff2, vmin2, vmax2, and the same with 4."""
    name = ins.parts[0]
    fn = _ARITHMETIC[name[:-1]]
    return _several(t, ins, int(name[-1]), fn, _types(ins)[1:])


def compare_parts(t: Translator, ins: Instruction) -> Op:
    """vset2 and vset4."""
    test = COMPARE[ins.parts[3]]
    count = int(ins.parts[0][-1])
    return _several(t, ins, count, lambda a, b: test(a, b).astype(S64), _types(ins))
