"""Evaluates the index arithmetic of tile code with NumPy: numbers, and row vectors."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from alcop_mlir.bindings import ir

_ARITHMETIC: dict[str, Callable[..., Any]] = {
    "arith.addi": np.add,
    "arith.subi": np.subtract,
    "arith.muli": np.multiply,
    "arith.divui": np.floor_divide,
    "arith.remui": np.remainder,
    "arith.andi": np.bitwise_and,
    "arith.ori": np.bitwise_or,
    "arith.shli": np.left_shift,
    "arith.minsi": np.minimum,
    "arith.select": np.where,
    "arith.index_cast": lambda value: value,
}
# Predicates of `arith.cmpi`: eq, ne, slt, sge, ult.
_COMPARISONS: dict[int, Callable[..., Any]] = {
    0: np.equal,
    1: np.not_equal,
    2: np.less,
    5: np.greater_equal,
    6: lambda one, other: np.asarray(one, np.uint64) < np.asarray(other, np.uint64),
}


class IndexCode:
    """The values that the ops of a block compute; others may be put into `values`."""

    def __init__(self, block: ir.Block):
        self.values: dict[Any, Any] = {}
        self.run(block)

    def run(self, block: ir.Block) -> None:
        """Evaluate all ops of a block that it knows."""
        for op in block.operations:
            self._evaluate(op.operation)

    def steps(self, loop: ir.Operation) -> Iterator[int]:
        """Run a loop, step by step."""
        first, end, step = (int(self.values[one]) for one in list(loop.operands)[:3])
        carried = [self.values.get(one) for one in list(loop.operands)[3:]]
        body = loop.regions[0].blocks[0]
        *_, last = body.operations
        for k in range(first, end, step):
            found = [np.asarray(k), *carried]
            self.values.update(zip(body.arguments, found, strict=True))
            self.run(body)
            yield k
            carried = [self.values.get(one) for one in last.operation.operands]

    def _evaluate(self, op: Any) -> None:
        operands: list[Any] = [self.values.get(value) for value in op.operands]
        if op.name == "arith.constant":
            self.values[op.results[0]] = _constant(op.attributes["value"])
        elif op.name == "vector.step":
            self.values[op.results[0]] = np.arange(op.results[0].type.shape[0])
        elif any(one is None for one in operands):
            return
        elif op.name == "arith.cmpi":
            compare = _COMPARISONS[op.attributes["predicate"].value]
            self.values[op.results[0]] = compare(*operands)
        elif op.name == "vector.broadcast":
            shape = op.results[0].type.shape
            self.values[op.results[0]] = np.broadcast_to(operands[0], shape)
        elif op.name in _ARITHMETIC:
            self.values[op.results[0]] = _ARITHMETIC[op.name](*operands)


def _constant(attribute: Any) -> Any:
    if isinstance(attribute, ir.DenseElementsAttr):
        splat = attribute.get_splat_value()
        if not isinstance(splat, ir.IntegerAttr | ir.BoolAttr):
            return None
        return np.full(attribute.type.shape, splat.value)
    return (
        np.asarray(attribute.value) if isinstance(attribute, ir.IntegerAttr) else None
    )
