"""What a launch needs to know of an array, and whether it fits a parameter.

Arrays are looked at, never copied. Arrays in main memory are NumPy arrays, or give
themselves as such through DLPack; launch.py makes the same `Array` of arrays on a GPU.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from alcop_mlir.errors import LaunchError
from alcop_mlir.runtime import dtypes
from alcop_mlir.runtime.manifest import Function, Parameter, Size

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
        """Address behind the last byte."""
        if 0 in self.shape:
            return self.address
        steps = zip(self.shape, self.strides, strict=True)
        last = sum((size - 1) * stride for size, stride in steps)
        return self.address + last + self.dtype.itemsize

    @property
    def is_contiguous(self) -> bool:
        """C order without gaps; the stride of a dimension of one does not matter."""
        step = self.dtype.itemsize
        if 0 in self.shape:
            return True
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
    if not dtypes.fits(array.dtype, parameter.dtype):
        expected = dtypes.expected(parameter.dtype)
        raise LaunchError(f"{what} has dtype {array.dtype}, expected {expected}")
    if not _bind(parameter.shape, array.shape, sizes):
        named = dict.fromkeys(s for s in parameter.shape if isinstance(s, str))
        known = {name: sizes[name] for name in named if name in sizes}
        wanted = [
            known.get(size, size) if isinstance(size, str) else size
            for size in parameter.shape
        ]
        names = ", ".join(f"{name} is {size}" for name, size in known.items())
        raise LaunchError(
            f"{what} has shape {_join(array.shape)}, expected {_join(wanted)}"
            + (f": {names}" if names else "")
        )
    if not _has_strides(parameter, array):
        elements = (stride * array.dtype.itemsize for stride in parameter.strides or ())
        raise LaunchError(
            f"{what} has strides of {_join(array.strides)} bytes, expected "
            f"{_join(list(elements))}"
        )
    if parameter.strides is None and not array.is_contiguous:
        raise LaunchError(
            f"{what} has strides of {_join(array.strides)} bytes, expected a "
            "contiguous array in C order"
        )
    row = array.shape[-1] * array.dtype.itemsize if array.shape else 0
    if row % parameter.row_alignment:
        raise LaunchError(
            f"{what} has rows of {row} bytes, but the function promises multiples of "
            f"{parameter.row_alignment}"
        )
    if array.address % ALIGNMENT and 0 not in array.shape:
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
    found = dict(sizes)
    for size, number in zip(expected, given, strict=True):
        if isinstance(size, str):
            size = found.setdefault(size, number)
        if size != number:
            return False
    sizes.update(found)
    return True


def _has_strides(parameter: Parameter, array: Array) -> bool:
    """Whether the array's strides are those asked for, if any are."""
    if parameter.strides is None or 0 in array.shape:
        return True
    return all(
        size == 1 or given == wanted * array.dtype.itemsize
        for size, given, wanted in zip(
            array.shape, array.strides, parameter.strides, strict=True
        )
    )


def _check_overlap(parameters: Sequence[Parameter], arrays: Sequence[Array]) -> None:
    """Blocks run in no order: an output must not be, or lie in, another array."""
    for number, (parameter, array) in enumerate(zip(parameters, arrays, strict=True)):
        if parameter.role == "in":
            continue
        for other, second in enumerate(arrays):
            if other == number or second.end <= array.address:
                continue
            if 0 in (*array.shape, *second.shape):
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
