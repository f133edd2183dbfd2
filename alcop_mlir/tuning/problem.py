"""The tuner's description of a contraction: operator, sizes, types and layout."""

from __future__ import annotations

import functools
import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Annotated, Any

from alcop_mlir import codec
from alcop_mlir.codec import open_ended, shared
from alcop_mlir.codec_forms import OneOf, Range
from alcop_mlir.element_types import (
    ACCUMULATORS,
    CONTRACTION_TYPES,
    element_bytes,
)
from alcop_mlir.errors import ConfigError
from alcop_mlir.resources import WORD_BYTES, Copies
from alcop_mlir.taps import Taps
from alcop_mlir.target import CP_ASYNC_BYTES

CHAIN = "chain"
OPERATORS = ("matmul", "batch_matmul", CHAIN)
# Of what mma.sync multiplies, adds up in and is rounded to.
ELEMENT_BYTES = {
    name: element_bytes(name)
    for name in dict.fromkeys((*ACCUMULATORS, *CONTRACTION_TYPES))
}
_Extent = Annotated[int, Range(1)]
_Distance = Annotated[int, Range(-(1 << 31), 1 << 31)]
_Type = Annotated[str, OneOf(ELEMENT_BYTES)]
_Operator = Annotated[str, OneOf(OPERATORS)]


class Typed:
    """What follows from sizes and types of a contraction, and the taps that K has."""

    dtypes: tuple[_Type, _Type, _Type, _Type]
    layout: str
    taps: Taps | None
    places: tuple[int, int] | None = None  # open sizes have none
    m: Any
    n: Any
    k: Any
    batch: Any

    @property
    def input_bytes(self) -> Any:
        """Of A and B in memory: of windows without what others have as well."""
        own_a, own_b = self.own_parts
        rows = self.m * own_a + self.n * own_b
        return 1.0 * self.batch * rows * self.k * self.element_bytes

    @property
    def gathered(self) -> str:
        """The operand that consists of windows, "A" or "B"; "" where none does."""
        return "" if self.taps is None else self.taps.operand

    @property
    def tap_count(self) -> int:
        """Of each row; 1 where K has no taps."""
        return 1 if self.taps is None else self.taps.count

    @property
    def own_parts(self) -> tuple[float, float]:
        """The part of a row of A, and of a column of B, that others do not have."""
        if self.taps is None:
            return 1.0, 1.0
        own = self.taps.fresh / self.taps.count
        return (own, 1.0) if self.taps.operand == "A" else (1.0, own)

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


@dataclass(frozen=True)
class Chain:
    """What a chain of two contractions has beside the M, N and K of its scores.

    d: columns of its values, and of its result
    first, last: see `ChainSizes`; None for none
    of_rows: numbers of each row that its parts leave; 0 without a softmax
    """

    d: _Extent
    first: _Distance | None = None
    last: _Distance | None = None
    of_rows: Annotated[int, Range(0, 2)] = 2

    def seen(self, m: int, n: int) -> int:
        """Scores that no mask leaves out."""
        if self.last is None:
            return m * n
        before = 0 if self.first is None else _left_of(self.first, m, n)
        return max(_left_of(self.last + 1, m, n) - before, 0)


def _left_of(distance: int, m: int, n: int) -> int:
    """Columns of all rows, that are less than so far behind the row's own number."""
    first, end = (min(max(one - distance, 0), m) for one in (0, n))
    rows = end - first  # of which some columns are
    return rows * (first + end - 1 + 2 * distance) // 2 + n * (m - end)


