"""mov, cvt, cvta and isspacep, and hints without an effect.

PTX ISA "Data Movement and Conversion Instructions".
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from alcop_mlir.runtime.emulator.arithmetic import floats as num
from alcop_mlir.runtime.emulator.arithmetic.storage import (
    BOOL,
    F64,
    S64,
    U32,
    U64,
    UNSIGNED,
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
    LOCAL_WINDOW,
    PARAM_WINDOW,
    SHARED_WINDOW,
    WINDOW_SIZE,
)
from alcop_mlir.runtime.emulator.machine.warps import Mask
from alcop_mlir.runtime.emulator.ptx.scalars import SCALARS, U64T, Scalar
from alcop_mlir.runtime.emulator.ptx.syntax import (
    Instruction,
    Name,
    Operand,
    Vector,
    space_of,
    unsupported,
)

Array = np.ndarray
_CLOCKS = ("%clock", "%clock64", "%clock_hi", "%globaltimer", "%globaltimer_lo")


# --- mov ---------------------------------------------------------------------------


def move(t: Translator, ins: Instruction) -> Op:
    scalar = ins.type
    destination, source = ins.operands
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
    return t.compute(ins, destination, scalar.dtype, lambda x: x, read)


def _copy(destination: int, source: int) -> Op:
    """A register copy keeps the array itself, which `matrix_multiply` recognises."""

    def run(cohort: Cohort, mask: Mask) -> None:
        R = cohort.R
        if mask is None:
            R[destination] = R[source]
        else:
            cohort.put(destination, R[source], mask)

    return run


def _unpack(t: Translator, ins: Instruction, to: Vector, source: Operand) -> Op:
    """mov.b64 {a, b}, c: the low part first."""
    scalar = ins.type
    part = UNSIGNED[scalar.size // len(to.items)]
    read = t.read(source, scalar, ins)
    slots = [t.result(item, part, ins) for item in to.items]

    def run(cohort: Cohort, mask: Mask) -> None:
        x = np.ascontiguousarray(read(cohort.R))[..., None].view(part)
        for i, (slot, wide) in enumerate(slots):
            if slot >= 0:
                value = x[..., i]
                cohort.put(slot, value if wide is None else value.astype(wide), mask)

    return run


def _pack(t: Translator, ins: Instruction, to: Operand, parts: Vector) -> Op:
    scalar = ins.type
    part = SCALARS[f"b{scalar.bits // len(parts.items)}"]
    reads = [t.read(item, part, ins) for item in parts.items]
    return t.compute(
        ins, to, scalar.unsigned, lambda *v: pack(v, scalar.unsigned), *reads
    )


def pack(parts: tuple[Array, ...] | list[Array], dtype: np.dtype) -> Array:
    """Several values side by side in one wider register, the first one lowest."""
    joined = np.stack(np.broadcast_arrays(*parts), axis=-1)
    return joined.view(dtype)[..., 0]


def _read_clock(t: Translator, ins: Instruction) -> Op:
    """%clock counts the warp instructions that the cohort has issued."""
    dtype = ins.type.unsigned
    slot, _ = t.result(ins.operands[0], dtype, ins)

    def run(cohort: Cohort, mask: Mask) -> None:
        cohort.put(slot, np.full((1, 1, 1), cohort.issued, dtype), mask)

    return run


# --- cvt ---------------------------------------------------------------------------


def convert(t: Translator, ins: Instruction) -> Op:
    known = [SCALARS[p] for p in ins.parts[1:] if p in SCALARS]
    if len(known) != 2:
        raise unsupported(ins)
    to, of = known
    if "pack" in ins.parts:
        raise unsupported(ins)
    if to.half is not None:
        return _convert_pair(t, ins, to.half, of)
    read = t.read(ins.operands[1], of, ins)
    fn = _conversion(ins, to, of)
    return t.compute(ins, ins.operands[0], to.dtype, fn, read)


def _convert_pair(t: Translator, ins: Instruction, half: Scalar, of: Scalar) -> Op:
    """cvt.f16x2.f32 d, a, b: a becomes the upper half, b the lower one."""
    if of.name != "f32" or len(ins.operands) != 3:
        raise unsupported(ins)
    narrow = _conversion(ins, half, of)
    reads = [t.read(o, of, ins) for o in ins.operands[1:]]
    return t.compute(
        ins,
        ins.operands[0],
        U32,
        lambda a, b: pack([narrow(b), narrow(a)], U32),
        *reads,
    )


def _conversion(ins: Instruction, to: Scalar, of: Scalar) -> Callable[[Array], Array]:
    if of.kind == "f":
        if to.kind == "f":
            return _float_to_float(ins, to, of)
        return _float_to_int(ins, to, of)
    if to.kind == "f":
        return _int_to_float(ins, to)
    return _int_to_int(ins, to)


def _to_wide(of: Scalar, flushes: bool) -> Callable[[Array], Array]:
    """Register bits of a float type -> float32 or float64, exactly."""
    return num.flush if flushes and of.name == "f32" else of.decode


def _from_wide(to: Scalar, mode: str, flushes: bool) -> Callable[[Array], Array]:
    """float32, or float64 rounded to odd -> a float type, rounded once."""
    if flushes and to.name == "f32":
        return lambda x: num.flush(to.encode(x, mode))
    return lambda x: to.encode(x, mode)


def _float_to_float(
    ins: Instruction, to: Scalar, of: Scalar
) -> Callable[[Array], Array]:
    flushes, mode = "ftz" in ins.parts, rounding(ins)
    widen = _to_wide(of, flushes)
    steps: list[Callable[[Array], Array]] = [widen]
    if mode in num.ROUND_TO_INTEGER:
        steps.append(num.ROUND_TO_INTEGER[mode])
        mode = "rn"
    if "sat" in ins.parts:
        steps.append(num.saturate)
    if "relu" in ins.parts:
        steps.append(_relu)
    finite = "satfinite" in ins.parts
    if finite and not to.largest:
        raise unsupported(ins)
    narrow = _from_wide(to, mode, flushes)

    def fn(x: Array) -> Array:
        for step in steps:
            x = step(x)
        out = narrow(x)
        return _clamp_finite(out, x, to) if finite else out

    return fn


def _relu(x: Array) -> Array:
    return np.where(x > 0, x, np.where(np.isnan(x), x, x.dtype.type(0)))


def _clamp_finite(out: Array, x: Array, to: Scalar) -> Array:
    """.satfinite: overflow and infinities become the largest finite value."""
    sign = to.unsigned.type(1 << (to.bits - 1))
    largest = to.unsigned.type(to.largest)
    over = ((out & ~sign) > largest) & ~np.isnan(x)
    return np.where(over, (out & sign) | largest, out)


def _float_to_int(ins: Instruction, to: Scalar, of: Scalar) -> Callable[[Array], Array]:
    widen = _to_wide(of, "ftz" in ins.parts)
    mode = rounding(ins, "rzi")
    # PTX ISA, cvt: NaN gives 0, but the top bit alone if either type has 64 bits.
    top = of.name == "f64" or to.size == 8
    nan = np.array(1 << (to.bits - 1) if top else 0, to.unsigned).view(to.dtype)
    return lambda x: num.float_to_integer(widen(x), to.dtype, mode, nan)


def _int_to_float(ins: Instruction, to: Scalar) -> Callable[[Array], Array]:
    mode = rounding(ins)
    narrow = _from_wide(to, mode, False)
    saturates = "sat" in ins.parts

    def fn(x: Array) -> Array:
        if to.name == "f64" and x.dtype in (S64, U64):
            return num.integer_to_double(x, mode)
        wide = num.wide_integer_to_odd(x) if x.dtype in (S64, U64) else x.astype(F64)
        return narrow(num.saturate(wide) if saturates else wide)

    return fn


def _int_to_int(ins: Instruction, to: Scalar) -> Callable[[Array], Array]:
    dtype = to.dtype
    if "sat" not in ins.parts:
        return lambda x: x.astype(dtype)
    info = np.iinfo(dtype)

    def clamp(x: Array) -> Array:
        low, high = np.iinfo(x.dtype).min, np.iinfo(x.dtype).max
        x = np.maximum(x, x.dtype.type(max(int(info.min), int(low))))
        return np.minimum(x, x.dtype.type(min(int(info.max), int(high)))).astype(dtype)

    return clamp


# --- addresses ---------------------------------------------------------------------

_WINDOWS = {
    "shared": SHARED_WINDOW,
    "local": LOCAL_WINDOW,
    "global": 0,
    "const": 0,
    "param": PARAM_WINDOW,
}


def convert_address(t: Translator, ins: Instruction) -> Op:
    space = space_of(ins.parts)
    if space is None:
        raise unsupported(ins)
    window = U64.type(_WINDOWS[space])
    scalar = ins.type
    back = "to" in ins.parts
    read = t.read(ins.operands[1], U64T if scalar.size == 8 else scalar, ins)

    def fn(x: Array) -> Array:
        return x - window if back else x + window

    return t.compute(ins, ins.operands[0], scalar.unsigned, fn, read)


def is_in_space(t: Translator, ins: Instruction) -> Op:
    space = space_of(ins.parts)
    if space is None:
        raise unsupported(ins)
    start = _WINDOWS[space] or GLOBAL_WINDOW
    read = t.read(ins.operands[1], U64T, ins)

    def fn(x: Array) -> Array:
        return (x - U64.type(start)) < U64.type(WINDOW_SIZE)

    return t.compute(ins, ins.operands[0], BOOL, fn, read)


def ignored(t: Translator, ins: Instruction) -> Op:
    return nothing
