"""The matrices that a chain of contractions multiplies, as they lie in memory.

A matrix that is a transposed, broadcast or reshaped copy of another tensor is read from
that one, as far as its rows or columns stay neighbours: heads that share keys are an
index that the keys lack, and queries that one
contraction wrote beside keys and values are read where they are.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

from alcop_mlir.analysis.chains.indices import (
    Index,
    Indices,
    NotFollowedError,
    SplitLoop,
    source_of_reshape,
)
from alcop_mlir.analysis.ir.loops import defining_op
from alcop_mlir.analysis.linalg.view import LinalgView, Operand, linalg_view
from alcop_mlir.frozen import frozen


@frozen
class Matrix:
    """A tensor of matrices, and the loops that index its dimensions."""

    value: Any
    indices: Indices

    @property
    def loops(self) -> frozenset[int]:
        """The loops that index it."""
        return frozenset(loop for index in self.indices for loop in index)

    @property
    def innermost(self) -> int | None:
        """The loop that goes over neighbours; None for a tensor of one element."""
        return next((index[-1] for index in reversed(self.indices) if index), None)

    @property
    def type(self) -> str:
        """The type of its elements."""
        return str(self.value.type.element_type)


def found_in_memory(
    matrix: Matrix, extents: Mapping[int, int], inner: Collection[int]
) -> Matrix:
    """The tensor that `matrix` is a copy or view of, the first one that is no copy.

    inner: the loops of which one has to go over neighbours; they are not split, but
           what has parts of them is not looked into
    SplitLoop where another loop has to be split for that.
    """
    found = at = matrix
    while True:
        try:
            source = _source(at, extents)
        except SplitLoop as wanted:
            if wanted.loop not in inner:
                raise
            return found
        except NotFollowedError:
            return found
        if source is None:
            return found
        at = source
        if at.innermost in inner:
            found = at


def _source(matrix: Matrix, extents: Mapping[int, int]) -> Matrix | None:
    op = defining_op(matrix.value)
    if op is None or len(op.results) != 1:
        return None
    reshaped = source_of_reshape(matrix.value, matrix.indices, extents)
    if reshaped is not None:
        return Matrix(*reshaped)
    view = linalg_view(op)
    if view is None or not _is_copy(view):
        return None
    (source,), (target,) = view.inputs, view.outputs
    given: dict[int | None, Index] = dict(
        zip(target.loops, matrix.indices, strict=True)
    )
    return Matrix(source.value, tuple(given[loop] for loop in source.loops))


def _is_copy(view: LinalgView) -> bool:
    """Whether it writes the elements of its only input, in any order, or repeatedly."""
    if len(view.inputs) != 1 or len(view.outputs) != 1 or view.block is None:
        return False
    (source,), (target,) = view.inputs, view.outputs
    end = view.block.operations[-1]
    return (
        source.is_tensor
        and end.operation.operands[0] == source.argument
        and _has_loops(source)
        and _has_loops(target)
        and not view.reductions
    )


def _has_loops(operand: Operand) -> bool:
    return None not in operand.loops
