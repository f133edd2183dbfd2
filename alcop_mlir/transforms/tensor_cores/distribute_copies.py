"""Distribute the copies of tiles to the threads of their block.

Before:  "alcop.async_copy"(%tile, %slot)         memref.copy %tile, %buffer
After:   %row = thread / 4, %col = thread % 4 * 8   (once, where the kernel begins)
         nvgpu.device_async_copy %tile[%row, %col], %slot[%row, %col], 8 {bypassL1}
                                                  %v = vector.load %tile[%row, %col]
         ... one per chunk of the thread          vector.store %v, %buffer[%row, %col]

Both copies are done once by the whole block, so that the waits and barriers that order
them against the reads of other threads must exist already. A chunk is 16 bytes long
where rows, strides and offsets are known to allow it, else as long as they allow; an
async_copy of chunks below 4 bytes becomes plain loads and stores, which land before any
wait. Of a gather each thread computes the elements of the vectors for its rows, where
the vectors are computed; a loop that carries a vector carries these elements instead:

Before:  %rows = arith.addi %base, %offsets : vector<64xindex>
         "alcop.async_gather"(%source, %slot, %rows, %valid)
After:   %row_offset = arith.addi %base_of_row, %offset : index
         %count = arith.select %is_valid, 8, 0
         %at = arith.addi %row_offset, %col : index
        nvgpu.device_async_copy %source[%at], %slot[%row, %col], 8, %count

A source that may be smaller than the tile is read within its bounds only: the number
of elements that an asynchronous copy reads is then a value (PTX fills up with zero), a
plain load is under a condition. Copies that are not between global and workgroup memory
are left unchanged, with a remark; copies of single threads (nvgpu, vector) are left
unchanged.

Runs after alcop-place-waits, which counts the copies of tiles, and before
alcop-swizzle-shared, which permutes each access. Reads, writes and erases no
attributes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import pairwise
from typing import Any

from alcop_mlir.analysis.ir.alignment import without_casts
from alcop_mlir.analysis.ir.kernels import ThreadBlock, enclosing
from alcop_mlir.analysis.ir.rejected import Rejected
from alcop_mlir.analysis.ir.walk import walk
from alcop_mlir.analysis.layout.distribution import (
    ASYNC_COPIES,
    GATHERS,
    PLAIN_COPIES,
    Distribution,
    crosses_memories,
    distribute,
    is_asynchronous,
    sides,
)
from alcop_mlir.analysis.layout.row_vectors import not_by_rows
from alcop_mlir.bindings import ir, nvgpu
from alcop_mlir.diagnostics import remark
from alcop_mlir.errors import PassError
from alcop_mlir.frozen import frozen
from alcop_mlir.passes import build
from alcop_mlir.passes.base import Pass
from alcop_mlir.target import CP_ASYNC_BYPASS_L1_BYTES
from alcop_mlir.transforms.tensor_cores.copy_offsets import (
    ChunkOffsets,
    Index,
    advanced,
    chunk_offsets,
    step_between,
)
from alcop_mlir.transforms.tensor_cores.copy_sources import Source, source_of
from alcop_mlir.transforms.tensor_cores.row_carriers import carry_rows, drop_vectors
from alcop_mlir.transforms.tensor_cores.row_elements import RowElements

# Plain loads issued before the first of them is stored: 4 registers of 16 bytes each.
LOADS_IN_FLIGHT = 16


@frozen
class DistributeCopies(Pass):
    name = "alcop-distribute-copies"

    def run(self, op: ir.Operation) -> None:
        elements = RowElements()
        work = _collect(op, elements)
        offsets: dict[tuple[ThreadBlock, Distribution], ChunkOffsets] = {}
        for item in work:
            key = (item.block, item.distribution)
            if key not in offsets:
                with item.copy.location:
                    offsets[key] = chunk_offsets(item.block, item.distribution)
        gathers = (item for item in work if item.copy.name in GATHERS)
        carriers = carry_rows(
            (
                (one.copy, _rows(offsets[one.block, one.distribution]))
                for one in gathers
            ),
            elements,
        )
        for item in work:
            with item.copy.location, ir.InsertionPoint(item.copy):
                _distribute(item, offsets[item.block, item.distribution])
            item.copy.erase()
        drop_vectors(carriers, elements)


@frozen
class _Work:
    """A copy to distribute."""

    copy: Any
    block: ThreadBlock
    distribution: Distribution
    source: Source


def _rows(offsets: ChunkOffsets) -> Iterator[Index]:
    """The rows of a tile that a thread copies chunks of."""
    return (row for row, _ in offsets.indices)


def _collect(root: ir.Operation, elements: RowElements) -> list[_Work]:
    """The copies to distribute; PassError at one that cannot be."""
    found: list[_Work] = []
    for copy in walk(root, *ASYNC_COPIES, *PLAIN_COPIES):
        block = enclosing(copy)
        if block is None:
            if copy.name in (*ASYNC_COPIES, *GATHERS):
                raise PassError(copy, "copy outside a kernel, expected a gpu.launch")
        elif copy.name in PLAIN_COPIES and not crosses_memories(copy):
            remark(
                copy,
                f"'{copy.name}' is left unchanged: "
                "it is not between global and workgroup memory",
            )
        else:
            chunk = _distribution(copy, block)
            source = source_of(copy, chunk, elements)
            found.append(_Work(copy, block, chunk, source))
    return found


def _distribution(copy: ir.Operation, block: ThreadBlock) -> Distribution:
    answer = distribute(copy, block)
    if isinstance(answer, Rejected):
        raise PassError(copy, f"cannot distribute the copy to threads: {answer.reason}")
    no = not_by_rows(copy) if copy.name in GATHERS else None
    if no is not None:
        raise PassError(no.op, f"makes the rows of an '{copy.name}', {no.reason}")
    return answer


def _distribute(item: _Work, offsets: ChunkOffsets) -> None:
    """Build the accesses of one thread, before the copy."""
    if not is_asynchronous(item.copy, item.distribution):
        _copy_plainly(item, offsets)
        return
    for number in range(len(offsets.indices)):
        _in_round(number, offsets, lambda indices: _copy_asynchronously(item, indices))


def _copy_asynchronously(item: _Work, indices: Sequence[Index]) -> None:
    source, target = map(without_casts, sides(item.copy))
    chunk = item.distribution
    nvgpu.DeviceAsyncCopyOp(
        target,
        [index.value for index in indices],
        source,
        item.source.at(indices),
        chunk.elements,
        srcElements=item.source.count(indices),
        bypassL1=chunk.bytes == CP_ASYNC_BYPASS_L1_BYTES,
    )


def _copy_plainly(item: _Work, offsets: ChunkOffsets) -> None:
    """Loads before stores, a bounded number at a time, so that latencies overlap."""
    batches = [
        offsets.indices[first : min(first + LOADS_IN_FLIGHT, offsets.full)]
        for first in range(0, offsets.full, LOADS_IN_FLIGHT)
    ]
    # Elements of vectors are computed where these are, for rows known there.
    step = None if item.copy.name in GATHERS else _step_of_all(batches)
    if step is not None:
        _copy_batches(item, batches, step)
    else:
        for batch in batches:
            _copy_batch(item, batch)
    if offsets.has_last is not None:
        _in_round(offsets.full, offsets, lambda indices: _copy_batch(item, [indices]))


def _step_of_all(batches: Sequence[Sequence[tuple[Index, ...]]]) -> list[int] | None:
    """The distance between batches; None unless there are several of equal size."""
    if len(batches) < 2 or len(batches[0]) != len(batches[-1]):
        return None
    steps = [step_between(one, other) for one, other in pairwise(batches)]
    return steps[0] if all(step == steps[0] for step in steps) else None


def _copy_batches(
    item: _Work, batches: Sequence[Sequence[tuple[Index, ...]]], step: list[int]
) -> None:
    """Build the batches as a loop: registers cannot hold the addresses of all."""

    def batch(number: ir.Value, _: list[Any]) -> None:
        _copy_batch(item, advanced(batches[0], number, step))

    build.for_loop((0, len(batches), 1), [], batch)


def _copy_batch(item: _Work, batch: Sequence[Sequence[Index]]) -> None:
    loaded = [_load(item, indices) for indices in batch]
    for value, indices in zip(loaded, batch, strict=True):
        target = without_casts(item.copy.operands[1])
        build.store(value, target, [index.value for index in indices])


def _in_round(
    number: int, offsets: ChunkOffsets, access: Callable[[Sequence[Index]], None]
) -> None:
    """Build `access` at the indices of a round, if the thread has a chunk in it."""
    indices = offsets.indices[number]
    if offsets.has_last is None or number + 1 < len(offsets.indices):
        access(indices)
        return
    build.branch(offsets.has_last, lambda: access(indices))


def _load(item: _Work, indices: Sequence[Index]) -> Any:
    source, count = without_casts(item.copy.operands[0]), item.distribution.elements
    at = item.source.at(indices)
    is_inside = item.source.is_inside(indices)
    if is_inside is None:
        return build.load(source, at, count)
    element = source.type.element_type
    kind = element if count == 1 else ir.VectorType.get([count], element)
    (loaded,) = build.branch(
        is_inside,
        lambda: [build.load(source, at, count)],
        lambda: [build.zero(kind)],
        [kind],
    )
    return loaded
