"""Make one op of two element-wise ops where one only writes what the other reads.

Before:  linalg.broadcast ins(%bias) outs(%T) dimensions = [0]
         linalg.add ins(%C, %T) outs(%D)
After:   linalg.generic ins(%C, %bias) outs(%D) { arith.addf }

The array in between must be an allocation that nobody else reads, or what the second
op overwrites. It is erased where nothing uses it any more. A fill, a copy or a
broadcast that is needed elsewhere stays, and the second op reads what it reads.
Rounding to the array's type is in the bodies, and stays. What would be computed several
times is merged only if it is simple arithmetic. Ops in a row are merged one by one;
marked ops are left alone.

Reads and writes no attribute. Stands before alcop-fuse-producers, to which a chain is
one op then, and before alcop-raise-contractions, which looks at what C holds; again
behind alcop-split-k, whose adding up takes in what follows.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from alcop_mlir.analysis.linalg.elementwise import Elementwise, Loops, elementwise
from alcop_mlir.analysis.linalg.elementwise_chains import Link, composed, find_link
from alcop_mlir.bindings import ir, linalg
from alcop_mlir.dialects import alcop
from alcop_mlir.passes import build
from alcop_mlir.passes.base import Pass, option


@dataclass(frozen=True)
class MergeElementwise(Pass):
    name = "alcop-merge-elementwise"
    anchor = "func.func"

    assume_noalias_args: bool = option(
        False, "an array that is written overlaps no other argument"
    )

    def run(self, op: Any) -> None:
        for block in op.regions[0].blocks:
            # Those that an op takes in stand above it, and were looked at before.
            for element in [elementwise(inner) for inner in block.operations]:
                self._merge_into(element)

    def _merge_into(self, element: Elementwise | None) -> None:
        """Take in the ops above, until there is none left."""
        while element is not None and not _is_marked(element.op):
            link = find_link(element, self.assume_noalias_args)
            if link is None:
                return
            merged = _merge(link)
            _erase(link)
            element = elementwise(merged)


def _is_marked(op: Any) -> bool:
    return alcop.get(op, alcop.ContractionAttr) is not None


def _merge(link: Link) -> Any:
    """The op that does both, in the consumer's place."""
    consumer, output = link.consumer, link.consumer.output
    operands = list(dict.fromkeys(_operands(link)))
    values = [value for value, _ in operands]
    maps = [_map(loops, consumer.rank) for _, loops in operands]
    kinds = [ir.Attribute.parse("#linalg.iterator_type<parallel>")] * consumer.rank
    with consumer.op.location as here, ir.InsertionPoint(consumer.op):
        op = linalg.GenericOp(
            [],
            values,
            [output.value],
            ir.ArrayAttr.get([*maps, _map(output.loops, consumer.rank)]),
            ir.ArrayAttr.get(kinds),
        ).operation
        types = [getattr(v.type, "element_type", v.type) for v in op.operands]
        block = op.regions[0].blocks.append(*types, arg_locs=[here] * len(types))
        elements = dict(zip(operands, block.arguments, strict=False))
        with ir.InsertionPoint(block):
            linalg.YieldOp([_element(link, elements, block.arguments[-1])])
    return op


def _operands(link: Link) -> Iterator[tuple[Any, Loops]]:
    """The inputs of the merged op, each with its loops; some perhaps more than once."""
    for operand in link.consumer.reads:
        if operand.value == link.memref:
            for source in link.producer.reads:
                yield source.value, composed(link, operand, source)
        elif operand is not link.consumer.output:
            yield operand.value, operand.loops


def _element(link: Link, elements: dict[tuple[Any, Loops], Any], old: Any) -> Any:
    """What the merged op yields.

    elements: the argument that stands for each input
    old:      that of the output, as it was before
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
    """The op's element, from what its arguments are; a copy has one, and no body."""
    if element.block is None:
        return known[None]
    *body, end = (op.operation for op in element.block.operations)
    for op in body:
        build.clone(op, known)
    (result,) = end.operands
    return known.get(result, result)


def _erase(link: Link) -> None:
    """What is not needed: the ops, and the array in between where nothing uses it."""
    link.consumer.op.erase()
    if not link.is_last:
        return
    link.producer.op.erase()
    owner = link.memref.owner
    users = [use.owner.operation for use in link.memref.uses]
    if isinstance(owner, ir.Block) or owner.name != "memref.alloc":
        return
    if all(user.name == "memref.dealloc" for user in users):
        for user in users:
            user.erase()
        owner.erase()


def _map(loops: Loops, rank: int) -> Any:
    results = [
        ir.AffineExpr.get_constant(0) if loop is None else ir.AffineExpr.get_dim(loop)
        for loop in loops
    ]
    return ir.AffineMapAttr.get(ir.AffineMap.get(rank, 0, results))
