"""Concatenations of parts of one tensor that are neighbours in it, in this order.

    %l = tensor.extract_slice %x[0, 0] [64, 32] [1, 1]
    %r = tensor.extract_slice %x[0, 32] [64, 48] [1, 1]
    %y = tensor.concat dim(1) %l, %r            // %x[0, 0] [64, 80] [1, 1]

`joined` follows the parts through views and transposes to a tensor that all are of.
Sizes are known. Changes nothing.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from alcop_mlir.analysis.ir.loops import made_by
from alcop_mlir.analysis.tensors.linear_indices import VIEWS, Linear, indices_before
from alcop_mlir.bindings import ir
from alcop_mlir.frozen import frozen

Indices = tuple[Linear, ...]


@frozen
class Digit:
    """A part of a dimension that is taken apart: elements from `begin` on, of `size`.

    loop: the dimension of the view that goes over them
    """

    loop: int
    begin: int
    extent: int
    size: int


@frozen
class Joined:
    """A view that has the elements of a concatenation.

    digits: those of each dimension of the source, outer ones first
    """

    source: Any
    digits: tuple[tuple[Digit, ...], ...]


def joined(concat: ir.Operation) -> Joined | None:
    """The view of one tensor that a `tensor.concat` makes; None where it makes none."""
    kind = concat.results[0].type
    dimension = concat.attributes["dim"].value
    shapes = [one.type.shape for one in concat.operands if one.type.has_static_shape]
    # Of one element along a dimension nothing tells how far the next one is.
    if len(shapes) < len(concat.operands) or any(s[dimension] < 2 for s in shapes):
        return None
    first, *others = [dict(_sources(one)) for one in concat.operands]
    for source, indices in first.items():
        parts = [indices, *(one[source] for one in others if source in one)]
        if len(parts) == len(shapes):
            whole = _whole(parts, [one[dimension] for one in shapes], dimension)
            digits = _digits(source.type.shape, whole, kind.shape) if whole else None
            if digits is not None:
                return Joined(source, digits)
    return None


def _sources(value: ir.Value) -> Iterator[tuple[Any, Indices]]:
    """What a value is a view of, nearest first, with the indices of its elements."""
    shape = value.type.shape
    extents = dict(enumerate(shape))
    at = [Linear(0, ((n, 1),) if size > 1 else ()) for n, size in enumerate(shape)]
    indices = tuple(at)
    while True:
        yield value, indices
        op = made_by(value, *VIEWS)
        before = None if op is None else indices_before(op, indices, extents)
        if op is None or before is None:
            return
        value, indices = op.operands[0], before


def _whole(
    parts: Sequence[Indices], sizes: Sequence[int], dimension: int
) -> Indices | None:
    """The indices of all parts as one; None where they are no neighbours."""
    first, begin = parts[0], 0
    for part, size in zip(parts, sizes, strict=True):
        for index, wanted in zip(part, first, strict=True):
            step = dict(wanted.terms).get(dimension, 0)
            if index != Linear(wanted.offset + step * begin, wanted.terms):
                return None
        begin += size
    return first


def _digits(
    sizes: Sequence[int], indices: Indices, extents: Sequence[int]
) -> tuple[tuple[Digit, ...], ...] | None:
    """Each dimension of a source taken apart for the loops that go over it."""
    found = []
    for size, index in zip(sizes, indices, strict=True):
        digits = _digits_of(size, index, extents)
        if digits is None:
            return None
        found.append(digits)
    return tuple(found)


def _digits_of(
    size: int, index: Linear, extents: Sequence[int]
) -> tuple[Digit, ...] | None:
    terms = sorted(index.terms, key=lambda one: -one[1])
    if not terms or terms[-1][1] != 1:
        return () if not terms and size == 1 else None
    found: list[Digit] = []
    rest, outer = index.offset, size
    for loop, step in terms:
        begin, rest = divmod(rest, step)
        if outer % step or begin + extents[loop] > outer // step:
            return None
        found.append(Digit(loop, begin, extents[loop], outer // step))
        outer = step
    return tuple(found)
