"""Element types of arrays, by MLIR's names, and their values in NumPy.

NumPy has no bfloat16 and no floats of eight bits, and CuPy neither. An array of bf16 is
given as the 16-bit patterns, in an array of uint16, one of f8E4M3FN or f8E5M2 as bytes
in one of uint8, or as one of the dtype that the package ml_dtypes registers with NumPy.
That package is not needed: `decode` and `encode` convert what is the upper bits of a
dtype that NumPy has, and what has 256 values. Integers are signed.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from functools import cache
from typing import Any

import numpy as np

from alcop_mlir.element_types import ELEMENT_TYPES
from alcop_mlir.element_types import ROUNDING as ROUNDING

NUMPY_DTYPES = {
    row.name: np.dtype(row.numpy).type for row in ELEMENT_TYPES.values() if row.numpy
}
_BYTE = 8  # bits
_NO_BOOLEAN = 2  # the byte of booleans that nothing has written
LARGEST = {name: row.largest for name, row in ELEMENT_TYPES.items()}

Array = np.ndarray[Any, Any]


def fits(given: np.dtype[Any], dtype: str) -> bool:
    """Whether arrays of NumPy's dtype `given` can hold elements of `dtype`."""
    row = ELEMENT_TYPES[dtype]
    return given == NUMPY_DTYPES[dtype] or (
        given.name == row.ml_dtype and given.itemsize == row.bytes
    )


def expected(dtype: str) -> str:
    """The text by which messages name the dtype that an array should have."""
    row = ELEMENT_TYPES[dtype]
    return row.numpy + (
        f" (the bits) or {row.ml_dtype} (of ml_dtypes)" if row.ml_dtype else ""
    )


def of_result(dtype: str, given: Iterable[np.dtype[Any]]) -> np.dtype[Any]:
    """NumPy's dtype for a result: that of ml_dtypes if an array `given` has it."""
    alike = (one for one in given if one.name == ELEMENT_TYPES[dtype].ml_dtype)
    return next(alike, np.dtype(NUMPY_DTYPES[dtype]))


def is_integer(dtype: str) -> bool:
    """Whether values are integers, so that contractions are exact."""
    return not ELEMENT_TYPES[dtype].is_float


def decode(array: Array, dtype: str) -> Array:
    """The values of an array of `dtype`, as float64."""
    wide = ELEMENT_TYPES[dtype].upper_of
    if _is_tabled(dtype) and array.dtype == NUMPY_DTYPES[dtype]:
        return _table(dtype).take(array)
    if wide and array.dtype == NUMPY_DTYPES[dtype]:
        array = (array.astype(_bits(wide)) << _lower_bits(dtype)).view(wide)
    if array.dtype == np.bool_:
        array = array.view(np.uint8)  # what is neither true nor false shows
    with np.errstate(invalid="ignore"):  # signalling NaNs
        return array.astype(np.float64)


def encode(values: Array, dtype: str) -> Array:
    """An array of `dtype`, rounded to nearest, ties to even; maybe of the bits."""
    wide = ELEMENT_TYPES[dtype].upper_of
    if _is_tabled(dtype):
        return _nearest(values, dtype)
    if not wide:
        return values.astype(NUMPY_DTYPES[dtype])
    unsigned, lower = _bits(wide), _lower_bits(dtype)
    bits = np.ascontiguousarray(values, wide).view(unsigned)
    rounded = bits + unsigned((1 << lower - 1) - 1) + (bits >> lower & 1)
    nan = np.array(np.nan, wide).view(unsigned)
    upper = np.where(np.isnan(values), nan, rounded) >> lower
    return upper.astype(NUMPY_DTYPES[dtype])


def _is_tabled(dtype: str) -> bool:
    """Whether it is a float of a byte."""
    row = ELEMENT_TYPES[dtype]
    return row.is_float and row.bits == _BYTE


@cache
def _table(dtype: str) -> Array:
    """The value of each byte: sign, exponent, fraction, as IEEE 754 has them.

    How many bits are the fraction's, and how small the least number is, the row says.
    What follows the largest number is infinity if its fraction is 0, else NaN.
    """
    row = ELEMENT_TYPES[dtype]
    fraction = -round(math.log2(row.rounding)) - 1
    bits = np.arange(1 << _BYTE - 1)
    exponent, low = bits >> fraction, bits & ((1 << fraction) - 1)
    steps = np.where(exponent > 0, low + (1 << fraction), low)
    values = np.ldexp(2 * row.tiny * steps, np.maximum(exponent, 1) - 1)
    beyond = values > row.largest
    values[beyond] = np.where(low[beyond] == 0, np.inf, np.nan)
    return np.concatenate([values, -values])


