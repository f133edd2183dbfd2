"""How the copy of a tile is distributed over the threads of a block.

A tile is cut into chunks of consecutive elements of one row; one access of one thread
copies a chunk. Thread t copies chunks t, t + threads, t + 2 * threads, ...; neighbours
copy neighbouring chunks, so that a warp's accesses fill whole sectors.

Where the stride of rows is known at run time only, or is large, or rows are gathered,
each row that a thread accesses needs an address of its own. The threads then cover a
narrower block of columns, of 64 bytes where possible, and move along the rows by
constants in the instructions. Of eight lanes, which write shared memory at once, two
groups of four then write to two rows, four apart: a swizzle by rows sends these to
different banks.

The source may be smaller than the tile, or gathered rows shorter. Where the source's
width allows, each chunk is then either inside of it or outside; only an asynchronous
copy may copy a part of one.
"""

from __future__ import annotations

import math
from typing import Any

from alcop_mlir.analysis.ir.alignment import (
    address_alignment,
    divisor,
    element_bytes,
    has_whole_bytes,
)
from alcop_mlir.analysis.ir.extents import extent, extent_divisor
from alcop_mlir.analysis.ir.kernels import ThreadBlock
from alcop_mlir.analysis.ir.memory import is_workgroup
from alcop_mlir.analysis.ir.rejected import Rejected
from alcop_mlir.bindings import ir
from alcop_mlir.frozen import frozen
from alcop_mlir.target import CP_ASYNC_BYTES, CP_ASYNC_REACH

GATHERS = ("alcop.gather", "alcop.async_gather")
ASYNC_COPIES = ("alcop.async_copy", "alcop.async_gather")
PLAIN_COPIES = ("memref.copy", "alcop.copy", "alcop.gather")
_WIDTH = 4  # the number of a gather's operand that bounds its rows
# Two sectors: a row of a tile of A of 32 f16.
_NARROW_BYTES = 64
_ROWS_OF_WARP = 8  # rows of 64 bytes that a warp takes at once, 16 bytes a lane
# Bytes of one load or store; [PTX] ld, st: up to .v4.b32.
ACCESS_BYTES = (1, 2, 4, 8, 16)


