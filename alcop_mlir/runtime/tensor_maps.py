"""Tensor maps at launch: of a manifest's `TensorMap`, what a kernel is passed.

On a GPU the driver encodes the 128 bytes (cuTensorMapEncodeTiled, CUDA driver API,
"Tensor Map Object Management"), which CuPy has no function for; on the emulator it is
a map of the array.
"""

from __future__ import annotations

import ctypes
from collections.abc import Mapping
from functools import cache
from typing import Any

import numpy as np

from alcop_mlir.dtypes import NUMPY_DTYPES
from alcop_mlir.element_types import element_bytes
from alcop_mlir.errors import LaunchError
from alcop_mlir.manifest.kernels import TensorMap
from alcop_mlir.target import (
    TENSOR_MAP_ALIGNMENT,
    TENSOR_MAP_BYTES,
    TENSOR_MAP_DISTANCE,
    TENSOR_MAP_EXTENT,
)

# Enumerations of cuda.h, CUDA 13.0.
_DTYPES = {
    "i8": 0,  # as bytes
    "f8E4M3FN": 0,
    "f8E5M2": 0,
    "i16": 1,  # as 16 bits
    "i32": 3,
    "f16": 6,
    "f32": 7,
    "bf16": 9,
    "tf32": 11,
}
_INTERLEAVES = {0: 0, 16: 1, 32: 2}
_SWIZZLES = {0: 0, 32: 1, 64: 2, 128: 3}
_PROMOTIONS = {0: 0, 64: 1, 128: 2, 256: 3}
_FILLS = {"zeros": 0, "nan": 1}
_ALIGNMENT = 16  # bytes, of the address and of strides
_WORDS = np.dtype([("words", np.uint64, TENSOR_MAP_BYTES // 8)])


def on_gpu(one: TensorMap, address: int, sizes: Mapping[str, int]) -> Any:
    """The map of the array at `address`, as CuPy passes it: a structure by value.

    sizes: of the call, by name. Raises LaunchError where the driver takes no such map.
    """
    shape = tuple(extent.value(sizes) for extent in one.shape)
    strides = _strides(one, shape, sizes)
    if 0 in shape:
        return np.zeros(1, _WORDS)[0]  # nothing is read of an empty array
    _check(one, address, shape, strides)
    return np.frombuffer(_encoded(one, address, shape, strides), _WORDS)[0]


def on_emulator(one: TensorMap, array: np.ndarray, sizes: Mapping[str, int]) -> Any:
    """The map of `array`, as the emulator takes it. Raises LaunchError as above."""
    from alcop_mlir.runtime import emulator

    shape = tuple(extent.value(sizes) for extent in one.shape)
    strides = _strides(one, shape, sizes)
    if 0 in shape:
        return bytes(TENSOR_MAP_BYTES)
    _check(one, array.ctypes.data, shape, strides)
    # An intermediate array is bytes here.
    numbers = array.view(NUMPY_DTYPES["f32" if one.dtype == "tf32" else one.dtype])
    apart = (*strides[::-1], numbers.itemsize)
    seen = np.lib.stride_tricks.as_strided(numbers, shape[::-1], apart)
    return emulator.TensorMap(
        seen,
        one.box[::-1],
        one.swizzle,
        one.element_strides[::-1],
        one.fill == "nan",
        one.dtype if one.dtype in ("bf16", "tf32") else None,
        one.interleave,
    )


def _strides(
    one: TensorMap, shape: tuple[int, ...], sizes: Mapping[str, int]
) -> tuple[int, ...]:
    """Bytes between rows, matrices and so on.

    Of a dimension with one element nobody knows how far the next would be, and the
    driver refuses 0: it is given what is known of the dimension before.
    """
    before = -(-shape[0] * element_bytes(one.dtype) // _ALIGNMENT) * _ALIGNMENT
    found: list[int] = []
    for extent, stride in zip(shape[1:], one.strides, strict=True):
        before = before if extent == 1 else stride.value(sizes)
        found.append(before)
    return tuple(found)


def _check(
    one: TensorMap, address: int, shape: tuple[int, ...], strides: tuple[int, ...]
) -> None:
    """LaunchError for what the driver would refuse with a number."""
    what = f"the tensor map of {one.array!r}"
    if address % _ALIGNMENT:
        raise LaunchError(
            f"{what} needs an address that is a multiple of {_ALIGNMENT}, got "
            f"{address:#x}"
        )
    for number, extent in enumerate(shape):
        if not 1 <= extent <= TENSOR_MAP_EXTENT:
            raise LaunchError(
                f"{what} has {extent} elements along dimension {number} from the "
                f"innermost, expected 1 to {TENSOR_MAP_EXTENT}"
            )
    for stride in strides:
        if stride % _ALIGNMENT or not 0 < stride < TENSOR_MAP_DISTANCE:
            raise LaunchError(
                f"{what} has rows {stride} bytes apart, expected a multiple of "
                f"{_ALIGNMENT} below {TENSOR_MAP_DISTANCE}"
            )


@cache
def _driver() -> Any:
    """The function of the driver."""
    try:
        encode = ctypes.CDLL("libcuda.so.1").cuTensorMapEncodeTiled
    except (OSError, AttributeError) as error:
        raise LaunchError(
            f"the CUDA driver has no cuTensorMapEncodeTiled: {error}"
        ) from error
    encode.restype = ctypes.c_int
    return encode


_MAPS: dict[Any, bytes] = {}
_MOST_MAPS = 1024  # kept; a program has a few for each set of arrays


def _encoded(
    one: TensorMap, address: int, shape: tuple[int, ...], strides: tuple[int, ...]
) -> bytes:
    """The bytes of a map, encoded once for each address and sizes."""
    key = (one, address, shape, strides)
    found = _MAPS.get(key)
    if found is None:
        if len(_MAPS) >= _MOST_MAPS:
            _MAPS.clear()
        _MAPS[key] = found = _encode(one, address, shape, strides)
    return found


def _encode(
    one: TensorMap, address: int, shape: tuple[int, ...], strides: tuple[int, ...]
) -> bytes:
    memory = ctypes.create_string_buffer(TENSOR_MAP_BYTES + TENSOR_MAP_ALIGNMENT)
    start = -ctypes.addressof(memory) % TENSOR_MAP_ALIGNMENT
    code = _driver()(
        ctypes.c_void_p(ctypes.addressof(memory) + start),
        ctypes.c_int(_DTYPES[one.dtype]),
        ctypes.c_uint32(len(shape)),
        ctypes.c_void_p(address),
        (ctypes.c_uint64 * len(shape))(*shape),
        (ctypes.c_uint64 * max(1, len(strides)))(*strides),
        (ctypes.c_uint32 * len(shape))(*one.box),
        (ctypes.c_uint32 * len(shape))(*one.element_strides),
        ctypes.c_int(_INTERLEAVES[one.interleave]),
        ctypes.c_int(_SWIZZLES[one.swizzle]),
        ctypes.c_int(_PROMOTIONS[one.l2_promotion]),
        ctypes.c_int(_FILLS[one.fill]),
    )
    if code:
        raise LaunchError(
            f"the CUDA driver refuses the tensor map of {one.array!r}: error {code}"
        )
    return memory.raw[start : start + TENSOR_MAP_BYTES]