def _nearest(values: Array, dtype: str) -> Array:
    """The bytes of the numbers nearest to `values`, ties to the even one; what rounds
    to beyond the largest is infinity, or NaN where the dtype has none.
    """
    given, table = np.asarray(values, np.float64), _table(dtype)
    finite = int(np.argmax(~np.isfinite(table)))
    # As if the next number had the bits that follow the largest's.
    numbers = np.append(table[:finite], 2 * table[finite - 1] - table[finite - 2])
    size = np.minimum(np.abs(given), numbers[-1])
    above = np.searchsorted(numbers[1:-1], size, "left") + 1
    below = above - 1
    up, down = numbers[above] - size, size - numbers[below]
    bits = np.where((up < down) | ((up == down) & (above % 2 == 0)), above, below)
    (special,) = np.nonzero(np.isnan(table[: len(table) // 2]))
    bits = np.where(np.isnan(given), special[-1], bits)
    sign = np.where(np.signbit(given) & ~np.isnan(given), 1 << _BYTE - 1, 0)
    return (bits | sign).astype(NUMPY_DTYPES[dtype])


def _bits(wide: str) -> Any:
    return np.dtype(f"uint{8 * np.dtype(wide).itemsize}").type


def _lower_bits(dtype: str) -> int:
    """How many bits the dtype whose upper bits `dtype` has, has below."""
    row = ELEMENT_TYPES[dtype]
    return 8 * np.dtype(row.upper_of).itemsize - row.bits


def unwritten(shape: tuple[int, ...], dtype: str) -> Array:
    """An array of NaN, of the least integer, or of a byte that is no boolean."""
    kind = NUMPY_DTYPES[dtype]
    if kind is np.bool_:
        return np.full(shape, _NO_BOOLEAN, np.uint8).view(kind)
    if is_integer(dtype):
        return np.full(shape, np.iinfo(kind).min, kind)
    return encode(np.full(shape, np.nan), dtype)


def random(
    generator: np.random.Generator,
    shape: tuple[int, ...],
    dtype: str,
    largest: float = 1.0,
) -> Array:
    """Floats uniform in [-largest, largest], integers of 8 bits, booleans."""
    if NUMPY_DTYPES[dtype] is np.bool_:
        return generator.integers(0, 2, shape).astype(np.bool_)
    if is_integer(dtype):
        return generator.integers(-128, 128, shape).astype(NUMPY_DTYPES[dtype])
    values = generator.random(shape, np.float32) * 2 - 1
    return encode(values * np.float32(largest), dtype)


def positive(
    generator: np.random.Generator,
    shape: tuple[int, ...],
    dtype: str,
    largest: float = 1.0,
) -> Array:
    """Floats uniform in [largest / 2, largest]."""
    values = (generator.random(shape, np.float32) + 1) / 2
    return encode(values * np.float32(largest), dtype)


def extremes(dtype: str) -> tuple[list[float], list[float]]:
    """Values that programs get wrong: small ones, and large, infinite or NaN.

    The smallest normal and the denormals at both ends, zeros of both signs, and what is
    just beyond the range of floats with fewer exponents. Integers are all among the
    first: the least, the largest, 0 and -1.
    """
    row = ELEMENT_TYPES[dtype]
    if row.numpy == "bool":
        return [], []
    if not row.is_float:
        about = np.iinfo(NUMPY_DTYPES[dtype])
        return [about.min, about.max, 0, -1], []
    _, above = math.frexp(row.largest)
    normal, unit = math.ldexp(1.0, 2 - above), 2 * row.rounding
    denormals = [normal * unit, normal * (1 - unit)]
    small = [-0.0, *denormals, *(-one for one in denormals), normal, -normal, 0.0]
    large = [math.inf, math.nan, row.largest, -math.inf, -row.largest]
    narrower = {
        math.frexp(one.largest)[1]
        for one in ELEMENT_TYPES.values()
        if one.is_float
        and one.bits > _BYTE  # to which nothing is rounded unasked
        and math.frexp(one.largest)[1] < above
    }
    for beyond in sorted(narrower):
        small.append(math.ldexp(1.0, -2 * beyond))
        large += [math.ldexp(1.5, beyond), -math.ldexp(1.5, beyond)]
    return small, large


_SMALL_SHARE = 1 / 16  # of an array at most


def with_extremes(
    generator: np.random.Generator, array: Array, dtype: str, large: int
) -> Array:
    """`array` with some of the `extremes` at random places, `large` large ones."""
    small_ones, large_ones = extremes(dtype)
    large = min(large, len(large_ones), array.size)
    small = min(len(small_ones), int(array.size * _SMALL_SHARE))
    chosen = [
        *generator.choice(large_ones or [0.0], large, replace=False),
        *generator.permutation(small_ones)[:small],
    ]
    places = generator.choice(array.size or 1, len(chosen), replace=False)
    # Integers of 64 bits are no float64.
    values = np.array(chosen) if large_ones else np.array(chosen, np.int64)
    result = array.copy()
    result.reshape(-1)[places] = (
        encode(values, dtype) if large_ones else values.astype(array.dtype)
    )
    return result
