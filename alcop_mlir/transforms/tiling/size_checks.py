"""Builders of assertions that memrefs are as large as loops assume.

Sizes that are known at run time only may contradict each other. Where that would let a
kernel access a memref beyond its end, the host asserts that it does not: the launcher
checks the assertions before it launches a kernel.
"""

from __future__ import annotations

from typing import Any

from alcop_mlir.analysis.linalg.loop_nests import Nest, loops_of
from alcop_mlir.bindings import arith, cf, ir, memref
from alcop_mlir.passes import build

MESSAGE = "sizes of memrefs do not fit together"


def assert_sizes(nest: Nest, sizes: list[Any]) -> None:
    """Assert that no operand of `nest` is smaller than its loops require.

    sizes: of the loops, ints or index values
    """
    for number, buffer in enumerate(nest.op.operands):
        for dimension, expression in enumerate(nest.maps[number].results):
            if not _is_sure(nest, buffer, dimension, expression):
                last = _last(expression, sizes)
                assert_at_least(buffer, dimension, build.add(last, build.index(1)))


def assert_at_least(buffer: Any, dimension: int, least: Any) -> None:
    """Assert the size of a dimension of `buffer`."""
    size = memref.dim(buffer, build.index(dimension))
    cf.AssertOp(arith.cmpi(arith.CmpIPredicate.sle, least, size), MESSAGE)


def _is_sure(nest: Nest, buffer: Any, dimension: int, expression: Any) -> bool:
    """Whether the verifier checks it, or the loop has its size from this dimension."""
    loops = loops_of(expression)
    if isinstance(expression, ir.AffineDimExpr):
        source, number = nest.sizes[loops[0]]
        if source == buffer and number == dimension:
            return True
    return not buffer.type.is_dynamic_dim(dimension) and all(
        nest.static_size(loop) is not None for loop in loops
    )


def _last(expression: Any, sizes: list[Any]) -> Any:
    """The largest index, of an expression that grows with each loop."""
    if isinstance(expression, ir.AffineDimExpr):
        size = sizes[ir.AffineDimExpr(expression).position]
        if isinstance(size, int):
            return build.index(size - 1)
        return arith.subi(size, build.index(1))
    if isinstance(expression, ir.AffineConstantExpr):
        return build.index(ir.AffineConstantExpr(expression).value)
    binary = ir.AffineBinaryExpr(expression)
    combine = build.add if isinstance(expression, ir.AffineAddExpr) else build.mul
    return combine(_last(binary.lhs, sizes), _last(binary.rhs, sizes))
