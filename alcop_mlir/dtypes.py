"""Element types of arrays, by MLIR's names, and their values in NumPy.

NumPy has no bfloat16, and CuPy neither. An array of bf16 is given as the 16-bit
patterns, in an array of uint16, or as one of the dtype that the package ml_dtypes
registers with NumPy. That package is not needed: `decode` and `encode` do the
converting. Integers are signed.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from alcop_mlir.element_types import ELEMENT_TYPES
from alcop_mlir.element_types import ROUNDING as ROUNDING

NUMPY_DTYPES = {
    row.name: np.dtype(row.numpy).type for row in ELEMENT_TYPES.values() if row.numpy
}
LARGEST = {name: row.largest for name, row in ELEMENT_TYPES.items()}
_ML_DTYPES = {"bf16": "bfloat16"}  # names of dtypes of ml_dtypes
_BF16_NAN = 0x7FC0

Array = np.ndarray[Any, Any]


def fits(given: np.dtype[Any], dtype: str) -> bool:
    """Whether arrays of NumPy's dtype `given` can hold elements of `dtype`."""
    return given == NUMPY_DTYPES[dtype] or (
        given.name == _ML_DTYPES.get(dtype) and given.itemsize == 2
    )


def expected(dtype: str) -> str:
    """The text by which messages name the dtype that an array should have."""
    plain = np.dtype(NUMPY_DTYPES[dtype]).name
    if dtype in _ML_DTYPES:
        return f"{plain} (the bits) or {_ML_DTYPES[dtype]} (of ml_dtypes)"
    return plain


def is_integer(dtype: str) -> bool:
    """Whether values are integers, so that contractions are exact."""
    return dtype.startswith("i")


def decode(array: Array, dtype: str) -> Array:
    """The values of an array of `dtype`, as float64."""
    if dtype == "bf16" and array.dtype == np.uint16:
        array = (array.astype(np.uint32) << 16).view(np.float32)
    with np.errstate(invalid="ignore"):  # signalling NaNs
        return array.astype(np.float64)


def encode(values: Array, dtype: str) -> Array:
    """An array of `dtype`, rounded to nearest, ties to even; of bf16 the bits."""
    if dtype != "bf16":
        return values.astype(NUMPY_DTYPES[dtype])
    bits = np.ascontiguousarray(values, np.float32).view(np.uint32)
    rounded = bits + 0x7FFF + (bits >> 16 & 1)
    is_nan = np.isnan(values)
    return np.where(is_nan, _BF16_NAN, rounded >> 16).astype(np.uint16)


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
