"""Sizes of memrefs in linear form: a number, and so many times sizes of others.

`%n = dim %x, %c1`, and `%p = alloc(2 * %n + 1)`: dimension 0 of `%p` is 1 and twice the
size of dimension 1 of `%x`, whichever op asks for that. Changes nothing.
"""

from __future__ import annotations

from typing import Any

from alcop_mlir.analysis.ir.alignment import without_casts
from alcop_mlir.analysis.ir.extents import extent
from alcop_mlir.analysis.ir.index_terms import Terms, single, terms
from alcop_mlir.analysis.ir.loops import constant, made_by
from alcop_mlir.bindings import ir

_SIZE = "size"  # a part: ("size", memref, number of the dimension)


def size_terms(memref: ir.Value, number: int) -> Terms:
    """The size of a dimension."""
    known = extent(memref, number)
    if known is None:
        return single((_SIZE, without_casts(memref), number))
    return terms_of_sizes(known)


def terms_of_sizes(value: ir.Value | int) -> Terms:
    """A number computed of sizes."""
    found = terms(value)
    total = Terms(found.constant)
    for part, times in found.multiples:
        total = total.plus(_part(part), times)
    return total


def _part(part: Any) -> Terms:
    op = None if isinstance(part, tuple) else made_by(part, "memref.dim")
    number = None if op is None else constant(op.operands[1])
    if op is None or number is None:
        return single(part)
    return size_terms(op.operands[0], number)
