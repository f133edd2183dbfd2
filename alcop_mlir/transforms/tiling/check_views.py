"""Assert that views whose sizes or offsets are known at run time only are inside.

Before:  %right = memref.subview %A[0, %at] [%m, %k] [1, 1]    // %at = %columns - %k
After:   cf.assert %at >= 0 ; cf.assert %at + %k <= %columns
         cf.assert %m <= %rows
         %right = memref.subview %A[0, %at] [%m, %k] [1, 1]

Before:  %y = memref.expand_shape %x [[0, 1]] output_shape [%m, %n]
After:   cf.assert %m * %n == %all                             // the length of %x
         %y = memref.expand_shape %x [[0, 1]] output_shape [%m, %n]

Each is an `arith.cmpi` of sizes, which bundles hold as data: the launcher checks them
before it launches a kernel, and says in one line which one does not hold. What is sure
is not asserted. Views by numbers that are not computed of sizes, as those that kernels
load, are left to who computes them.

Runs after alcop-drop-offsets, while views are those of the program. Reads and writes no
`alcop` attributes.
"""

from __future__ import annotations

from functools import reduce
from typing import Any

from alcop_mlir.analysis.ir.alignment import given
from alcop_mlir.analysis.ir.extents import extent, has_host_size, is_of_sizes
from alcop_mlir.analysis.ir.loops import constant, made_by
from alcop_mlir.bindings import ir
from alcop_mlir.frozen import frozen
from alcop_mlir.passes import build
from alcop_mlir.passes.base import Pass


@frozen
class CheckViews(Pass):
    name = "alcop-check-views"
    anchor = "func.func"

    def run(self, op: ir.Operation) -> None:
        for block in op.regions[0].blocks:
            for view in list(block.operations):
                check = _CHECKS.get(view.operation.name)
                if check is not None:
                    with ir.InsertionPoint(view), view.operation.location:
                        check(view.operation)


def _check_part(view: ir.Operation) -> None:
    """Assert what is not known of a view, along each dimension of its source."""
    source = view.operands[0]
    offsets, sizes, steps = (given(view, n) for n in ("offsets", "sizes", "strides"))
    for number, (offset, size, step) in enumerate(
        zip(offsets, sizes, steps, strict=True)
    ):
        offset, size, step = map(_number, (offset, size, step))
        whole = extent(source, number)
        known = has_host_size(source, number)
        if not known or not all(map(_is_known, (offset, size, step))):
            continue
        if isinstance(offset, ir.Value):
            build.assert_at_most(0, offset)
        if offset == 0 and step == 1 and _is_same(size, whole, source, number):
            continue
        if isinstance(whole, int) and not _has_value(offset, size, step):
            continue
        end = build.add(offset, _length(size, step))
        build.assert_at_most(end, build.size(source, number))


def _check_expansion(view: ir.Operation) -> None:
    """Assert that the dimensions made of one have as many elements as that."""
    source, result = view.operands[0], view.results[0]
    for number, group in enumerate(view.attributes["reassociation"]):
        sizes = [extent(result, int(one)) for one in ir.ArrayAttr(group)]
        known = has_host_size(source, number) and all(map(_is_known, sizes))
        if not known or not _has_value(*sizes):
            continue
        if len(sizes) == 1 and _is_same(sizes[0], None, source, number):
            continue
        build.assert_equal(reduce(build.mul, sizes), build.size(source, number))


_CHECKS = {"memref.subview": _check_part, "memref.expand_shape": _check_expansion}


def _number(given: Any) -> Any:
    """An int for a constant."""
    known = constant(given) if isinstance(given, ir.Value) else None
    return given if known is None else known


def _is_known(number: Any) -> bool:
    return isinstance(number, int) or is_of_sizes(number)


def _has_value(*numbers: Any) -> bool:
    return any(isinstance(one, ir.Value) for one in numbers)


def _is_same(size: Any, whole: Any, source: ir.Value, number: int) -> bool:
    """Whether a size is that of the dimension of the source."""
    if whole is not None:
        return size == whole
    op = made_by(size, "memref.dim") if isinstance(size, ir.Value) else None
    if op is None:
        return False
    return op.operands[0] == source and constant(op.operands[1]) == number


def _length(size: Any, step: Any) -> Any:
    """Elements of the source from the first to behind the last."""
    if step == 1:
        return size
    return build.plus(build.mul(build.sub(size, 1), step), 1)
