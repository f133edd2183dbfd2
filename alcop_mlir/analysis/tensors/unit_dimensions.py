"""Which dimensions of extent 1 an op on tensors could do without.

`narrowed` looks at a `linalg.generic` and returns its operands without dimensions that
only make its results, or what it reads, longer to write down. Changes nothing.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any

from alcop_mlir.analysis.ir.extents import groups_of
from alcop_mlir.analysis.ir.loops import made_by
from alcop_mlir.analysis.linalg.view import LinalgView, Operand
from alcop_mlir.frozen import frozen


@frozen
class Narrowed:
    """An op with fewer dimensions.

    sources: what it reads, per input
    kept:    the dimensions that are left, per input and output; of an input those of
             the operand as it is, not of its source
    loops:   the loops that are left
    """

    sources: tuple[Any, ...]
    kept: tuple[tuple[int, ...], ...]
    loops: tuple[int, ...]


def narrowed(view: LinalgView) -> Narrowed | None:
    """The op with fewer dimensions; None where none can be dropped."""
    single = {loop for loop in range(view.rank) if view.static_size(loop) == 1}
    read = [_read(operand, single) for operand in view.inputs]
    dropped: set[int] = set()
    used: set[int] = set()
    for operand, (_, kept) in zip(view.inputs, read, strict=True):
        for dimension, index in enumerate(operand.indices):
            (used if dimension in kept else dropped).update(index.loops)
    free = dropped - used
    written = [_without(operand, free) for operand in view.outputs]
    loops = tuple(loop for loop in range(view.rank) if loop not in free)
    kept = (*(dimensions for _, dimensions in read), *written)
    ranks = [len(operand.indices) for operand in view.operands]
    if [len(one) for one in kept] == ranks:
        return None
    return Narrowed(tuple(source for source, _ in read), kept, loops)


def _read(operand: Operand, single: Collection[int]) -> tuple[Any, tuple[int, ...]]:
    """What an input can be read from, and the dimensions of the input that this has."""
    every = tuple(range(len(operand.indices)))
    op = made_by(operand.value, "tensor.expand_shape")
    if op is None:
        return operand.value, every
    groups = groups_of(op)
    kept = _expanded(groups, operand.value.type)
    dropped = set(every) - set(kept or every)
    if kept is None or not all(
        _is_unit(operand, dimension, single) for dimension in dropped
    ):
        return operand.value, every
    return op.operands[0], kept


def _expanded(groups: Sequence[Sequence[int]], kind: Any) -> tuple[int, ...] | None:
    """Of each group the dimension that is no 1; None where a group has several."""
    kept: list[int] = []
    for group in groups:
        long = [n for n in group if kind.is_dynamic_dim(n) or kind.shape[n] != 1]
        if len(long) > 1:
            return None
        kept.append(*(long or group[:1]))
    return tuple(kept)


def _without(operand: Operand, free: Collection[int]) -> tuple[int, ...]:
    """The dimensions of an output but those of extent 1 that no other needs."""
    return tuple(
        dimension
        for dimension in range(len(operand.indices))
        if not _is_unit(operand, dimension, free)
    )


def _is_unit(operand: Operand, dimension: int, single: Collection[int]) -> bool:
    """Whether a dimension of extent 1 is indexed by 0, or by one of these loops."""
    index = operand.indices[dimension]
    is_zero = index.constant == 0 or index.loop in single
    return is_zero and operand.static_size(dimension) == 1


def unit_groups(kept: Sequence[int], rank: int) -> list[list[int]]:
    """The reassociation from the dimensions `kept`, in order, to all `rank`."""
    groups: list[list[int]] = [[] for _ in kept]
    for dimension in range(rank if kept else 0):
        number = sum(1 for one in kept if one <= dimension)
        groups[max(number - 1, 0)].append(dimension)
    return groups
