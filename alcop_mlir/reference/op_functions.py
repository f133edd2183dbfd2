"""What each op of an expression computes, as NumPy does of float64 or int64."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

Array = np.ndarray[Any, Any]
_Function = Callable[..., Any]


def _unordered(function: _Function) -> _Function:
    return lambda a, b: function(a, b) | np.isnan(a) | np.isnan(b)


_ORDER: dict[str, _Function] = {
    "gt": np.greater,
    "ge": np.greater_equal,
    "lt": np.less,
    "le": np.less_equal,
}
_COMPARE: dict[str, _Function] = {
    "oeq": np.equal,
    "ueq": _unordered(np.equal),
    **{f"o{name}": one for name, one in _ORDER.items()},
    **{f"u{name}": _unordered(one) for name, one in _ORDER.items()},
    "one": lambda a, b: np.less(a, b) | np.greater(a, b),
    "une": np.not_equal,
    "ord": lambda a, b: ~(np.isnan(a) | np.isnan(b)),
    "uno": lambda a, b: np.isnan(a) | np.isnan(b),
}


def _maximum(a: Array, b: Array) -> Array:
    """NaN if one is; 0 is above -0, which NumPy does not say."""
    return np.where((a == 0) & (b == 0), a + b, np.maximum(a, b))


def _minimum(a: Array, b: Array) -> Array:
    return -_maximum(-a, -b)


EXACT: dict[str, _Function] = {
    "arith.negf": np.negative,
    "arith.extf": np.positive,
    "arith.maximumf": _maximum,
    "arith.minimumf": _minimum,
    "arith.maxnumf": np.fmax,
    "arith.minnumf": np.fmin,
    "arith.select": lambda condition, a, b: np.where(condition != 0, a, b),
    "math.absf": np.abs,
    "math.ceil": np.ceil,
    "math.floor": np.floor,
    "math.round": lambda x: np.copysign(np.floor(np.abs(x) + 0.5), x),
    "math.roundeven": np.rint,
    "math.trunc": np.trunc,
    "math.copysign": np.copysign,
    **{f"arith.cmpf.{name}": one for name, one in _COMPARE.items()},
}
ROUNDED: dict[str, _Function] = {
    "arith.addf": np.add,
    "arith.subf": np.subtract,
    "arith.mulf": np.multiply,
    "arith.remf": np.fmod,
    "arith.truncf": np.positive,
    "arith.sitofp": np.positive,
    "arith.uitofp": np.positive,
    "math.fma": lambda a, b, c: a * b + c,
}
EXACT_ZEROS = ("arith.mulf", "arith.divf", "arith.sitofp", "arith.uitofp")
WHOLE_POWER = "math.fpowi"
APPROXIMATE: dict[str, _Function] = {
    "arith.divf": np.divide,
    "math.sqrt": np.sqrt,
    "math.rsqrt": lambda x: 1 / np.sqrt(x),
    "math.cbrt": np.cbrt,
    "math.exp": np.exp,
    "math.exp2": np.exp2,
    "math.powf": np.power,
    WHOLE_POWER: np.power,
    "math.expm1": np.expm1,
    "math.log": np.log,
    "math.log10": np.log10,
    "math.log1p": np.log1p,
    "math.log2": np.log2,
    "math.sin": np.sin,
    "math.cos": np.cos,
    "math.tan": np.tan,
    "math.asin": np.arcsin,
    "math.acos": np.arccos,
    "math.atan": np.arctan,
    "math.atan2": np.arctan2,
    "math.sinh": np.sinh,
    "math.cosh": np.cosh,
    "math.tanh": np.tanh,
    "math.asinh": np.arcsinh,
    "math.acosh": np.arccosh,
    "math.atanh": np.arctanh,
    "math.erf": np.vectorize(math.erf, otypes=[np.float64]),
}


def _unsigned(function: _Function) -> _Function:
    """Of integers that are negative where their highest bit is set."""
    return lambda a, b: function(a.view(np.uint64), b.view(np.uint64))


def _divide(a: Array, b: Array) -> Array:
    """Towards zero; 0 where the divisor is."""
    quotient = np.abs(a) // np.where(b == 0, 1, np.abs(b))
    return np.where(b == 0, 0, np.sign(a) * np.sign(b) * quotient)


INTEGER_POWER = "math.ipowi"
DIVISIONS = tuple(
    f"arith.{name}" for name in "divsi remsi floordivsi ceildivsi".split()
)
SHIFTS = tuple(f"arith.{name}" for name in "shli shrsi shrui".split())
INTEGER: dict[str, _Function] = {
    "arith.addi": np.add,
    "arith.subi": np.subtract,
    "arith.muli": np.multiply,
    "arith.divsi": _divide,
    "arith.remsi": lambda a, b: a - _divide(a, b) * b,
    INTEGER_POWER: lambda a, b: np.power(a, np.maximum(b, 0)),
    "arith.floordivsi": lambda a, b: np.where(b == 0, 0, a // np.where(b == 0, 1, b)),
    "arith.ceildivsi": lambda a, b: -(-a // np.where(b == 0, 1, b)),
    "arith.maxsi": np.maximum,
    "arith.minsi": np.minimum,
    "arith.maxui": _unsigned(np.maximum),
    "arith.minui": _unsigned(np.minimum),
    "arith.andi": np.bitwise_and,
    "arith.ori": np.bitwise_or,
    "arith.xori": np.bitwise_xor,
    "arith.shli": lambda a, b: np.left_shift(a, _places(b)),
    "arith.shrsi": lambda a, b: np.right_shift(a, _places(b)),
    "arith.shrui": lambda a, b: (a.view(np.uint64) >> _places(b).view(np.uint64)).view(
        np.int64
    ),  # of bits that are not extended
    "arith.extsi": np.positive,
    "arith.extui": np.positive,  # of i1 only
    "arith.trunci": np.positive,
    "arith.fptosi": np.positive,
    "arith.fptoui": np.positive,
    "math.absi": np.abs,
    "arith.cmpi.eq": np.equal,
    "arith.cmpi.ne": np.not_equal,
    **{f"arith.cmpi.s{name}": one for name, one in _ORDER.items()},
    **{f"arith.cmpi.u{name}": _unsigned(one) for name, one in _ORDER.items()},
}


def _places(b: Array) -> Array:
    """By how many bits to shift: what is too many is unknown, see `_undefined`."""
    return np.clip(b, 0, 63)


FUNCTIONS = {**EXACT, **ROUNDED, **APPROXIMATE}
