"""The tuner's description of a contraction: operator, sizes, types and layout."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, cast

from alcop_mlir.element_types import (
    ACCUMULATORS,
    CONTRACTION_TYPES,
    element_bytes,
)
from alcop_mlir.errors import ConfigError

OPERATORS = ("matmul", "batch_matmul")
# Of what mma.sync multiplies, adds up in and is rounded to.
ELEMENT_BYTES = {
    name: element_bytes(name)
    for name in dict.fromkeys((*ACCUMULATORS, *CONTRACTION_TYPES))
}
_SIZES = ("M", "N", "K", "batch")
_ROLES = ("a", "b", "acc", "out")


@dataclass(frozen=True)
class Problem:
    """C[batch, M, N] = A[batch, M, K] * B[batch, K, N]; ConfigError when invalid.

    dtypes: elements of A and B, of the accumulator, of C
    layout: loops that index A and B, in each operand's order
    """

    m: int
    n: int
    k: int
    batch: int = 1
    op: str = "matmul"
    dtypes: tuple[str, str, str, str] = ("f16", "f16", "f32", "f32")
    layout: str = "mk,kn"

    def __post_init__(self) -> None:
        if self.op not in OPERATORS:
            raise ConfigError(
                f"unknown operator '{self.op}', expected one of {', '.join(OPERATORS)}"
            )
        for name, size in zip(_SIZES, self.sizes, strict=True):
            if not _is_positive(size):
                raise ConfigError(f"{name} is {size}, expected a positive integer")
        for dtype in self.dtypes:
            if dtype not in ELEMENT_BYTES:
                raise ConfigError(
                    f"unknown type '{dtype}', expected {' or '.join(ELEMENT_BYTES)}"
                )

    @property
    def sizes(self) -> tuple[int, int, int, int]:
        """M, N, K, batch."""
        return self.m, self.n, self.k, self.batch

    @property
    def is_batched(self) -> bool:
        """Whether it has a batch, which may be of size one."""
        return self.op == "batch_matmul"

    @property
    def element_bytes(self) -> int:
        """Bytes of one element of A or B, the wider of the two."""
        return max(ELEMENT_BYTES[dtype] for dtype in self.dtypes[:2])

    @property
    def accumulator_bytes(self) -> int:
        """Bytes of one accumulator."""
        return ELEMENT_BYTES[self.dtypes[2]]

    @property
    def out_bytes(self) -> int:
        """Bytes of one element of C."""
        return ELEMENT_BYTES[self.dtypes[3]]

    @property
    def flops(self) -> float:
        """Multiplications and additions."""
        return 2.0 * self.m * self.n * self.k * self.batch

    def __str__(self) -> str:
        batch = f"{self.batch}x" if self.batch > 1 else ""
        a, b, _, out = self.dtypes
        kinds = a if a == b else f"{a},{b}"
        return f"{self.op} {batch}{self.m}x{self.n}x{self.k} {kinds}->{out}"

    def to_record(self) -> dict[str, Any]:
        """The members `op`, `shape`, `dtypes` and `layout` of a record."""
        return {
            "op": self.op,
            "shape": dict(zip(_SIZES, self.sizes, strict=True)),
            "dtypes": dict(zip(_ROLES, self.dtypes, strict=True)),
            "layout": self.layout,
        }

    @classmethod
    def from_record(cls, members: Mapping[str, Any]) -> Problem:
        """From the members of a record; ConfigError says what is wrong in them."""
        shape = _named(members, "shape", _SIZES)
        dtypes = _named(members, "dtypes", _ROLES)
        op, layout = members.get("op"), members.get("layout")
        if not isinstance(op, str) or not isinstance(layout, str):
            raise ConfigError("'op' and 'layout' have to be texts")
        m, n, k, batch = shape
        a, b, acc, out = (str(dtype) for dtype in dtypes)
        return cls(m, n, k, batch, op, (a, b, acc, out), layout)


def dtypes(inputs: str, out: str, precision: str | None) -> tuple[str, str, str, str]:
    """A contraction's types: A and B as multiplied, the accumulator, C.

    precision: what inputs are rounded to: "tf32", or None
    """
    given = precision or inputs
    return given, given, ACCUMULATORS.get(given, given), out


def _named(
    members: Mapping[str, Any], name: str, expected: tuple[str, ...]
) -> tuple[Any, ...]:
    """The values of the object `name`, in the order `expected`."""
    value = members.get(name)
    if not isinstance(value, dict) or set(cast(Any, value)) != set(expected):
        raise ConfigError(f"'{name}' has to be an object with {', '.join(expected)}")
    return tuple(cast("dict[str, Any]", value)[key] for key in expected)


def _is_positive(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value > 0
