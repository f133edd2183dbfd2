"""Builders of epilogue fusion: the ops that alcop-fuse-elementwise marked.

A warp computes the epilogue some rows of its accumulators at a time: it reads the other
operands of these rows, computes, rounds and stores, so that few registers are needed
besides the accumulators. Operands that are the same for all rows are read once.

A body that begins by extending the output of the contraction gets the accumulators
themselves, before they are rounded.

An op that reads interleaved columns is computed a group of its own columns at a time,
on as many slices of the accumulators, and stored at once. A turned op is so for each
part of a group: number and block of the part are known, or scalars.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from alcop_mlir.analysis.linalg.elementwise import Elementwise
from alcop_mlir.analysis.linalg.interleaved_columns import (
    GROUP,
    Interleaved,
    Turned,
    has_rows,
)
from alcop_mlir.analysis.linalg.view import Operand
from alcop_mlir.bindings import affine, arith, ir, memref, vector
from alcop_mlir.frozen import frozen
from alcop_mlir.passes import build, edit
from alcop_mlir.target import MMA_F16_SHAPE
from alcop_mlir.transforms.linalg.matrices import view
from alcop_mlir.transforms.tiling.tile_access import TileWindow, transfer_map
from alcop_mlir.transforms.tiling.tiled_contractions import TiledContraction
from alcop_mlir.transforms.tiling.vector_code import as_vector, compute, rounded

_STRIP = MMA_F16_SHAPE[0]  # rows at a time: those of one accumulator fragment
_EXTENSIONS = ("arith.extf", "arith.extsi")


def store_epilogue(
    contraction: TiledContraction, window: TileWindow, accumulators: ir.Value
) -> None:
    """Compute the epilogue on the accumulators; store the results used elsewhere."""
    apart = [e.output.value for e in contraction.epilogue if isinstance(e, Interleaved)]
    results = [buffer for buffer in contraction.results if buffer not in apart]
    same_for_all_rows: dict[tuple[Any, str, int], Any] = {}
    for first in range(0, window.shape[0], _STRIP):
        strip = _Strip(contraction, window.rows(first, _STRIP), same_for_all_rows)
        columns = window.shape[1]
        strip.values[contraction.out] = _slice(accumulators, first, 0, columns)
        for element in contraction.epilogue:
            if isinstance(element, Turned):
                strip.store_turned(element)
            elif isinstance(element, Interleaved):
                strip.store_interleaved(element)
            else:
                strip.compute(element)
        for buffer in results:
            strip.store(buffer)


def _slice(values: ir.Value, row: int, column: int, columns: int) -> Any:
    """A strip of rows of a vector, with so many of its columns."""
    if values.type.shape == [_STRIP, columns]:
        return values
    kind = ir.VectorType.get([_STRIP, columns], values.type.element_type)
    return vector.extract_strided_slice(
        kind, values, [row, column], [_STRIP, columns], [1, 1]
    )


@dataclass
class _Strip:
    """Some rows of the accumulators, and the values computed from them.

    values: elements of the rows, by buffer
    parts:  elements of interleaved columns, by the argument of an op's body
    shared: operands that are the same for all rows, by buffer, loops and column
    """

    contraction: TiledContraction
    window: TileWindow
    shared: dict[tuple[Any, str, int], Any]
    values: dict[Any, Any] = field(default_factory=dict)
    parts: dict[Any, Any] = field(default_factory=dict)
    column: int = 0

    def compute(self, element: Elementwise) -> None:
        """Compute the output of an op from known values; read the others."""
        if element.block is None:
            (source,) = element.inputs
            self.values[element.output.value] = self._value(element, source)
            return
        known: dict[Any, Any] = {}
        for operand in element.reads:
            _bind(operand.argument, self._value(element, operand), known)
        *body, end = (op.operation for op in element.block.operations)
        shape = list(self.window.shape)
        compute((op for op in body if op.results[0] not in known), shape, known)
        result = as_vector(end.operands[0], shape, known)
        self.values[element.output.value] = result

    def store_interleaved(self, element: Interleaved) -> None:
        """Compute and store an op of interleaved columns, a group at a time."""
        for first in range(0, self.window.shape[1], element.span):
            parts = {
                one.argument: _slice(
                    self.values[one.value],
                    0,
                    first + (element.part_of[one.argument] or 0) * GROUP,
                    GROUP,
                )
                for one in element.parts_read
            }
            window = self.window.group(first, GROUP, element.parts)
            group = _Strip(
                self.contraction, window, self.shared, parts=parts, column=first
            )
            group.compute(element)
            group.store(element.output.value)

    def store_turned(self, element: Turned) -> None:
        """Compute and store an op on columns in turn, a part of a group at a time."""
        for first in range(0, self.window.shape[1], element.span):
            at = _Turn.of(element, self, first)
            slices = [
                {
                    one: _slice(self.values[one.value], 0, first + part * GROUP, GROUP)
                    for one in element.parts_read
                }
                for part in range(element.parts)
            ]
            for part in range(element.parts):
                known = {
                    one.argument: slices[part if number is None else number][one]
                    for one in element.parts_read
                    for number in [element.part_of[one.argument]]
                }
                at.store(part, known)

    def store(self, buffer: ir.Value) -> None:
        """Store the computed elements of a buffer."""
        value = rounded(self.values[buffer], buffer.type.element_type)
        self.window.write(value, buffer, self.contraction.out_loops)

    def _value(self, element: Elementwise, operand: Operand) -> Any:
        """The elements of an operand: computed before, a scalar, or read."""
        buffer = operand.value
        if operand.argument in self.parts:
            return self.parts[operand.argument]
        if buffer in self.values:
            return self.values[buffer]
        if not operand.is_memref:
            return as_vector(buffer, list(self.window.shape), {})
        loops = self.contraction.loops_of(element, operand)
        if buffer in self.contraction.results:
            # In place: a vector has one row, and warps that have others must not read
            # what the warp of that one writes.
            loops = self.contraction.out_loops
        if "m" in loops:
            return self.window.read(buffer, loops)
        key = (buffer, loops, self.column)
        if key not in self.shared:
            self.shared[key] = self.window.read(buffer, loops)
        return self.shared[key]


@frozen
class _Turn:
    """A group of columns of a turned op, of the rows of a strip.

    rows:   the first index along each loop of rows
    block, column: the block of the group, and its first column in a part
    exists: whether there are such columns; None where there are
    """

    element: Turned
    strip: _Strip
    rows: tuple[Any, ...]
    block: Any
    column: Any
    exists: bool

    @classmethod
    def of(cls, element: Turned, strip: _Strip, first: int) -> _Turn:
        """That of C's columns from `first` on, in the strip."""
        window, letters = strip.window, strip.contraction.out_loops
        turn = build.div(build.plus(window.first["n"], first), element.span)
        turns = element.length // GROUP
        block = build.div(turn, turns)
        column = build.mul(build.rem(turn, turns), GROUP)
        if not window.in_bounds[1]:
            # Columns that there are not: of the last block, behind its last column.
            blocks = element.output.static_size(element.rank - 3) or 1
            exists = arith.cmpi(arith.CmpIPredicate.ult, block, build.index(blocks))
            column = arith.select(exists, column, build.index(element.length))
            block = build.least(block, blocks - 1)
        rows = tuple(
            window.first["m"] if one == "m" else window.batch[one]
            for one in letters[:-1]
        )
        return cls(element, strip, rows, block, column, window.in_bounds[1])

    def store(self, part: int, slices: dict[Any, Any]) -> None:
        """Compute and store a part; `slices`: columns of C, by the body's arguments."""
        element, number = self.element, build.index(part)
        known: dict[Any, Any] = {}
        for argument, value in slices.items():
            _bind(argument, value, known)
        for one in element.others:
            known[one.argument] = self._read(one, number)
        *body, end = (op.operation for op in element.block.operations)
        shape = [_STRIP, GROUP]
        for op in body:
            if op.name == "linalg.index":
                own = {element.rank - 3: self.block, element.rank - 2: number}
                known[op.results[0]] = own[op.attributes["dim"].value]
            elif _is_scalar(op, known):
                edit.clone(op, known)
            elif op.results[0] not in known:
                compute([op], shape, known)
        result = as_vector(end.operands[0], shape, known)
        result = rounded(result, element.output.value.type.element_type)
        memory, where, dims = self._memory(element.output, number)
        by, inside = self._transfer(dims)
        vector.transfer_write(None, result, memory, where, by, inside)

    def _read(self, operand: Operand, part: ir.Value) -> Any:
        """The elements of an operand of this group, and of a part."""
        if not operand.is_memref:
            return as_vector(operand.value, [_STRIP, GROUP], {})
        memory, where, dims = self._memory(operand, part)
        kind = ir.VectorType.get([_STRIP, GROUP], memory.type.element_type)
        if not dims:
            return vector.broadcast(kind, memref.load(memory, []))
        by, inside = self._transfer(dims)
        padding = build.zero(kind.element_type)
        return vector.transfer_read(kind, memory, where, by, padding, inside)

    def _memory(self, operand: Operand, part: ir.Value) -> tuple[Any, list[Any], str]:
        """Rows and columns of an operand, where they begin, and which there are."""
        loops = [*self.rows, self.block, part, self.column]
        m, n = self.strip.contraction.out_loops.index("m"), len(loops) - 1
        offsets, extents, dropped, where, dims = [], [], [], [], ""
        for number, index in enumerate(operand.indices):
            at = affine.apply(
                ir.AffineMap.get(len(loops), 0, [index.expression]), loops
            )
            moves = (
                "n"
                if index.loop == n
                else "m" * (index.loops == (m,) and has_rows(index))
            )
            offsets.append(build.index(0) if moves else at)
            extents.append(operand.static_size(number) if moves else 1)
            if moves:
                where.append(at)
                dims += moves
            else:
                dropped.append(number)
        return view(operand.value, offsets, extents, dropped), where, dims

    def _transfer(self, dims: str) -> tuple[Any, list[bool]]:
        known = zip("mn", (self.strip.window.in_bounds[0], self.exists), strict=True)
        return transfer_map(dims), [one not in dims or inside for one, inside in known]


def _is_scalar(op: ir.Operation, known: dict[Any, Any]) -> bool:
    """Whether it computes with numbers of blocks and parts alone."""
    found = [known.get(one, one) for one in op.operands]
    is_used = any(one in known for one in op.operands)
    return is_used and not any(isinstance(one.type, ir.VectorType) for one in found)


def _bind(argument: ir.Value, value: ir.Value, known: dict[Any, Any]) -> None:
    """Bind `argument` to `value`, which may be accumulators before rounding."""
    wide = value.type.element_type
    if wide == argument.type:
        known[argument] = value
        return
    extended = [
        use.owner.operation.results[0]
        for use in argument.uses
        if use.owner.operation.name in _EXTENSIONS
    ]
    direct = [result for result in extended if result.type == wide]
    known.update(dict.fromkeys(direct, value))
    if len(direct) < sum(1 for _ in argument.uses):
        known[argument] = rounded(value, argument.type)
