"""Copies of memrefs with their dimensions in another order.

Each builds at the current insertion point. `loops` has the loop along each dimension of
the memref, `order` the same loops in the order of the copy.
"""

from __future__ import annotations

from collections.abc import Container, Sequence
from typing import Any

from alcop_mlir.bindings import ir, linalg
from alcop_mlir.passes import build


def transposed(
    memref: ir.Value,
    loops: Sequence[int],
    order: Sequence[int],
    backwards: Container[int] = (),
) -> Any:
    """A new buffer with the elements of a memref, reversed along `backwards`."""
    buffer = allocated(memref, loops, order)
    copy(memref, buffer, read_map(memref, loops, order, backwards))
    return buffer


def transpose_back(
    buffer: ir.Value, memref: ir.Value, loops: Sequence[int], order: Sequence[int]
) -> None:
    """Copy to a memref what a buffer holds that was made as a copy of it."""
    positions = [loops.index(loop) for loop in order]
    copy(buffer, memref, build.loop_map(len(order), positions))


def allocated(memref: ir.Value, loops: Sequence[int], order: Sequence[int]) -> Any:
    """A new buffer of the size of a memref."""
    dimensions, kind = [loops.index(loop) for loop in order], memref.type
    shape = [kind.shape[number] for number in dimensions]
    known = [build.size(memref, n) for n in dimensions if kind.is_dynamic_dim(n)]
    return build.alloc(build.memref_like(kind, shape), known)


def read_map(
    memref: ir.Value,
    loops: Sequence[int],
    order: Sequence[int],
    backwards: Container[int] = (),
) -> Any:
    """Where each element of a copy is in a memref."""
    results = []
    for number, loop in enumerate(loops):
        index = ir.AffineExpr.get_dim(order.index(loop))
        last = memref.type.shape[number] - 1
        results.append(last - index if loop in backwards else index)
    return ir.AffineMapAttr.get(ir.AffineMap.get(len(order), 0, results))


def copy(source: ir.Value, target: ir.Value, reads: Any) -> None:
    """Copy all elements, in the order of the target; `reads` is the source's map."""
    rank = target.type.rank
    op = build.generic([source], target, [reads, build.loop_map(rank, range(rank))])
    (block,) = op.regions[0].blocks
    with ir.InsertionPoint(block):
        linalg.YieldOp([block.arguments[0]])
