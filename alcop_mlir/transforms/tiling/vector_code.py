"""Builders that compute scalar code on whole vectors: one op for all elements."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from alcop_mlir.analysis.ir.loops import made_by
from alcop_mlir.bindings import arith, ir, vector
from alcop_mlir.passes import build, edit


def compute(
    ops: Iterable[ir.Operation], shape: list[int], known: dict[Any, Any]
) -> None:
    """Build each op on vectors of that shape; its results are added to `known`.

    known: the vector for each scalar of the code; scalars there, and constants from
           outside of the code, are broadcast to all elements
    """
    for op in ops:
        operation = op.operation
        if operation.name == "arith.constant":
            continue  # made where it is used
        operands = [as_vector(value, shape, known) for value in operation.operands]
        kinds = [ir.VectorType.get(shape, r.type) for r in operation.results]
        made = edit.like(operation, kinds, operands)
        known.update(zip(operation.results, made.results, strict=True))


def as_vector(value: ir.Value, shape: list[int], known: dict[Any, Any]) -> Any:
    """The vector for a scalar of the code."""
    found = known.get(value, value)
    if isinstance(found.type, ir.VectorType):
        return found
    kind = ir.VectorType.get(shape, found.type)
    op = made_by(found, "arith.constant")
    if op is None:
        return vector.broadcast(kind, found)
    return build.splat(kind, op.attributes["value"])


def rounded(values: ir.Value, element: ir.Type) -> Any:
    """A vector of floats, rounded to `element`, or widened, where that is another."""
    given, kind = (
        values.type.element_type,
        ir.VectorType.get(values.type.shape, element),
    )
    if given == element:
        return values
    return (arith.extf if given.width < element.width else arith.truncf)(kind, values)
