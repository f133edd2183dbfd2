"""Sizes that are known at run time only, as polynomials in those of the arguments.

%h = tensor.dim %x, %c1
%n = arith.addi %h, %c2
%y = tensor.empty(%n) : tensor<?xf32>       // arg0_1 + 2 elements
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from alcop_mlir.analysis.ir.index_terms import terms
from alcop_mlir.analysis.ir.loops import constant, made_by
from alcop_mlir.bindings import ir
from alcop_mlir.extents import Extent
from alcop_mlir.polynomials import Polynomial, size
from alcop_mlir.polynomials import constant as number

SizeOf = Callable[[Any, int], Extent | None]  # of a dimension of an array
_ALLOCATIONS = frozenset("memref.alloc tensor.empty".split())
_SLICES = frozenset("memref.subview tensor.extract_slice".split())
_SLICE = ("static_offsets", "static_sizes", "static_strides")


def computed(index: ir.Value | int, size_of: SizeOf) -> Extent | None:
    """What an index is; None where it is not computed of sizes alone."""
    found = _polynomial(index, size_of)
    return None if found is None else _plain(found)


def made_size(array: ir.Value, dimension: int, size_of: SizeOf) -> Extent | None:
    """A size of what an op makes, by that op; None where it does not tell."""
    op = made_by(array, *_ALLOCATIONS, *_SLICES, "tensor.pad", "memref.collapse_shape")
    if op is None:
        return None
    if op.name in _ALLOCATIONS:
        kind = array.type
        earlier = sum(kind.is_dynamic_dim(number) for number in range(dimension))
        return computed(op.operands[earlier], size_of)
    source = op.operands[0]
    if op.name in _SLICES:
        is_whole = array.type.rank == source.type.rank  # no dimension is left out
        lengths = slice_numbers(op, 1)[1]
        return computed(lengths[dimension], size_of) if is_whole else None
    if op.name == "tensor.pad":
        around = [side[dimension] for side in pad_amounts(op)]
        parts = [size_of(source, dimension), *(computed(n, size_of) for n in around)]
        return _combined(Polynomial.__add__, parts)
    group = list(op.attributes["reassociation"])[dimension]
    parts = [size_of(source, member.value) for member in group]
    return _combined(Polynomial.__mul__, parts)


def pad_amounts(op: ir.Operation) -> list[list[Any]]:
    """Before and after the source of a `tensor.pad`: numbers and values."""
    return _mixed(op, ("static_low", "static_high"), list(op.operands)[1:])


def slice_numbers(op: ir.Operation, arrays: int) -> list[list[Any]]:
    """Offsets, sizes, strides of an op whose first operands are so many arrays."""
    return _mixed(op, _SLICE, list(op.operands)[arrays:])


def _mixed(
    op: ir.Operation, names: Sequence[str], values: Sequence[Any]
) -> list[list[Any]]:
    """Lists of numbers, with the next of `values` for each that is known later."""
    left = iter(values)
    unknown = ir.ShapedType.get_dynamic_size()
    return [
        [next(left) if one == unknown else one for one in op.attributes[name]]
        for name in names
    ]


def _polynomial(index: ir.Value | int, size_of: SizeOf) -> Polynomial | None:
    found = terms(index)
    total = number(found.constant)
    for part, times in found.multiples:
        one = None if isinstance(part, tuple) else _part(part, size_of)
        if one is None:
            return None
        total = total + one * number(times)
    return total


def _part(value: Any, size_of: SizeOf) -> Polynomial | None:
    """A size, or two values multiplied."""
    if (op := made_by(value, "tensor.dim", "memref.dim")) is not None:
        dimension = constant(op.operands[1])
        found = None if dimension is None else size_of(op.operands[0], dimension)
        return None if found is None else _of(found)
    if (op := made_by(value, "arith.muli")) is None:
        return None
    left, right = (_polynomial(one, size_of) for one in op.operands)
    return None if left is None or right is None else left * right


def _combined(
    combine: Callable[[Polynomial, Polynomial], Polynomial],
    parts: Sequence[Extent | None],
) -> Extent | None:
    first, *others = [None if one is None else _of(one) for one in parts]
    for other in others:
        first = None if first is None or other is None else combine(first, other)
    return None if first is None else _plain(first)


def _of(extent: Extent) -> Polynomial:
    if isinstance(extent, Polynomial):
        return extent
    return size(extent) if isinstance(extent, str) else number(extent)


def _plain(extent: Polynomial) -> Extent:
    """A number or a name where it is one."""
    if extent.known is not None:
        return extent.known
    match extent.terms:
        case ((1, (name,)),):
            return name
    return extent
