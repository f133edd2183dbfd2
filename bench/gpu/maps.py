"""Tensor maps as arguments of probes: of the emulator, or as the driver encodes them.

CUDA driver API, "Tensor Map Object Management": cuTensorMapEncodeTiled and
cuTensorMapEncodeIm2col. Sizes are in NumPy's order, the innermost one last.
"""

from __future__ import annotations

import ctypes
from dataclasses import dataclass
from typing import Any

import numpy as np

from alcop_mlir.runtime.emulator import Im2colMap, TensorMap

_BYTES, _ALIGNMENT = 128, 64
# CUtensorMapDataType, and the elements as NumPy has them.
_TYPES = {
    "u8": (0, np.uint8),
    "u16": (1, np.uint16),
    "u32": (2, np.uint32),
    "f16": (6, np.float16),
    "f32": (7, np.float32),
    "tf32": (11, np.float32),
}
_SWIZZLES, _INTERLEAVES = (0, 32, 64, 128), (0, 16, 32)


@dataclass(frozen=True)
class Columns:
    """What im2col mode has for a box; the limits are without images and channels."""

    channels: int
    pixels: int
    lower: tuple[int, ...]
    upper: tuple[int, ...]


@dataclass(frozen=True)
class Map:
    """A map of one of a probe's arrays.

    array: the number of the input, -1 for the result; dtype: of `_TYPES`; box: of tile
    mode, or what im2col mode has; steps: of elements, 1 without
    """

    array: int
    dtype: str
    shape: tuple[int, ...]
    box: tuple[int, ...] | Columns
    swizzle: int = 0
    steps: tuple[int, ...] = ()
    nan_fill: bool = False
    interleave: int = 0

    def of(self, words: np.ndarray[Any, Any]) -> TensorMap | Im2colMap:
        """That of an array of words, for the emulator."""
        array = words.view(_TYPES[self.dtype][1])
        array = array[: int(np.prod(self.shape))].reshape(self.shape)
        dtype = "tf32" if self.dtype == "tf32" else None
        rest = (self.swizzle, self.steps or None, self.nan_fill, dtype, self.interleave)
        if isinstance(self.box, tuple):
            return TensorMap(array, self.box, *rest)
        window = (self.box.channels, self.box.pixels, self.box.lower, self.box.upper)
        return Im2colMap(array, *window, *rest)

    def encoded(self, address: int) -> Any:
        """That of an array at this address of the GPU, as CuPy passes it by value.

        Raises RuntimeError where the driver does not take it.
        """
        memory = ctypes.create_string_buffer(_BYTES + _ALIGNMENT)
        start = -ctypes.addressof(memory) % _ALIGNMENT
        code, size = _TYPES[self.dtype][0], np.dtype(_TYPES[self.dtype][1]).itemsize
        sizes = self.shape[::-1]
        strides = [size * int(np.prod(sizes[:d])) for d in range(1, len(sizes))]
        driver = ctypes.CDLL("libcuda.so.1")
        if isinstance(self.box, tuple):
            encode = driver.cuTensorMapEncodeTiled
            moved = [_numbers(ctypes.c_uint32, self.box[::-1])]
        else:
            encode, one = driver.cuTensorMapEncodeIm2col, self.box
            moved = [_numbers(ctypes.c_int, c[::-1]) for c in (one.lower, one.upper)]
            moved += [ctypes.c_uint32(n) for n in (one.channels, one.pixels)]
        error = encode(
            ctypes.c_void_p(ctypes.addressof(memory) + start),
            ctypes.c_int(code),
            ctypes.c_uint32(len(sizes)),
            ctypes.c_void_p(address),
            _numbers(ctypes.c_uint64, sizes),
            _numbers(ctypes.c_uint64, strides or [0]),
            *moved,
            _numbers(ctypes.c_uint32, (self.steps or (1,) * len(sizes))[::-1]),
            ctypes.c_int(_INTERLEAVES.index(self.interleave)),
            ctypes.c_int(_SWIZZLES.index(self.swizzle)),
            ctypes.c_int(0),
            ctypes.c_int(self.nan_fill),
        )
        if error:
            raise RuntimeError(f"the driver refuses the map {self}: error {error}")
        raw = memory.raw[start : start + _BYTES]
        return np.frombuffer(raw, [("words", np.uint64, _BYTES // 8)])[0]


def _numbers(kind: Any, values: Any) -> Any:
    return (kind * len(values))(*values)
