"""Which loops of ops have the same size, also where that is known at run time only.

Dimensions that one loop of an op indexes have one size, as the host checks before it
launches anything (`analysis/linalg/size_names.py`). Changes nothing.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from alcop_mlir.analysis.ir.extents import extent
from alcop_mlir.analysis.ir.loops import constant, made_by
from alcop_mlir.analysis.linalg.loop_nests import Nest
from alcop_mlir.bindings import ir


class RowSizes:
    """The sizes of loops of the ops of a block."""

    def __init__(self, nests: Iterable[Nest]) -> None:
        self._parents: dict[Any, Any] = {}
        for nest in nests:
            for operand in nest.operands:
                for number, loop in enumerate(operand.loops):
                    if loop is not None:
                        own = _size(operand.value, number)
                        self._join(own, _size(*nest.sizes[loop]))

    def of(self, nest: Nest, loop: int) -> object:
        """The size of a loop: equal ones are equal."""
        return self._head(_size(*nest.sizes[loop]))

    def _join(self, one: object, other: object) -> None:
        """Let both be one size: a number, if one of them is."""
        one, other = self._head(one), self._head(other)
        if one == other or (isinstance(one, int) and isinstance(other, int)):
            return
        if isinstance(one, int):
            one, other = other, one
        self._parents[one] = other

    def _head(self, size: object) -> object:
        while size in self._parents:
            size = self._parents[size]
        return size


def _size(memref: ir.Value, number: int) -> object:
    """A size of a memref, as what it is made of."""
    size = extent(memref, number)
    if isinstance(size, int):
        return size
    dim = None if size is None else made_by(size, "memref.dim")
    if dim is not None and (position := constant(dim.operands[1])) is not None:
        return dim.operands[0], position
    return (memref, number) if size is None else size
