"""Where operands begin, and what a guard asks for so that they are aligned.

An argument may begin anywhere (`alcop.alignment`), and so may a view at offsets that
are known at run time only. The host can ask for the address of the one and for the
offsets of the other. Changes nothing.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import field
from typing import Any

from alcop_mlir.analysis.ir.alignment import (
    base_alignment,
    divisor,
    element_bytes,
    given,
    source_dimension,
    stride_divisor,
)
from alcop_mlir.analysis.ir.extents import is_of_sizes
from alcop_mlir.analysis.ir.loops import constant, defining_op
from alcop_mlir.analysis.ir.promises import ALIGNMENT, of_argument
from alcop_mlir.bindings import ir
from alcop_mlir.frozen import frozen

_SAME_BEGINNING = (
    "memref.assume_alignment",
    "memref.cast",
    "memref.collapse_shape",
    "memref.expand_shape",
)


@frozen
class Beginning:
    """What the first element of a memref is aligned to, where all of this holds.

    alignment: bytes
    addresses: of arguments, what they are multiples of, in bytes
    offsets:   index values, and what they are multiples of
    """

    alignment: int
    addresses: Mapping[Any, int] = field(default_factory=dict)
    offsets: Mapping[Any, int] = field(default_factory=dict)

    @property
    def is_known(self) -> bool:
        """Whether nothing has to be asked for."""
        return not self.addresses and not self.offsets


def beginning(memref: ir.Value, wanted: int, row_bytes: int = 1) -> Beginning:
    """How `memref` can be aligned to `wanted` bytes, or to as many as it can be.

    row_bytes: what divides its distances of rows
    """
    found = _beginning(memref, wanted, row_bytes)
    if found.alignment == wanted:
        return found
    return _beginning(memref, found.alignment, row_bytes)


def _beginning(memref: ir.Value, wanted: int, row_bytes: int) -> Beginning:
    known = base_alignment(memref)
    if known % wanted == 0:
        return Beginning(wanted)
    view = defining_op(memref)
    if view is None and of_argument(memref, ALIGNMENT) is not None:
        return Beginning(wanted, {memref: wanted})
    if view is None or view.name not in (*_SAME_BEGINNING, "memref.subview"):
        return Beginning(math.gcd(known, wanted))
    found = _beginning(view.operands[0], wanted, row_bytes)
    if view.name != "memref.subview":
        return found
    alignment, offsets = found.alignment, dict(found.offsets)
    for dimension, offset in enumerate(given(view, "offsets")):
        step = _step(view, dimension, row_bytes)
        if divisor(offset) * step % wanted == 0:
            continue
        if _host_knows(offset):
            asked = wanted // math.gcd(wanted, step)
            offsets[offset] = math.lcm(asked, offsets.get(offset, 1))
        else:
            alignment = math.gcd(alignment, divisor(offset) * step)
    return Beginning(alignment, found.addresses, offsets)


def _step(subview: ir.Operation, dimension: int, row_bytes: int) -> int:
    """Bytes that divide the distance of elements along a dimension of the source."""
    source, rank = subview.operands[0], subview.results[0].type.rank
    stride = stride_divisor(source, dimension) * element_bytes(source.type)
    apart = {source_dimension(subview, n) for n in range(rank - 1)}
    return math.lcm(stride, row_bytes) if dimension in apart else stride


def _host_knows(offset: Any) -> bool:
    """Whether a guard may ask for an offset: it is no number, but computed of sizes."""
    is_value = isinstance(offset, ir.Value) and constant(offset) is None
    return is_value and is_of_sizes(offset)
