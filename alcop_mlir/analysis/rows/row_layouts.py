"""How threads share the rows of a row group.

Where the elements of a row are neighbours in memory, neighbouring threads have
neighbouring columns: a warp has a row, or a block does. Where the elements of
neighbouring rows are, as those of the channels of an image, neighbouring threads have
neighbouring rows, and the warps of a block share the columns: *across*. Either way
what a warp accesses is contiguous.

A row is *held* where the registers of its threads have all of it, each element of what
is alive at once. Else threads go over it in parts, once for all reductions that need no
other's result, and once for the outputs; what they need they read and compute again.
Changes nothing.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from alcop_mlir.analysis.ir.alignment import BASE_ALIGNMENT
from alcop_mlir.analysis.ir.slices import sources
from alcop_mlir.analysis.ir.walk import walk
from alcop_mlir.analysis.linalg.loop_nests import Nest
from alcop_mlir.analysis.linalg.view import Operand
from alcop_mlir.analysis.rows.row_members import Member
from alcop_mlir.bindings import ir
from alcop_mlir.frozen import frozen
from alcop_mlir.target import WARP_SIZE

# Of a row, in registers of a thread: as many elements as it computes on at a time, and
# all of them that are alive at once, of the 255 registers that it can have.
_MOST_ELEMENTS = 32
_MOST_LIVE = 128
MOST_WARPS = 16  # of a row
_PART = 8  # elements that a thread computes on at a time of a row that is not held
_OPEN_WARPS = 4  # of rows of any length
BLOCK_THREADS = 256  # of a block whose warps have a row each
_SMALLEST = 2  # bytes of an element that 16 bytes hold most of
# Threads that keep a GPU busy, and the least columns that are worth one more each.
_MOST_THREADS = 2**15
_LEAST_COLUMNS = 8


@frozen
class RowLayout:
    """How threads share a row.

    across:  whether neighbouring threads have neighbouring rows
    threads: that share a row
    columns: the sizes of its loops; None where known at run time only
    width:   neighbouring columns that a thread has side by side
    vectors: how many of these it computes on at a time; of a row that is held: all
    is_held: whether all of a row is computed on at a time
    in_block: threads of a block at most, where neighbouring threads have columns
    """

    across: bool
    threads: int
    columns: tuple[int | None, ...]
    width: int
    vectors: int
    is_held: bool
    in_block: int

    @property
    def count(self) -> int | None:
        """The number of columns, if that is known."""
        return _product(self.columns)


def layout(members: Sequence[Member], seed: Member, across: bool) -> RowLayout:
    """The layout of a group that grew from the reduction `seed`."""
    columns = tuple(map(seed.nest.static_size, seed.columns))
    count, live = _product(columns), most_live(members)
    if not across:
        return along(columns, live, _threads_along(count, live))
    rows = _product(tuple(map(seed.nest.static_size, seed.rows)))
    threads = 1 if seed.tables else _threads_across(rows, count)
    is_held = count is not None and _is_held(-(-count // threads), live)
    vectors = max(1, min(_PART, _MOST_LIVE // live))
    if count is not None and is_held:
        vectors = -(-count // threads)
    return RowLayout(True, threads, columns, 1, vectors, is_held, BLOCK_THREADS)


def along(
    columns: tuple[int | None, ...],
    live: int,
    threads: int,
    in_block: int = BLOCK_THREADS,
) -> RowLayout:
    """With so many threads for each row, which have neighbouring columns.

    live: rows that are alive at once, see `most_live`
    """
    count, width = _product(columns), 1
    if count is not None:
        width = _vector_width(columns[-1] or 1, count, threads)
    is_held = count is not None and _is_held(-(-count // threads), live)
    vectors = max(1, min(_PART, _MOST_LIVE // live) // width)
    if count is not None and is_held:
        vectors = -(-count // (threads * width))
    in_block = in_block if threads == WARP_SIZE else threads
    return RowLayout(False, threads, columns, width, vectors, is_held, in_block)


def is_worthwhile(members: Sequence[Member], how: RowLayout) -> bool:
    """Whether a kernel of the members is better than SIMT fallbacks of each.

    What a reduction looks up, as the elements of a window that is padded, a thread
    does for all of a row: of no column that there is not.
    """
    if any(member.combine and member.tables for member in members):
        return how.across and how.threads == 1 and how.is_held and len(members) > 2
    if sum(1 for member in members if _reads_memory(member)) > 1:
        return True
    if any(member.combine and len(member.nest.outputs) > 1 for member in members):
        return True
    return how.threads > (1 if how.across else WARP_SIZE) and how.count is not None


def _reads_memory(member: Member) -> bool:
    return any(operand.is_memref for operand in member.nest.inputs)


def is_across(nest: Nest) -> bool:
    """Whether a reduction reads elements of neighbouring rows that are neighbours."""
    if not nest.points:
        return False
    if looks_up_all(nest):
        last = [_loops_of(load.operands[-1], nest) for load in _loads(nest)]
        return all(nest.points[-1] in loops for loops in last)
    last = [
        operand.indices[-1].loops
        for operand in nest.inputs
        if operand.indices and _uses(operand, nest.reductions)
    ]
    return any(nest.points[-1] in loops for loops in last)


def looks_up_all(nest: Nest) -> bool:
    """Whether all loops say which elements its body loads."""
    every = (*nest.points, *nest.reductions)
    loops = {loop for loop in every if nest.static_size(loop) != 1}
    return bool(_loads(nest)) and all(
        set().union(*(_loops_of(one, nest) for one in list(load.operands)[1:])) >= loops
        for load in _loads(nest)
    )


def _loads(nest: Nest) -> list[Any]:
    return walk(nest.op, "memref.load")


def _loops_of(index: ir.Value, nest: Nest) -> set[int]:
    """The loops that an index in the body is computed of."""
    ops, _ = sources([index], nest.block)
    return {one.attributes["dim"].value for one in ops if one.name == "linalg.index"}


def _uses(operand: Operand, loops: tuple[int, ...]) -> bool:
    return any(set(loops) & set(index.loops) for index in operand.indices)


def _threads_along(count: int | None, live: int) -> int:
    if count is None:
        return WARP_SIZE * _OPEN_WARPS
    warps = 1
    while warps < MOST_WARPS and not _is_held(-(-count // (WARP_SIZE * warps)), live):
        warps *= 2
    return WARP_SIZE * warps


def _threads_across(rows: int | None, count: int | None) -> int:
    if rows is None or count is None:
        return _OPEN_WARPS
    threads = 1
    while (
        threads < MOST_WARPS
        and rows * threads < _MOST_THREADS
        and count >= 2 * threads * _LEAST_COLUMNS
    ):
        threads *= 2
    return threads


def _is_held(elements: int, live: int) -> bool:
    return elements <= _MOST_ELEMENTS and elements * live <= _MOST_LIVE


def _vector_width(innermost: int, count: int, threads: int) -> int:
    """Elements that a thread holds side by side: a power of 2 that divides a row.

    No more than are 16 bytes of the smallest type that is computed with, and none that
    lets threads look at more elements than they must.
    """
    width = BASE_ALIGNMENT // _SMALLEST
    least = -(-count // threads)
    while innermost % width or -(-count // (threads * width)) * width > least:
        width //= 2
    return width


def _product(sizes: tuple[int | None, ...]) -> int | None:
    known = [size for size in sizes if size is not None]
    return math.prod(known) if len(known) == len(sizes) else None


def most_live(members: Sequence[Member]) -> int:
    """How many rows are alive at once, at most; 1 where rows are read only."""
    first: dict[Any, int] = {}
    last: dict[Any, int] = {}
    for number, member in enumerate(members):
        for operand in (*member.reads, *member.nest.outputs):
            if member.has_columns and member.is_along_rows(operand):
                first.setdefault(operand.value, number)
                last[operand.value] = number
    return max(
        1,
        *(
            sum(1 for value in first if first[value] <= number <= last[value])
            for number in range(len(members))
        ),
    )
