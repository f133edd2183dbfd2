"""Which element-wise op on tensors may compute itself what another one makes for it.

`find_pair` looks at what makes the inputs of an element-wise op. The maker can be
computed by its reader where no other op reads its result; and where it only fills,
copies or broadcasts, whoever else reads it. Changes nothing.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import field
from typing import Any

from alcop_mlir.analysis.ir.loops import defining_op, made_by
from alcop_mlir.analysis.ir.memory import element_bits
from alcop_mlir.analysis.ir.rejected import Rejected
from alcop_mlir.analysis.ir.walk import walk
from alcop_mlir.analysis.linalg.contraction_letters import loop_letters
from alcop_mlir.analysis.linalg.elementwise import INDEX, Elementwise
from alcop_mlir.analysis.linalg.elementwise_chains import (
    Link,
    is_cheap_to_repeat,
    only_moves,
)
from alcop_mlir.analysis.linalg.view import linalg_view
from alcop_mlir.analysis.tensors.repeated_elements import (
    reader_on_tensors,
    why_not_repeated,
)
from alcop_mlir.bindings import ir
from alcop_mlir.frozen import frozen

# Tensors that are looked through for the contractions in front of an op.
_MOST_FOLLOWED = 32

_RESHAPES = ("tensor.collapse_shape", "tensor.expand_shape")
_VIEWS = (*_RESHAPES, "tensor.cast", "tensor.extract_slice")
_INSERTIONS = ("tensor.insert", "tensor.insert_slice")
_OVERWRITTEN = "alcop.in_place"


@frozen
class Known:
    """What was found of a function on the way down.

    overwritten: tensors, no views, that ops write over, see `overwritten_tensors`
    above:       the ops above in the block, and the view of those that are element-wise
    """

    overwritten: set[Any]
    above: dict[Any, Elementwise | None] = field(default_factory=dict)


def overwritten_tensors(function: ir.Operation) -> set[Any]:
    """Tensors that ops start from, and arguments that the caller finds changed.

    Bufferization lets such an op write where the tensor is, if all have read it.
    """
    found = set[Any]()
    for op in walk(function):
        if op.name in _INSERTIONS:
            found.add(_viewed(op.operands[1]))
        elif op.name.startswith("linalg.") and len(op.results):
            outputs = list(op.operands)[-len(op.results) :]
            found.update(map(_viewed, outputs))
    if "arg_attrs" in function.attributes:
        arguments = function.regions[0].blocks[0].arguments
        every = zip(arguments, function.attributes["arg_attrs"], strict=True)
        found.update(one for one, given in every if _OVERWRITTEN in given)
    return found


def find_pair(reader: Elementwise, known: Known) -> Link | list[Rejected]:
    """An op that the reader can compute; else why those that make its inputs stay."""
    rejected = []
    for operand in reader.inputs:
        op = defining_op(operand.value) if operand.is_tensor else None
        maker = known.above.get(op) if op is not None and operand.is_read else None
        if maker is None:
            continue
        users = (one.owner.operation for one in operand.value.uses)
        is_last = all(user == reader.op for user in users)
        link = Link(maker, reader, operand.value, is_last)
        reason = next(_reasons(link, known), None)
        if reason is None:
            return link
        rejected.append(Rejected(maker.op, reason))
    return rejected


def _reasons(link: Link, known: Known) -> Iterator[str]:
    """Why the maker stays an op of its own, the most telling reason first."""
    maker, reader = link.producer, link.consumer
    if maker.reads_output:
        yield "it is computed from what its output held before"
    if not link.is_last and not only_moves(maker):
        yield from _about_other_readers(link, known)
    if reader.output.value == link.memref:
        yield "the op that reads its result updates it"
    if not is_cheap_to_repeat(link):
        yield "it would be computed several times per element, and is not cheap"
    yield from _about_contractions(link, known.above)
    if _is_of_another_contraction(link, known.above):
        yield (
            "each reads a contraction that the other does not, "
            "and can be computed by it"
        )
    if any(_viewed(one.value) in known.overwritten for one in maker.reads):
        yield "what it reads is overwritten in place, and would be copied before"


def _about_other_readers(link: Link, known: Known) -> Iterator[str]:
    """Why the maker is computed anyway, or for one reader only."""
    why_not = why_not_repeated(link, known.above)
    users = {use.owner.operation for use in link.memref.uses} - {link.consumer.op}
    made = link.consumer.op.results[0]
    if why_not is None and any(use.owner.operation in users for use in made.uses):
        why_not = "an op reads its result, and what is computed of it"  # may be one
    if why_not is not None:
        yield why_not
        return
    for other in map(reader_on_tensors, users):
        assert other is not None, link
        alone = Link(link.producer, other, link.memref, is_last=True)
        for reason in _reasons(alone, known):
            yield f"another op that reads its result does not compute it: {reason}"


def _about_contractions(
    link: Link, above: Mapping[Any, Elementwise | None]
) -> Iterator[str]:
    """Whether one of both is an epilogue, and would be none with the other one."""
    maker, reader = link.producer, link.consumer
    if _fits_epilogue(maker) and not _fits_epilogue(reader):
        if _contractions_read([one.value for one in maker.reads], above):
            yield "a contraction can compute it, and not the op that reads its result"
    elif _fits_epilogue(reader) and not _fits_epilogue(maker):
        given = [one.value for one in reader.reads if one.value != link.memref]
        if _contractions_read(given, above):
            yield "a contraction can compute the op that reads its result, and not it"


def _fits_epilogue(element: Elementwise) -> bool:
    """Whether the kernel of a contraction can compute it, by its body."""
    return not walk(element.op, INDEX)


def _viewed(value: ir.Value) -> Any:
    while (view := made_by(value, *_VIEWS)) is not None:
        value = view.operands[0]
    return value


def _is_of_another_contraction(
    link: Link, above: Mapping[Any, Elementwise | None]
) -> bool:
    """Whether both are epilogues, if they stay apart, and of contractions of their own.

    Merged, one of the contractions would store what the maker reads, no smaller than
    what the maker writes.
    """
    read = [_bits(one.value) for one in link.producer.reads if one.is_tensor]
    if max(read, default=0) < _bits(link.memref):
        return False
    own = _contractions_read([one.value for one in link.producer.reads], above)
    given = [one.value for one in link.consumer.reads if one.value != link.memref]
    others = _contractions_read(given, above) if own else set[Any]()
    return bool(own) and bool(others) and not own & others


def _bits(tensor: ir.Value) -> int:
    return element_bits(tensor.type.element_type) or 0


def _contractions_read(
    tensors: list[ir.Value], above: Mapping[Any, Elementwise | None]
) -> set[Any]:
    """The contractions that element-wise ops compute these tensors from."""
    found, seen, pending = set[Any](), set[Any](), list(tensors)
    while pending and len(seen) < _MOST_FOLLOWED:
        tensor = pending.pop()
        op = defining_op(tensor)
        if op is None or tensor in seen:
            continue
        seen.add(tensor)
        element = above.get(op)
        if op.name in _RESHAPES:  # a contraction may write rows of images
            pending.append(op.operands[0])
        elif element is not None:
            pending += [one.value for one in element.reads]
        elif _is_contraction(op):
            found.add(op)
    return found


def _is_contraction(op: ir.Operation) -> bool:
    """Whether it contracts matrices, or windows of images as convolutions do."""
    view = linalg_view(op)
    if view is None or len(view.inputs) != 2 or not view.reductions:
        return False
    has_windows = any(None in one.loops for one in view.inputs)
    is_pool = not all(one.is_read for one in view.inputs)
    return loop_letters(view.maps) is not None or (has_windows and not is_pool)
