"""Launches of kernels: variants with guards, arguments, grids, what was decided."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Annotated, Literal

from alcop_mlir.codec import Tagged
from alcop_mlir.codec_forms import Matches
from alcop_mlir.errors import ConfigError
from alcop_mlir.extents import Extent, StoredPolynomial
from alcop_mlir.frozen import frozen
from alcop_mlir.manifest.ranges import Count, Identifier, Positive
from alcop_mlir.polynomials import Polynomial
from alcop_mlir.schedule import Schedule

MOST_ADDRESS = 2**47 - 1  # of what a pointer points to: the canonical lower half
Level = Literal["shared", "register"]
Dim3 = tuple[int, int, int]  # along x, y, z


@frozen
class CeilDiv:
    """`dividend` divided by `divisor` and rounded up."""

    dividend: StoredPolynomial
    divisor: Positive

    def number(self, sizes: Mapping[str, int]) -> int:
        """The number, given the named sizes."""
        return -(-self.dividend.value(sizes) // self.divisor)

    def __str__(self) -> str:
        if self.divisor == 1:
            return _factor(self.dividend)
        return f"ceil({self.dividend} / {self.divisor})"


def _factor(value: Polynomial) -> str:
    """The text of `value` where it is multiplied."""
    text = str(value)
    return f"({text})" if " " in text else text


# A number of blocks; several are multiplied.
Blocks = Count | CeilDiv | tuple[Count | CeilDiv, ...]


def block_counts(blocks: Blocks) -> tuple[int | CeilDiv, ...]:
    """The numbers that are multiplied to give `blocks`."""
    return blocks if isinstance(blocks, tuple) else (blocks,)


def number_of_blocks(blocks: Blocks, sizes: Mapping[str, int]) -> int:
    """The number, given the named sizes."""
    return math.prod(
        one.number(sizes) if isinstance(one, CeilDiv) else one
        for one in block_counts(blocks)
    )


@frozen
class AtMost:
    """The condition that `least` is at most `most`."""

    least: StoredPolynomial
    most: StoredPolynomial

    def __str__(self) -> str:
        return f"{self.least} <= {self.most}"


@frozen
class Divisible:
    """The condition that `value`, of sizes and strides, is a multiple of `by`."""

    value: StoredPolynomial
    by: Positive

    def __str__(self) -> str:
        return f"{_factor(self.value)} % {self.by} == 0"


@frozen
class Aligned:
    """The condition that the address of an array is a multiple of `bytes`."""

    array: str
    bytes: Positive

    def __str__(self) -> str:
        return f"address of {self.array} % {self.bytes} == 0"


Condition = Annotated[
    AtMost | Divisible | Aligned,
    Tagged("holds", {"at_most": AtMost, "divisible": Divisible, "aligned": Aligned}),
]


@frozen
class Pointer:
    """The address of the first element of an array, by its name; 64 bits."""

    array: str


@frozen
class SizeValue:
    """A size or stride, or what the host computes of sizes; 64 bits."""

    size: Extent


@frozen
class TensorMap:
    """A CUtensorMap of an array, as cuTensorMapEncodeTiled makes it; 128 bytes.

    Dimensions are listed from the innermost on, as there.

    dtype:           of elements as they are copied, by MLIR's name
    shape:           of the array as it is copied, in elements; up to 5 dimensions
    strides:         in bytes, of all dimensions but the innermost
    box:             elements along each dimension that one instruction copies
    element_strides: of every how many elements along each dimension one is copied
    interleave, swizzle, l2_promotion: bytes, 0 for none
    fill:            what elements beyond the array are
    """

    array: str
    dtype: Annotated[str, Matches(r"(bf|tf|f|i|u)[1-9]\d{0,2}(E\dM\d(FN)?)?")]
    shape: tuple[StoredPolynomial, ...]
    strides: tuple[StoredPolynomial, ...]
    box: tuple[Positive, ...]
    element_strides: tuple[Positive, ...]
    interleave: Literal[0, 16, 32] = 0
    swizzle: Literal[0, 32, 64, 128] = 0
    l2_promotion: Literal[0, 64, 128, 256] = 0
    fill: Literal["zeros", "nan"] = "zeros"


Argument = Annotated[
    Pointer | SizeValue | TensorMap,
    Tagged("kind", {"pointer": Pointer, "size": SizeValue, "tensor_map": TensorMap}),
]


@frozen
class PipelinedBuffer:
    """One pipelined buffer: how many slots, at which level of the memory hierarchy."""

    buffer: str
    level: Level
    stages: Positive


@frozen
class Kernel:
    """How a kernel is launched, and what was decided for it.

    module: of the bundle, which holds its code
    arguments: in the order of the kernel's parameters
    grid, block: blocks, threads, along x, y, z
    shared_bytes: dynamic shared memory; static_shared_bytes, registers (per thread) and
        spill_bytes as ptxas reports them, None without ptxas
    fallback: why it is a SIMT fallback, "" where nothing else fits; None if it is none
    schedule_source: what has decided the schedule, see `Decision`; None if not known
    """

    name: Identifier
    module: Identifier
    arguments: tuple[Argument, ...]
    grid: tuple[Blocks, Blocks, Blocks]
    block: tuple[Positive, Positive, Positive]
    shared_bytes: Count
    schedule: Schedule | None = None
    pipelines: tuple[PipelinedBuffer, ...] = ()
    registers: Count | None = None
    spill_bytes: Count | None = None
    static_shared_bytes: Count | None = None
    fallback: str | None = None
    schedule_source: str | None = None

    @property
    def arrays(self) -> tuple[str, ...]:
        """The names of the arrays that it accesses."""
        return tuple(
            one.array for one in self.arguments if not isinstance(one, SizeValue)
        )


@frozen
class Variant:
    """Kernels that are launched, in order, where all conditions of the guard hold.

    checks: conditions under which these access no array out of bounds
    """

    kernels: tuple[Kernel, ...]
    guard: tuple[Condition, ...] = ()
    checks: tuple[AtMost, ...] = ()


@frozen
class Launch:
    """The kernels of the first variant whose guard holds; the last one has none.

    Raises ConfigError where the last variant has a guard, or there is none.
    """

    variants: tuple[Variant, ...]

    def __post_init__(self) -> None:
        if not self.variants or self.variants[-1].guard:
            raise ConfigError("launch: the last variant must have no guard")

    @property
    def kernels(self) -> tuple[Kernel, ...]:
        """The kernels of all variants."""
        return tuple(kernel for one in self.variants for kernel in one.kernels)

    @property
    def arrays(self) -> set[str]:
        """The names of the arrays that any variant accesses."""
        return {name for kernel in self.kernels for name in kernel.arrays}


def unguarded(*kernels: Kernel) -> Launch:
    """The launch of `kernels`, whatever the sizes are."""
    return Launch((Variant(kernels),))
