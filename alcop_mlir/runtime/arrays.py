"""The properties of an array that a launch needs, and checks of them.

Arrays are inspected, never copied. Arrays in main memory are NumPy arrays, or become
NumPy arrays through DLPack; launch.py makes the same `Array` of arrays on a GPU.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from alcop_mlir import dtypes
from alcop_mlir.errors import LaunchError
from alcop_mlir.frozen import frozen
from alcop_mlir.manifest.arrays import Parameter
from alcop_mlir.manifest.functions import Function
from alcop_mlir.manifest.kernels import AtMost
from alcop_mlir.reference import steps
from alcop_mlir.reference.steps import Size

ALIGNMENT = 16  # bytes; kernels copy and store 16 bytes at a time
_DLPACK_CPU = 1  # DLDeviceType of the DLPack standard
_DLPACK_CUDA = (2, 13)  # device memory, managed memory


@frozen
class Array:
    """The layout of an array in memory; strides in bytes.

    owner: what keeps the memory alive, and what the emulator is given
    location: "main memory" or "GPU 0", for comparing and for messages
    """

    owner: Any
    address: int
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    dtype: np.dtype[Any]
    writable: bool
    location: str

    @property
    def end(self) -> int:
        """The address after the last byte."""
        if 0 in self.shape:
            return self.address
        return self.address + last(self.shape, self.strides) + self.dtype.itemsize

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


def last(shape: Sequence[int], strides: Sequence[int]) -> int:
    """How far the last element is from the first, in the unit of the strides."""
    return sum((n - 1) * stride for n, stride in zip(shape, strides, strict=True))


def label(number: int, parameter: Parameter) -> str:
    """How messages name the array given for `parameter`, counted from 0."""
    return f"argument {number + 1} ('{parameter.name}')"


def is_on_gpu(array: Any) -> bool:
    """Whether `array` declares that it is in GPU memory."""
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
        location="main memory",
    )


def check(function: Function, arrays: Sequence[Array]) -> dict[str, int]:
    """The function's named sizes and strides, by `arrays`, one per parameter.

    LaunchError where an array does not fit: location, dtype, shape, alignment, strides,
    writability, or an output that overlaps another array, or itself.
    """
    sizes: dict[str, int] = {}
    for number, (parameter, array) in enumerate(
        zip(function.parameters, arrays, strict=True)
    ):
        what = label(number, parameter)
        if array.location != arrays[0].location:
            raise LaunchError(
                f"{what} is in {array.location}, argument 1 in {arrays[0].location}: "
                "all arrays must be in one place"
            )
        _check_layout(parameter, array, what, sizes)
    check_sizes(function.checks, sizes)
    _check_overlap(function.parameters, arrays)
    return sizes


def check_sizes(checks: Iterable[AtMost], sizes: Mapping[str, int]) -> None:
    """LaunchError where one of the checks does not hold for these sizes."""
    for one in checks:
        least, most = one.least.value(sizes), one.most.value(sizes)
        if least > most:
            which = "" if one.least.known is not None else f", which is {least}"
            raise LaunchError(
                f"sizes do not fit together: {one.most} is {most}, expected at least "
                f"{one.least}{which}"
            )


def _check_layout(
    parameter: Parameter, array: Array, what: str, sizes: dict[str, int]
) -> None:
    if not dtypes.fits(array.dtype, parameter.dtype):
        expected = dtypes.expected(parameter.dtype)
        raise LaunchError(f"{what} has dtype {array.dtype}, expected {expected}")
    if not _bind(parameter.shape, array.shape, sizes):
        named = dict.fromkeys(s for s in parameter.shape if isinstance(s, str))
        known = {name: sizes[name] for name in named if name in sizes}
        wanted = steps.known(parameter.shape, sizes)
        names = ", ".join(f"{name} is {size}" for name, size in known.items())
        raise LaunchError(
            f"{what} has shape {_join(array.shape)}, expected {_join(wanted)}"
            + (f": {names}" if names else "")
        )
    _check_strides(parameter, array, what, sizes)
    row = array.shape[-1] * array.dtype.itemsize if array.shape else 0
    if row % parameter.row_alignment:
        raise LaunchError(
            f"{what} has rows of {row} bytes, but the function promises multiples of "
            f"{parameter.row_alignment}"
        )
    behind = array.address % parameter.alignment
    if behind and 0 not in array.shape:
        raise LaunchError(
            f"{what} starts {behind} bytes behind a multiple of {parameter.alignment} "
            "bytes, expected an aligned array"
        )
    if parameter.role != "in" and not array.writable:
        raise LaunchError(f"{what} is read-only, expected an array to write to")


def _bind(
    expected: Sequence[Size], given: Sequence[int], sizes: dict[str, int]
) -> bool:
    """Whether `given` has the shape `expected`; binds the sizes named there."""
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


def _check_strides(
    parameter: Parameter, array: Array, what: str, sizes: dict[str, int]
) -> None:
    """Bind named strides, check the others; dimensions of size one are ignored."""
    given = f"{what} has strides of {_join(array.strides)} bytes"
    if parameter.strides is None:
        if not array.is_contiguous:
            raise LaunchError(f"{given}, expected a contiguous array in C order")
        return
    step, promised = array.dtype.itemsize, parameter.row_alignment
    expected = _join([s if isinstance(s, str) else s * step for s in parameter.strides])
    for size, stride, wanted in zip(
        array.shape, array.strides, parameter.strides, strict=True
    ):
        if size < 2 or 0 in array.shape:
            stride = 0 if isinstance(wanted, str) else wanted * step
        if isinstance(wanted, int) and stride != wanted * step:
            raise LaunchError(f"{given}, expected {expected}")
        if stride < 0 or stride % step:
            raise LaunchError(f"{given}, expected multiples of {step}, none negative")
        if isinstance(wanted, str) and stride % promised:
            raise LaunchError(
                f"{given}, but the function promises multiples of {promised}"
            )
        if isinstance(wanted, str):
            sizes[wanted] = stride // step
    if parameter.role != "in" and _overlaps_itself(array):
        raise LaunchError(f"{given} and is written, expected rows apart")


def _overlaps_itself(array: Array) -> bool:
    """Whether two elements may share an address: rows longer than their stride."""
    if 0 in array.shape:
        return False
    reach = array.dtype.itemsize
    dimensions = zip(array.strides, array.shape, strict=True)
    for stride, size in sorted((stride, n) for stride, n in dimensions if n > 1):
        if stride < reach:
            return True
        reach += (size - 1) * stride
    return False


def _check_overlap(parameters: Sequence[Parameter], arrays: Sequence[Array]) -> None:
    """Refuse outputs that overlap another array: blocks run in no order."""
    for number, (parameter, array) in enumerate(zip(parameters, arrays, strict=True)):
        if parameter.role == "in":
            continue
        for other, second in enumerate(arrays):
            if other == number or _are_apart(array, second):
                continue
            raise LaunchError(
                f"{label(number, parameter)} is written and overlaps "
                f"{label(other, parameters[other])}, expected arrays apart"
            )


def _are_apart(one: Array, other: Array) -> bool:
    """Whether two arrays provably share no byte: one follows the other, or the rows of
    each lie between those of the other.
    """
    if 0 in (*one.shape, *other.shape):
        return True
    if one.end <= other.address or other.end <= one.address:
        return True
    if len(one.shape) != 2 or len(other.shape) != 2:
        return False
    pitch = one.strides[0]
    if pitch <= 0 or other.strides[0] != pitch:
        return False
    widths = [
        array.end - array.address - (array.shape[0] - 1) * pitch
        for array in (one, other)
    ]
    behind = (other.address - one.address) % pitch
    return widths[0] <= behind and widths[1] <= pitch - behind


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
