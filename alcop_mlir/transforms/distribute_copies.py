"""Spread the copies of tiles over the threads of their block.

Before:  "alcop.async_copy"(%tile, %slot)         memref.copy %tile, %buffer
After:   %row = thread / 4, %col = thread % 4 * 8   (once, where the kernel begins)
         nvgpu.device_async_copy %tile[%row, %col], %slot[%row, %col], 8 {bypassL1}
                                                  %v = vector.load %tile[%row, %col]
         ... one per 16 bytes of the thread       vector.store %v, %buffer[%row, %col]

Both copies are done once by the whole block, so what orders them against the reads of
other threads (waits, barriers) must already stand. An access is 16 bytes wide where
rows, strides and offsets are known to allow it, else the widest that they allow; an
async_copy below 4 bytes becomes plain loads and stores, which land before any wait.
Copies that are not between global and workgroup memory are left, with a remark; copies
of a thread of its own (nvgpu, vector) are none of this pass's business.

Reads, writes and erases no attribute. Stands after alcop-place-waits, which counts
copies by tile, and before alcop-swizzle-shared, which needs to see each access.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from alcop_mlir.analysis.alignment import behind_casts
from alcop_mlir.analysis.distribution import (
    ASYNC_COPY,
    PLAIN_COPY,
    Distribution,
    Rejected,
    crosses_memories,
    distribute,
    is_asynchronous,
)
from alcop_mlir.analysis.thread_block import ThreadBlock, enclosing
from alcop_mlir.bindings import affine, arith, gpu, ir, memref, nvgpu, scf, vector
from alcop_mlir.diagnostics import remark
from alcop_mlir.errors import PassError
from alcop_mlir.target import CP_ASYNC_BYPASS_L1_BYTES
from alcop_mlir.transforms import build
from alcop_mlir.transforms.base import Pass

# Plain loads issued before the first of them is stored: 4 registers of 16 bytes each.
LOADS_IN_FLIGHT = 16


@dataclass(frozen=True)
class DistributeCopies(Pass):
    name = "alcop-distribute-copies"

    def run(self, op: Any) -> None:
        work = _collect(op)
        places: dict[tuple[ThreadBlock, Distribution], _Places] = {}
        for item in work:
            key = (item.block, item.distribution)
            if key not in places:
                with item.copy.location:
                    places[key] = _places(item.block, item.distribution)
        for item in work:
            with item.copy.location, ir.InsertionPoint(item.copy):
                _spread(item, places[item.block, item.distribution])
            item.copy.erase()


@dataclass(frozen=True)
class _Work:
    """A copy to spread."""

    copy: Any
    block: ThreadBlock
    distribution: Distribution


@dataclass(frozen=True)
class _Places:
    """Where a thread's chunks begin, per round; whether it has one in the last."""

    indices: tuple[tuple[Any, ...], ...]
    has_last: Any | None  # None: every thread has


def _collect(root: Any) -> list[_Work]:
    """The copies to spread; PassError where a promise cannot be kept."""
    found: list[_Work] = []
    for copy in _copies(root):
        block = enclosing(copy)
        if block is None:
            if copy.name == ASYNC_COPY:
                raise PassError(copy, "copy outside a kernel, expected a gpu.launch")
        elif copy.name == PLAIN_COPY and not crosses_memories(copy):
            remark(copy, "copy left as it is: not between global and workgroup memory")
        else:
            found.append(_Work(copy, block, _distribution(copy, block)))
    return found


def _copies(root: Any) -> list[Any]:
    found: list[Any] = []

    def visit(op: Any) -> Any:
        if op.name in (ASYNC_COPY, PLAIN_COPY):
            found.append(op)
        return ir.WalkResult.ADVANCE

    root.operation.walk(visit, ir.WalkOrder.PRE_ORDER)
    return found


def _distribution(copy: Any, block: ThreadBlock) -> Distribution:
    answer = distribute(copy, block)
    if isinstance(answer, Rejected):
        raise PassError(copy, f"cannot spread the copy over threads: {answer.reason}")
    return answer


def _places(block: ThreadBlock, distribution: Distribution) -> _Places:
    """Built where the kernel begins, so that all copies of a shape share them."""
    with ir.InsertionPoint.at_block_begin(block.body):
        thread = gpu.thread_id(gpu.Dimension.x, upper_bound=distribution.threads)
        rounds = range(distribution.rounds)
        indices = [_indices(thread, number, distribution) for number in rounds]
        if distribution.last_round == distribution.threads:
            return _Places(tuple(indices), None)
        last = build.index(distribution.last_round)
        return _Places(
            tuple(indices), arith.cmpi(arith.CmpIPredicate.ult, thread, last)
        )


