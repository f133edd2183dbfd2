"""Tensor maps as arguments: what the driver's two functions make of arrays."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from alcop_mlir.errors import EmulationError
from alcop_mlir.runtime.emulator.machine.tensor_map import (
    INTERLEAVES,
    SWIZZLES,
    TYPES,
    Layout,
    Window,
)
from alcop_mlir.runtime.emulator.machine.tensor_map_rules import MAX_RANK, problem


@dataclass(frozen=True, eq=False)
class TensorMap:
    """A tensor map of an array: what cuTensorMapEncodeTiled makes of it.

    An argument, or a member of a `Struct`, of 128 bytes. `box`, `element_strides` and
    the dimensions of the array are as NumPy has them, the innermost one last.

    box:             how many elements of each dimension a copy moves
    swizzle:         0, 32, 64 or 128 bytes
    element_strides: of the elements of a box, 1 without
    nan_fill:        what lies outside of the array reads as NaN, not as 0
    dtype:           "bf16" or "tf32", where that of the array does not say it
    interleave:      0, or 16 or 32: bytes of a slice of channels, the innermost
                     dimension, as of an array (N, C / 8, H, W, 8) of 16-bit numbers

    Raises `EmulationError` for what the driver refuses.
    """

    array: np.ndarray
    box: Sequence[int]
    swizzle: int = 0
    element_strides: Sequence[int] | None = None
    nan_fill: bool = False
    dtype: str | None = None
    interleave: int = 0

    def __post_init__(self) -> None:
        rank = self.array.ndim
        if not 1 <= rank <= MAX_RANK or len(self.box) != rank:
            raise EmulationError(
                "tensor map: expected 1 to 5 dimensions, and as many sizes of the "
                f"box, got an array of {rank} and a box of {len(self.box)}"
            )
        _check(self, tuple(self.box)[::-1], None)

    def encode(self, addresses: Mapping[int, int]) -> bytes:
        """Its 128 bytes; `addresses`: of arrays, by their `id`."""
        address = addresses[id(self.array)]
        return _layout(self, address, tuple(self.box)[::-1], None).pack()


@dataclass(frozen=True, eq=False)
class Im2colMap:
    """A tensor map of images: what cuTensorMapEncodeIm2col makes of them.

    array: (N, W, C), (N, H, W, C) or (N, D, H, W, C). `lower`, `upper` and
    `element_strides` are in this order too: (W), (H, W) or (D, H, W), the strides with
    N and C around them.

    channels: how many channels of each pixel a copy moves
    pixels:   how many pixels it moves
    lower:    the first pixels at which it may begin, in each dimension
    upper:    the last ones, counted from the last pixel of the array on

    The other fields are those of a `TensorMap`. Raises `EmulationError` for what the
    driver refuses.
    """

    array: np.ndarray
    channels: int
    pixels: int
    lower: Sequence[int]
    upper: Sequence[int]
    swizzle: int = 0
    element_strides: Sequence[int] | None = None
    nan_fill: bool = False
    dtype: str | None = None
    interleave: int = 0

    def __post_init__(self) -> None:
        if not 3 <= self.array.ndim <= MAX_RANK:
            raise EmulationError(
                "tensor map: im2col mode needs 3 to 5 dimensions, got an array of "
                f"{self.array.ndim}"
            )
        _check(self, (self.channels,), self._window())

    def _window(self) -> Window:
        return Window(tuple(self.lower)[::-1], tuple(self.upper)[::-1], self.pixels)

    def encode(self, addresses: Mapping[int, int]) -> bytes:
        """Its 128 bytes; `addresses`: of arrays, by their `id`."""
        address = addresses[id(self.array)]
        return _layout(self, address, (self.channels,), self._window()).pack()


AnyMap = TensorMap | Im2colMap


def _check(given: AnyMap, box: tuple[int, ...], window: Window | None) -> None:
    array = given.array
    steps = given.element_strides
    if steps is not None and len(steps) != array.ndim:
        raise EmulationError(
            f"tensor map: expected {array.ndim} element strides, got {len(steps)}"
        )
    if given.swizzle not in SWIZZLES:
        raise EmulationError(
            f"tensor map: expected a swizzle of 0, 32, 64 or 128, got {given.swizzle}"
        )
    if given.interleave not in INTERLEAVES:
        raise EmulationError(
            f"tensor map: expected an interleave of 0, 16 or 32, got {given.interleave}"
        )
    if array.strides[-1] != array.itemsize or _type(given) not in TYPES:
        raise EmulationError(
            "tensor map: expected numbers that lie next to each other along the "
            f"innermost dimension, got {array.dtype} with strides {array.strides}"
        )
    why = problem(_layout(given, 0, box, window))
    if why:
        raise EmulationError(f"tensor map: {why}")


def _type(given: AnyMap) -> str:
    dtype = given.array.dtype
    kind = {"i": "s", "u": "u", "f": "f"}.get(dtype.kind, "")
    name = f"{kind}{8 * dtype.itemsize}"
    return given.dtype or {"s8": "u8", "s16": "u16"}.get(name, name)


def _layout(
    given: AnyMap, address: int, box: tuple[int, ...], window: Window | None
) -> Layout:
    array = given.array
    return Layout(
        address,
        _type(given),
        array.itemsize,
        array.shape[::-1],
        array.strides[-2::-1] if array.ndim > 1 else (),
        box,
        tuple(given.element_strides or (1,) * array.ndim)[::-1],
        given.swizzle,
        given.nan_fill,
        window,
        given.interleave,
    )
