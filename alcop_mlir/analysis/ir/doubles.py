"""Whether a function computes in f64 what it could as well compute in f32.

Frontends compute statistics in f64, as the variance of a layer norm, from elements of
f32 and less, and round the result to f32. Where f64 is neither given nor returned nor
made of integers, it is only a precision on the way: alcop-narrow-doubles makes it f32,
and the reference bounds the error as that of f32. Both ask here, of the function as
it was given.
"""

from __future__ import annotations

import math
import struct
from typing import Any

from alcop_mlir.analysis.ir.loops import splat
from alcop_mlir.analysis.ir.walk import walk
from alcop_mlir.bindings import ir

_LEAST, _LARGEST = 2.0**-126, 3.4028234663852886e38  # normal numbers of f32
_ARITHMETIC = frozenset(
    f"arith.{name}"
    for name in (
        "addf cmpf constant divf extf maximumf maxnumf minimumf minnumf mulf negf remf "
        "select subf truncf"
    ).split()
)
_TENSORS = frozenset(
    f"tensor.{name}"
    for name in (
        "cast collapse_shape concat dim empty expand_shape extract extract_slice "
        "from_elements insert_slice pad yield"
    ).split()
)


def is_double(kind: ir.Type) -> bool:
    """Whether it is f64, or a tensor or memref of f64."""
    return isinstance(getattr(kind, "element_type", kind), ir.F64Type)


def narrows_doubles(func: ir.Operation) -> bool:
    """Whether all f64 of a `func.func` may be f32, and there is some."""
    (block,) = func.regions[0].blocks if len(func.regions[0].blocks) == 1 else (None,)
    if block is None or any(is_double(one.type) for one in block.arguments):
        return False
    users = [op for op in walk(func) if any(map(is_double, _types(op)))]
    return bool(users) and all(map(_may_be_narrow, users))


def _types(op: ir.Operation) -> list[Any]:
    inside = [
        argument.type
        for region in op.regions
        for block in region.blocks
        for argument in block.arguments
    ]
    return [*(value.type for value in (*op.operands, *op.results)), *inside]


def _may_be_narrow(op: ir.Operation) -> bool:
    """Whether an op that has f64 does the same to f32, but for rounding."""
    if any(isinstance(kind, ir.MemRefType) for kind in _types(op)):
        return False
    if op.name == "arith.constant":
        number = splat(op.results[0])
        return number is not None and _is_in_range(number)
    if op.name == "arith.cmpf":  # which rounding of a constant could change
        numbers = [splat(one) for one in op.operands]
        return all(one is None or is_exact(one) for one in numbers)
    dialect = op.name.split(".")[0]
    return dialect in ("linalg", "math") or op.name in _ARITHMETIC | _TENSORS


def _is_in_range(number: float) -> bool:
    size = abs(number)
    return size == 0 or not math.isfinite(size) or _LEAST <= size <= _LARGEST


def is_exact(number: float) -> bool:
    """Whether f32 has the number."""
    if not math.isfinite(number):
        return True
    return (
        abs(number) <= _LARGEST
        and struct.unpack("f", struct.pack("f", number))[0] == number
    )
