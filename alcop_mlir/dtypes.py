"""Element types of arrays, by MLIR's names, and their values in NumPy.

NumPy has no bfloat16, and CuPy neither. An array of bf16 is given as the 16-bit
patterns, in an array of uint16, or as one of the dtype that the package ml_dtypes
registers with NumPy. That package is not needed: `decode` and `encode` convert what is
the upper bits of a dtype that NumPy has. Integers are signed.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from alcop_mlir.element_types import ELEMENT_TYPES
from alcop_mlir.element_types import ROUNDING as ROUNDING

NUMPY_DTYPES = {
    row.name: np.dtype(row.numpy).type for row in ELEMENT_TYPES.values() if row.numpy
}
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
    if wide and array.dtype == NUMPY_DTYPES[dtype]:
        array = (array.astype(_bits(wide)) << _lower_bits(dtype)).view(wide)
    with np.errstate(invalid="ignore"):  # signalling NaNs
        return array.astype(np.float64)


def encode(values: Array, dtype: str) -> Array:
    """An array of `dtype`, rounded to nearest, ties to even; maybe of the bits."""
    wide = ELEMENT_TYPES[dtype].upper_of
    if not wide:
        return values.astype(NUMPY_DTYPES[dtype])
    unsigned, lower = _bits(wide), _lower_bits(dtype)
    bits = np.ascontiguousarray(values, wide).view(unsigned)
    rounded = bits + unsigned((1 << lower - 1) - 1) + (bits >> lower & 1)
    nan = np.array(np.nan, wide).view(unsigned)
    upper = np.where(np.isnan(values), nan, rounded) >> lower
    return upper.astype(NUMPY_DTYPES[dtype])


def _bits(wide: str) -> Any:
    return np.dtype(f"uint{8 * np.dtype(wide).itemsize}").type


def _lower_bits(dtype: str) -> int:
    """How many bits the dtype whose upper bits `dtype` has, has below."""
    row = ELEMENT_TYPES[dtype]
    return 8 * np.dtype(row.upper_of).itemsize - row.bits


def unwritten(shape: tuple[int, ...], dtype: str) -> Array:
    """An array of NaN, or of the least integer, in which unwritten elements show."""
    if is_integer(dtype):
        kind = NUMPY_DTYPES[dtype]
        return np.full(shape, np.iinfo(kind).min, kind)
    return encode(np.full(shape, np.nan), dtype)


def random(generator: np.random.Generator, shape: tuple[int, ...], dtype: str) -> Array:
    """Floats uniform in [-1, 1], integers of 8 bits."""
    if is_integer(dtype):
        return generator.integers(-128, 128, shape).astype(NUMPY_DTYPES[dtype])
    return encode(generator.random(shape, np.float32) * 2 - 1, dtype)
