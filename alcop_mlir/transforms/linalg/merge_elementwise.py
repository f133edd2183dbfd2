"""Merge two element-wise ops where one only writes what the other reads.

Before:  linalg.broadcast ins(%bias) outs(%T) dimensions = [0]
         linalg.add ins(%C, %T) outs(%D)
After:   linalg.generic ins(%C, %bias) outs(%D) { arith.addf }

The buffer between the two must be an allocation that no other op reads, or what the
second op overwrites. It is erased where nothing uses it any more. A fill, a copy or a
broadcast that another op needs stays, and the second op reads its source. Rounding to
the buffer's element type is part of the bodies, and stays. An op that would be computed
several times per element is merged only if it is simple arithmetic. Chains of ops are
merged one by one; marked ops are left unchanged.

Runs before alcop-fuse-producers, to which a chain then is one op, and before
alcop-raise-contractions, which looks at the initial value of C; runs again after
alcop-split-k, whose addition of the parts is merged with the ops that follow. Reads and
writes no attributes.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from alcop_mlir.analysis.ir.loops import defining_op
from alcop_mlir.analysis.linalg.elementwise import Elementwise, elementwise
from alcop_mlir.analysis.linalg.elementwise_chains import Link, composed, find_link
from alcop_mlir.analysis.linalg.view import Loops
from alcop_mlir.bindings import ir, linalg
from alcop_mlir.dialects import alcop
from alcop_mlir.passes import build
from alcop_mlir.passes.base import NOALIAS, Pass, option


@dataclass(frozen=True)
class MergeElementwise(Pass):
    name = "alcop-merge-elementwise"
    anchor = "func.func"

    assume_noalias_args: bool = option(False, NOALIAS)

    def run(self, op: ir.Operation) -> None:
        for block in op.regions[0].blocks:
            # The ops that one is merged with are above it, and were visited before.
            for element in [elementwise(inner) for inner in block.operations]:
                self._merge_into(element)

    def _merge_into(self, element: Elementwise | None) -> None:
        """Merge the ops above into `element`, until there is none left."""
        while element is not None and not _is_marked(element.op):
            link = find_link(element, self.assume_noalias_args)
            if link is None:
                return
            merged = _merge(link)
            _erase(link)
            element = elementwise(merged)


def _is_marked(op: ir.Operation) -> bool:
    return alcop.get(op, alcop.ContractionAttr) is not None


def _merge(link: Link) -> Any:
    """Build the op that does both, before the consumer."""
    consumer, output = link.consumer, link.consumer.output
    operands = list(dict.fromkeys(_operands(link)))
    values = [value for value, _ in operands]
    every = [*(loops for _, loops in operands), output.loops]
    maps = [build.loop_map(consumer.rank, loops) for loops in every]
    with consumer.op.location, ir.InsertionPoint(consumer.op):
        op = build.generic(values, output.value, maps)
        (block,) = op.regions[0].blocks
        elements = dict(zip(operands, block.arguments, strict=False))
        with ir.InsertionPoint(block):
            linalg.YieldOp([_element(link, elements, block.arguments[-1])])
    return op


def _operands(link: Link) -> Iterator[tuple[Any, Loops]]:
    """The inputs of the merged op, each with its loops; may repeat some."""
    for operand in link.consumer.reads:
        if operand.value == link.memref:
            for source in link.producer.reads:
                yield source.value, composed(link, operand, source)
        elif operand is not link.consumer.output:
            yield operand.value, operand.loops


def _element(link: Link, elements: dict[tuple[Any, Loops], Any], old: ir.Value) -> Any:
    """The value that the merged op yields.

    elements: block argument by input
    old:      block argument of the output, its element before
    """
    known: dict[Any, Any] = {}
    for operand in link.consumer.reads:
        if operand.value == link.memref:
            given = {
                source.argument: elements[source.value, composed(link, operand, source)]
                for source in link.producer.reads
            }
            known[operand.argument] = _computed(link.producer, given)
        elif operand is link.consumer.output:
            known[operand.argument] = old
        else:
            known[operand.argument] = elements[operand.value, operand.loops]
    return _computed(link.consumer, known)


def _computed(element: Elementwise, known: dict[Any, Any]) -> Any:
    """The op's result for these arguments; a copy has one argument, and no body."""
    if element.block is None:
        return known[None]
    (result,) = build.inline(element.block, known)
    return result


def _erase(link: Link) -> None:
    """Erase the ops that were merged, and the buffer between them if unused."""
    link.consumer.op.erase()
    if not link.is_last:
        return
    link.producer.op.erase()
    owner = defining_op(link.memref)
    if owner is not None and owner.operation.name == "memref.alloc":
        build.erase_buffer(link.memref)
