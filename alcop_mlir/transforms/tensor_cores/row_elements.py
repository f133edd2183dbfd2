"""Builders of the elements that a thread needs of vectors with an element per row.

    %rows = arith.addi %base, %offsets : vector<64xindex>         // the block's
    %row  = arith.addi %base_of_row, %offset : index              // a thread's

An element is computed where the vector is, so that what comes before a loop is computed
once. `analysis.layout.row_vectors` says which vectors have such elements.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from alcop_mlir.analysis.ir.loops import defining_op
from alcop_mlir.analysis.layout.row_vectors import (
    BROADCAST,
    CONSTANT,
    FIRST,
    LOAD,
    POISON,
    READ,
    STEP,
    is_vector,
)
from alcop_mlir.bindings import arith, ir, ub
from alcop_mlir.passes import build, edit
from alcop_mlir.transforms.tensor_cores.copy_offsets import Index


class RowElements:
    """Elements of vectors by rows, each built once."""

    def __init__(self) -> None:
        self._built: dict[Any, Any] = {}
        # The first results of what made the vectors, those of operands first.
        self._vectors: dict[Any, None] = {}

    def put(self, vector: ir.Value, row: Index, element: ir.Value) -> None:
        """Let `element` be that of `vector` for a row."""
        self._built[vector, row_key(row)] = element

    def of(self, vector: ir.Value, row: Index) -> Any:
        """The element of `vector` for a row of the tile."""
        key = (vector, row_key(row))
        if key not in self._built:
            self._built[key] = self._build(vector, row)
        return self._built[key]

    def made(self) -> Iterator[Any]:
        """The ops that made the vectors, users first."""
        return (vector.owner.operation for vector in reversed(self._vectors))

    def _build(self, vector: ir.Value, row: Index) -> Any:
        op = defining_op(vector)
        assert op is not None, vector
        is_first = op.name in FIRST
        elements = [] if is_first else [self._operand(one, row) for one in op.operands]
        self._vectors.setdefault(op.results[0])
        if op.name == STEP:
            return row.value
        if op.name == BROADCAST:
            return op.operands[0]
        kinds = [result.type.element_type for result in op.results]
        with op.location, ir.InsertionPoint(op):
            if op.name == CONSTANT:
                return arith.constant(*kinds, op.attributes["value"].get_splat_value())
            if op.name == POISON:
                return ub.poison(*kinds)
            if op.name in (READ, LOAD):
                return _loaded(op, row)
            made = edit.like(op, kinds, elements)
        return made.results[vector.result_number]

    def _operand(self, value: ir.Value, row: Index) -> Any:
        return self.of(value, row) if is_vector(value) else value


def row_key(row: Index) -> tuple[Any, int]:
    """What tells rows of a thread apart: not the value, which several chunks have."""
    return row.base, row.shift


def _loaded(read: Any, row: Index) -> Any:
    """What `read` reads for a row, or its padding beyond the end of the memref.

    A thread without a row reads that of another: memory may end with the vector.
    """
    memref = read.operands[0]
    last = memref.type.rank
    *outer, first = list(read.operands)[1 : 1 + last]
    (rows,) = read.results[0].type.shape
    own = row.value if row.is_sure else row.clamped(build.index(rows - 1))
    at = build.add(first, own)
    is_inside = read.name == LOAD or read.attributes["in_bounds"][0].value
    if is_inside:
        return build.load(memref, [*outer, at])
    padding = read.operands[1 + last]
    (loaded,) = build.branch(
        build.less(at, build.size(memref, last - 1)),
        lambda: [build.load(memref, [*outer, at])],
        lambda: [padding],
        [padding.type],
    )
    return loaded
