"""When a variant of a contraction may run: what its guard asks of sizes, strides and
addresses.

`find_guard` answers for one variant; sizes and strides that are known are folded away,
and so is what the user promises of rows. Changes nothing.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import field, replace
from typing import Any

from alcop_mlir import schedule_checks
from alcop_mlir.analysis.ir.alignment import (
    BASE_ALIGNMENT,
    base_alignment,
    element_bytes,
    source_dimension,
)
from alcop_mlir.analysis.ir.extents import extent
from alcop_mlir.analysis.ir.gathered_rows import never_made
from alcop_mlir.analysis.ir.loops import defining_op
from alcop_mlir.analysis.ir.memref_layouts import follows_shape, open_strides
from alcop_mlir.analysis.ir.promises import row_alignment
from alcop_mlir.analysis.linalg.beginnings import Beginning, beginning
from alcop_mlir.analysis.linalg.contraction_letters import BATCHES
from alcop_mlir.bindings import ir
from alcop_mlir.frozen import frozen
from alcop_mlir.variants import NO_MOST, ScheduleVariant, SizeLimit

Buffer = tuple[Any, str]  # a memref, and the letters of the loops that index it
_LOOPS = f"{BATCHES}mnk"
_SAME = ("memref.assume_alignment", "memref.cast")  # have their source's strides


@frozen
class Open:
    """A size of a memref or stride of an argument, known at run time only."""

    memref: Any
    dimension: int
    is_stride: bool = False


@frozen
class Limit:
    """Bounds of what these sizes multiply to; None where there is none."""

    factors: tuple[Open, ...]
    least: int | None
    most: int | None


@frozen
class Guard:
    """Conditions that all have to hold.

    divisors: what each of these is a multiple of
    positive: what is 1 at least
    sizes:    of the loops of the contraction
    promised: what the sizes of loops are multiples of, whether it holds or not
    distances: of memrefs whose strides it asks for, what these are multiples of, in
        bytes
    beginnings: of the memrefs that are aligned further than is known
    """

    limits: tuple[Limit, ...]
    divisors: Mapping[Open, int]
    positive: tuple[Open, ...]
    sizes: Mapping[str, int | Open]
    promised: Mapping[str, int]
    distances: Mapping[Any, int]
    beginnings: Mapping[Any, Beginning] = field(default_factory=dict)

    @property
    def is_always_true(self) -> bool:
        """Whether it asks for nothing."""
        asked = self.limits or self.divisors or self.positive
        return not (asked or self.addresses or self.offsets)

    @property
    def addresses(self) -> Mapping[Any, int]:
        """What those of arguments are multiples of, in bytes."""
        return _together(one.addresses for one in self.beginnings.values())

    @property
    def offsets(self) -> Mapping[Any, int]:
        """What these values are multiples of."""
        return _together(one.offsets for one in self.beginnings.values())

    def alignment(self, memref: ir.Value) -> int:
        """Bytes that its first element is aligned to, where the guard holds."""
        known, found = base_alignment(memref), self.beginnings.get(memref)
        return known if found is None else max(known, found.alignment)

    def divisor(self, loop: str) -> int:
        """What the size of a loop is a multiple of, where the guard holds."""
        size = self.sizes[loop]
        if isinstance(size, int):
            return size
        return math.lcm(self.divisors.get(size, 1), self.promised[loop])

    def rows(self, buffer: Buffer) -> int:
        """Bytes that divide a buffer's rows and their distances, where the guard holds.

        Of rows with distances of their own the length does not count if it is known.
        """
        memref, loops = buffer
        kind = memref.type
        length = self.divisor(loops[-1]) * element_bytes(kind) if loops else 1
        if follows_shape(kind):
            return length
        distance = self.distances.get(memref, row_alignment(memref))
        is_open = kind.is_dynamic_dim(kind.rank - 1)
        return math.gcd(distance, length) if is_open else distance


class _NeverTrueError(Exception):
    """Some condition is false whatever the sizes are, or cannot be asked."""


def find_guard(
    variant: ScheduleVariant,
    inputs: Sequence[Buffer],
    outputs: Sequence[Buffer],
    others: Sequence[Buffer] = (),
) -> Guard | None:
    """When the variant may run; None if never.

    inputs:  A and B
    outputs: C, and what fused ops write instead
    others:  what fused ops access, of which nothing is asked but where it begins
    """
    buffers = [*inputs, *outputs]
    sizes = {loop: _loop_size(buffers, loop) for loop in _LOOPS}
    promised = {loop: _promised(buffers, loop) for loop in _LOOPS}
    guard = _Conditions(sizes, promised)
    try:
        for limit in variant.limits:
            guard.limit(limit)
        for buffer in buffers if variant.row_bytes > 1 else ():
            guard.rows(buffer, variant.row_bytes)
        least = min(element_bytes(memref.type) for memref, _ in inputs)
        guard.parts(schedule_checks.split_step(variant.schedule, least))
    except _NeverTrueError:
        return None
    limits, positive = tuple(guard.limits), tuple(guard.positive)
    found = Guard(limits, guard.divisors, positive, sizes, promised, guard.distances)
    if variant.row_bytes == 1:
        return found
    # What is stored is seldom a view: it may be stored as wide as rows allow.
    widths = [(inputs, variant.row_bytes), ((*outputs, *others), BASE_ALIGNMENT)]
    begins = {
        buffer[0]: _begins(found, buffer, widest)
        for some, widest in widths
        for buffer in some
    }
    return replace(found, beginnings=begins)


def _begins(guard: Guard, buffer: Buffer, widest: int) -> Beginning:
    """Where a buffer begins: as aligned as its rows are apart, if that can be asked."""
    rows = guard.rows(buffer)
    return beginning(buffer[0], math.gcd(widest, rows), rows)


def _together(every: Iterable[Mapping[Any, int]]) -> Mapping[Any, int]:
    """All of `every`; of what is there twice, what both divide."""
    found: dict[Any, int] = {}
    for some in every:
        for one, of in some.items():
            found[one] = math.lcm(of, found.get(one, 1))
    return found


class _Conditions:
    """Collects conditions; raises _NeverTrueError at one that is false."""

    def __init__(self, sizes: Mapping[str, int | Open], promised: Mapping[str, int]):
        self.sizes = sizes
        self.promised = promised
        self.limits: list[Limit] = []
        self.divisors: dict[Open, int] = {}
        self.positive: list[Open] = []
        self.distances: dict[Any, int] = {}

    def limit(self, limit: SizeLimit) -> None:
        """The product of the sizes of some loops is within a limit."""
        loops = limit.loops.replace("b", BATCHES)  # "b" stands for all of the batch
        sizes = [self.sizes[loop] for loop in loops]
        known = math.prod(size for size in sizes if isinstance(size, int))
        factors = tuple(size for size in sizes if not isinstance(size, int))
        if factors and known:
            least = -(-limit.least // known) or None
            most = None if limit.most == NO_MOST else limit.most // known
            if least is not None or most is not None:
                self.limits.append(Limit(factors, least, most))
        elif not limit.least <= known <= limit.most:
            raise _NeverTrueError

    def rows(self, buffer: Buffer, row_bytes: int) -> None:
        """Rows and their distances are multiples of these, as far as they are open."""
        memref, loops = buffer
        kind = memref.type
        elements = max(1, row_bytes // element_bytes(kind))
        if isinstance(self.sizes[loops[-1]], Open):
            self._size(loops[-1], elements)
        if follows_shape(kind):
            return
        self.distances[memref] = math.lcm(row_bytes, row_alignment(memref))
        if row_alignment(memref) % row_bytes:
            for dimension in open_strides(kind):
                self._multiple(_stride(memref, dimension), elements)

    def parts(self, step: int) -> None:
        """K is split into parts: a multiple of `step`, if that is more than 1."""
        size = self.sizes["k"]
        if step == 1:
            return
        if size == 0:
            raise _NeverTrueError
        self._size("k", step)
        if not isinstance(size, int):
            self.positive.append(size)

    def _size(self, loop: str, of: int) -> None:
        if self.promised[loop] % of:
            self._multiple(self.sizes[loop], of)

    def _multiple(self, number: int | Open | None, of: int) -> None:
        if of == 1:
            return
        if number is None or (isinstance(number, int) and number % of):
            raise _NeverTrueError
        if isinstance(number, Open):
            self.divisors[number] = math.lcm(of, self.divisors.get(number, 1))


def _loop_size(buffers: Sequence[Buffer], loop: str) -> int | Open:
    """The size of a loop; 1 for one that there is not."""
    dims = [(memref, loops.index(loop)) for memref, loops in buffers if loop in loops]
    sizes = [_size(*dim) for dim in dims] or [1]
    # The host cannot ask for the size of a matrix that is never made.
    asked = [size for size in sizes if isinstance(size, int) or _is_made(size.memref)]
    return next((size for size in sizes if isinstance(size, int)), asked[0])


def _is_made(memref: ir.Value) -> bool:
    return never_made(memref) is None


def _promised(buffers: Sequence[Buffer], loop: str) -> int:
    """What the user promises that the size of a loop is a multiple of."""
    rows = [
        row_alignment(memref) // element_bytes(memref.type)
        for memref, loops in buffers
        if loops.endswith(loop)
    ]
    return math.lcm(*(elements for elements in rows if elements))


def _size(memref: ir.Value, dimension: int) -> int | Open:
    known = extent(memref, dimension)
    return known if isinstance(known, int) else Open(memref, dimension)


def _stride(memref: ir.Value, dimension: int) -> int | Open | None:
    """A stride, or a size that divides it; None where the host cannot ask for it."""
    kind = memref.type
    strides, _ = kind.get_strides_and_offset()
    if not kind.is_dynamic_stride_or_offset(strides[dimension]):
        return strides[dimension]
    op = defining_op(memref)
    if follows_shape(kind):
        return _size(memref, kind.rank - 1)
    if op is None:
        return Open(memref, dimension, is_stride=True)
    if op.name not in (*_SAME, "memref.subview"):
        return None
    source, of_source = op.operands[0], source_dimension(op, dimension)
    is_ranked = isinstance(source.type, ir.MemRefType)
    return None if of_source is None or not is_ranked else _stride(source, of_source)
