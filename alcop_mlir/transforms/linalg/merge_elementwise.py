"""Merge two element-wise ops where one only writes what the other reads.

Before:  linalg.broadcast ins(%bias) outs(%T) dimensions = [0]
         linalg.add ins(%C, %T) outs(%D)
After:   linalg.generic ins(%C, %bias) outs(%D) { arith.addf }

The buffer between the two must be an allocation that no other op reads, or what the
second op overwrites. It is erased where nothing uses it any more. A fill, a copy or a
broadcast that another op needs stays, and the second op reads its source. Rounding to
the buffer's element type is part of the bodies, and stays. An op that would be computed
several times per element is merged only if it is simple arithmetic, and short. Chains
of ops are merged one by one; marked ops are left unchanged.

Runs before alcop-fuse-producers, to which a chain then is one op, and before
alcop-raise-contractions, which looks at the initial value of C; runs again after
alcop-split-k, whose addition of the parts is merged with the ops that follow. In a
function that was on tensors (`alcop.from_tensors`), where alcop-inline-elementwise has
decided what is merged, only such additions are (`alcop.added_parts`, which the merged
op keeps), and what the copies that bufferization made read. Reads both attributes.
"""

from __future__ import annotations

from typing import Any

from alcop_mlir.analysis.ir.loops import made_by
from alcop_mlir.analysis.ir.walk import host_blocks
from alcop_mlir.analysis.linalg.elementwise import Elementwise, elementwise
from alcop_mlir.analysis.linalg.elementwise_chains import find_link
from alcop_mlir.bindings import ir
from alcop_mlir.dialects import alcop
from alcop_mlir.frozen import frozen
from alcop_mlir.passes.base import NOALIAS, Pass, option
from alcop_mlir.transforms.linalg.merged_elementwise import merged


@frozen
class MergeElementwise(Pass):
    name = "alcop-merge-elementwise"
    anchor = "func.func"

    assume_noalias_args: bool = option(False, NOALIAS)

    def run(self, op: ir.Operation) -> None:
        # Of a program on tensors the rest is decided.
        only_later = alcop.FROM_TENSORS in op.attributes
        freed: dict[Any, None] = {}
        for block in host_blocks(op):
            # The ops that one is merged with are above it, and were visited before.
            above: dict[Any, Elementwise | None] = {}
            for inner in [one.operation for one in block.operations]:
                element = elementwise(inner)
                while element is not None:
                    if alcop.get(element.op, alcop.ContractionAttr) is not None:
                        break
                    link = find_link(
                        element, above, self.assume_noalias_args, only_later
                    )
                    if link is None:
                        break
                    if link.is_last:
                        del above[link.producer.op]
                    element = elementwise(merged(link), scalar_body=True)
                    buffer = made_by(link.memref, "memref.alloc")
                    if buffer is None:
                        continue
                    freed[buffer] = None
                    if buffer in above and not any(True for _ in link.memref.uses):
                        del above[buffer], freed[buffer]
                        buffer.erase()
                above[inner if element is None else element.op] = element
        for buffer in freed:
            users = [use.owner.operation for use in buffer.results[0].uses]
            if all(user.name == "memref.dealloc" for user in users):
                for op in (*users, buffer):
                    op.erase()
