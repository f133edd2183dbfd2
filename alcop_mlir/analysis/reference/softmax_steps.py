"""The steps of a `linalg.softmax`, as its MLIR definition has them."""

from __future__ import annotations

from alcop_mlir.analysis.reference.buffer_values import BufferValues, loops
from alcop_mlir.bindings import ir
from alcop_mlir.reference.expressions import Argument, Operation
from alcop_mlir.reference.steps import Map, Reduction

_X, _Y = Argument(0), Argument(1)


def run_softmax(op: ir.Operation, values: BufferValues) -> None:
    """Exponentials of what rows have below their maximum, divided by their total."""
    source, target = op.operands
    shape, dtype = values.shape(source), str(source.type.element_type)
    own = loops(len(shape))
    dimension = op.attributes["dimension"].value
    rows = own[:dimension] + own[dimension + 1 :]
    below = Operation("arith.subf", dtype, (_X, _Y))
    powers = Operation("math.exp", dtype, (below,))
    parts = Operation("arith.divf", dtype, (_X, _Y))

    def reduced(name: str, combine: str) -> str:
        step = Reduction((name,), f"{own}->{rows}", "", _X, combine, dtype)
        return values.add(step)

    def mapped(name: str, row: str, expression: Operation) -> str:
        step = Map((name, row), f"{own},{rows}->{own}", "", expression, shape)
        return values.add(step)

    given = values.name(source)
    made = mapped(given, reduced(given, "arith.maxnumf"), powers)
    result = mapped(made, reduced(made, "arith.addf"), parts)
    values.write(op.results[0] if len(op.results) else target, result)
