"""Which element-wise op makes what another one reads, so that one op can do both.

`find_link` looks above an op for the one that fills an array that it reads. The two can
become one op where the array is of no use to anybody else, and where nothing in between
changes what the first op reads. Of a fill, a copy or a broadcast the second op can read
what the first one reads even so. Changes nothing.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from alcop_mlir.analysis.ir.code_motion import (
    ops_before,
    reaches_only_operands,
    touches,
    writes,
)
from alcop_mlir.analysis.ir.memory import is_own_allocation, may_alias, root
from alcop_mlir.analysis.linalg.elementwise import (
    Elementwise,
    Loops,
    Operand,
    elementwise,
)
from alcop_mlir.dialects import alcop

_HARMLESS = ("memref.dealloc", "memref.dim")


@dataclass(frozen=True)
class Link:
    """`consumer` reads `array`, all of which `producer` has written.

    is_last: whether nobody else reads what the producer wrote
    """

    producer: Elementwise
    consumer: Elementwise
    array: Any
    is_last: bool


def find_link(consumer: Elementwise, noalias_arguments: bool = False) -> Link | None:
    """An op above that can be computed by the consumer, see above.

    noalias_arguments: whether a written argument surely overlaps no other
    """
    for operand in consumer.reads:
        if not operand.is_array:
            continue
        found = _writer(consumer, operand.value, noalias_arguments)
        if found is None:
            continue
        producer, passed = found
        array = operand.value
        is_last = _is_last(producer, consumer, array, passed, noalias_arguments)
        link = Link(producer, consumer, array, is_last)
        if _is_sound(link, passed, noalias_arguments):
            return link
    return None


def composed_loops(link: Link, operand: Operand) -> list[Loops]:
    """The consumer's loops that index an operand of the producer, for each use."""
    uses = [one for one in link.consumer.reads if one.value == link.array]
    return [composed(link, use, operand) for use in uses]


def composed(link: Link, use: Operand, operand: Operand) -> Loops:
    """The loops of the consumer that index an operand of the producer.

    use: the operand of the consumer that stands for the array
    """
    names = dict(zip(link.producer.output.loops, use.loops, strict=True))
    return tuple(None if loop is None else names[loop] for loop in operand.loops)


def _writer(
    consumer: Elementwise, array: Any, noalias: bool
) -> tuple[Elementwise, list[Any]] | None:
    """The element-wise op that fills `array`, and the ops between."""
    passed: list[Any] = []
    for op in ops_before(consumer.op):
        element = elementwise(op)
        if element is not None and element.output.value == array:
            return element, passed
        if not reaches_only_operands(op) or writes(op, array, noalias):
            return None
        passed.append(op)
    return None


def _is_sound(link: Link, passed: list[Any], noalias: bool) -> bool:
    producer = link.producer
    return (
        alcop.get(producer.op, alcop.ContractionAttr) is None
        and not producer.reads_output
        and _is_cheap_to_repeat(link)
        and (link.is_last or _only_moves(producer))
        and not any(
            writes(op, operand.value, noalias)
            for op in passed
            for operand in producer.reads
            if operand.is_array
        )
        and not _overwrites_input(link, noalias)
    )


def _is_cheap_to_repeat(link: Link) -> bool:
    """Whether the producer is computed once per element, or is no more than moves."""
    uses = [one for one in link.consumer.reads if one.value == link.array]
    is_repeated = len(uses) > 1 or any(
        len(set(use.loops) - {None}) < link.consumer.rank for use in uses
    )
    block = link.producer.block
    if not is_repeated or block is None:
        return True
    return not any(op.operation.name.startswith("math.") for op in block.operations)


def _only_moves(element: Elementwise) -> bool:
    """Whether the output is an input, or a scalar, as it is."""
    return element.block is None or len(element.block.operations) == 1


def _is_last(
    producer: Elementwise,
    consumer: Elementwise,
    array: Any,
    passed: list[Any],
    noalias: bool,
) -> bool:
    """Whether nobody but the consumer reads what the producer wrote."""
    if any(touches(op, array, noalias) for op in passed):
        return False
    if consumer.output.value == array:
        return True  # which overwrites all of it
    if not is_own_allocation(array):
        return False
    ops = (producer.op, consumer.op)
    users = [use.owner.operation for use in array.uses]
    return all(
        user in ops or user.name in _HARMLESS or _is_above(user, producer.op)
        for user in users
    )


def _is_above(user: Any, op: Any) -> bool:
    """Whether it stands before `op`, and so does not read what that writes.

    Another op's view of the array may be used anywhere.
    """
    return (
        not len(user.results) and user.block == op.block and user.is_before_in_block(op)
    )


def _overwrites_input(link: Link, noalias: bool) -> bool:
    """Whether the consumer would write what another of its iterations still reads."""
    output = link.consumer.output
    return any(
        may_alias(root(operand.value), root(output.value), noalias)
        and not (operand.value == output.value and loops == output.loops)
        for operand in link.producer.reads
        if operand.is_array
        for loops in composed_loops(link, operand)
    )
