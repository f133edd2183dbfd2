"""Builders of assertions that memrefs are as large as loops assume.

Sizes that are known at run time only may contradict each other. Where that would let a
kernel access a memref beyond its end, the host asserts that it does not: the launcher
checks the assertions before it launches a kernel.
"""

from __future__ import annotations

from functools import reduce
from typing import Any

from alcop_mlir.analysis.linalg.loop_nests import Nest
from alcop_mlir.analysis.linalg.view import Index, Operand
from alcop_mlir.bindings import ir
from alcop_mlir.passes import build


def assert_sizes(nest: Nest, sizes: list[ir.Value]) -> None:
    """Assert that no operand of `nest` is smaller than its loops require.

    sizes: of the loops, ints or index values
    """
    for operand in nest.operands:
        for dimension, index in enumerate(operand.indices):
            if not _is_sure(nest, operand, dimension, index):
                first, last = _ends(index, sizes)
                if first is not None:
                    build.assert_at_most(0, first)
                least = build.add(last, 1)
                size = build.dim(operand.value, dimension)
                build.assert_at_most(least, size)


def _is_sure(nest: Nest, operand: Operand, dimension: int, index: Index) -> bool:
    """Whether the verifier checks it, or the loop has its size from this dimension."""
    if index.loop is not None and nest.sizes[index.loop] == (operand.value, dimension):
        return True
    return nest.is_static(operand, dimension)


def _ends(index: Index, sizes: list[ir.Value]) -> tuple[Any | None, Any]:
    """The least and the largest index; None for a least one that is never negative."""
    assert index.coefficients is not None, index.expression
    terms: dict[bool, list[Any]] = {False: [], True: []}
    for loop, coefficient in zip(index.loops, index.coefficients, strict=True):
        last = build.sub(sizes[loop], 1)
        terms[coefficient > 0].append(build.mul(last, coefficient))
    falls, grows = terms[False], terms[True]
    offset = [build.index(index.offset)] if index.offset else []
    is_positive = not falls and index.offset >= 0
    first = None if is_positive else reduce(build.add, [*falls, *offset])
    return first, reduce(build.add, [*grows, *offset] or [build.index(0)])
