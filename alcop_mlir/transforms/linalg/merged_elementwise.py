"""The one op that computes what two element-wise ops compute, on memrefs or tensors."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from alcop_mlir.analysis.ir.walk import walk
from alcop_mlir.analysis.linalg.elementwise import INDEX, Elementwise
from alcop_mlir.analysis.linalg.elementwise_chains import Link, composed
from alcop_mlir.analysis.linalg.view import Loops, Operand
from alcop_mlir.bindings import ir, linalg
from alcop_mlir.dialects import alcop
from alcop_mlir.passes import build, edit


def merged(link: Link) -> Any:
    """Replace the consumer, and the op above if nothing else needs it, by one op."""
    consumer, output = link.consumer, link.consumer.output
    operands = list(dict.fromkeys(_operands(link)))
    values = [value for value, _ in operands]
    every = [*(loops for _, loops in operands), output.loops]
    maps = [build.loop_map(consumer.rank, loops) for loops in every]
    # Along a chain of ops it grows: it is moved, not copied each time.
    moved = link.producer.block if _may_move(link) else None
    with consumer.op.location, ir.InsertionPoint(consumer.op):
        op = build.generic(values, output.value, maps, moved)
        (block,) = op.regions[0].blocks
        arguments = list(block.arguments)[-len(every) :]
        elements = dict(zip(operands, arguments, strict=False))
        with ir.InsertionPoint(block):
            linalg.YieldOp([_element(link, elements, arguments[-1], moved)])
    for number in reversed(range(len(block.arguments) - len(every))):
        block.erase_argument(number)
    if alcop.ADDED_PARTS in link.producer.op.attributes:
        op.attributes[alcop.ADDED_PARTS] = ir.UnitAttr.get()
    for old, new in zip(link.consumer.op.results, op.results, strict=True):
        old.replace_all_uses_with(new)
    link.consumer.op.erase()
    if link.is_last:
        link.producer.op.erase()
    return op


def _may_move(link: Link) -> bool:
    """Whether the body of the op above is needed once, and only in the merged op."""
    uses = {one.loops for one in link.consumer.reads if one.value == link.memref}
    return link.is_last and len(uses) == 1 and not walk(link.producer.op, INDEX)


def _operands(link: Link) -> Iterator[tuple[Any, Loops]]:
    """The inputs of the merged op, each with its loops; may repeat some."""
    for operand in link.consumer.reads:
        if operand.value == link.memref:
            for source in link.producer.reads:
                yield source.value, composed(link, operand, source)
        elif operand is not link.consumer.output:
            yield operand.value, operand.loops


def _element(
    link: Link,
    elements: dict[tuple[Any, Loops], Any],
    old: ir.Value,
    moved: ir.Block | None,
) -> Any:
    """The value that the merged op yields.

    elements: block argument by input
    old:      block argument of the output, its element before
    moved:    the body of the op above, if it is the merged op's
    """
    known: dict[Any, Any] = {}
    made: dict[Loops, Any] = {}  # equal uses are computed once
    for operand in link.consumer.reads:
        if operand.value == link.memref:
            if operand.loops not in made:
                given = {
                    one.argument: elements[one.value, composed(link, operand, one)]
                    for one in link.producer.reads
                } | _indices(link, operand)
                made[operand.loops] = (
                    _computed(link.producer, given)
                    if moved is None
                    else _in_place(moved, given)
                )
            known[operand.argument] = made[operand.loops]
        elif operand is link.consumer.output:
            known[operand.argument] = old
        else:
            known[operand.argument] = elements[operand.value, operand.loops]
    return _computed(link.consumer, known)


def _indices(link: Link, use: Operand) -> dict[Any, Any]:
    """The numbers of iterations that the op above computes with, for the loops here."""
    names = dict(zip(link.producer.output.loops, use.loops, strict=True))
    found: dict[Any, Any] = {}
    for op in walk(link.producer.op, INDEX):
        loop = names[op.attributes["dim"].value]
        found[op.results[0]] = (
            build.index(0) if loop is None else linalg.IndexOp(loop).result
        )
    return found


def _computed(element: Elementwise, known: dict[Any, Any]) -> Any:
    """The op's result for these arguments; a copy has one argument, and no body."""
    if element.block is None:
        return known[None]
    (result,) = edit.inline(element.block, known)
    return result


def _in_place(block: ir.Block, known: dict[Any, Any]) -> Any:
    """The same where the body itself has been moved; its end is erased."""
    for argument, value in known.items():
        argument.replace_all_uses_with(value)
    end = block.operations[-1].operation
    (result,) = end.operands
    end.erase()
    return result
