"""Zeros around an image: a buffer filled with zero, and an image copied into it.

    linalg.fill ins(%zero) outs(%padded : memref<1x16x16x64xf16>)
    %inner = memref.subview %padded[0, 1, 1, 0] [1, 14, 14, 64] [1, 1, 1, 1]
    memref.copy %image, %inner

What `tensor.pad` becomes, or is written so. What reads the buffer can read the image
instead, if it knows where that ends. With steps of more than 1 in the subview, there
are zeros between what is copied as well. Changes nothing.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Any

from alcop_mlir.analysis.ir.alignment import given
from alcop_mlir.analysis.ir.code_motion import (
    NO_ACCESS,
    ops_before,
    reaches_only_operands,
    writes,
)
from alcop_mlir.analysis.ir.index_terms import Terms, distance
from alcop_mlir.analysis.ir.loops import constant, made_by, splat
from alcop_mlir.analysis.ir.size_terms import size_terms, terms_of_sizes
from alcop_mlir.analysis.linalg.elementwise import filled_with
from alcop_mlir.analysis.linalg.view import linalg_view, view_of
from alcop_mlir.bindings import ir
from alcop_mlir.frozen import frozen


@frozen
class Padding:
    """A buffer that holds an image, and zeros around it.

    low, high: how many, before and after the image in each dimension
    steps:     from an element of the image to the next, in each dimension of the buffer
    ops:       what fills it, copies the image, and frees it; in reverse order
    """

    buffer: Any
    source: Any
    low: tuple[int, ...]
    high: tuple[int, ...]
    steps: tuple[int, ...]
    ops: tuple[Any, ...]

    @property
    def is_spread(self) -> bool:
        """Whether there are zeros between elements of the image."""
        return any(step != 1 for step in self.steps)


class _No(Exception):
    """Carries the reason to `find_padding`."""


def find_padding(
    buffer: ir.Value, reader: ir.Operation, noalias_arguments: bool = False
) -> Padding | str | None:
    """The padding that `reader` reads, or why it has to be computed; None for none.

    noalias_arguments: whether a written argument overlaps no other
    """
    alloc = made_by(buffer, "memref.alloc")
    if alloc is None:
        return None
    users = [use.owner.operation for use in buffer.uses]
    views = [user for user in users if user.name == "memref.subview"]
    fills = [user for user in users if _is_fill(user, buffer)]
    if len(views) != 1 or len(fills) != 1:
        return None
    try:
        copy = _copy_into(views[0])
        _check_users(users, (fills[0], views[0]), buffer)
        _check_fill(fills[0])
        _check_order(fills[0], copy, reader, noalias_arguments)
        source = copy.operands[0]
        low, high, steps = zip(*_around(buffer, views[0], source), strict=True)
    except _No as no:
        return str(no)
    freed = [user for user in users if user.name in NO_ACCESS]
    ops = (*freed, copy, views[0], fills[0], alloc)
    return Padding(buffer, source, low, high, steps, ops)


def _is_fill(op: ir.Operation, buffer: ir.Value) -> bool:
    view = linalg_view(op)
    if view is None or len(view.outputs) != 1:
        return False
    return view.outputs[0].value == buffer and filled_with(view) is not None


def _copy_into(view: ir.Operation) -> Any:
    """The one op that uses the view: it copies another memref to it."""
    users = [use.owner.operation for use in view.results[0].uses]
    names = ("memref.copy", "linalg.copy")
    if len(users) != 1 or users[0].name not in names:
        raise _No("what is padded is not copied, expected one 'memref.copy'")
    (copy,) = users
    source, target = copy.operands
    if (
        target != view.results[0]
        or source.type.element_type != target.type.element_type
    ):
        raise _No("what is padded is not copied as it is")
    return copy


def _check_users(
    users: Sequence[Any], writers: Sequence[Any], buffer: ir.Value
) -> None:
    """All others must only read the buffer, by linalg ops."""
    for user in users:
        if user in writers or user.name in NO_ACCESS:
            continue
        view = linalg_view(user)
        if view is None or any(out.value == buffer for out in view.outputs):
            raise _No(f"'{user.name}' uses the padded buffer too")


def _check_fill(fill: ir.Operation) -> None:
    value = filled_with(view_of(fill))
    number = None if value is None else splat(value)
    if number is None:
        raise _No("it is padded with a value that is not constant, expected zero")
    if number != 0 or math.copysign(1.0, number) < 0:
        raise _No(f"it is padded with {number}, expected zero")


def _check_order(
    fill: ir.Operation, copy: ir.Operation, reader: ir.Operation, noalias: bool
) -> None:
    """Fill, copy, read; what is copied must still be the same when it is read."""
    ops = (fill, copy, reader)
    if any(op.block != reader.block for op in ops):
        raise _No("it is padded in another block")
    if not (fill.is_before_in_block(copy) and copy.is_before_in_block(reader)):
        raise _No("it is padded in another order than filled, copied, read")
    for op in ops_before(reader):
        if op == copy:
            return
        if not reaches_only_operands(op) or writes(op, copy.operands[0], noalias):
            raise _No(f"'{op.name}' may write what was padded before it is read")


def _around(
    buffer: ir.Value, view: ir.Operation, source: ir.Value
) -> Iterator[tuple[int, int, int]]:
    """Per dimension, how much of the buffer is before and after the view; its step."""
    if source.type.rank != buffer.type.rank:
        raise _No("what is padded has fewer dimensions")
    offsets, sizes = given(view, "offsets"), given(view, "sizes")
    steps = given(view, "strides")
    for number, (offset, size, step) in enumerate(
        zip(offsets, sizes, steps, strict=True)
    ):
        low = offset if isinstance(offset, int) else constant(offset)
        if not isinstance(step, int):
            raise _No("it is spread out by a number that is known at run time only")
        # From the first to the last element of the view, both counted.
        spread = terms_of_sizes(size).plus(Terms(-1)).times(step).plus(Terms(1))
        after = distance(size_terms(buffer, number), spread)
        if low is None or after is None:
            raise _No("it is padded by a number that is known at run time only")
        yield low, after - low, step