def _indices(thread: Any, number: int, distribution: Distribution) -> tuple[Any, ...]:
    """Indices of the first element of the thread's chunk in round `number`."""
    per_row, threads = distribution.chunks_per_row, distribution.threads
    if threads % per_row == 0:  # rounds differ by constants only
        row = _plus(_divide(thread, per_row), number * threads // per_row)
        place = _remainder(thread, per_row)
    else:
        chunk = _plus(thread, number * threads)
        row, place = _divide(chunk, per_row), _remainder(chunk, per_row)
    column = _times(place, distribution.elements)
    return (*_row_indices(row, distribution.shape[:-1]), column)


def _row_indices(row: Any, extents: Sequence[int]) -> list[Any]:
    """The indices along `extents` of row number `row` among all rows."""
    indices: list[Any] = []
    for extent in reversed(extents):
        is_outermost = len(indices) == len(extents) - 1
        indices.append(row if is_outermost else _remainder(row, extent))
        row = _divide(row, extent)
    return indices[::-1]


def _spread(item: _Work, places: _Places) -> None:
    """The accesses of one thread, where the copy stood."""
    if not is_asynchronous(item.copy, item.distribution):
        _copy_plainly(item, places)
        return
    for number in range(len(places.indices)):
        _in_round(number, places, lambda indices: _copy_asynchronously(item, indices))


def _copy_asynchronously(item: _Work, indices: Sequence[Any]) -> None:
    source, target = map(behind_casts, item.copy.operands)
    chunk = item.distribution
    nvgpu.DeviceAsyncCopyOp(
        target,
        indices,
        source,
        indices,
        chunk.elements,
        bypassL1=chunk.bytes == CP_ASYNC_BYPASS_L1_BYTES,
    )


def _copy_plainly(item: _Work, places: _Places) -> None:
    """Loads before stores, a bounded number at a time: their latencies overlap."""
    full = len(places.indices) - (places.has_last is not None)
    for first in range(0, full, LOADS_IN_FLIGHT):
        batch = places.indices[first : min(first + LOADS_IN_FLIGHT, full)]
        loaded = [_load(item, indices) for indices in batch]
        for value, indices in zip(loaded, batch, strict=True):
            _store(item, value, indices)
    if full < len(places.indices):
        _in_round(
            full, places, lambda indices: _store(item, _load(item, indices), indices)
        )


def _in_round(
    number: int, places: _Places, access: Callable[[Sequence[Any]], None]
) -> None:
    """`access` at the indices of a round, if the thread takes part in it."""
    indices = places.indices[number]
    if places.has_last is None or number + 1 < len(places.indices):
        access(indices)
        return
    guard = scf.IfOp(places.has_last)
    with ir.InsertionPoint(guard.then_block):
        access(indices)
        scf.YieldOp([])


def _load(item: _Work, indices: Sequence[Any]) -> Any:
    source, chunk = behind_casts(item.copy.operands[0]), item.distribution
    if chunk.elements == 1:
        return memref.load(source, indices)
    kind = ir.VectorType.get([chunk.elements], source.type.element_type)
    return vector.load(kind, source, indices, alignment=chunk.bytes)


def _store(item: _Work, value: Any, indices: Sequence[Any]) -> None:
    target, chunk = behind_casts(item.copy.operands[1]), item.distribution
    if chunk.elements == 1:
        memref.store(value, target, indices)
    else:
        vector.store(value, target, indices, alignment=chunk.bytes)


# Arithmetic on indices; what changes nothing builds nothing.


def _plus(value: Any, addend: int) -> Any:
    """By affine.apply: upstream merges it with the offsets of views, constants last.

    LLVM then finds the constants and puts them into the instructions' addresses.
    """
    if not addend:
        return value
    total = ir.AffineExpr.get_symbol(0) + addend
    return affine.apply(ir.AffineMap.get(0, 1, [total]), [value])


def _times(value: Any, factor: int) -> Any:
    return build.mul(value, build.index(factor)) if factor != 1 else value


def _divide(value: Any, divisor: int) -> Any:
    return arith.divui(value, build.index(divisor)) if divisor != 1 else value


def _remainder(value: Any, divisor: int) -> Any:
    return arith.remui(value, build.index(divisor)) if divisor != 1 else build.index(0)
