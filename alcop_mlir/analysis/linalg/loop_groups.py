"""Loops of a structured op that index all its arrays together, as if they were one."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from alcop_mlir.analysis.ir.memref_layouts import follows_shape
from alcop_mlir.analysis.linalg.contractions import indexing_maps
from alcop_mlir.bindings import ir


def loops_of(affine_map: Any) -> list[int] | None:
    """The loops that a map picks; None where it does more than that."""
    if not all(isinstance(e, ir.AffineDimExpr) for e in affine_map.results):
        return None
    return [ir.AffineDimExpr(e).position for e in affine_map.results]


def loop_groups(op: Any) -> list[list[int]] | None:
    """All loops of a linalg op, those in one group that could be one loop, in order.

    Such loops follow each other in each array that has any of them, and lie there
    without gaps. None where an array is indexed by more than loops.
    """
    maps = indexing_maps(op) or []
    indexed = [loops for one in maps if (loops := loops_of(one)) is not None]
    if not maps or len(indexed) < len(maps):
        return None
    arrays = list(zip(op.operands, indexed, strict=True))
    groups: list[list[int]] = []
    placed: set[int] = set()
    for loop in _in_order(indexed):
        if loop in placed:
            continue
        group = [loop]
        while (after := _joined_to(group[-1], arrays)) is not None:
            group.append(after)
        groups.append(group)
        placed.update(group)
    return groups


def _in_order(indexed: Sequence[Sequence[int]]) -> list[int]:
    """Each loop once, outer ones of an array before its inner ones."""
    return list(dict.fromkeys(loop for loops in indexed for loop in loops))


def _joined_to(loop: int, arrays: Sequence[tuple[Any, list[int]]]) -> int | None:
    """The loop that follows `loop` wherever one of the two is."""
    after: int | None = None
    for value, loops in arrays:
        if loop not in loops:
            continue
        place = loops.index(loop)
        if place + 1 == len(loops) or after not in (None, loops[place + 1]):
            return None
        if not _is_dense(value.type, place):
            return None
        after = loops[place + 1]
    if any(after in loops and loop not in loops for _, loops in arrays):
        return None
    return after


def _is_dense(kind: Any, number: int) -> bool:
    """Whether dimension `number` goes on where the next one ends."""
    if not isinstance(kind, ir.MemRefType):
        return False
    if follows_shape(kind):
        return True
    strides, _ = kind.get_strides_and_offset()
    inner, size = strides[number + 1], kind.shape[number + 1]
    if kind.is_dynamic_stride_or_offset(inner) or kind.is_dynamic_dim(number + 1):
        return False
    return strides[number] == inner * size
