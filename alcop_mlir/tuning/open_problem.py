"""A contraction with sizes that are known at run time only, and samples of its sizes.

Samples are log-uniform in their ranges. What divides a size matters along the rows of
operands alone. The sizes of these are of one kind in a sample: of eight samples, three
have powers of two, three multiples of 16, one multiples of 4 bytes, and one odd
neighbours of powers of two. The points are those of an additive recurrence, the same in
each run.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from alcop_mlir.taps import Taps
from alcop_mlir.target import CP_ASYNC_BYTES
from alcop_mlir.tuning.candidates import FloatArray, IntArray
from alcop_mlir.tuning.problem import Problem, Typed

LARGEST = 16384  # of a size, where nothing else is said
LARGEST_BATCH = 1024
LOOPS = "bmnk"
WIDEST = max(CP_ASYNC_BYTES)  # bytes of a copy
Range = tuple[int, int]  # of a size: the least and the largest
_KINDS = ("power",) * 3 + ("sixteens",) * 3 + ("words", "odd")
_STRIDE_BYTES = {"words": 4, "odd": 1}  # divide strides of these kinds, and no more
_SIXTEENS = 16
_WORD = 4  # bytes
# 1/p, 1/p^2, ... of the p with p^5 = p + 1: evenly spread in four dimensions.
_STEPS = 1.1673039782614187 ** -np.arange(1.0, 5.0)


@dataclass(frozen=True)
class Rows:
    """The rows of an operand.

    name: "A", "B" or "C"
    loop: along a row
    known_bytes: is known to divide their strides
    has_open_strides: which do not follow from sizes
    """

    name: str
    loop: str
    element_bytes: int
    known_bytes: int
    has_open_strides: bool


@dataclass(frozen=True)
class OpenProblem(Typed):
    """A contraction whose sizes are in ranges; see `Problem`.

    m, n, k, batch: ranges; of one number where a size is known
    row_bytes: is known to divide the strides of rows of A, and of B, in bytes; their
        length as well, where it is not known
    open_strides: of A, B and C those whose strides of rows do not follow from sizes
    """

    m: Range = (1, LARGEST)
    n: Range = (1, LARGEST)
    k: Range = (1, LARGEST)
    batch: Range = (1, 1)
    op: str = "matmul"
    dtypes: tuple[str, str, str, str] = ("f16", "f16", "f32", "f32")
    layout: str = "mk,kn"
    row_bytes: tuple[int, int] = (1, 1)
    open_strides: str = ""
    taps: Taps | None = None

    @property
    def ranges(self) -> dict[str, Range]:
        """By loop, in the order b, m, n, k."""
        return dict(zip(LOOPS, (self.batch, self.m, self.n, self.k), strict=True))

    @property
    def open_loops(self) -> str:
        """Those whose size is not known."""
        return "".join(loop for loop, (lo, hi) in self.ranges.items() if lo < hi)

    @property
    def rows(self) -> list[Rows]:
        """Those of A, B and C."""
        a, b = (operand[-1] for operand in self.layout.split(","))
        size, (known_a, known_b) = self.element_bytes, self.row_bytes
        return [
            Rows("A", a, size, known_a, "A" in self.open_strides),
            Rows("B", b, size, known_b, "B" in self.open_strides),
            Rows("C", "n", self.out_bytes, 1, "C" in self.open_strides),
        ]

    @property
    def row_loops(self) -> str:
        """The loops along the rows of A, B and C."""
        return "".join(rows.loop for rows in self.rows)

    def most_row_bytes(self, rows: Rows) -> int:
        """What may divide the strides of such rows, in bytes; 16 at most."""
        low, high = self.ranges[rows.loop]
        if low < high or rows.has_open_strides:
            return WIDEST
        return max(rows.known_bytes, math.gcd(WIDEST, low * rows.element_bytes))

    def __str__(self) -> str:
        batch, m, n, k = map(_text, self.ranges.values())
        a, b, _, out = self.dtypes
        kinds = a if a == b else f"{a},{b}"
        of_batch = f"{batch}x" if self.batch != (1, 1) else ""
        return f"{self.op} {of_batch}{m}x{n}x{k} {kinds}->{out}"

    def at(self, b: int, m: int, n: int, k: int) -> Problem:
        """The contraction of these sizes."""
        return Problem(m, n, k, b, self.op, self.dtypes, self.layout, self.taps)

    def covers(self, problem: Problem) -> bool:
        """Whether `problem` is this one with known sizes."""
        sizes = problem.batch, problem.m, problem.n, problem.k
        same = (problem.op, problem.dtypes, problem.layout, problem.taps) == (
            self.op,
            self.dtypes,
            self.layout,
            self.taps,
        )
        return same and all(
            low <= size <= high
            for size, (low, high) in zip(sizes, self.ranges.values(), strict=True)
        )


@dataclass(frozen=True, eq=False)
class Problems(Typed):
    """Contractions that differ in their sizes only; a column for each size."""

    batch: IntArray
    m: IntArray
    n: IntArray
    k: IntArray
    dtypes: tuple[str, str, str, str]
    layout: str
    taps: Taps | None = None

    @property
    def flops(self) -> FloatArray:
        """Multiplications and additions of each."""
        flops: FloatArray = 2.0 * self.m.astype(np.float64)
        return flops * self.n * self.k * self.batch


@dataclass(frozen=True, eq=False)
class Samples:
    """Sizes of an open problem.

    sizes: one row for each sample; the sizes of the loops b, m, n, k
    row_bytes: of each, what divides the lengths and the strides of rows of A, B and C
        that are not known, in bytes
    """

    problem: OpenProblem
    sizes: IntArray
    row_bytes: IntArray

    def __len__(self) -> int:
        return len(self.sizes)

    @property
    def problems(self) -> Problems:
        """One for each sample."""
        columns = [self.sizes[:, [number]] for number in range(len(LOOPS))]
        known = self.problem
        return Problems(
            *columns, dtypes=known.dtypes, layout=known.layout, taps=known.taps
        )

    def product(self, loops: str) -> FloatArray:
        """Of the sizes of `loops`, for each sample."""
        columns = [LOOPS.index(loop) for loop in loops]
        product: FloatArray = np.ones(len(self))
        for column in columns:
            product *= self.sizes[:, column]
        return product

    def take(self, rows: IntArray | slice) -> Samples:
        """Those at `rows`."""
        return Samples(self.problem, self.sizes[rows], self.row_bytes[rows])

    @classmethod
    def of(
        cls, problem: OpenProblem, sizes: IntArray, strides: IntArray | None = None
    ) -> Samples:
        """Those `sizes`; one row each, of the loops b, m, n, k.

        strides: what divides those that do not follow from sizes, in bytes; None for
            rows without gaps
        """
        row_bytes = np.zeros(len(sizes), np.int64)
        for rows in problem.rows:
            low, high = problem.ranges[rows.loop]
            if rows.has_open_strides and strides is not None:
                row_bytes = np.gcd(row_bytes, strides)
            if low < high or (rows.has_open_strides and strides is None):
                length = sizes[:, LOOPS.index(rows.loop)] * rows.element_bytes
                row_bytes = np.gcd(row_bytes, length)
        row_bytes[row_bytes == 0] = WIDEST
        return cls(problem, sizes, row_bytes)


def sample(problem: OpenProblem, count: int) -> Samples:
    """Samples at `count` points that are evenly spread."""
    number = np.arange(1, count + 1)
    return from_points(problem, number[:, None] * _STEPS % 1.0, number)


def from_points(problem: OpenProblem, points: FloatArray, kinds: IntArray) -> Samples:
    """Samples at `points` of the unit cube, one for each loop; `kinds` choose kinds."""
    columns = [
        _sizes(problem, loop, points[:, n], kinds) for n, loop in enumerate(LOOPS)
    ]
    sizes = np.stack(columns, axis=1)
    if not problem.open_strides:
        return Samples.of(problem, sizes)
    # Strides are of the kind that sizes are of.
    least = math.gcd(*problem.row_bytes)
    strides = [max(least, _STRIDE_BYTES.get(kind, WIDEST)) for kind in _KINDS]
    return Samples.of(problem, sizes, np.array(strides)[kinds % len(_KINDS)])


def _sizes(
    problem: OpenProblem, loop: str, points: FloatArray, kinds: IntArray
) -> IntArray:
    """Log-uniform sizes of one loop; along rows, of their kinds."""
    low, high = problem.ranges[loop]
    size: FloatArray = low * (high / low) ** points
    if loop in problem.row_loops:
        power: FloatArray = np.exp2(np.round(np.log2(size)))
        of_kind = {
            "power": power,
            "sixteens": _multiple(size, _SIXTEENS),
            "words": _multiple(size, max(1, _WORD // problem.element_bytes)),
            "odd": power + np.where(kinds // len(_KINDS) % 2, 1, -1),
        }
        masks = [np.array(_KINDS)[kinds % len(_KINDS)] == kind for kind in of_kind]
        size = np.select(masks, [*of_kind.values()]).astype(np.float64)
    for rows in problem.rows:
        if loop == rows.loop:
            size = _multiple(size, max(1, rows.known_bytes // rows.element_bytes))
    return np.minimum(np.maximum(np.round(size), low), high).astype(np.int64)


def _text(sizes: Range) -> str:
    low, high = sizes
    return str(low) if low == high else f"({low} to {high})"


def _multiple(size: FloatArray, of: int) -> FloatArray:
    return np.maximum(1.0, np.round(size / of)) * of
