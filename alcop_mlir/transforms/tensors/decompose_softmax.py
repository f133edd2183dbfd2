"""Make element-wise ops and reductions of `linalg.softmax` on tensors.

Before:  %r = linalg.softmax dimension(1) ins(%x : tensor<8x32xf32>) outs(%e)
After:   %m = linalg.generic ... maxnumf     // of rows: tensor<8xf32>
         %p = linalg.generic ... exp(%x - %m)
         %s = linalg.generic ... addf        // of %p
         %r = linalg.generic ... %p / %s

By upstream's interface of ops that are decomposed, which only its transform dialect
calls. Softmax on memrefs is left unchanged: upstream decomposes it on tensors only.

Runs before bufferization, which would keep the op whole. Reads and writes no `alcop`
attributes.
"""

from __future__ import annotations

from alcop_mlir.analysis.ir.walk import walk
from alcop_mlir.bindings import interpreter, ir
from alcop_mlir.frozen import frozen
from alcop_mlir.passes.base import Pass

_SCRIPT = """
module attributes {transform.with_named_sequence} {
  transform.named_sequence @__transform_main(
      %op: !transform.any_op {transform.readonly}) {
    %found = transform.structured.match ops{["linalg.softmax"]} in %op
      : (!transform.any_op) -> !transform.any_op
    transform.structured.decompose_interface %found
      : (!transform.any_op) -> !transform.any_op
    transform.yield
  }
}"""


@frozen
class DecomposeSoftmax(Pass):
    name = "alcop-decompose-softmax"
    anchor = "func.func"

    def run(self, op: ir.Operation) -> None:
        found = walk(op, "linalg.softmax")
        if not found or any(not one.results for one in found):
            return
        script = ir.Module.parse(_SCRIPT, context=op.context)
        (sequence,) = script.body.operations
        interpreter.apply_named_sequence(op, sequence, script)
