"""Which element-wise op writes what another one reads, so that both can be merged.

`find_link` looks above an op for the op that writes a memref that it reads. The two can
be merged where no other op uses the memref, and where nothing in between changes what
the first op reads. If the first op is a fill, a copy or a broadcast, other uses of the
memref are allowed: the second op then reads the first one's input. Changes nothing.
"""

from __future__ import annotations

from itertools import islice
from typing import Any

from alcop_mlir.analysis.ir.code_motion import (
    may_need,
    may_write,
    ops_between,
    touches,
    writes,
)
from alcop_mlir.analysis.ir.memory import (
    element_bits,
    is_own_allocation,
    may_alias,
    root,
)
from alcop_mlir.analysis.linalg.contraction_letters import loop_letters
from alcop_mlir.analysis.linalg.elementwise import Elementwise, find_writer
from alcop_mlir.analysis.linalg.view import Loops, Operand, linalg_view
from alcop_mlir.bindings import ir
from alcop_mlir.dialects import alcop
from alcop_mlir.frozen import frozen

# Of a body that is computed several times per element. Merging doubles it, and the next
# merge does so again.
_MOST_REPEATED_OPS = 32

_RESHAPES = ("memref.collapse_shape", "memref.expand_shape")

# Memrefs that are looked through for the contractions in front of an op.
_MOST_FOLLOWED = 32


@frozen
class Link:
    """`consumer` reads `memref`, which the op `producer` writes; or a tensor.

    is_last: whether no other op reads what `producer` writes
    """

    producer: Elementwise
    consumer: Elementwise
    memref: Any
    is_last: bool

    @property
    def uses(self) -> list[Operand]:
        """The operands of the consumer that are the memref."""
        return [one for one in self.consumer.reads if one.value == self.memref]


def find_link(
    consumer: Elementwise,
    above: dict[Any, Elementwise | None],
    noalias_arguments: bool = False,
    only_later: bool = False,
) -> Link | None:
    """An op above that can be merged into the consumer, see above.

    above:             the ops above in its block, and the view of those that are
                       element-wise
    noalias_arguments: whether a written argument overlaps no other
    only_later:        that one of the two was made after bufferization: a copy, or a
                       sum of a contraction's parts
    """
    for operand in consumer.reads:
        if not operand.is_memref:
            continue
        memref = operand.value
        users = (above.get(one.owner.operation) for one in memref.uses)
        writers = [one for one in users if one and one.output.value == memref]
        if only_later:
            writers = [one for one in writers if _is_later(one, consumer)]
        if not any(_may_merge(writer, consumer, memref) for writer in writers):
            continue  # to look through all ops above takes long in large programs
        if any(_is_of_another_contraction(one, consumer, above) for one in writers):
            continue
        producer = find_writer(
            consumer.op, [memref], writes, noalias_arguments, above.get
        )
        if producer is None or producer not in writers:
            continue
        is_last = _is_last(producer, consumer, memref, noalias_arguments)
        link = Link(producer, consumer, memref, is_last)
        if _is_sound(link, noalias_arguments):
            return link
    return None


def composed(link: Link, use: Operand, operand: Operand) -> Loops:
    """The loops of the consumer that index an operand of the producer op.

    use: the operand of the consumer that is the memref
    """
    names = dict(zip(link.producer.output.loops, use.loops, strict=True))
    return tuple(None if loop is None else names[loop] for loop in operand.loops)


def _is_later(producer: Elementwise, consumer: Elementwise) -> bool:
    """Whether passes on memrefs made one of them, as copies of what is put together."""
    is_sum = alcop.ADDED_PARTS in producer.op.attributes
    return is_sum or consumer.op.name == "memref.copy"


def _may_merge(producer: Elementwise, consumer: Elementwise, memref: Any) -> bool:
    """Whether they can be merged, but for what ops between them do."""
    return (
        alcop.get(producer.op, alcop.ContractionAttr) is None
        and not producer.reads_output
        and is_cheap_to_repeat(Link(producer, consumer, memref, False))
        and (
            only_moves(producer)
            or consumer.output.value == memref
            or _is_only_reader(producer, consumer, memref)
        )
    )


