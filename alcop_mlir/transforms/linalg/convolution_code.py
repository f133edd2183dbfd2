"""Builders that the passes of convolutions share."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from alcop_mlir.analysis.linalg.padding import Padding
from alcop_mlir.analysis.linalg.view import LinalgView, Operand
from alcop_mlir.bindings import ir, linalg
from alcop_mlir.passes import build, edit


def with_body_of(
    view: LinalgView,
    operands: Sequence[Operand],
    values: Sequence[ir.Value],
    maps: Sequence[Any],
) -> Any:
    """A linalg.generic of image, filter and output with a convolution's own body.

    operands: of the convolution, which become `values`
    """
    op = build.generic(values[:2], values[2], maps)
    (block,) = op.regions[0].blocks
    elements = [one.argument for one in operands]
    with ir.InsertionPoint(block):
        mapping = dict(zip(elements, block.arguments, strict=True))
        linalg.YieldOp(edit.inline(view.block, mapping))
    return op


def erase_paddings(paddings: Iterable[Padding]) -> None:
    """Erase each padded buffer, and what fills it, where nothing else reads it.

    Several convolutions may have read one.
    """
    for padding in {one.buffer: one for one in paddings}.values():
        users = (use.owner.operation for use in padding.buffer.uses)
        if all(user in padding.ops for user in users):
            for op in padding.ops:
                op.erase()
