"""What a register may hold: numbers of threads, unknowns of all, or both added.

A register of no such kind holds None: nothing is known.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from alcop_mlir.certificate.linear import Condition, Linear, constant

WARP = 32  # threads
MOST_BLOCKS = (1 << 31) - 1  # PTX ISA "Special Registers: %nctaid"
PAST_ADDRESSES = 1 << 47  # more than any address
Lanes = np.ndarray  # uint64, one per thread


@dataclass(frozen=True, eq=False)
class Exact:
    """One number per thread, modulo 2**64; of a predicate 0 or 1."""

    lanes: Lanes

    @property
    def is_uniform(self) -> bool:
        """Whether all threads have the same."""
        return bool((self.lanes == self.lanes[0]).all())


@dataclass(frozen=True)
class Uniform:
    """An unknown integer that all threads share: `term`, with low <= term <= high.

    The register holds it modulo its width.
    """

    term: Linear
    low: int
    high: int


@dataclass(frozen=True)
class Truth:
    """An unknown predicate that all threads share."""

    condition: Condition


@dataclass(frozen=True, eq=False)
class Spread:
    """`constant` plus each symbol times its coefficients; in all threads from `low` to
    `high`.
    """

    terms: Mapping[str, np.ndarray]
    constant: np.ndarray
    low: int
    high: int
    width: int

    @property
    def fits(self) -> bool:
        """Whether the register holds the number itself."""
        half = 1 << (self.width - 1)
        return -half <= self.low and self.high < half

    def digest(self) -> str:
        """The same for spreads that are."""
        found = hashlib.sha256(f"{self.low} {self.high} {self.width}".encode())
        for name in sorted(self.terms):
            found.update(name.encode() + b"=" + self.terms[name].tobytes())
        found.update(self.constant.tobytes())
        return found.hexdigest()


Value = Exact | Uniform | Spread | Truth | None


def is_shared_by_all(value: Value) -> bool:
    """Whether all threads surely hold the same."""
    if isinstance(value, Exact):
        return value.is_uniform
    return isinstance(value, (Uniform, Truth))


def signed(lanes: Lanes, width: int) -> np.ndarray:
    """The numbers as signed ones of that many bits, int64."""
    if width == 64:
        return lanes.view(np.int64)
    half = np.int64(1 << (width - 1))
    return ((lanes & np.uint64((1 << width) - 1)).astype(np.int64) ^ half) - half


def masked(lanes: np.ndarray, width: int) -> Lanes:
    """The lowest bits."""
    lanes = lanes.astype(np.uint64, copy=False)
    return lanes if width == 64 else lanes & np.uint64((1 << width) - 1)


def as_uniform(value: Value, width: int) -> Uniform | None:
    """The value as a term, where all threads share it; exact ones as signed."""
    if isinstance(value, Uniform):
        return value
    if isinstance(value, Exact) and value.is_uniform:
        number = int(signed(value.lanes[:1], width)[0])
        return Uniform(constant(number), number, number)
    return None


def width_of(part: str) -> int:
    """The bits of the type that a part of an opcode names; 32 where it is none."""
    if part == "pred":
        return 1
    return int(part[1:]) if part[1:].isdigit() and part[0] in "subf" else 32
