"""setp, set, selp and slct.

PTX ISA "Comparison and Selection Instructions", "Half Precision Comparison
Instructions".
"""

from __future__ import annotations

import numpy as np

from alcop_mlir.runtime.emulator.arithmetic import floats as num
from alcop_mlir.runtime.emulator.arithmetic.storage import (
    BOOL,
    F32,
    U16,
    U32,
    Array,
    joined,
    parts,
)
from alcop_mlir.runtime.emulator.instructions.translator import (
    Function,
    Op,
    Translator,
)
from alcop_mlir.runtime.emulator.machine.cohort import Cohort
from alcop_mlir.runtime.emulator.machine.warps import Mask
from alcop_mlir.runtime.emulator.ptx.scalars import PRED, SCALARS, Scalar
from alcop_mlir.runtime.emulator.ptx.syntax import Instruction, Pair, unsupported

COMPARE: dict[str, Function] = {
    "eq": np.equal,
    "ne": np.not_equal,
    "lt": np.less,
    "le": np.less_equal,
    "gt": np.greater,
    "ge": np.greater_equal,
    "lo": np.less,
    "ls": np.less_equal,
    "hi": np.greater,
    "hs": np.greater_equal,
}
COMBINE = {"and": np.logical_and, "or": np.logical_or, "xor": np.logical_xor}


def _is_unordered(a: Array, b: Array) -> Array:
    return np.isnan(a) | np.isnan(b)


def _or_unordered(test: Function) -> Function:
    return lambda a, b: test(a, b) | _is_unordered(a, b)


# Plain ones are false on NaN, those with `u` are true.
_COMPARE_FLOATS = {
    **COMPARE,
    **{f"{name}u": _or_unordered(test) for name, test in COMPARE.items()},
    "ne": lambda a, b: (a != b) & ~_is_unordered(a, b),
    "num": lambda a, b: ~_is_unordered(a, b),
    "nan": _is_unordered,
}


def _comparison(ins: Instruction, scalar: Scalar) -> Function:
    """What the opcode compares, with the boolean operator if it names one."""
    floats = scalar.kind == "f"
    test = (_COMPARE_FLOATS if floats else COMPARE).get(ins.parts[1])
    if test is None:
        raise unsupported(ins, f"comparison .{ins.parts[1]}")
    if scalar.is_decoded:
        flush = num.flush_half if "ftz" in ins.parts else lambda x: x
        return lambda a, b: test(flush(scalar.decode(a)), flush(scalar.decode(b)))
    if floats and "ftz" in ins.parts:
        return lambda a, b: test(num.flush(a), num.flush(b))
    return test


def _combination(ins: Instruction) -> tuple[Function, tuple[Scalar, ...]]:
    """How the result and the fourth operand combine, and the type of that if any."""
    named = [COMBINE[part] for part in ins.parts[2:] if part in COMBINE]
    if len(named) != len(ins.operands) - 3:
        raise unsupported(ins, f"expected {3 + len(named)} operands")
    return (named[0], (PRED,)) if named else ((lambda holds: holds), ())


def set_predicate(t: Translator, ins: Instruction) -> Op:
    """setp p[|q], a, b[, c]: q takes the opposite of the comparison."""
    scalar, first = ins.type, ins.operands[0]
    test = _comparison(ins, scalar)
    if scalar.half is not None:
        return _set_packed(t, ins, scalar, test)
    combine, more = _combination(ins)
    if not isinstance(first, Pair):
        fn = (lambda a, b, c: combine(test(a, b), c)) if more else test
        return t.compute(ins, BOOL, fn, scalar, scalar, *more)
    write, write_opposite = (t.writer(o, BOOL, ins) for o in first)
    a, b, *others = t.sources(ins, scalar, scalar, *more)

    def run(cohort: Cohort, mask: Mask) -> None:
        R = cohort.R
        holds, c = test(a(R), b(R)), [other(R) for other in others]
        write(cohort, combine(holds, *c), mask)
        write_opposite(cohort, combine(~holds, *c), mask)

    return run


def _set_packed(t: Translator, ins: Instruction, scalar: Scalar, test: Function) -> Op:
    """setp on f16x2 or bf16x2: p for the low halves, q for the high ones."""
    first = ins.operands[0]
    if not isinstance(first, Pair):
        raise unsupported(ins)
    combine, more = _combination(ins)
    writes = [t.writer(o, BOOL, ins) for o in first]
    a, b, *others = t.sources(ins, scalar, scalar, *more)

    def run(cohort: Cohort, mask: Mask) -> None:
        R = cohort.R
        holds, c = test(parts(a(R), U16), parts(b(R), U16)), [o(R) for o in others]
        for i, write in enumerate(writes):
            write(cohort, combine(holds[..., i], *c), mask)

    return run


def set_value(t: Translator, ins: Instruction) -> Op:
    """set: all ones (1.0 for a float result) where the comparison holds.

    On packed operands each half of the result is that of its halves.
    """
    to, scalar = [SCALARS[p] for p in ins.parts if p in SCALARS]
    test = _comparison(ins, scalar)
    combine, more = _combination(ins)
    if scalar.half is None:
        value, zero = _true(to), np.zeros((), to.dtype)

        def fn(a: Array, b: Array, *c: Array) -> Array:
            return np.where(combine(test(a, b), *c), value, zero)

        return t.compute(ins, to.dtype, fn, scalar, scalar, *more)
    half = _true(to.half or SCALARS["u16"])

    def packed(a: Array, b: Array, *c: Array) -> Array:
        holds = test(parts(a, U16), parts(b, U16))
        held = combine(holds, *(one[..., None] for one in c))
        return joined(np.where(held, half, U16.type(0)), U32)

    return t.compute(ins, U32, packed, scalar, scalar, *more)


def _true(to: Scalar) -> Array:
    """What `set` gives where its comparison holds."""
    if to.is_integer:
        return np.array(-1, to.signed).view(to.dtype)
    return to.encode(np.array(1, F32), "rn")


def select(t: Translator, ins: Instruction) -> Op:
    scalar = ins.type
    return t.compute(
        ins, scalar.dtype, lambda a, b, p: np.where(p, a, b), scalar, scalar, PRED
    )


def select_by_sign(t: Translator, ins: Instruction) -> Op:
    """slct d, a, b, c: a if c >= 0, else b."""
    scalar = SCALARS[next(p for p in ins.parts if p in SCALARS)]
    flushes = "ftz" in ins.parts

    def fn(a: Array, b: Array, c: Array) -> Array:
        return np.where((num.flush(c) if flushes else c) >= 0, a, b)

    return t.compute(ins, scalar.dtype, fn, scalar, scalar, ins.type)