@frozen
class Distribution:
    """The chunks of a tile, distributed over threads.

    shape:    extents of the tile
    elements: consecutive elements in a chunk
    bytes:    bytes in a chunk
    threads:  threads that copy
    parts:    whether a chunk may be inside of the source in part
    across:   chunks of a row that neighbouring threads copy; 0 for all
    """

    shape: tuple[int, ...]
    elements: int
    bytes: int
    threads: int
    parts: bool = False
    across: int = 0

    @property
    def chunks_per_row(self) -> int:
        """Chunks along the last dimension."""
        return self.shape[-1] // self.elements

    @property
    def chunks(self) -> int:
        """All chunks of the tile."""
        return math.prod(self.shape[:-1]) * self.chunks_per_row

    @property
    def rounds(self) -> int:
        """Chunks of the busiest thread."""
        return -(-self.chunks // self.threads)

    @property
    def last_round(self) -> int:
        """Threads with a chunk in the last round; all threads if that is full."""
        return self.chunks - (self.rounds - 1) * self.threads


def crosses_memories(copy: ir.Operation) -> bool:
    """Whether a copy has one side in workgroup memory and the other not."""
    source, target = sides(copy)
    return is_workgroup(source.type) != is_workgroup(target.type)


def distribute(copy: ir.Operation, block: ThreadBlock) -> Distribution | Rejected:
    """The distribution of a copy over `block` with the widest legal chunks."""
    source, target = sides(copy)
    if copy.operation.name in ASYNC_COPIES and not is_workgroup(target.type):
        reason = f"copies to {target.type}, expected workgroup memory"
        return Rejected(copy.operation, reason)
    if not crosses_memories(copy):
        reason = f"copies from {source.type}, expected global memory"
        return Rejected(copy.operation, reason)
    if block.threads is None:
        return Rejected(
            copy.operation,
            f"the thread block is {block}, expected constant sizes, 1 along y and z",
        )
    if not target.type.has_static_shape or not target.type.shape:
        return Rejected(
            copy.operation,
            f"copies to {target.type}, expected static sizes of rank 1 or more",
        )
    if copy.operation.name in ASYNC_COPIES:
        width = widest_access(copy, parts=True)
        if width in CP_ASYNC_BYTES:
            return _in_chunks(width, copy, block.threads)
    return _in_chunks(widest_access(copy, parts=False), copy, block.threads)


def sides(copy: ir.Operation) -> tuple[Any, Any]:
    """The source and the target of a tile's copy."""
    source, target, *_ = copy.operation.operands
    return source, target


def row_width(copy: ir.Operation) -> Any | None:
    """The elements that a gathered row has; None where it fills the tile's."""
    operands = copy.operation.operands
    is_bounded = copy.operation.name in GATHERS and len(operands) > _WIDTH
    return operands[_WIDTH] if is_bounded else None


def widest_access(copy: ir.Operation, parts: bool) -> int:
    """Bytes that one thread may copy at a time; `parts`: or fewer, at a row's end.

    At least one element: any memref allows that.
    """
    return max(
        width
        for width in ACCESS_BYTES
        if _is_legal(width, copy) and (parts or not _may_be_cut(copy, width))
    )


def is_full(source: ir.Value, target: ir.Value, number: int) -> bool:
    """Whether the source is known to cover dimension `number` of the target."""
    return extent(source, number) == target.type.shape[number]


def _in_chunks(width: int, copy: ir.Operation, threads: int) -> Distribution:
    source, target = sides(copy)
    elements = _elements(width, source)
    return Distribution(
        shape=tuple(target.type.shape),
        elements=elements,
        bytes=width,
        threads=threads,
        parts=_may_be_cut(copy, width),
        across=_across(copy, elements, threads),
    )


def _across(copy: ir.Operation, elements: int, threads: int) -> int:
    """Chunks of a row for neighbouring threads, few where rows are far; 0 for all."""
    source, target = sides(copy)
    if len(target.type.shape) != 2 or not _has_far_rows(copy, elements, threads):
        return 0
    rows, columns = target.type.shape
    per_row = columns // elements
    across = _NARROW_BYTES // (elements * element_bytes(source.type))
    while 0 < across < per_row:
        at_once, rest = divmod(threads, across)
        if rest == 0 and per_row % across == 0 and rows % at_once == 0:
            return across if at_once % _ROWS_OF_WARP == 0 else 0
        across *= 2
    return 0


def _has_far_rows(copy: ir.Operation, elements: int, threads: int) -> bool:
    """Whether each row of a matrix that a thread copies needs an address of its own.

    Where all chunks of a row go to neighbouring threads.
    """
    source, target = sides(copy)
    if copy.operation.name in GATHERS:
        return True
    (pitch, _), _ = source.type.get_strides_and_offset()
    if source.type.is_dynamic_stride_or_offset(pitch):
        return True
    rows, columns = target.type.shape
    at_once = threads // (columns // elements)
    reach = (rows - at_once) * pitch * element_bytes(source.type)
    return copy.operation.name in ASYNC_COPIES and reach >= CP_ASYNC_REACH


def _elements(width: int, source: ir.Value) -> int:
    return max(1, width // element_bytes(source.type))


def _may_be_cut(copy: ir.Operation, width: int) -> bool:
    """Whether a row may end inside of a chunk of so many bytes."""
    source, target = sides(copy)
    elements = _elements(width, source)
    if copy.operation.name in GATHERS:
        bound = row_width(copy)
        return bound is not None and divisor(bound) % elements != 0
    last = source.type.rank - 1
    if is_full(source, target, last):
        return False
    return extent_divisor(source, last) % elements != 0


def is_asynchronous(copy: ir.Operation, distribution: Distribution) -> bool:
    """Whether the hardware can copy these chunks in the background."""
    is_wide = distribution.bytes in CP_ASYNC_BYTES
    return copy.operation.name in ASYNC_COPIES and is_wide


def _is_legal(width: int, copy: ir.Operation) -> bool:
    """Whether both sides may be accessed `width` bytes at a time."""
    source, target = sides(copy)
    size = element_bytes(source.type)
    if width <= size:
        return True
    elements, rest = divmod(width, size)
    return (
        rest == 0
        and has_whole_bytes(source.type.element_type)
        and target.type.shape[-1] % elements == 0
        and _is_aligned(source, math.gcd(elements, _rows_divisor(copy)), width)
        and _is_aligned(target, elements, width)
    )


def _rows_divisor(copy: ir.Operation) -> int:
    """A number that divides the offsets of all gathered rows; 0 for no gather."""
    return divisor(copy.operands[2]) if copy.operation.name in GATHERS else 0


def _is_aligned(memref: ir.Value, step: int, width: int) -> bool:
    """Whether every chunk is contiguous and aligned, at steps of so many elements."""
    strides, _ = memref.type.get_strides_and_offset()
    steps = [1] * (len(strides) - 1) + [step]
    return strides[-1] == 1 and address_alignment(memref, steps) % width == 0
