"""The manifest of a bundle: plain data that describes its functions and kernels.

It holds everything that is needed to launch and to check, and nothing executable: grids
are ceil-divisions of named sizes by constants, the reference is a list of steps.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Annotated

from alcop_mlir.codec import Matches, OneOf, Range, Stored
from alcop_mlir.polynomials import Polynomial, collected
from alcop_mlir.reference import steps
from alcop_mlir.reference.steps import Size, Step
from alcop_mlir.schedule import Schedule

SCHEMA = 2
# MLIR's names; integers are signed.
DTYPES = ("f16", "bf16", "f32", "f64", "i8", "i16", "i32", "i64")
ROLES = ("in", "out", "inout")
LEVELS = ("shared", "register")
_INDEX_BITS = 64
Dim3 = tuple[int, int, int]  # along x, y, z
_Count = Annotated[int, Range(0)]
_Positive = Annotated[int, Range(1)]
# As a list of terms, such as [[8, ["M", "N"]], [2, []]] for 8 * M * N + 2.
_StoredPolynomial = Annotated[
    Polynomial,
    Stored(tuple[tuple[int, tuple[str, ...]], ...], collected, lambda made: made.terms),
]


@dataclass(frozen=True)
class Parameter:
    """One array argument; `shape` in elements, C order.

    strides:       in elements; None for a contiguous array
    row_alignment: bytes that the length and the stride of rows are a multiple of
    """

    name: str
    dtype: Annotated[str, OneOf(DTYPES)]
    shape: tuple[Size, ...]
    role: Annotated[str, OneOf(ROLES)]
    strides: tuple[Size, ...] | None = None
    row_alignment: _Positive = 1


@dataclass(frozen=True)
class Intermediate:
    """An intermediate buffer, which lives for one call; C order.

    dtype: by MLIR's name; may be one that arguments cannot have
    """

    name: str
    dtype: Annotated[str, Matches(r"(bf|f|i)[1-9]\d{0,2}|index")]
    shape: tuple[Size, ...]

    def bytes(self, sizes: Mapping[str, int]) -> int:
        """Its size in bytes, given the named sizes."""
        return element_bytes(self.dtype) * product(self.shape, sizes)


@dataclass(frozen=True)
class CeilDiv:
    """`sizes` multiplied together, divided by `divisor` and rounded up."""

    sizes: tuple[Size, ...]
    divisor: _Positive

    def number(self, sizes: Mapping[str, int]) -> int:
        """The number, given the named sizes."""
        return -(-product(self.sizes, sizes) // self.divisor)


@dataclass(frozen=True)
class AtMost:
    """A condition on the sizes of a call: `least` is not greater than `most`."""

    least: _StoredPolynomial
    most: _StoredPolynomial


@dataclass(frozen=True)
class PipelinedBuffer:
    """One pipelined buffer: how many slots, at which level of the memory hierarchy."""

    buffer: str
    level: Annotated[str, OneOf(LEVELS)]
    stages: _Count


@dataclass(frozen=True)
class Kernel:
    """One launch of a kernel.

    arguments: names of arrays, then sizes, by name or as numbers, in the order of the
        kernel's parameters
    simt: whether it is a SIMT fallback, for what tensor cores do not compute
    grid, block: blocks, threads, along x, y, z
    shared_bytes: dynamic shared memory; static_shared_bytes, registers (per thread) and
        spill_bytes as ptxas reports them, None without ptxas
    """

    name: Annotated[str, Matches(r"[A-Za-z_$][A-Za-z0-9_$]*")]  # also of a file
    arguments: tuple[Size, ...]
    grid: tuple[_Count | CeilDiv, _Count | CeilDiv, _Count | CeilDiv]
    block: tuple[_Positive, _Positive, _Positive]
    shared_bytes: _Count
    schedule: Schedule | None = None
    pipelines: tuple[PipelinedBuffer, ...] = ()
    registers: _Count | None = None
    spill_bytes: _Count | None = None
    static_shared_bytes: _Count | None = None
    simt: bool = False


@dataclass(frozen=True)
class Function:
    """One callable of a bundle: launches its kernels in order.

    reference:     what it computes, for checking; empty where that is not known
    intermediates: buffers that the kernels use besides the parameters
    checks:        conditions under which no kernel accesses an array out of bounds
    """

    name: str
    parameters: tuple[Parameter, ...]
    kernels: tuple[Kernel, ...]
    reference: tuple[Step, ...] = ()
    intermediates: tuple[Intermediate, ...] = ()
    checks: tuple[AtMost, ...] = ()


def intermediate_name(number: int) -> str:
    """The name of the intermediate buffer with that number."""
    return f"tmp{number}"


def product(factors: Iterable[Size], sizes: Mapping[str, int]) -> int:
    """The product of numbers and named sizes."""
    return math.prod(sizes[f] if isinstance(f, str) else f for f in factors)


def element_bytes(dtype: str) -> int:
    """Bytes of one element, by MLIR's name of its type, such as "bf16" or "index"."""
    bits = _INDEX_BITS if dtype == "index" else int(dtype.lstrip("bfi"))
    return -(-bits // 8)


def with_sizes(function: Function, sizes: Mapping[str, int]) -> Function:
    """`function` for arrays of these sizes; other sizes keep their names."""

    def known(shape: tuple[Size, ...]) -> tuple[Size, ...]:
        return tuple(sizes.get(s, s) if isinstance(s, str) else s for s in shape)

    return replace(
        function,
        parameters=tuple(
            replace(
                one, shape=known(one.shape), strides=one.strides and known(one.strides)
            )
            for one in function.parameters
        ),
        reference=tuple(steps.with_sizes(step, sizes) for step in function.reference),
        intermediates=tuple(
            replace(one, shape=known(one.shape)) for one in function.intermediates
        ),
    )


def named_sizes(parameters: Iterable[Parameter]) -> set[str]:
    """Names of the sizes and strides that the arrays of a call give."""
    return {
        size
        for parameter in parameters
        for size in (*parameter.shape, *(parameter.strides or ()))
        if isinstance(size, str)
    }
