"""Whether a loop stores to what a later iteration of it loads.

Loads that run iterations early must not come before such a store. Where a loop works in
place, no iteration loads what an earlier one stored:

    %v = memref.load %A[%k, %t]
    ...
    memref.store %w, %A[%k, %t]

One dimension tells: there both indices grow alike with the loop's, and what else they
are a sum of is the same for all threads and iterations, or stays within known limits.
Nothing is changed here.
"""

from __future__ import annotations

import math
from collections.abc import Container, Iterable, Mapping
from typing import Any

from alcop_mlir.analysis.ir import memory, uniformity
from alcop_mlir.analysis.ir.index_terms import Terms, values_of
from alcop_mlir.analysis.ir.kernels import enclosing
from alcop_mlir.analysis.ir.loops import (
    ancestor_in,
    block_of,
    body,
    bounds,
    constant,
    defining_op,
    is_inside,
    trip_count,
)
from alcop_mlir.analysis.ir.walk import walk
from alcop_mlir.analysis.pipelining.copy_forms import CopyForm
from alcop_mlir.analysis.pipelining.moves import LOADS, STORES, is_row
from alcop_mlir.analysis.pipelining.writes import box, counted_indices, stored
from alcop_mlir.bindings import ir
from alcop_mlir.frozen import frozen

_DIMENSIONS = ("#gpu<dim x>", "#gpu<dim y>", "#gpu<dim z>")
_LAUNCH_THREAD_IDS = (3, 4, 5)  # arguments of a gpu.launch


@frozen
class Read:
    """`op` reads so many elements of `memref` from the indices; all for no shape."""

    op: Any
    memref: Any
    indices: tuple[Any, ...] = ()
    shape: tuple[int, ...] = ()


def reads_of(form: CopyForm) -> list[Read]:
    """All that a copy reads of its sources."""
    return [
        Read(move.load or move.op, move.source, move.source_indices, move.shape)
        for move in form.moves
    ]


def loaded(op: ir.Operation) -> list[Read]:
    """All that the loads in `op` read, or itself."""
    return [_read(load) for load in walk(op, *LOADS)]


def _read(load: ir.Operation) -> Read:
    memref, *indices = load.operands
    if not is_row(load):
        return Read(load, memref)
    kind = load.results[0].type
    shape = kind.shape if isinstance(kind, ir.VectorType) else [1]
    return Read(load, memref, tuple(indices[: memref.type.rank]), tuple(shape))


def may_spoil(
    writer: ir.Operation,
    target: ir.Value | None,
    reads: Iterable[Read],
    loop: ir.Operation,
    noalias_arguments: bool,
) -> bool:
    """Whether `writer` in `loop` may write what a later iteration reads.

    target: what it writes to; None where that is not known
    """
    return target is None or any(
        memory.may_alias(read.memref, target, noalias_arguments)
        and not _is_spared(read, writer, loop)
        for read in reads
    )


def works_in_place(
    loop: ir.Operation, forms: Iterable[CopyForm], noalias_arguments: bool
) -> bool:
    """Whether `loop` may write to memrefs that copies in it read."""
    sources = [source for form in forms for source in form.sources]
    return any(
        target is not None and memory.may_alias(source, target, noalias_arguments)
        for _, target in memory.written_memrefs(loop)
        for source in sources
    )


def _is_spared(read: Read, writer: ir.Operation, loop: ir.Operation) -> bool:
    """Whether `writer` in `loop` never writes what `read` reads in a later iteration.

    Nor in the same one, unless it comes after the read. Both in any threads.
    """
    if writer.name not in STORES or not is_row(writer):
        return False
    step = bounds(loop)[2]
    if constant(step) is None and uniformity.varies(step):
        return False
    known = counted_indices(loop)
    base, begin, sizes = box(read.memref, read.indices, read.shape, known)
    target, at, lengths = box(*stored(writer), known)
    if base != target or not memory.is_whole(base) or is_made_in(base, loop):
        return False
    block = body(loop)
    here, there = (ancestor_in(op, block) for op in (read.op, writer))
    assert here is not None, read.op
    assert there is not None, writer
    least = 1 if here != there and here.is_before_in_block(there) else 0
    dimensions = zip(begin, sizes, at, lengths, strict=True)
    return any(_are_apart(*one, loop, least) for one in dimensions)


def _are_apart(
    begin: Terms, size: int, at: Terms, length: int, loop: ir.Operation, least: int
) -> bool:
    """Whether `size` indices from `begin` on are others than `length` from `at` on.

    Those from `at` on are of an iteration that comes `least` earlier, or more.
    """
    index = body(loop).arguments[0]
    growth, same = dict(begin.multiples).get(index, 0), _fixed(begin, loop)
    if growth != dict(at.multiples).get(index, 0) or same != _fixed(at, loop):
        return False
    known = {index, *same}
    lowest, highest = reach(begin, loop, known)
    least_at, most_at = reach(at, loop, known)
    low, high = lowest - most_at, highest - least_at
    is_above = growth >= 0 and low + growth * least >= length
    is_below = growth <= 0 and high + growth * least <= -size
    return is_above or is_below


def reach(
    index: Terms, loop: ir.Operation, known: Container[Any] = ()
) -> tuple[float, float]:
    """The least and the most that an index in `loop` is, less its parts in `known`."""
    low = high = float(index.constant)
    for part, times in index.multiples:
        if part not in known:
            most = _most(part, loop)
            ends = (0, times * most) if most < math.inf else (-math.inf, math.inf)
            low, high = low + min(ends), high + max(ends)
    return low, high


def _fixed(index: Terms, loop: ir.Operation) -> Mapping[Any, int]:
    """The parts that are the same in all iterations and threads, with their numbers."""
    return {
        part: times
        for part, times in index.multiples
        if not any(
            is_made_in(value, loop) or uniformity.varies(value)
            for value in values_of(part)
        )
    }


def is_made_in(value: ir.Value, loop: ir.Operation) -> bool:
    """Whether `value` is made in `loop`, or an argument of it."""
    holder = block_of(value).owner.operation
    return holder == loop.operation or is_inside(holder, loop)


def _most(part: Any, loop: ir.Operation) -> float:
    """The largest number that a part is from 0 on; infinite where neither is known."""
    if isinstance(part, tuple):
        name, _, divisor = part
        return divisor - 1 if name == "rem" else math.inf
    op = defining_op(part)
    if op is None:
        return _most_of_argument(part, loop)
    if op.name != "gpu.thread_id":
        return math.inf
    return _threads(loop, _DIMENSIONS.index(str(op.attributes["dimension"]))) - 1


def _most_of_argument(argument: ir.Value, loop: ir.Operation) -> float:
    holder = argument.owner.owner.operation
    if holder.name == "gpu.launch" and argument.arg_number in _LAUNCH_THREAD_IDS:
        return _threads(loop, _LAUNCH_THREAD_IDS.index(argument.arg_number)) - 1
    if holder.name != "scf.for" or argument.arg_number:
        return math.inf
    # Of a loop inside, whose index is written as the number of its iteration.
    trips = trip_count(holder) if is_inside(holder, loop) else None
    return math.inf if trips is None else max(0, trips - 1)


def _threads(loop: ir.Operation, dimension: int) -> float:
    block = enclosing(loop)
    size = None if block is None else block.shape[dimension]
    return math.inf if size is None else size
