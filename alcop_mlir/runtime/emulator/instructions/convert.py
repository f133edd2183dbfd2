"""mov, cvt, cvta and isspacep, and hints without an effect.

PTX ISA "Data Movement and Conversion Instructions".
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from alcop_mlir.runtime.emulator.arithmetic import floats as num
from alcop_mlir.runtime.emulator.arithmetic.storage import (
    BOOL,
    F64,
    S64,
    U32,
    U64,
    UNSIGNED,
    Array,
    joined,
    pack,
    parts,
)
from alcop_mlir.runtime.emulator.instructions.translator import (
    Op,
    Translator,
    nothing,
    rounding,
)
from alcop_mlir.runtime.emulator.machine.cohort import Cohort
from alcop_mlir.runtime.emulator.machine.memory import (
    GLOBAL_WINDOW,
    WINDOW_SIZE,
    WINDOWS,
)
from alcop_mlir.runtime.emulator.machine.warps import Mask
from alcop_mlir.runtime.emulator.ptx.scalars import SCALARS, U32T, U64T, Scalar
from alcop_mlir.runtime.emulator.ptx.syntax import (
    Instruction,
    Integer,
    Name,
    Operand,
    Vector,
    elements,
    space_of,
    unsupported,
)

Convert = Callable[[Array], Array]
_CLOCKS = ("%clock", "%clock64", "%clock_hi", "%globaltimer", "%globaltimer_lo")


# --- mov ---------------------------------------------------------------------------


def move(t: Translator, ins: Instruction) -> Op:
    scalar = ins.type
    destination, source = ins.operands
    if "v4" in ins.parts and isinstance(source, Name):
        return _move_elements(t, ins, elements(destination), source)
    if isinstance(destination, Vector):
        return _unpack(t, ins, destination, source)
    if isinstance(source, Vector):
        return _pack(t, ins, destination, source)
    if isinstance(source, Name) and source.name in _CLOCKS:
        return _read_clock(t, ins)
    if (
        isinstance(source, Name)
        and t.is_register(source.name)
        and isinstance(destination, Name)
        and t.type_of(source.name, ins).size == t.type_of(destination.name, ins).size
    ):
        return _copy(t.slot(destination.name, ins), t.slot(source.name, ins))
    read = t.read(source, scalar, ins)
    return t.assign(ins, destination, scalar.dtype, lambda x: x, read)


def _move_elements(
    t: Translator, ins: Instruction, to: Sequence[Operand], source: Name
) -> Op:
    """mov.v4.u32 of a special register such as %tid."""
    given = [Name(f"{source.name}.{axis}") for axis in "xyzw"]
    ops = [
        t.assign(ins, item, ins.type.dtype, lambda x: x, t.read(one, ins.type, ins))
        for item, one in zip(to, given, strict=True)
    ]

    def run(cohort: Cohort, mask: Mask) -> None:
        for op in ops:
            op(cohort, mask)

    return run


def _copy(destination: int, source: int) -> Op:
    """A register copy keeps the array itself, which `matrix_multiply` recognises."""
    return lambda cohort, mask: cohort.put(destination, cohort.R[source], mask)


def _unpack(t: Translator, ins: Instruction, to: Vector, source: Operand) -> Op:
    """mov.b64 {a, b}, c: the low part first."""
    scalar = ins.type
    part = UNSIGNED[scalar.size // len(to.items)]
    read = t.read(source, scalar, ins)
    writes = [t.writer(item, part, ins) for item in to.items]

    def run(cohort: Cohort, mask: Mask) -> None:
        x = parts(read(cohort.R), part)
        for i, write in enumerate(writes):
            write(cohort, x[..., i], mask)

    return run


def _pack(t: Translator, ins: Instruction, to: Operand, source: Vector) -> Op:
    scalar = ins.type
    part = SCALARS[f"b{scalar.bits // len(source.items)}"]
    reads = [t.read(item, part, ins) for item in source.items]
    return t.assign(
        ins, to, scalar.unsigned, lambda *v: pack(v, scalar.unsigned), *reads
    )


def _read_clock(t: Translator, ins: Instruction) -> Op:
    """%clock counts the warp instructions that the cohort has issued.

    They are counted span by span; a read within one counts itself, so that a later
    read gives more.
    """
    dtype = ins.type.unsigned
    write = t.writer(ins.operands[0], dtype, ins)

    def run(cohort: Cohort, mask: Mask) -> None:
        cohort.issued += 1
        write(cohort, np.full((1, 1, 1), cohort.issued, dtype), mask)

    return run


# --- cvt ---------------------------------------------------------------------------


def convert(t: Translator, ins: Instruction) -> Op:
    known = [SCALARS[p] for p in ins.parts[1:] if p in SCALARS]
    if len(known) != 2:
        raise unsupported(ins)
    t = t.relaxed()
    to, of = known
    if to.half is None:
        return t.compute(ins, to.dtype, _conversion(ins, to, of), of)
    half = of.half or of
    narrow = _conversion(ins, to.half, half)
    if of.half is not None:

        def each_half(x: Array) -> Array:
            return joined(narrow(parts(x, half.dtype)), to.dtype)

        return t.compute(ins, to.dtype, each_half, of)

    # cvt.f16x2.f32 d, a, b: a becomes the upper half, b the lower one.
    def both(a: Array, b: Array) -> Array:
        return pack([narrow(b), narrow(a)], to.dtype)

    return t.compute(ins, to.dtype, both, of, of)


def convert_and_pack(t: Translator, ins: Instruction) -> Op:
    """cvt.pack.sat: two s32 clamped to `bits` each, above them the low bits of c."""
    name, with_c = ins.parts[3], len(ins.operands) == 4
    bits = int(name[1:])
    if bits > 16:
        raise unsupported(ins)
    low, high = (0, (1 << bits) - 1) if name[0] == "u" else _signed_range(bits)

    def clamped(x: Array) -> Array:
        return np.clip(x, low, high).view(U32) & U32.type((1 << bits) - 1)

    def fn(a: Array, b: Array, *c: Array) -> Array:
        out = clamped(b) | (clamped(a) << U32.type(bits))
        return out | (c[0] << U32.type(2 * bits)) if with_c else out

    s32 = SCALARS["s32"]
    more = (U32T,) if with_c else ()
    return t.compute(ins, U32, fn, s32, s32, *more)


def _signed_range(bits: int) -> tuple[int, int]:
    return -(1 << (bits - 1)), (1 << (bits - 1)) - 1


def make_policy(t: Translator, ins: Instruction) -> Op:
    """createpolicy: caches are not modelled, so every policy is the same number."""
    read = t.read(Integer(0), U64T, ins)
    return t.assign(ins, ins.operands[0], U64, lambda x: x, read)


def _conversion(ins: Instruction, to: Scalar, of: Scalar) -> Convert:
    if of.kind == "f":
        if to.kind == "f":
            return _float_to_float(ins, to, of)
        return _float_to_int(ins, to, of)
    if to.kind == "f":
        return _int_to_float(ins, to)
    return _int_to_int(ins, to)


def _to_wide(of: Scalar, flushes: bool) -> Convert:
    """Register bits of a float type -> float32 or float64, exactly."""
    return num.flush if flushes and of.name == "f32" else of.decode


def _float_to_float(ins: Instruction, to: Scalar, of: Scalar) -> Convert:
    flushes, mode = "ftz" in ins.parts, rounding(ins)
    steps = [_to_wide(of, flushes)]
    if mode in num.ROUND_TO_INTEGER:
        steps.append(num.ROUND_TO_INTEGER[mode])
        mode = "rn"
    if "sat" in ins.parts:
        steps.append(num.saturate)
    if "relu" in ins.parts:
        steps.append(num.relu)
    finite = "satfinite" in ins.parts
    if finite and not to.largest:
        raise unsupported(ins)

    def fn(x: Array) -> Array:
        for step in steps:
            x = step(x)
        out = to.encode(x, mode)  # rounded once
        if flushes and to.name == "f32":
            out = num.flush(out)
        return _clamp_finite(out, x, to) if finite else out

    return fn


def _clamp_finite(out: Array, x: Array, to: Scalar) -> Array:
    """.satfinite: overflow and infinities become the largest finite value."""
    sign = to.unsigned.type(1 << (to.bits - 1))
    largest = to.unsigned.type(to.largest)
    over = ((out & ~sign) > largest) & ~np.isnan(x)
    return np.where(over, (out & sign) | largest, out)


def _float_to_int(ins: Instruction, to: Scalar, of: Scalar) -> Convert:
    widen = _to_wide(of, "ftz" in ins.parts)
    mode = rounding(ins, "rzi")
    # PTX ISA, cvt: NaN gives 0, but the top bit alone if either type has 64 bits.
    top = of.name == "f64" or to.size == 8
    nan = np.array(1 << (to.bits - 1) if top else 0, to.unsigned).view(to.dtype)
    return lambda x: num.float_to_integer(widen(x), to.dtype, mode, nan)


def _int_to_float(ins: Instruction, to: Scalar) -> Convert:
    mode, saturates = rounding(ins), "sat" in ins.parts

    def fn(x: Array) -> Array:
        if to.name == "f64" and x.dtype in (S64, U64):
            return num.integer_to_double(x, mode)
        wide = num.wide_integer_to_odd(x) if x.dtype in (S64, U64) else x.astype(F64)
        return to.encode(num.saturate(wide) if saturates else wide, mode)

    return fn


def _int_to_int(ins: Instruction, to: Scalar) -> Convert:
    if "sat" not in ins.parts:
        return lambda x: x.astype(to.dtype)
    low, high = np.iinfo(to.dtype).min, np.iinfo(to.dtype).max

    def clamp(x: Array) -> Array:
        info = np.iinfo(x.dtype)
        return np.clip(x, max(low, info.min), min(high, info.max)).astype(to.dtype)

    return clamp


# --- addresses ---------------------------------------------------------------------


def convert_address(t: Translator, ins: Instruction) -> Op:
    space = space_of(ins.parts)
    if space is None:
        raise unsupported(ins)
    window, scalar = U64.type(WINDOWS.get(space, 0)), ins.type
    shift = np.subtract if "to" in ins.parts else np.add
    source = U64T if scalar.size == 8 else scalar
    return t.compute(ins, scalar.unsigned, lambda x: shift(x, window), source)


def is_in_space(t: Translator, ins: Instruction) -> Op:
    space = space_of(ins.parts)
    if space is None:
        raise unsupported(ins)
    start = U64.type(WINDOWS.get(space, GLOBAL_WINDOW))
    return t.compute(ins, BOOL, lambda x: (x - start) < U64.type(WINDOW_SIZE), U64T)


def ignored(t: Translator, ins: Instruction) -> Op:
    return nothing
