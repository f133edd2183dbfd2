"""The expression that the body of a linalg op computes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from alcop_mlir.analysis.ir.loops import splat
from alcop_mlir.bindings import ir
from alcop_mlir.reference.evaluation import evaluate
from alcop_mlir.reference.expressions import (
    FLOAT_PREDICATES,
    FLOATS,
    INTEGER_PREDICATES,
    INTEGERS,
    OPERATIONS,
    Argument,
    Constant,
    Expression,
    Operation,
    arguments,
    is_small,
)

# Predicates of comparisons, as MLIR numbers them.
_PREDICATES = {
    "arith.cmpf": ("false", *FLOAT_PREDICATES, "true"),
    "arith.cmpi": INTEGER_PREDICATES,
}
_INDEX_CAST = "arith.index_cast"
_UNSIGNED_SOURCE = ("arith.extui", "arith.uitofp")
_SIGNED_SOURCE = ("arith.extsi", "arith.sitofp", _INDEX_CAST)
_INDEX, _INDEX_TYPE = "index", "i64"  # an index is computed as


def expression(
    block: ir.Block,
    value: ir.Value,
    given: Mapping[Any, Expression] | None = None,
) -> Expression | None:
    """`value` as an expression of the arguments of `block`.

    value: computed in the block, or one of its arguments, or a constant
    given: expressions of values that others know
    None where `value` depends on an op that expressions do not have.
    """
    known: dict[Any, Expression] = {
        argument: Argument(number) for number, argument in enumerate(block.arguments)
    }
    known.update(given or {})
    for op in block.operations:
        found = _operation(op.operation, known)
        if found is not None:
            known[op.operation.results[0]] = found
    return _known(value, known)


def values_at(
    block: ir.Block, value: ir.Value, given: Sequence[Sequence[float]]
) -> list[float] | None:
    """`value` for each of the numbers that the first arguments of `block` are given.

    given: by argument, as many numbers of each; the other arguments are not read
    None where `value` depends on an op that expressions do not have.
    """
    found = expression(block, value)
    if found is None or not given or max(arguments(found), default=0) >= len(given):
        return None
    values = evaluate(found, given).tolist()
    return values if isinstance(values, list) else [values] * len(given[0])


def constant(value: ir.Value) -> Constant | None:
    """The number that `value`, or each element of it, is; None for no constant."""
    number = splat(value)
    return None if number is None else Constant(number)


def _known(value: ir.Value, known: dict[Any, Expression]) -> Expression | None:
    return known[value] if value in known else constant(value)


def _operation(op: ir.Operation, known: dict[Any, Expression]) -> Expression | None:
    name, dtype = _name(op), _type(op.results[0]) if len(op.results) == 1 else ""
    if name not in OPERATIONS or not _has_types(op):
        return None
    if op.name == _INDEX_CAST and dtype == _INDEX_TYPE:
        return _known(op.operands[0], known)
    operands = [_known(operand, known) for operand in op.operands]
    found = [operand for operand in operands if operand is not None]
    if len(found) < len(operands):
        return None
    made = Operation(name, dtype, tuple(found))
    return made if is_small(made) else None


def _name(op: ir.Operation) -> str:
    if op.name == _INDEX_CAST:
        return "arith.trunci"  # to a narrower type; else it changes nothing
    predicates = _PREDICATES.get(op.name)
    if predicates is None:
        return op.name
    return f"{op.name}.{predicates[op.attributes['predicate'].value]}"


def _type(value: ir.Value) -> str:
    """The type of a value in expressions."""
    kind = str(value.type)
    return _INDEX_TYPE if kind == _INDEX else kind


def _has_types(op: ir.Operation) -> bool:
    """Whether expressions have the types of the op, with the same meaning.

    Expressions do not keep types of operands: integers are signed, and a true i1 is 1.
    """
    types = [_type(value) for value in (*op.operands, *op.results)]
    if not all(one in FLOATS or one in INTEGERS for one in types):
        return False
    if op.name in _UNSIGNED_SOURCE:
        return types[0] == "i1"
    return op.name not in _SIGNED_SOURCE or types[0] != "i1"
