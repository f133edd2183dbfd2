"""Builders of the transfers between the memory of a tile and vectors of a warp."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from alcop_mlir.bindings import arith, ir, vector


def read_tile(
    source: Any,
    offsets: list[Any],
    shape: list[int],
    in_bounds: Sequence[bool] = (True, True),
) -> Any:
    """A vector of the part of a matrix that begins at `offsets`; zero beyond it."""
    element = source.type.element_type
    padding = arith.constant(element, zero_of(source.type))
    kind = ir.VectorType.get(shape, element)
    return vector.transfer_read(
        kind, source, offsets, identity_map(len(shape)), padding, list(in_bounds)
    )


def identity_map(rank: int) -> Any:
    """The map of a transfer that takes all dimensions as they are."""
    return ir.AffineMapAttr.get(ir.AffineMap.get_identity(rank))


def zero_of(kind: Any) -> Any:
    """The attribute of an element of a vector or memref type."""
    element = kind.element_type
    if isinstance(element, ir.IntegerType):
        return ir.IntegerAttr.get(element, 0)
    return ir.FloatAttr.get(element, 0.0)
