"""Loops of a structured op that index all its memrefs as one loop could."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from alcop_mlir.analysis.ir.memref_layouts import follows_shape
from alcop_mlir.analysis.linalg.view import LinalgView, Loops
from alcop_mlir.bindings import ir

# Each with the loops that index it; None is one without gaps.
_Memrefs = Sequence[tuple[Any | None, Loops]]


def loop_groups(view: LinalgView) -> list[list[int]] | None:
    """All loops of a linalg op, in groups that could each be collapsed to one loop.

    The loops of a group index consecutive dimensions of each memref that any of them
    indexes, without gaps. None where a memref is indexed by more than loops.
    """
    return loop_groups_of([(one.value, one.loops) for one in view.operands])


def loop_groups_of(memrefs: _Memrefs) -> list[list[int]] | None:
    """The same of the loops of memrefs, each with those that index it.

    Of a memref that there is not yet, None, which will have no gaps.
    """
    if any(None in loops for _, loops in memrefs):
        return None
    every = (loop for _, loops in memrefs for loop in loops if loop is not None)
    groups: list[list[int]] = []
    grouped: set[int] = set()
    for loop in dict.fromkeys(every):  # outer ones of a memref before its inner ones
        if loop in grouped:
            continue
        group = [loop]
        while (after := _joined_to(group[-1], memrefs)) is not None:
            group.append(after)
        groups.append(group)
        grouped.update(group)
    return groups


def has_dense_parts(kind: ir.Type, parts: Sequence[Sequence[int]]) -> bool:
    """Whether the dimensions of each part have no gaps between their rows."""
    return all(_is_dense(kind, number) for part in parts for number in part[:-1])


def _joined_to(loop: int, memrefs: _Memrefs) -> int | None:
    """The loop that follows `loop` in every memref that has one of the two."""
    after: int | None = None
    for value, loops in memrefs:
        if loop not in loops:
            continue
        position = loops.index(loop)
        if position + 1 == len(loops) or after not in (None, loops[position + 1]):
            return None
        if value is not None and not _is_dense(value.type, position):
            return None
        after = loops[position + 1]
    if any(after in loops and loop not in loops for _, loops in memrefs):
        return None
    return after


def _is_dense(kind: ir.Type, number: int) -> bool:
    """Whether dimension `number` and the next one have no gaps between rows."""
    if not isinstance(kind, ir.MemRefType):
        return False
    if follows_shape(kind):
        return True
    strides, _ = kind.get_strides_and_offset()
    inner, size = strides[number + 1], kind.shape[number + 1]
    if kind.is_dynamic_stride_or_offset(inner) or kind.is_dynamic_dim(number + 1):
        return False
    return strides[number] == inner * size
