"""Weights with their columns in turn, for alcop-pair-columns to multiply by."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from alcop_mlir.analysis.linalg.interleaved_columns import GROUP
from alcop_mlir.analysis.tensors.column_pairs import Pairing, Rotation
from alcop_mlir.bindings import arith, ir, linalg, tensor
from alcop_mlir.passes import build
from alcop_mlir.transforms.tensors.generic_ops import generic_on_tensors


def turned(weight: ir.Value, dimension: int, found: Pairing) -> Any:
    """A weight with 16 columns of each part of a block in turn, as blocks are read.

    What passes through comes out in its own order, as that of halves does.
    """
    first = found.rotations[0]
    shape = list(weight.type.shape)
    blocks, groups = shape[dimension] // first.step, first.length // GROUP
    split = [*shape[:dimension], blocks, groups, first.parts, GROUP]
    split += shape[dimension + 1 :]
    orders = [True, False] if first.together and found.passes else [first.together]
    reads = [_read(len(split), dimension, first, order) for order in orders]
    made = generic_on_tensors(
        [weight] * len(orders),
        [tensor.empty(split, weight.type.element_type)],
        [*reads, ir.AffineMap.get_identity(len(split))],
    )
    kinds = [weight.type.element_type] * (len(orders) + 1)
    here = [ir.Location.current] * len(kinds)
    block = made.regions[0].blocks.append(*kinds, arg_locs=here)
    with ir.InsertionPoint(block):
        element = block.arguments[0]
        if len(orders) > 1:
            number = linalg.IndexOp(dimension).result
            rotated = is_rotated(number, found.rotations)
            element = arith.select(rotated, *list(block.arguments)[:2])
        linalg.YieldOp([element])
    kind = ir.RankedTensorType.get(shape, weight.type.element_type)
    groups_of_dims = [
        list(range(n, n + 4)) if n == dimension else [n if n < dimension else n + 3]
        for n in range(len(shape))
    ]
    return tensor.collapse_shape(kind, made.results[0], groups_of_dims)


def _read(rank: int, dimension: int, like: Rotation, together: bool) -> Any:
    """Where loops of blocks, groups, parts and columns of a group read a weight."""
    dims = [ir.AffineExpr.get_dim(n) for n in range(rank)]
    block, group, part, column = dims[dimension : dimension + 4]
    number = group * GROUP + column
    steps = (like.parts, 1) if together else (1, like.length)
    place = block * like.step + number * steps[0] + part * steps[1]
    return ir.AffineMap.get(rank, 0, [*dims[:dimension], place, *dims[dimension + 4 :]])


def is_rotated(block: Any, rotations: Sequence[Rotation]) -> Any:
    """Whether a rotation reads the block with this number."""
    found: Any = None
    for numbers in (one.numbers for one in rotations):
        # Below the first one, the difference is a large number without a sign.
        distance = build.sub(block, numbers.start)
        inside = _is(arith.CmpIPredicate.ult, distance, len(numbers) * numbers.step)
        if numbers.step > 1:
            rest = build.rem(distance, numbers.step)
            inside = arith.andi(inside, _is(arith.CmpIPredicate.eq, rest, 0))
        found = inside if found is None else arith.ori(found, inside)
    return found


def _is(predicate: Any, value: Any, other: int) -> Any:
    return arith.cmpi(predicate, value, build.index(other))
