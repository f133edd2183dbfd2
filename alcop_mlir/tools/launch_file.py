"""The launch description of a bare PTX kernel: a small JSON file.

    {"kernel": "scale", "grid": [4], "block": [128], "dynamic_shared": 0,
     "arguments": [{"array": {"dtype": "f32", "shape": [512], "init": "random"}},
                   {"value": 512, "dtype": "i32"}]}

Sizes along y and z may be left out; structures, arrays of pointers, tensor maps,
variables, clusters and cooperative launches: see `docs/emulator.md`.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Annotated, Any

import numpy as np

from alcop_mlir import codec, codec_forms, dtypes, files, limits
from alcop_mlir.codec import Stored
from alcop_mlir.codec_forms import Length, OneOf, Range
from alcop_mlir.errors import ConfigError

Dim3 = tuple[int, int, int]
Array = np.ndarray[Any, Any]

DTYPES: dict[str, np.dtype[Any]] = {
    **{name: np.dtype(kind) for name, kind in dtypes.NUMPY_DTYPES.items()},
    **{f"u{bits}": np.dtype(f"u{bits // 8}") for bits in (8, 16, 32, 64)},
}
INITS = ("random", "zero", "nan", "arange")
_Size = Annotated[int, Range(1, 1 << 32)]
_Dtype = Annotated[str, OneOf(DTYPES)]
Sizes3 = Annotated[
    Dim3,
    Stored(
        Annotated[tuple[_Size, ...], Length(1, 3)],
        lambda sizes: (*sizes, 1, 1)[:3],
        lambda sizes: sizes,
    ),
]


@dataclass(frozen=True)
class Buffer:
    """An array, and what it holds before the launch."""

    dtype: _Dtype
    shape: Annotated[tuple[_Size, ...], Length(1, 32)]  # 32: the most that NumPy has
    init: Annotated[str, OneOf(INITS)] = "random"

    def __post_init__(self) -> None:
        if self.init == "nan" and self.dtype[0] in "iu":
            raise ConfigError(f"{self.dtype} has no nan")

    @property
    def bytes(self) -> int:
        return math.prod(self.shape) * DTYPES[self.dtype].itemsize

    def make(self, generator: np.random.Generator) -> Array:
        """The array: random floats are in [-1, 1], random integers of any value."""
        dtype, count = DTYPES[self.dtype], math.prod(self.shape)
        if self.init == "random" and self.dtype[0] in "iu":
            flat = np.frombuffer(generator.bytes(self.bytes), dtype).copy()
            return flat.reshape(self.shape)
        if self.init == "arange":
            values = np.arange(count)
        elif self.init == "random":
            values = generator.random(count, np.float32) * 2 - 1
        else:
            values = np.full(count, np.nan if self.init == "nan" else 0)
        return _converted(values, self.dtype).reshape(self.shape)


@dataclass(frozen=True)
class ArrayArgument:
    """The address of an array."""

    array: Buffer


@dataclass(frozen=True)
class ValueArgument:
    """A number; without a dtype it takes the type of the parameter."""

    value: int | float
    dtype: _Dtype | None = None

    def __post_init__(self) -> None:
        if self.dtype is None or self.dtype[0] not in "iu":
            return
        limits = np.iinfo(DTYPES[self.dtype])
        is_whole = isinstance(self.value, int)
        if not (is_whole and limits.min <= self.value <= limits.max):
            raise ConfigError(
                f"expected an {self.dtype}, whole and from {limits.min} to "
                f"{limits.max}, got {codec_forms.shown(self.value)}"
            )

    def make(self) -> bytes | int | float:
        """The argument of `emulate`: bytes where the dtype is known."""
        if self.dtype is None:
            return self.value
        return _converted(np.array(self.value), self.dtype).tobytes()


@dataclass(frozen=True)
class PointersArgument:
    """The address of an array of addresses."""

    pointers: tuple[ArrayArgument, ...]


@dataclass(frozen=True)
class Tiles:
    """A tensor map of an array, by cuTensorMapEncodeTiled; the innermost size last."""

    array: Buffer
    box: Annotated[tuple[int, ...], Length(1, 5)]
    swizzle: int = 0
    element_strides: Annotated[tuple[int, ...], Length(1, 5)] | None = None
    nan_fill: bool = False
    interleave: int = 0


@dataclass(frozen=True)
class Columns:
    """A tensor map of images, by cuTensorMapEncodeIm2col; the innermost size last."""

    array: Buffer
    channels: int
    pixels: int
    lower: Annotated[tuple[int, ...], Length(1, 3)]
    upper: Annotated[tuple[int, ...], Length(1, 3)]
    swizzle: int = 0
    element_strides: Annotated[tuple[int, ...], Length(1, 5)] | None = None
    nan_fill: bool = False
    interleave: int = 0


@dataclass(frozen=True)
class Member:
    """What a structure holds at a byte: an array, as a map or an address, a value."""

    offset: Annotated[int, Range(0)]
    array: Buffer | None = None
    value: int | float | None = None
    dtype: _Dtype | None = None
    tensor_map: Tiles | None = None

    def __post_init__(self) -> None:
        given = (self.array, self.value, self.tensor_map)
        if sum(one is not None for one in given) != 1:
            raise ConfigError("expected an array, a map or a value in a structure")
        if (self.value is None) != (self.dtype is None):
            raise ConfigError("expected a value with a dtype in a structure")


@dataclass(frozen=True)
class Structure:
    """A structure passed by value; `size` in bytes."""

    size: Annotated[int, Range(1, 32764)]
    members: tuple[Member, ...]


@dataclass(frozen=True)
class StructArgument:
    """A structure passed by value."""

    struct: Structure


@dataclass(frozen=True)
class TensorMapArgument:
    """A tensor map, 128 bytes passed by value."""

    tensor_map: Tiles


@dataclass(frozen=True)
class Im2colMapArgument:
    """A tensor map in im2col mode, 128 bytes passed by value."""

    im2col_map: Columns


LaunchArgument = (
    ArrayArgument
    | ValueArgument
    | PointersArgument
    | StructArgument
    | TensorMapArgument
    | Im2colMapArgument
)


@dataclass(frozen=True)
class Symbol:
    """A variable of the module, set before the launch."""

    name: str
    array: Buffer


@dataclass(frozen=True)
class LaunchFile:
    """How to launch a kernel (None: the only one of the file)."""

    grid: Sizes3
    block: Sizes3
    arguments: tuple[LaunchArgument, ...]
    kernel: str | None = None
    dynamic_shared: Annotated[int, Range(0)] = 0
    cooperative: bool = False
    cluster: Sizes3 | None = None
    symbols: tuple[Symbol, ...] = ()

    def __post_init__(self) -> None:
        arrays = [a for argument in self.arguments for a in buffers(argument)]
        arrays += [symbol.array for symbol in self.symbols]
        total = sum(array.bytes for array in arrays)
        limits.ARRAYS.check(total, "all arrays")


def buffers(argument: LaunchArgument) -> list[Buffer]:
    """The arrays that an argument holds the addresses of."""
    if isinstance(argument, ArrayArgument):
        return [argument.array]
    if isinstance(argument, PointersArgument):
        return [one.array for one in argument.pointers]
    if isinstance(argument, TensorMapArgument):
        return [argument.tensor_map.array]
    if isinstance(argument, Im2colMapArgument):
        return [argument.im2col_map.array]
    if isinstance(argument, StructArgument):
        held = (m.tensor_map or m for m in argument.struct.members)
        return [one.array for one in held if one.array is not None]
    return []


def read_launch(path: str) -> LaunchFile:
    """Read it; ConfigError names the file and the member for every mistake."""
    data = files.read(path, limits.JSON)
    try:
        return codec.decode(LaunchFile, codec.parse(data))
    except ConfigError as error:
        raise ConfigError(f"'{path}': {error}") from None


def _converted(values: Array, dtype: str) -> Array:
    """`values` as `dtype`, of which arrays may hold the bits."""
    with np.errstate(over="ignore"):
        if dtype in dtypes.NUMPY_DTYPES:
            return dtypes.encode(values, dtype)
        return values.astype(DTYPES[dtype])
