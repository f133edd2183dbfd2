"""Which ops on tensors only widen the elements of another tensor.

Widening is exact: `arith.extf`, `arith.extsi` and `arith.extui` of a float or integer,
one or several of them.
"""

from __future__ import annotations

from typing import Any

from alcop_mlir.analysis.ir.loops import made_by
from alcop_mlir.analysis.linalg.view import view_of
from alcop_mlir.bindings import ir
from alcop_mlir.frozen import frozen

_WIDENING = ("arith.extf", "arith.extsi", "arith.extui")


@frozen
class Extension:
    """An op that widens each element of `source`.

    op:       a `linalg.generic` with one result
    argument: of its body: the element that is widened
    casts:    the ops of its body, in order
    index:    the map from an index of the result to that of the source
    """

    op: Any
    source: Any
    argument: Any
    casts: tuple[Any, ...]
    index: Any

    @property
    def is_pointwise(self) -> bool:
        """Whether the source has the shape of the result."""
        dims = range(self.index.n_dims)
        return self.index == ir.AffineMap.get_identity(len(dims))


def find_extension(value: ir.Value) -> Extension | None:
    """The extension that makes `value`; None where another op does."""
    op = made_by(value, "linalg.generic")
    if op is None or not isinstance(value.type, ir.RankedTensorType):
        return None
    view = view_of(op)
    read = [one for one in view.operands if one.is_read]
    if len(read) != 1 or not read[0].is_tensor or len(view.outputs) != 1:
        return None
    *casts, end = (inner.operation for inner in view.block.operations)
    if not casts or view.outputs[0].map != ir.AffineMap.get_identity(view.rank):
        return None
    element = read[0].argument
    for cast in casts:
        if cast.name not in _WIDENING or cast.operands[0] != element:
            return None
        element = cast.results[0]
    if end.operands[0] != element:
        return None
    return Extension(op, read[0].value, read[0].argument, tuple(casts), read[0].map)
