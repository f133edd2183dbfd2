"""Merge a fill with the op that then writes a part of what was filled.

Before:  linalg.fill ins(%zero) outs(%p : memref<1x38x38x4xf16>)
         %s = memref.subview %p[0, 3, 3, 0] [1, 32, 32, 3] [1, 1, 1, 1]
         memref.copy %x, %s
After:   linalg.generic outs(%p) {
           %h = linalg.index 1 ; ...
           %inside = ...                     // 3 <= %h < 35, 3 <= %w < 35, %c < 3
           scf.if %inside { memref.load %x[...] } else { %zero } }

Of an image that is stored with zeros around it: each element is written once, by one
kernel instead of two. The second op may be any element-wise op that does not read what
it writes. Steps in the part, and parts with fewer dimensions, are left unchanged.

Runs after alcop-tile-to-blocks, which takes what contractions start from, and before
alcop-launch-loops. Reads and writes no `alcop` attributes.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from alcop_mlir.analysis.ir.alignment import given
from alcop_mlir.analysis.ir.extents import extent
from alcop_mlir.analysis.ir.loops import made_by
from alcop_mlir.analysis.ir.walk import walk
from alcop_mlir.analysis.linalg.contractions import structured_ops
from alcop_mlir.analysis.linalg.elementwise import (
    Elementwise,
    elementwise,
    filled_with,
    find_fill,
)
from alcop_mlir.analysis.linalg.view import Operand
from alcop_mlir.bindings import arith, ir, linalg, memref
from alcop_mlir.frozen import frozen
from alcop_mlir.passes import build, edit
from alcop_mlir.passes.base import NOALIAS, Pass, option


@frozen
class MergePaddings(Pass):
    name = "alcop-merge-paddings"
    anchor = "func.func"

    assume_noalias_args: bool = option(False, NOALIAS)

    def run(self, op: ir.Operation) -> None:
        for candidate in [*structured_ops(op), *walk(op, "memref.copy")]:
            found = self._padding(candidate)
            if found is not None:
                with candidate.location, ir.InsertionPoint(candidate):
                    found.write()
                found.copy.op.erase()
                found.fill.op.erase()
                edit.erase_unused([found.part])

    def _padding(self, op: ir.Operation) -> _Padding | None:
        """The fill and the copy, where `op` is one into a part of what is filled."""
        copy = elementwise(op)
        part = None if copy is None else made_by(copy.output.value, "memref.subview")
        if copy is None or part is None or copy.reads_output:
            return None
        buffer, kinds = part.operands[0], [one.value.type for one in copy.operands]
        numbers = [*given(part, "offsets"), *given(part, "strides")]
        rank = buffer.type.rank
        is_known = all(isinstance(one, int) for one in numbers)
        if not is_known or numbers[rank:] != [1] * rank or kinds[-1].rank != rank:
            return None
        fill = find_fill(op, buffer, self.assume_noalias_args)
        return None if fill is None else _Padding(buffer, part, fill, copy)


@frozen
class _Padding:
    """An op that writes `part` of a buffer, and the fill of all of it before."""

    buffer: Any
    part: Any
    fill: Elementwise
    copy: Elementwise

    def write(self) -> None:
        """Build the op that does both."""
        rank = self.buffer.type.rank
        op = build.generic([], self.buffer, [build.loop_map(rank, range(rank))])
        (block,) = op.regions[0].blocks
        with ir.InsertionPoint(block):
            indices = [linalg.IndexOp(number).result for number in range(rank)]
            within = [
                build.sub(index, offset) if offset else index
                for index, offset in zip(indices, self._offsets, strict=True)
            ]
            inside = self._inside(within)
            linalg.YieldOp(
                self._copied(within)
                if inside is None
                else build.branch(
                    inside,
                    lambda: self._copied(within),
                    lambda: [filled_with(self.fill)],
                    [self.buffer.type.element_type],
                )
            )

    @property
    def _offsets(self) -> list[int]:
        return given(self.part, "offsets")

    def _inside(self, within: Sequence[ir.Value]) -> ir.Value | None:
        """Whether indices into the part are indices of it; None if they always are."""
        inside = None
        (part,) = self.part.results
        for number, index in enumerate(within):
            size, whole = extent(part, number), extent(self.buffer, number)
            if whole is None or size != whole:
                fits = arith.cmpi(arith.CmpIPredicate.ult, index, build.value(size))
                inside = build.both(inside, fits)
        return inside

    def _copied(self, within: Sequence[ir.Value]) -> list[Any]:
        """What the copy writes at these indices of the part."""
        loops = dict(zip(self.copy.output.loops, within, strict=True))
        elements = [_element(one, loops) for one in self.copy.inputs]
        if self.copy.block is None:
            return elements
        arguments = [one.argument for one in self.copy.inputs]
        return edit.inline(self.copy.block, dict(zip(arguments, elements, strict=True)))


def _element(operand: Operand, loops: dict[int | None, ir.Value]) -> Any:
    """The element of an operand at these indices; a scalar operand itself."""
    if not operand.is_memref:
        return operand.value
    zero = build.index(0)
    return memref.load(operand.value, [loops.get(one, zero) for one in operand.loops])
