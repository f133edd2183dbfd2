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
wait. A source that may be smaller than the tile is read within its bounds only: the
number of elements that an asynchronous copy reads is then a value (PTX fills up with
zero), a plain load is under a condition. Copies that are not between global and
workgroup memory are left unchanged, with a remark; copies of single threads (nvgpu,
vector) are left unchanged.

Runs after alcop-place-waits, which counts the copies of tiles, and before
alcop-swizzle-shared, which permutes each access. Reads, writes and erases no
attributes.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from alcop_mlir.analysis.ir.alignment import without_casts
from alcop_mlir.analysis.ir.kernels import ThreadBlock, enclosing
from alcop_mlir.analysis.ir.rejected import Rejected
from alcop_mlir.analysis.ir.walk import walk
from alcop_mlir.analysis.layout.distribution import (
    ASYNC_COPY,
    PLAIN_COPIES,
    Distribution,
    crosses_memories,
    distribute,
    is_asynchronous,
    is_full,
)
from alcop_mlir.bindings import ir, nvgpu
from alcop_mlir.diagnostics import remark
from alcop_mlir.dialects import alcop
from alcop_mlir.errors import PassError
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

# Plain loads issued before the first of them is stored: 4 registers of 16 bytes each.
LOADS_IN_FLIGHT = 16


@dataclass(frozen=True)
class DistributeCopies(Pass):
    name = "alcop-distribute-copies"

    def run(self, op: ir.Operation) -> None:
        work = _collect(op)
        offsets: dict[tuple[ThreadBlock, Distribution], ChunkOffsets] = {}
        for item in work:
            key = (item.block, item.distribution)
            if key not in offsets:
                with item.copy.location:
                    offsets[key] = chunk_offsets(item.block, item.distribution)
        for item in work:
            with item.copy.location, ir.InsertionPoint(item.copy):
                _distribute(item, offsets[item.block, item.distribution])
            item.copy.erase()


@dataclass(frozen=True)
class _Work:
    """A copy to distribute."""

    copy: Any
    block: ThreadBlock
    distribution: Distribution


def _collect(root: ir.Operation) -> list[_Work]:
    """The copies to distribute; PassError at one that cannot be."""
    found: list[_Work] = []
    for copy in walk(root, ASYNC_COPY, *PLAIN_COPIES):
        block = enclosing(copy)
        if block is None:
            if copy.name == ASYNC_COPY:
                raise PassError(copy, "copy outside a kernel, expected a gpu.launch")
        elif copy.name in PLAIN_COPIES and not crosses_memories(copy):
            remark(
                copy,
                f"'{copy.name}' is left unchanged: "
                "it is not between global and workgroup memory",
            )
        else:
            found.append(_Work(copy, block, _distribution(copy, block)))
    return found


def _distribution(copy: ir.Operation, block: ThreadBlock) -> Distribution:
    answer = distribute(copy, block)
    if isinstance(answer, Rejected):
        raise PassError(copy, f"cannot distribute the copy to threads: {answer.reason}")
    return answer


def _distribute(item: _Work, offsets: ChunkOffsets) -> None:
    """Build the accesses of one thread, before the copy."""
    if not is_asynchronous(item.copy, item.distribution):
        _copy_plainly(item, offsets)
        return
    for number in range(len(offsets.indices)):
        _in_round(number, offsets, lambda indices: _copy_asynchronously(item, indices))


def _copy_asynchronously(item: _Work, indices: Sequence[Index]) -> None:
    source, target = map(without_casts, item.copy.operands)
    chunk = item.distribution
    nvgpu.DeviceAsyncCopyOp(
        target,
        [index.value for index in indices],
        source,
        _clamped(item, indices),
        chunk.elements,
        srcElements=_elements_inside(item, indices),
        bypassL1=chunk.bytes == CP_ASYNC_BYPASS_L1_BYTES,
    )


def _elements_inside(item: _Work, indices: Sequence[Index]) -> Any | None:
    """How many elements of a chunk are inside the source; None for all of them."""
    chunk, source = item.distribution, item.copy.operands[0]
    if not chunk.parts:
        count, is_inside = chunk.elements, _is_inside(item, indices)
        if is_inside is None:
            return None
    else:
        *outer, column = indices
        left = build.sub(column.below(build.size(source, len(outer))), column.base)
        count = build.least(build.most(left, 0), chunk.elements)
        is_inside = _is_inside(item, outer)
    return count if is_inside is None else build.select(is_inside, count, 0)


def _is_inside(item: _Work, indices: Sequence[Index]) -> Any | None:
    """Whether the first `indices` are inside the source; None if known to be."""
    source, target = item.copy.operands
    is_inside = None
    for number, index in enumerate(indices):
        if is_full(source, target, number) or _is_clamped(item, number):
            continue
        inside = index.is_below(build.size(source, number))
        is_inside = build.both(is_inside, inside)
    return is_inside


def _is_clamped(item: _Work, number: int) -> bool:
    """Whether rows beyond the source are copied from its last row.

    Where each row has an address of its own, this needs no condition.
    """
    source, target = item.copy.operands
    strides, _ = source.type.get_strides_and_offset()
    return (
        number in alcop.arbitrary(item.copy)
        and source.type.is_dynamic_stride_or_offset(strides[number])
        and not is_full(source, target, number)
    )


def _clamped(item: _Work, indices: Sequence[Index]) -> list[Any]:
    """The indices, clamped to the source's last row where that is copied instead."""
    source = item.copy.operands[0]
    return [
        index.clamped(build.sub(build.size(source, number), 1))
        if _is_clamped(item, number)
        else index.value
        for number, index in enumerate(indices)
    ]


def _copy_plainly(item: _Work, offsets: ChunkOffsets) -> None:
    """Loads before stores, a bounded number at a time, so that latencies overlap."""
    batches = [
        offsets.indices[first : min(first + LOADS_IN_FLIGHT, offsets.full)]
        for first in range(0, offsets.full, LOADS_IN_FLIGHT)
    ]
    step = _step_of_all(batches)
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
    at = _clamped(item, indices)
    is_inside = _is_inside(item, indices)
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
