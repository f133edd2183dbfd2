"""Builders of the elements that a thread needs of vectors with an element per row.

    %rows = arith.addi %base, %offsets : vector<64xindex>         // the block's
    %row  = arith.addi %base_of_row, %offset : index              // a thread's

An element is computed where the vector is, so that what comes before a loop is computed
once. `analysis.layout.row_vectors` says which vectors have such elements.
"""

from __future__ import annotations

from typing import Any

from alcop_mlir.analysis.ir.loops import defining_op
from alcop_mlir.analysis.layout.row_vectors import BROADCAST, CONSTANT, READ, STEP
from alcop_mlir.bindings import arith, ir
from alcop_mlir.passes import build
from alcop_mlir.transforms.tensor_cores.copy_offsets import Index


class RowElements:
    """Elements of vectors by rows, each built once."""

    def __init__(self) -> None:
        self._built: dict[Any, Any] = {}
        self._ops: dict[Any, None] = {}  # that made the vectors, operands first

    def of(self, vector: ir.Value, row: Index) -> Any:
        """The element of `vector` for a row of the tile."""
        key = (vector, row.base, row.shift)
        if key not in self._built:
            self._built[key] = self._build(vector, row)
        return self._built[key]

    def erase_vectors(self) -> None:
        """Erase what made the vectors, and nothing else uses."""
        build.erase_unused(reversed(self._ops))

    def _build(self, vector: ir.Value, row: Index) -> Any:
        op = defining_op(vector)
        assert op is not None, vector
        is_made = op.name in (STEP, BROADCAST, CONSTANT)
        elements = [] if is_made else [self._operand(one, row) for one in op.operands]
        self._ops.setdefault(op)
        if op.name == STEP:
            return row.value
        if op.name == BROADCAST:
            return op.operands[0]
        with op.location, ir.InsertionPoint(op):
            if op.name == CONSTANT:
                element = op.attributes["value"].get_splat_value()
                return arith.constant(vector.type.element_type, element)
            if op.name == READ:
                return _loaded(op, row)
            kinds = [result.type.element_type for result in op.results]
            made = build.like(op, kinds, elements)
        return made.results[vector.result_number]

    def _operand(self, value: ir.Value, row: Index) -> Any:
        is_vector = isinstance(value.type, ir.VectorType)
        return self.of(value, row) if is_vector else value


def _loaded(read: Any, row: Index) -> Any:
    """What `read` reads for a row, or its padding beyond the end of the memref."""
    memref = read.operands[0]
    last = memref.type.rank
    *outer, first = list(read.operands)[1 : 1 + last]
    at = build.add(first, row.value)
    if all(flag.value for flag in read.attributes["in_bounds"]):
        return build.load(memref, [*outer, at])
    padding = read.operands[1 + last]
    (loaded,) = build.branch(
        build.less(at, build.size(memref, last - 1)),
        lambda: [build.load(memref, [*outer, at])],
        lambda: [padding],
        [padding.type],
    )
    return loaded
