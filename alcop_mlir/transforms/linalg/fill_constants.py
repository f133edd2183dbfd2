"""Replace constant tensors of equal elements, where ops start from them, by fills.

Before:  %c = arith.constant dense<0.0> : tensor<64x64xf32>
         linalg.matmul ins(%A, %B) outs(%c)
After:   %e = tensor.empty() : tensor<64x64xf32>
         %f = linalg.fill ins(%zero) outs(%e)
         linalg.matmul ins(%A, %B) outs(%f)

Bufferization would keep the constant in memory, and copy it for each such op; a fill is
folded into the op by alcop-raise-contractions or alcop-launch-loops.

Runs before bufferization. Reads and writes no attributes.
"""

from __future__ import annotations

from typing import Any

from alcop_mlir.analysis.ir.loops import made_by
from alcop_mlir.analysis.linalg.contractions import structured_ops
from alcop_mlir.bindings import arith, ir, linalg, tensor
from alcop_mlir.frozen import frozen
from alcop_mlir.passes import edit
from alcop_mlir.passes.base import Pass


@frozen
class FillConstants(Pass):
    name = "alcop-fill-constants"
    anchor = "func.func"

    def run(self, op: ir.Operation) -> None:
        constants = []
        for user in list(structured_ops(op)):
            count = len(user.operands)
            for number in range(count - len(user.results), count):
                constant = _splat(user.operands[number])
                if constant is not None:
                    constants.append(constant)
                    with ir.InsertionPoint(user), user.location:
                        user.operands[number] = _filled(constant)
        edit.erase_unused(constants)


def _splat(value: ir.Value) -> Any | None:
    """The constant of equal elements that makes `value`."""
    owner = made_by(value, "arith.constant")
    if owner is None or not isinstance(value.type, ir.RankedTensorType):
        return None
    attribute = owner.attributes["value"]
    is_splat = isinstance(attribute, ir.DenseElementsAttr) and attribute.is_splat
    return owner if is_splat else None


def _filled(constant: ir.Operation) -> Any:
    kind = constant.results[0].type
    element = constant.attributes["value"].get_splat_value()
    empty = tensor.empty(kind.shape, kind.element_type)
    return linalg.fill(arith.constant(kind.element_type, element), outs=[empty])
