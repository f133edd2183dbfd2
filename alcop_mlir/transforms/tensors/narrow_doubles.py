"""Compute in f32 what a function computes in f64 on the way only.

Before:  %w = linalg.generic ins(%x : tensor<8x64xf32>) outs(..xf64) { arith.extf }
         %s = linalg.generic ins(%w : tensor<8x64xf64>) outs(..xf64) { arith.addf }
         %v = linalg.generic ins(%s : tensor<8xf64>) outs(..xf32) { arith.truncf }
After:   %w = %x
         %s = linalg.generic ins(%x : tensor<8x64xf32>) outs(..xf32) { arith.addf }
         %v = %s     // by linalg.generic { linalg.yield %in }, until canonicalized

torch-mlir computes the variance of a layer norm so, at half to a 64th of the speed, and
computes the mean twice. A function is changed as a whole, or left unchanged: where f64
is an argument or a result, comes from integers or memory, is compared with a number
that f32 does not have, or where a constant is out of f32's range
(`analysis.ir.doubles`). References bound the error of f32 then, so that `alcop-run
--check` prints what it costs.

Runs first, as references look at the function as it was given. Reads and writes no
`alcop` attributes.
"""

from __future__ import annotations

from typing import Any

from alcop_mlir.analysis.ir.doubles import is_double, narrows_doubles
from alcop_mlir.analysis.ir.loops import splat
from alcop_mlir.analysis.ir.walk import walk
from alcop_mlir.bindings import arith, ir
from alcop_mlir.frozen import frozen
from alcop_mlir.passes import build
from alcop_mlir.passes.base import Pass

_CASTS = ("arith.extf", "arith.truncf")


@frozen
class NarrowDoubles(Pass):
    name = "alcop-narrow-doubles"
    anchor = "func.func"

    def run(self, op: ir.Operation) -> None:
        if not narrows_doubles(op):
            return
        for inner in walk(op):
            if inner.name == "arith.constant" and is_double(inner.results[0].type):
                _replace_constant(inner)
                continue
            for value in _values(inner):
                if is_double(value.type):
                    value.set_type(_narrow(value.type))
        for cast in walk(op, *_CASTS):
            (given,), (result,) = cast.operands, cast.results
            if given.type == result.type:
                result.replace_all_uses_with(given)
                cast.erase()


def _values(op: ir.Operation) -> list[Any]:
    """The results of an op, and the arguments of its regions."""
    blocks = (block for region in op.regions for block in region.blocks)
    return [*op.results, *(one for block in blocks for one in block.arguments)]


def _replace_constant(constant: ir.Operation) -> None:
    (old,), number = constant.results, splat(constant.results[0])
    kind = _narrow(old.type)
    with constant.location, ir.InsertionPoint(constant):
        element = ir.FloatAttr.get(ir.F32Type.get(), number)
        is_scalar = isinstance(kind, ir.F32Type)
        new = arith.constant(kind, element) if is_scalar else build.splat(kind, element)
    old.replace_all_uses_with(new)
    constant.erase()


def _narrow(kind: Any) -> Any:
    """f32, or the tensor of f32, for f64."""
    if isinstance(kind, ir.F64Type):
        return ir.F32Type.get()
    return ir.RankedTensorType.get(kind.shape, ir.F32Type.get())
