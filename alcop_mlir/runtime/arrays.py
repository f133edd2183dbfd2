"""What a launch needs to know of an array, and whether it fits a parameter.

Arrays are looked at, never copied. Arrays in main memory are NumPy arrays, or give
themselves as such through DLPack; launch.py makes the same `Array` of arrays on a GPU.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from alcop_mlir.errors import LaunchError
from alcop_mlir.runtime.manifest import Function, Parameter, Size

NUMPY_DTYPES = {"f16": np.float16, "f32": np.float32, "f64": np.float64}
ALIGNMENT = 16  # bytes; kernels copy and store 16 bytes at a time
_DLPACK_CPU = 1  # DLDeviceType of the DLPack standard
_DLPACK_CUDA = (2, 13)  # device memory, managed memory


@dataclass(frozen=True)
class Array:
    """An array as it lies in memory; strides in bytes.

    owner: what keeps the memory alive, and what the emulator is given
    place: "main memory" or "GPU 0", for comparing and for messages
    """

    owner: Any
    address: int
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    dtype: np.dtype[Any]
    writable: bool
    place: str

    @property
    def end(self) -> int:
        """Address behind the last byte of a contiguous array."""
        return self.address + self.dtype.itemsize * math.prod(self.shape)

    @property
    def is_contiguous(self) -> bool:
        """C order without gaps; the stride of a dimension of one does not matter."""
        step = self.dtype.itemsize
        for size, stride in zip(
            reversed(self.shape), reversed(self.strides), strict=True
        ):
            if size > 1 and stride != step:
                return False
            step *= size
        return True


def label(number: int, parameter: Parameter) -> str:
    """How messages call the array given for `parameter`, counted from 0."""
    return f"argument {number + 1} ('{parameter.name}')"


def is_on_gpu(array: Any) -> bool:
    """Whether `array` says that it lies in GPU memory."""
    if isinstance(array, np.ndarray):
        return False
    if hasattr(array, "__dlpack_device__"):
        return array.__dlpack_device__()[0] in _DLPACK_CUDA
    return hasattr(array, "__cuda_array_interface__")


def host_array(array: Any, what: str) -> Array:
    """`array` in main memory; LaunchError, calling it `what`, if it is elsewhere."""
    if not isinstance(array, np.ndarray):
        array = _from_dlpack(array, what)
    return Array(
        owner=array,
        address=array.ctypes.data,
        shape=array.shape,
        strides=array.strides,
        dtype=array.dtype,
        writable=array.flags.writeable,
        place="main memory",
    )


def check(function: Function, arrays: Sequence[Array]) -> dict[str, int]:
    """The function's named sizes, by the shapes of `arrays`, one per parameter.

    LaunchError where an array does not fit: place, dtype, shape, alignment, strides,
    writability, or an output that overlaps another array.
    """
    sizes: dict[str, int] = {}
    for number, (parameter, array) in enumerate(
        zip(function.parameters, arrays, strict=True)
    ):
        what = label(number, parameter)
        if array.place != arrays[0].place:
            raise LaunchError(
                f"{what} is in {array.place}, argument 1 in {arrays[0].place}: all "
                "arrays must be in one place"
            )
        _check_layout(parameter, array, what, sizes)
    _check_overlap(function.parameters, arrays)
    return sizes


def _check_layout(
    parameter: Parameter, array: Array, what: str, sizes: dict[str, int]
) -> None:
    expected = np.dtype(NUMPY_DTYPES[parameter.dtype])
    if array.dtype != expected:
        raise LaunchError(f"{what} has dtype {array.dtype}, expected {expected}")
    if not _bind(parameter.shape, array.shape, sizes):
        wanted = tuple(sizes.get(size, size) for size in parameter.shape)  # type: ignore[arg-type]
        raise LaunchError(
            f"{what} has shape {_join(array.shape)}, expected {_join(wanted)}"
        )
    if not array.is_contiguous:
        raise LaunchError(
            f"{what} has strides of {_join(array.strides)} bytes, expected a "
            "contiguous array in C order"
        )
    if array.address % ALIGNMENT:
        raise LaunchError(
            f"{what} starts {array.address % ALIGNMENT} bytes behind a multiple of "
            f"{ALIGNMENT} bytes, expected an aligned array"
        )
    if parameter.role != "in" and not array.writable:
        raise LaunchError(f"{what} is read-only, expected an array to write to")


def _bind(
    expected: Sequence[Size], given: Sequence[int], sizes: dict[str, int]
) -> bool:
    """Whether `given` is of the shape `expected`; learns the sizes named there."""
    if len(expected) != len(given):
        return False
    for size, number in zip(expected, given, strict=True):
        if isinstance(size, str):
            size = sizes.setdefault(size, number)
        if size != number:
            return False
    return True


def _check_overlap(parameters: Sequence[Parameter], arrays: Sequence[Array]) -> None:
    """Blocks run in no order: an output must not be, or lie in, another array."""
    for number, (parameter, array) in enumerate(zip(parameters, arrays, strict=True)):
        if parameter.role == "in":
            continue
        for other, second in enumerate(arrays):
            if other == number or second.end <= array.address:
                continue
            if array.end <= second.address:
                continue
            raise LaunchError(
                f"{label(number, parameter)} is written and overlaps "
                f"{label(other, parameters[other])}, expected arrays apart"
            )


def _from_dlpack(array: Any, what: str) -> np.ndarray[Any, Any]:
    if is_on_gpu(array):
        raise LaunchError(f"{what} is in GPU memory, expected an array in main memory")
    if not hasattr(array, "__dlpack_device__"):
        raise LaunchError(
            f"{what} is a {type(array).__name__}, expected a NumPy array, or a CuPy or "
            "DLPack array"
        )
    if array.__dlpack_device__()[0] != _DLPACK_CPU:
        raise LaunchError(f"{what} is on a device that is neither a CPU nor a CUDA GPU")
    try:
        return np.from_dlpack(array)
    except (BufferError, RuntimeError, TypeError, ValueError) as error:
        raise LaunchError(f"{what} cannot be taken through DLPack: {error}") from error


def _join(numbers: Sequence[Size]) -> str:
    return "x".join(str(number) for number in numbers) or "()"