def _is_of_another_contraction(
    producer: Elementwise,
    consumer: Elementwise,
    above: dict[Any, Elementwise | None],
) -> bool:
    """Whether both are epilogues, if they stay apart, and of contractions of their own.

    They read, through other ops, contractions that the other does not. Merged, a
    contraction would store what the first op reads, no smaller than what it writes.
    """
    if not _narrows(producer):
        return False
    memref = producer.output.value
    own = _contractions_read([one.value for one in producer.reads], above)
    others = [one.value for one in consumer.reads if one.value != memref]
    read = _contractions_read(others, above)
    return bool(own) and not own & read and bool(read)


def _narrows(element: Elementwise) -> bool:
    """Whether it writes elements of no more bits than it reads, of any memref."""
    read = [_bits(one.value) for one in element.reads if one.is_memref]
    return max(read, default=0) >= _bits(element.output.value)


def _bits(memref: ir.Value) -> int:
    return element_bits(memref.type.element_type) or 0


def _contractions_read(
    memrefs: list[ir.Value], above: dict[Any, Elementwise | None]
) -> set[Any]:
    """The contractions whose outputs element-wise ops compute these memrefs from."""
    found, seen, pending = set[Any](), set[Any](), list(memrefs)
    while pending and len(seen) < _MOST_FOLLOWED:
        memref = pending.pop()
        if memref in seen or not isinstance(memref.type, ir.MemRefType):
            continue
        seen.add(memref)
        for use in memref.uses:
            op = use.owner.operation
            element = above.get(op)
            if element is not None and element.output.value == memref:
                pending += [one.value for one in element.reads]
            elif op in above and _is_output_of_contraction(op, memref):
                found.add(op)
            elif op.name in _RESHAPES:  # a contraction may write rows of images
                pending.append(op.results[0])
    return found


def _is_output_of_contraction(op: ir.Operation, memref: ir.Value) -> bool:
    if not op.name.startswith("linalg.") or op.operands[len(op.operands) - 1] != memref:
        return False
    view = linalg_view(op)
    return view is not None and loop_letters(view.maps) is not None


def _is_sound(link: Link, noalias: bool) -> bool:
    producer = link.producer
    return (
        _may_merge(producer, link.consumer, link.memref)
        and (link.is_last or only_moves(producer))
        and not any(
            may_write(op, operand.value, noalias)
            for operand in producer.reads
            if operand.is_memref
            for op in ops_between(producer.op, link.consumer.op)
        )
        and not _overwrites_input(link, noalias)
    )


def is_cheap_to_repeat(link: Link) -> bool:
    """Whether the producer op runs once per element, or has few and no costly ops."""
    is_repeated = len({use.loops for use in link.uses}) > 1 or any(
        len(set(use.loops) - {None}) < link.consumer.rank for use in link.uses
    )
    block = link.producer.block
    if not is_repeated or block is None:
        return True
    first = [op.operation.name for op in islice(block.operations, _MOST_REPEATED_OPS)]
    is_small = len(first) < _MOST_REPEATED_OPS
    return is_small and not any(name.startswith("math.") for name in first)


def only_moves(element: Elementwise) -> bool:
    """Whether the output is an unchanged input or scalar."""
    return element.block is None or len(element.block.operations) == 1


def _is_last(
    producer: Elementwise,
    consumer: Elementwise,
    memref: ir.Value,
    noalias: bool,
) -> bool:
    """Whether only the consumer reads what the producer op writes."""
    if _is_only_reader(producer, consumer, memref):
        return True
    if consumer.output.value != memref:
        return False
    between = ops_between(producer.op, consumer.op)
    return not any(touches(op, memref, noalias) for op in between)


def _is_only_reader(
    producer: Elementwise, consumer: Elementwise, memref: ir.Value
) -> bool:
    """Whether nothing but the consumer uses an allocation after the producer op."""
    users = (use.owner.operation for use in memref.uses)
    return is_own_allocation(memref) and all(
        user in (producer.op, consumer.op) or not may_need(user, producer.op)
        for user in users
    )


def _overwrites_input(link: Link, noalias: bool) -> bool:
    """Whether the consumer would overwrite what another of its iterations reads."""
    output = link.consumer.output
    return any(
        may_alias(root(operand.value), root(output.value), noalias)
        and not (operand.value == output.value and loops == output.loops)
        for operand in link.producer.reads
        if operand.is_memref
        for loops in (composed(link, use, operand) for use in link.uses)
    )