@dataclass(frozen=True)
class Problem(Typed):
    """C[batch, M, N] = A[batch, M, K] * B[batch, K, N]; ConfigError when invalid.

    A chain, as attention is one, has scores of these sizes, of which it takes the
    softmax of rows, and multiplies it by values of N x D.

    dtypes: elements of A and B, of the accumulator, of C
    layout: loops that index A and B, in each operand's order
    taps:   of the windows that A or B consists of
    chain:  of an `op` that is one; types are those of queries and keys, of values
    row_bytes: divides the distances of rows of A, and of B, in bytes; None where rows
        follow each other without gaps. Not in records: they are of such rows
    places: of windows of several taps that A consists of, along the last two dimensions
        of an image. Not in records: only schedules with rectangles need them
    has_roles: whether warps may have roles, and wgmma multiply, as far as types, layout
        and rows allow. Not in records: they are of kernels that were compiled
    """

    m: _Extent
    n: _Extent
    k: _Extent
    batch: _Extent = 1
    op: _Operator = "matmul"
    dtypes: tuple[_Type, _Type, _Type, _Type] = ("f16", "f16", "f32", "f32")
    layout: str = "mk,kn"
    taps: Taps | None = None
    chain: Chain | None = None
    row_bytes: tuple[int, int] | None = None
    places: tuple[_Extent, _Extent] | None = None
    has_roles: bool = True

    def __post_init__(self) -> None:
        codec.check(self, "problem")
        if (self.op == CHAIN) != (self.chain is not None):
            has = "without" if self.chain is None else "with"
            raise ConfigError(f"problem: op is {self.op}, {has} members of a chain")

    @property
    def copies(self) -> Copies:
        """How tiles of A and of B are copied."""
        a, b = self.row_bytes or self.dense_row_bytes
        size = self.element_bytes
        # Of known sizes two take no more registers than one: 250 of tn, 254 of nn.
        words = min(1, word_loads(self.layout, size))
        return Copies((max(size, a), max(size, b)), self.gathered, words)

    @property
    def recorded(self) -> Problem:
        """What records are of that decide about it."""
        return replace(self, row_bytes=None, places=None, has_roles=True)

    @property
    def dense_row_bytes(self) -> tuple[int, int]:
        """What divides rows that follow each other without gaps, 16 at most."""
        sizes = dict(zip("mnkb", self.sizes, strict=True))
        sizes["k"] = self.run
        a, b = (
            math.gcd(max(CP_ASYNC_BYTES), sizes[loops[-1]] * self.element_bytes)
            for loops in self.layout.split(",")
        )
        return a, b

    @property
    def sizes(self) -> tuple[int, int, int, int]:
        """M, N, K, batch."""
        return self.m, self.n, self.k, self.batch

    @property
    def run(self) -> int:
        """K, or the channels of a tap."""
        return self.k // self.tap_count

    @property
    def is_batched(self) -> bool:
        """Whether it has a batch, which may be of size one."""
        return self.op == "batch_matmul"

    @property
    def flops(self) -> float:
        """Multiplications and additions."""
        if self.chain is not None:
            seen = self.batch * self.chain.seen(self.m, self.n)
            return 2.0 * seen * (self.k + self.chain.d)
        return 2.0 * self.m * self.n * self.k * self.batch

    def __str__(self) -> str:
        batch = f"{self.batch}x" if self.batch > 1 else ""
        a, b, _, out = self.dtypes
        kinds = a if a == b else f"{a},{b}"
        if self.chain is not None:
            mask = "" if self.chain.last is None else ", masked"
            shape = f"{self.batch}x{self.m}x{self.n}, rows of {self.k} and"
            return f"chain {shape} {self.chain.d}{mask} {kinds}->{out}"
        k = self.k if self.taps is None else f"{self.taps.count}*{self.run}"
        return f"{self.op} {batch}{self.m}x{self.n}x{k} {kinds}->{out}"

    def to_record(self) -> dict[str, Any]:
        """The members `op`, `shape`, `dtypes` and `layout` of a record."""
        return codec.encode(self.stored)

    @property
    def stored(self) -> StoredProblem:
        """In the form of records."""
        shape, dtypes = Shape(*self.sizes), Dtypes(*self.dtypes)
        return StoredProblem(self.op, shape, dtypes, self.layout, self.taps, self.chain)

    @classmethod
    def from_record(cls, members: Mapping[str, Any]) -> Problem:
        """From the members of a record; ConfigError says what is wrong in them."""
        return codec.decode(StoredProblem, members).problem


@shared
@dataclass(frozen=True)
class Shape:
    """The sizes of a problem, as records have them."""

    M: _Extent
    N: _Extent
    K: _Extent
    batch: _Extent


@shared
@dataclass(frozen=True)
class Dtypes:
    """The types of a problem, as records have them."""

    a: _Type
    b: _Type
    acc: _Type
    out: _Type


@open_ended  # the other members of a record
@dataclass(frozen=True)
class StoredProblem:
    """A problem in the form of records."""

    op: _Operator
    shape: Shape
    dtypes: Dtypes
    layout: str
    taps: Taps | None = None
    chain: Chain | None = None

    @property
    def problem(self) -> Problem:
        """What it stands for."""
        return _problem(self)


@functools.cache  # records are many, their problems few
def _problem(stored: StoredProblem) -> Problem:
    shape, dtypes = stored.shape, stored.dtypes
    types = dtypes.a, dtypes.b, dtypes.acc, dtypes.out
    sizes = shape.M, shape.N, shape.K, shape.batch
    return Problem(*sizes, stored.op, types, stored.layout, stored.taps, stored.chain)


def word_loads(layout: str, element_bytes: int) -> int:
    """How many operands have fragments that are loaded by words; see `Copies`."""
    if element_bytes != WORD_BYTES:
        return 0
    return sum(not loops.endswith("k") for loops in layout.split(","))


def dtypes(
    inputs: tuple[str, str], out: str, precision: str | None
) -> tuple[str, str, str, str]:
    """A contraction's types: A and B as multiplied, the accumulator, C.

    precision: what inputs are rounded to: "tf32", or None
    """
    a, b = (precision or given for given in inputs)
    return a, b, ACCUMULATORS.get(a, a), out
