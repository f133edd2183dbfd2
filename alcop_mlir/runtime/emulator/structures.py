"""Arguments with addresses inside: structures passed by value, arrays of pointers."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from alcop_mlir.errors import EmulationError
from alcop_mlir.runtime.emulator.machine.tensor_map import SIZE as MAP_SIZE
from alcop_mlir.runtime.emulator.ptx.declarations import MAX_PARAMETERS
from alcop_mlir.runtime.emulator.tensor_maps import AnyMap

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
        for offset in self.members:
            if not isinstance(offset, (int, np.integer)) or offset < 0:
                raise EmulationError(
                    "expected offsets of members of a structure to be whole numbers "
                    f"from 0 on, got {str(offset)[:80]!r}"
                )
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
                else member.encode(addresses)
                if isinstance(member, AnyMap)
                else member
                if isinstance(member, bytes)
                else member.tobytes()
            )
            out[offset : offset + len(raw)] = raw
        return bytes(out)


Member = np.ndarray | np.generic | bytes | Pointers | AnyMap


def _size(member: object) -> int:
    if isinstance(member, (np.ndarray, Pointers)):
        return POINTER
    if isinstance(member, AnyMap):
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
            if isinstance(member, (np.ndarray, Pointers, AnyMap)):
                yield from inner(member)
    elif isinstance(argument, AnyMap):
        yield argument.array
    elif isinstance(argument, Pointers):
        for item in argument.items:
            if item is not None and not isinstance(item, (np.ndarray, Pointers)):
                raise EmulationError(
                    f"expected arrays in Pointers, got {type(item).__name__}"
                )
            yield from inner(item)
        yield argument
