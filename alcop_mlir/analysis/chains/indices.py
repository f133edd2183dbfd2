"""Indices of tensors as tuples of loops, followed back through reshapes.

The index along a dimension is a tuple of loops, outermost first: a number with a digit
per loop. Reshapes take such numbers apart and put them together. Where a reshape needs
a part of a loop, that loop has to be split: `SplitLoop` says into which extents, and
who asked begins again with finer loops. Dimensions of extent 1 have no loop.

An extent that is known at run time only is OPEN. A reshape leaves one such dimension in
each group to what its other dimensions do not take.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from alcop_mlir.analysis.ir.extents import groups_of
from alcop_mlir.analysis.ir.loops import defining_op
from alcop_mlir.bindings import ir

Index = tuple[int, ...]
Indices = tuple[Index, ...]

OPEN = -1

_COLLAPSE = "tensor.collapse_shape"
_EXPAND = "tensor.expand_shape"


class NotFollowedError(Exception):
    """An element is computed in a way that expressions do not have; says which."""


class SplitLoop(Exception):
    """A loop has to be split into loops of these extents, outermost first."""

    def __init__(self, loop: int, extents: tuple[int, ...]) -> None:
        super().__init__(f"loop {loop} in {extents}")
        self.loop = loop
        self.extents = extents


def source_of_reshape(
    value: ir.Value, indices: Indices, extents: Mapping[int, int]
) -> tuple[Any, Indices] | None:
    """What a reshape of a tensor views, and at which indices; None for no reshape.

    SplitLoop where a loop has to be split for that.
    """
    op = defining_op(value)
    if op is None:
        return None
    if op.name == _EXPAND:
        return op.operands[0], merged(indices, groups_of(op))
    if op.name == _COLLAPSE:
        source = op.operands[0]
        shape = source.type.shape
        return source, separated(indices, groups_of(op), shape, extents)
    return None


def result_of_reshape(
    op: ir.Operation, indices: Indices, extents: Mapping[int, int]
) -> Indices | None:
    """At which indices of its result a reshape has what it reads at `indices`."""
    if op.name == _COLLAPSE:
        return merged(indices, groups_of(op))
    if op.name == _EXPAND:
        shape = op.results[0].type.shape
        return separated(indices, groups_of(op), shape, extents)
    return None


def merged(indices: Indices, groups: Sequence[Sequence[int]]) -> Indices:
    """The indices of the shorter shape."""
    return tuple(
        tuple(loop for number in group for loop in indices[number]) for group in groups
    )


def separated(
    indices: Indices,
    groups: Sequence[Sequence[int]],
    shape: Sequence[int],
    extents: Mapping[int, int],
) -> Indices:
    """The indices of the longer shape. SplitLoop where a loop is in two of them."""
    found: dict[int, Index] = {}
    for index, group in zip(indices, groups, strict=True):
        found.update(_digits(index, group, shape, extents))
    return tuple(found[number] for number in range(len(shape)))


def _digits(
    index: Index,
    group: Sequence[int],
    shape: Sequence[int],
    extents: Mapping[int, int],
) -> dict[int, Index]:
    """The part of an index that each dimension of a group has, innermost first."""
    left = list(index)
    found: dict[int, Index] = {}
    for number in reversed(group):
        if shape[number] == ir.ShapedType.get_dynamic_size():
            outer = [shape[one] for one in group if one < number]
            if any(size != 1 for size in outer):
                raise NotFollowedError(
                    "a reshape splits sizes that are known at run time only"
                )
            return {**found, **dict.fromkeys(group[: len(outer)], ()), number: (*left,)}
        taken: list[int] = []
        while (missing := shape[number] // _extent(taken, extents)) > 1:
            loop = left.pop()
            if extents[loop] == OPEN:
                raise SplitLoop(loop, (OPEN, missing))
            if missing % extents[loop]:
                # The dimension has an inner part of this loop alone.
                raise SplitLoop(loop, (extents[loop] // missing, missing))
            taken.insert(0, loop)
        found[number] = tuple(taken)
    return found


def _extent(loops: Sequence[int], extents: Mapping[int, int]) -> int:
    return math.prod(extents[loop] for loop in loops)
