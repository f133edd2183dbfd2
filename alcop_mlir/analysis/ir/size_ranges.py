"""Which sizes of a function's arguments are to be expected: `alcop.size_range`.

    func.func @f(%A: memref<?x?xf16> {alcop.size_range = [[1, 64], [4096, 4096]]})

has a range for each dimension, the least and the largest size. It is no promise: other
sizes run as well, by kernels that were not chosen for them.
"""

from __future__ import annotations

import math
from typing import Any

from alcop_mlir.analysis.ir.loops import defining_op
from alcop_mlir.analysis.ir.memory import element_bits
from alcop_mlir.analysis.ir.promises import of_argument, row_alignment
from alcop_mlir.bindings import ir
from alcop_mlir.dialects.values import from_attribute
from alcop_mlir.errors import PassError

SIZE_RANGE = "alcop.size_range"
_CASTS = ("memref.cast", "memref.memory_space_cast", "memref.assume_alignment")
Range = tuple[int, int]


def check_size_ranges(function: ir.Operation) -> None:
    """PassError at the first argument of `function` whose ranges are wrong."""
    for block in list(function.regions[0].blocks)[:1]:
        for argument in block.arguments:
            _ranges(argument)


def size_range(memref: ir.Value, dimension: int) -> Range | None:
    """The expected sizes of a dimension; None where nothing is said of it.

    Looks through casts, and dimensions that were collapsed, at an argument.
    """
    op = defining_op(memref)
    if op is None:
        found = _ranges(memref)
        return None if found is None else found[dimension]
    if op.name in _CASTS:
        return size_range(op.operands[0], dimension)
    if op.name != "memref.collapse_shape":
        return None
    group = list(op.attributes["reassociation"])[dimension]
    found = [_extents(op.operands[0], member.value) for member in group]
    known = [one for one in found if one is not None]
    if len(known) < len(found):
        return None
    return math.prod(low for low, _ in known), math.prod(high for _, high in known)


def _extents(memref: Any, dimension: int) -> Range | None:
    kind = memref.type
    if kind.is_dynamic_dim(dimension):
        return size_range(memref, dimension)
    return kind.shape[dimension], kind.shape[dimension]


def _ranges(argument: Any) -> list[Range] | None:
    """Of all dimensions of an argument; PassError at it where they are wrong."""
    given = of_argument(argument, SIZE_RANGE)
    if given is None:
        return None
    found = from_attribute(given)
    why = _wrong(found, argument.type) or _without_promised(found, argument)
    if why:
        function = argument.owner.owner
        raise PassError(function, f"'{SIZE_RANGE}' {why}", argument.location)
    return [(low, high) for low, high in found]


def _wrong(found: Any, kind: Any) -> str:
    """Why these are no ranges of an argument of that type; "" where they are."""
    if not isinstance(kind, ir.MemRefType | ir.RankedTensorType):
        return f"is of an argument of type {kind}, expected a memref"
    if not isinstance(found, list) or len(found) != kind.rank:
        return f"expects a range for each of {kind.rank} dimensions"
    for number, one in enumerate(found):
        if not isinstance(one, list) or [type(size) for size in one] != [int, int]:
            return f"expects [least, largest] for dimension {number}"
        low, high = one
        if not 0 < low <= high:
            return f"has an empty range [{low}, {high}], expected 1 <= least <= largest"
        if not kind.is_dynamic_dim(number) and not low <= kind.shape[number] <= high:
            return f"is [{low}, {high}] for a size that is {kind.shape[number]}"
    return ""


def _without_promised(found: list[list[int]], argument: Any) -> str:
    """Why no length of rows in their range is as promised; "" where one is."""
    if not isinstance(argument.type, ir.MemRefType) or not found:
        return ""
    low, high = found[-1]
    promised = row_alignment(argument)
    bits = element_bits(argument.type.element_type) or 8
    of = promised * 8 // math.gcd(promised * 8, bits)
    if high // of * of >= low:
        return ""
    return f"has no multiple of {of} in [{low}, {high}], as rows are promised to be"
