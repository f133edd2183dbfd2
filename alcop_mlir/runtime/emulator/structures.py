"""Arguments with addresses inside: structures passed by value, arrays of pointers."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from alcop_mlir.errors import EmulationError
from alcop_mlir.runtime.emulator.machine.tensor_map import (
    SIZE as MAP_SIZE,
)
from alcop_mlir.runtime.emulator.machine.tensor_map import (
    SWIZZLES,
    TYPES,
    Layout,
)
from alcop_mlir.runtime.emulator.ptx.declarations import MAX_PARAMETERS

POINTER = 8  # bytes


@dataclass(frozen=True, eq=False)
class Pointers:
    """The address of an array, in global memory, of the addresses of `items`.

    items: arrays, `Pointers` of their own, or None for a null pointer
    """

    items: Sequence[np.ndarray | Pointers | None]


@dataclass(frozen=True, eq=False)
class Struct:
    """A structure of `size` bytes that is passed by value.

    members: by their offsets in bytes: arrays and `Pointers` are addresses, the others
    tensor maps, bytes or scalars of NumPy, whose type says how many bytes they take.
    What no member covers is zero.
    """

    size: int
    members: Mapping[int, Member]

    def __post_init__(self) -> None:
        if not isinstance(self.size, int) or not 0 < self.size <= MAX_PARAMETERS:
            raise EmulationError(
                f"expected a structure of 1 to {MAX_PARAMETERS} bytes, got "
                f"{str(self.size)[:80]}"
            )
        end = 0
        for offset in sorted(self.members):
            if offset < end:
                raise EmulationError(
                    f"member at byte {offset} of a structure overlaps the one before"
                )
            end = offset + _size(self.members[offset])
        if end > self.size:
            raise EmulationError(
                f"the members of a structure of {self.size} bytes take {end}"
            )

    def encode(self, addresses: Mapping[int, int]) -> bytes:
        """Its bytes; `addresses`: of arrays and `Pointers`, by their `id`."""
        out = bytearray(self.size)
        for offset, member in self.members.items():
            raw = (
                addresses[id(member)].to_bytes(POINTER, "little")
                if isinstance(member, (np.ndarray, Pointers))
                else member.struct().encode(addresses)
                if isinstance(member, TensorMap)
                else member
                if isinstance(member, bytes)
                else member.tobytes()
            )
            out[offset : offset + len(raw)] = raw
        return bytes(out)


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

    Raises `EmulationError` for what the driver refuses.
    """

    array: np.ndarray
    box: Sequence[int]
    swizzle: int = 0
    element_strides: Sequence[int] | None = None
    nan_fill: bool = False
    dtype: str | None = None

    def __post_init__(self) -> None:
        array, rank = self.array, self.array.ndim
        steps = self.element_strides or (1,) * rank
        if not 1 <= rank <= 5 or len(self.box) != rank or len(steps) != rank:
            raise EmulationError(
                "tensor map: expected 1 to 5 dimensions, and as many sizes of the "
                f"box, got an array of {rank} and a box of {len(self.box)}"
            )
        if self.swizzle not in SWIZZLES:
            raise EmulationError(
                "tensor map: expected a swizzle of 0, 32, 64 or 128, got "
                f"{self.swizzle}"
            )
        if array.strides[-1] != array.itemsize or self._type() not in TYPES:
            raise EmulationError(
                "tensor map: expected numbers that lie next to each other along the "
                f"innermost dimension, got {array.dtype} with strides {array.strides}"
            )
        why = self._layout(0).problem()
        if why:
            raise EmulationError(f"tensor map: {why}")

    def _type(self) -> str:
        kind = {"i": "s", "u": "u", "f": "f"}.get(self.array.dtype.kind, "")
        name = f"{kind}{8 * self.array.itemsize}"
        return self.dtype or {"s8": "u8", "s16": "u16"}.get(name, name)

    def _layout(self, address: int) -> Layout:
        array = self.array
        return Layout(
            address,
            self._type(),
            array.itemsize,
            array.shape[::-1],
            array.strides[-2::-1] if array.ndim > 1 else (),
            tuple(self.box)[::-1],
            tuple(self.element_strides or (1,) * array.ndim)[::-1],
            self.swizzle,
            self.nan_fill,
        )

    def struct(self) -> Struct:
        """The same as a structure: the address of the array, and what is known."""
        return Struct(MAP_SIZE, {0: self.array, 8: self._layout(0).pack()[8:]})


Member = np.ndarray | np.generic | bytes | Pointers | TensorMap


def _size(member: object) -> int:
    if isinstance(member, (np.ndarray, Pointers)):
        return POINTER
    if isinstance(member, TensorMap):
        return MAP_SIZE
    if isinstance(member, bytes):
        return len(member)
    if isinstance(member, np.generic):
        return member.dtype.itemsize
    raise EmulationError(
        "expected an array, Pointers, bytes or a scalar of NumPy in a structure, got "
        f"{type(member).__name__}"
    )


def inner(argument: object) -> Iterator[np.ndarray | Pointers]:
    """The arrays and `Pointers` of an argument, those inside before what holds them.

    Raises `EmulationError` for what is neither.
    """
    if isinstance(argument, np.ndarray):
        yield argument
    elif isinstance(argument, Struct):
        for member in argument.members.values():
            if isinstance(member, (np.ndarray, Pointers, TensorMap)):
                yield from inner(member)
    elif isinstance(argument, TensorMap):
        yield argument.array
    elif isinstance(argument, Pointers):
        for item in argument.items:
            if item is not None and not isinstance(item, (np.ndarray, Pointers)):
                raise EmulationError(
                    f"expected arrays in Pointers, got {type(item).__name__}"
                )
            yield from inner(item)
        yield argument
