"""Whether the arrays of a function have ranks, by which kernels index them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from alcop_mlir import diagnostics
from alcop_mlir.analysis.ir.walk import walk
from alcop_mlir.bindings import ir
from alcop_mlir.errors import CompileError

_UNRANKED = (ir.UnrankedMemRefType, ir.UnrankedTensorType)


def check_ranks(func: ir.Operation) -> None:
    """CompileError at the first op that has an array of no rank, or at the function."""
    for op in walk(func):
        for kind in _types(op):
            if isinstance(kind, _UNRANKED):
                place = diagnostics.at(op.location, "error", "").place()
                raise CompileError(
                    f"{place}: '{op.name}' has {kind}, expected a known rank: kernels "
                    "are compiled for one number of dimensions, of any sizes"
                )


def _types(op: Any) -> Iterator[Any]:
    """Of what it is given, what it makes, and the arguments of its blocks."""
    for region in op.regions:
        for block in region.blocks:
            yield from (argument.type for argument in block.arguments)
    yield from (value.type for value in (*op.operands, *op.results))
