"""setp, set, selp and slct.

PTX ISA "Comparison and Selection Instructions", "Half Precision Comparison
Instructions".
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from alcop_mlir.runtime.emulator.arithmetic import floats as num
from alcop_mlir.runtime.emulator.arithmetic.storage import BOOL, F32, U16
from alcop_mlir.runtime.emulator.instructions.translator import Op, Translator
from alcop_mlir.runtime.emulator.machine.cohort import Cohort
from alcop_mlir.runtime.emulator.machine.registers import Read
from alcop_mlir.runtime.emulator.machine.warps import Mask
from alcop_mlir.runtime.emulator.ptx.scalars import PRED, SCALARS, Scalar
from alcop_mlir.runtime.emulator.ptx.syntax import Instruction, Pair, unsupported

Array = np.ndarray

_COMPARE: dict[str, Callable[[Array, Array], Array]] = {
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
_COMBINE = {"and": np.logical_and, "or": np.logical_or, "xor": np.logical_xor}


def _compare_floats(name: str) -> Callable[[Array, Array], Array]:
    """Float comparisons: plain ones are false on NaN, those with `u` are true."""
    if name == "num":
        return lambda a, b: ~(np.isnan(a) | np.isnan(b))
    if name == "nan":
        return lambda a, b: np.isnan(a) | np.isnan(b)
    if name.endswith("u") and name[:-1] in _COMPARE:
        test = _COMPARE[name[:-1]]
        return lambda a, b: test(a, b) | np.isnan(a) | np.isnan(b)
    test = _COMPARE[name]
    if name == "ne":  # ordered
        return lambda a, b: (a != b) & ~(np.isnan(a) | np.isnan(b))
    return test


def _comparison(ins: Instruction, scalar: Scalar) -> Callable[[Array, Array], Array]:
    name = ins.parts[1]
    floats = scalar.kind == "f"
    if name not in _COMPARE and not (floats and name in _FLOAT_ONLY):
        raise unsupported(ins, f"comparison .{name}")
    if not floats:
        return _COMPARE[name]
    test = _compare_floats(name)
    flushes = "ftz" in ins.parts
    if scalar.is_decoded:
        return lambda a, b: test(scalar.decode(a), scalar.decode(b))
    if flushes:
        return lambda a, b: test(num.flush(a), num.flush(b))
    return test


_FLOAT_ONLY = ("equ", "neu", "ltu", "leu", "gtu", "geu", "num", "nan")


def set_predicate(t: Translator, ins: Instruction) -> Op:
    scalar = ins.type
    if scalar.half is not None:
        return _set_packed(t, ins, scalar)
    test = _comparison(ins, scalar)
    a, b = (t.read(o, scalar, ins) for o in ins.operands[1:3])
    combine, other = None, None
    if len(ins.operands) == 4:
        combine = _COMBINE.get(ins.parts[2])
        if combine is None:
            raise unsupported(ins)
        other = t.read(ins.operands[3], PRED, ins)
    return _write_predicates(t, ins, test, a, b, combine, other)


def _write_predicates(
    t: Translator,
    ins: Instruction,
    test: Callable[[Array, Array], Array],
    a: Read,
    b: Read,
    combine: Callable[[Array, Array], Array] | None,
    other: Read | None,
) -> Op:
    first = ins.operands[0]
    if not isinstance(first, Pair):
        if combine is None or other is None:
            return t.compute(ins, first, BOOL, test, a, b)
        join = combine
        return t.compute(
            ins, first, BOOL, lambda x, y, c: join(test(x, y), c), a, b, other
        )
    yes, _ = t.result(first.first, BOOL, ins)
    no, _ = t.result(first.second, BOOL, ins)

    def run(cohort: Cohort, mask: Mask) -> None:
        holds = test(a(cohort.R), b(cohort.R))
        fails = ~holds
        if combine is not None and other is not None:
            c = other(cohort.R)
            holds, fails = combine(holds, c), combine(fails, c)
        for slot, value in ((yes, holds), (no, fails)):
            if slot >= 0:
                cohort.put(slot, value, mask)

    return run


def _set_packed(t: Translator, ins: Instruction, scalar: Scalar) -> Op:
    """setp on f16x2 or bf16x2: p for the low halves, q for the high ones."""
    test = _comparison(ins, scalar)
    first = ins.operands[0]
    if not isinstance(first, Pair) or len(ins.operands) != 3:
        raise unsupported(ins)
    slots = [t.result(o, BOOL, ins)[0] for o in (first.first, first.second)]
    a, b = (t.read(o, scalar, ins) for o in ins.operands[1:3])

    def run(cohort: Cohort, mask: Mask) -> None:
        x, y = (np.ascontiguousarray(r(cohort.R))[..., None].view(U16) for r in (a, b))
        holds = test(x, y)
        for i, slot in enumerate(slots):
            if slot >= 0:
                cohort.put(slot, holds[..., i], mask)

    return run


def set_value(t: Translator, ins: Instruction) -> Op:
    """set: all ones (1.0 for a float result) where the comparison holds."""
    known = [SCALARS[p] for p in ins.parts if p in SCALARS]
    if len(known) != 2 or known[1].half is not None:
        raise unsupported(ins)
    to, scalar = known
    test = _comparison(ins, scalar)
    one = np.array(-1, to.signed) if to.is_integer else None
    if one is None:
        if to.name != "f32":
            raise unsupported(ins)
        one = np.array(1, F32)
    a, b = (t.read(o, scalar, ins) for o in ins.operands[1:3])
    value, zero = one.view(to.dtype), np.zeros((), to.dtype)
    if len(ins.operands) == 3:
        return t.compute(
            ins,
            ins.operands[0],
            to.dtype,
            lambda x, y: np.where(test(x, y), value, zero),
            a,
            b,
        )
    combine = _COMBINE[ins.parts[2]]
    other = t.read(ins.operands[3], PRED, ins)
    return t.compute(
        ins,
        ins.operands[0],
        to.dtype,
        lambda x, y, c: np.where(combine(test(x, y), c), value, zero),
        a,
        b,
        other,
    )


def select(t: Translator, ins: Instruction) -> Op:
    scalar = ins.type
    a, b = (t.read(o, scalar, ins) for o in ins.operands[1:3])
    p = t.read(ins.operands[3], PRED, ins)
    return t.compute(
        ins, ins.operands[0], scalar.dtype, lambda x, y, c: np.where(c, x, y), a, b, p
    )


def select_by_sign(t: Translator, ins: Instruction) -> Op:
    """slct d, a, b, c: a if c >= 0, else b."""
    scalar = SCALARS[next(p for p in ins.parts if p in SCALARS)]
    by = ins.type
    a, b = (t.read(o, scalar, ins) for o in ins.operands[1:3])
    c = t.read(ins.operands[3], by, ins)
    flushes = "ftz" in ins.parts

    def fn(x: Array, y: Array, z: Array) -> Array:
        return np.where((num.flush(z) if flushes else z) >= 0, x, y)

    return t.compute(ins, ins.operands[0], scalar.dtype, fn, a, b, c)
