"""Let element-wise ops on tensors compute what others make for them.

Before:  %b = linalg.broadcast ins(%bias) .. dimensions = [0]
         %s = linalg.add ins(%c, %b) ..
         %r = linalg.generic ins(%s) .. { arith.truncf }
After:   %r = linalg.generic ins(%c, %bias) .. { arith.addf, arith.truncf }

What one op makes for one other is never in memory then. A fill, a copy or a broadcast
is computed by all that read it, as it costs them nothing. So is what several ops read,
if fewer bytes are moved then, and if these take longer than what is computed more often
(`repeated_elements.py`): conversions, comparisons, masks of numbers of iterations.
Rounding to the element type of the tensor between the two is part of the bodies, and
stays. What stays apart, though both are element-wise, has a remark at the op that is
not inlined: other ops read its result, and too many bytes or operations would be added,
or a contraction or a reduction in front of it can compute it; it would run several
times per element and is no short and simple arithmetic; each of the two reads a
contraction of its own, whose epilogue it can be, or one of them only can be an
epilogue; it reads what an op after it overwrites in place.

Runs after alcop-group-chains, when transposes and reshapes are where they will be, and
before bufferization. Reads `alcop.chain`, whose ops are left unchanged,
and `alcop.in_place`; writes `alcop.from_tensors` on functions with tensors, which
alcop-merge-elementwise then does not decide for.
"""

from __future__ import annotations

from typing import Any

from alcop_mlir import diagnostics
from alcop_mlir.analysis.ir.walk import host_blocks, walk
from alcop_mlir.analysis.linalg.elementwise import elementwise_on_tensors
from alcop_mlir.analysis.linalg.elementwise_chains import Link
from alcop_mlir.analysis.tensors.elementwise_pairs import (
    Known,
    find_pair,
    overwritten_tensors,
)
from alcop_mlir.bindings import ir
from alcop_mlir.dialects import alcop
from alcop_mlir.frozen import frozen
from alcop_mlir.passes.base import Pass
from alcop_mlir.transforms.linalg.merged_elementwise import merged


@frozen
class InlineElementwise(Pass):
    name = "alcop-inline-elementwise"
    anchor = "func.func"

    def run(self, op: ir.Operation) -> None:
        if not any(map(_is_on_tensors, walk(op))):
            return
        op.attributes[alcop.FROM_TENSORS] = ir.UnitAttr.get()
        overwritten = overwritten_tensors(op)
        apart: dict[Any, dict[str, None]] = {}  # reasons, by op
        for block in host_blocks(op):
            # What an op reads is above it, and has been inlined into by then.
            known = Known(overwritten)
            for inner in [one.operation for one in block.operations]:
                _inline_all(inner, known, apart)
        for stays, reasons in apart.items():
            what = "not computed by the element-wise op that reads its result"
            for reason in reasons:
                diagnostics.remark(stays, f"{what}: {reason}")


def _is_on_tensors(op: ir.Operation) -> bool:
    values = (*op.operands, *op.results)
    return any(isinstance(one.type, ir.RankedTensorType) for one in values)


def _inline_all(
    op: ir.Operation, known: Known, apart: dict[Any, dict[str, None]]
) -> None:
    """Inline what can be; add to `apart` why other ops that make its inputs stay."""
    is_linalg = op.name.startswith("linalg.") and alcop.CHAIN not in op.attributes
    element = elementwise_on_tensors(op, with_index=True) if is_linalg else None
    if element is None:
        return
    while isinstance(found := find_pair(element, known), Link):
        for merged_op in (element.op, *([found.producer.op] * found.is_last)):
            # Another op may have read it as well, which is part of the reader by now.
            apart.pop(merged_op, None)
            known.above.pop(merged_op, None)
        element = elementwise_on_tensors(merged(found), scalar_body=True)
        assert element is not None, found
    known.above[element.op] = element
    for one in found:
        apart.setdefault(one.op, {})[one.reason] = None
