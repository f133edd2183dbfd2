"""Builders of the tile code of a chain: the loop over columns, and what is around it.

Values of vector type are distributed over a warp, which has 16 rows of the block, see
alcop-tile-chains.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from alcop_mlir.analysis.linalg.view import Operand
from alcop_mlir.bindings import arith, gpu, ir, memref, vector
from alcop_mlir.passes import build
from alcop_mlir.passes.sizes import Number
from alcop_mlir.target import MMA_F16_SHAPE, WARP_SIZE
from alcop_mlir.transforms.chains.chain_matrices import ChainMatrix, contract
from alcop_mlir.transforms.chains.chain_parts import Partials, hidden, spoiled
from alcop_mlir.transforms.chains.row_powers import (
    first_maximum,
    row_powers,
)
from alcop_mlir.transforms.chains.tiled_chain import LoopNumbers, Step, TiledChain
from alcop_mlir.transforms.chains.whole_tiles import (
    Span,
    divides,
    in_part,
    is_true,
    spans,
)
from alcop_mlir.transforms.linalg.matrices import view
from alcop_mlir.transforms.tiling.vector_code import as_vector, compute

_K = MMA_F16_SHAPE[2]
# Elements of a warp's queries that leave registers for accumulators and weights.
_HELD_QUERIES = 1024


@dataclass
class ChainLoop:
    """Builds the body of the launch.

    numbers: sizes of the loops
    views:  made in front of the launch for those in the region
    block, matrix, thread: numbers of the block along rows and in the batch, and of the
            thread
    part:   the number of the block's part of the columns
    partials: where parts leave what they have, where there are several
    """

    chain: TiledChain
    numbers: LoopNumbers
    views: Mapping[ir.Value, ir.Value]
    block: Any
    matrix: Any
    thread: Any
    part: Any = None
    partials: Partials | None = None
    batch: list[Any] = field(default_factory=list)
    _rows_of_scores: Any = None
    _end_of_columns: Any = None
    _queries: Any = None
    _held: list[Any] = field(default_factory=list)
    _is_whole: bool = False

    def build(self) -> None:
        """All of it but the terminator."""
        chain, tiles = self.chain, self.chain.tiles
        self.batch = build.coordinates(self.matrix, self.numbers.batch)
        first = self._block_row
        queries = self._operand("scores", 0, "mnk")
        queries.copy({"m": first}, self._sizes)
        gpu.barrier()
        self._queries = queries
        held = tiles.rows * chain.k <= _HELD_QUERIES
        self._held = self._fragments(queries) if held else []
        # What all tiles need is computed before them.
        scores = self._kind(tiles.columns)
        self._rows_of_scores = self._numbers(self._row, scores, 0)
        self._end_of_columns = _number_of(build.value(self.numbers.n), scores)
        state = [build.zero(self._kind(chain.d)), *self._first_rows()]
        columns = spans(chain, self.numbers.n, first)
        if self.partials is not None:
            columns = in_part(columns, chain, self.part)
        for span in columns:
            state = self._over(span, state)
        if self.partials is None:
            self._store(*state)
        else:
            self._leave(self.partials, *state)

    def _first_rows(self) -> list[Any]:
        """Maximum, offset and total of rows before any column; none without them."""
        chain = self.chain
        if chain.start is None or chain.scale is None:
            return []
        lowest = self._rows(first_maximum(chain.start))
        return [lowest, row_powers(chain.scale, lowest).offset, self._rows(0.0)]

    def _over(self, span: Span, state: list[Any]) -> list[Any]:
        """Accumulators, and what is known of rows, after the columns of a span."""
        keys = self._operand("scores", 1, "mnk")
        values = self._operand("contracted", 1, "mdn")

        def tile(column: ir.Value, carried: list[ir.Value]) -> list[Any]:
            for one in (keys, values):
                one.copy({"n": column}, self._sizes, span.is_whole)
            gpu.barrier()
            self._is_whole = span.is_whole
            following = self._tile(column, carried, keys, values)
            gpu.barrier()
            return following

        bounds = (span.first, span.end, self.chain.tiles.columns)
        return list(build.for_loop(bounds, state, tile).results)

    # -- where a block is --------------------------------------------------------------

    @cached_property
    def _block_row(self) -> Any:
        """The first row of the block."""
        return build.mul(self.block, self.chain.tiles.block_rows)

    @cached_property
    def _warp_row(self) -> Any:
        """The first row of the warp in the block."""
        warp = build.div(self.thread, WARP_SIZE)
        return build.mul(warp, self.chain.tiles.rows)

    @cached_property
    def _row(self) -> Any:
        """The first row of the warp."""
        return build.add(self._block_row, self._warp_row)

    @property
    def _sizes(self) -> dict[str, Number]:
        return {letter: self.numbers.of(letter) for letter in "mnkd"}

    # -- operands ----------------------------------------------------------------------

    def _operand(self, role: str, number: int, loops: str) -> ChainMatrix:
        """An input, of the block's batch, with a buffer for a tile of it."""
        operand = self.chain.steps[role].view.inputs[number]
        memory, letters = self._matrix(operand, loops)
        tiles = self.chain.tiles
        extents = {**self._sizes, "m": tiles.block_rows, "n": tiles.columns}
        shape = [extents[loop] for loop in letters]
        buffer = build.alloc(build.workgroup_memref(shape, memory.type.element_type))
        return ChainMatrix(memory, letters, buffer)

    def _matrix(self, operand: Operand, loops: str) -> tuple[Any, str]:
        """The part of an operand that the batch has, and the loops that index it."""
        buffer = self.views.get(operand.value, operand.value)
        zero = build.index(0)
        count = self.chain.batch
        offsets, dropped, letters = [], [], ""
        for number, loop in enumerate(operand.loops):
            if loop is None or loop < count:
                offsets.append(zero if loop is None else self.batch[loop])
                dropped.append(number)
            else:
                offsets.append(zero)
                letters += loops[loop - count]
        if not dropped:
            return buffer, letters
        left = iter(letters)
        extents = [
            1 if number in dropped else self.numbers.of(next(left))
            for number in range(len(offsets))
        ]
        return view(buffer, offsets, extents, dropped), letters

    def _fragments(self, queries: ChainMatrix) -> list[Any]:
        """The queries of the warp, by parts along k."""
        extents = {"m": self.chain.tiles.rows, "k": _K}
        return [
            queries.fragment({"m": self._warp_row, "k": build.index(k)}, extents)
            for k in range(0, self.chain.k, _K)
        ]

    # -- types -------------------------------------------------------------------------

    def _kind(self, columns: int) -> Any:
        """Vectors of the warp's rows with so many columns."""
        return ir.VectorType.get([self.chain.tiles.rows, columns], ir.F32Type.get())

    def _rows(self, number: float) -> Any:
        """A constant for each row."""
        wide = ir.F32Type.get()
        kind = ir.VectorType.get([self.chain.tiles.rows], wide)
        return build.splat(kind, ir.FloatAttr.get(wide, number))

    def _along(self, rows: ir.Value, columns: int) -> Any:
        """What each row has, in all columns."""
        kind = rows.type.element_type
        standing = ir.VectorType.get([self.chain.tiles.rows, 1], kind)
        wide = ir.VectorType.get([self.chain.tiles.rows, columns], kind)
        return vector.broadcast(wide, vector.shape_cast(standing, rows))

    # -- one tile of columns -----------------------------------------------------------

    def _tile(
        self,
        column: ir.Value,
        carried: Sequence[ir.Value],
        keys: ChainMatrix,
        values: ChainMatrix,
    ) -> list[Any]:
        """Accumulators, and what is known of the rows, after a tile."""
        accumulators, *rows = carried
        columns, queries = self.chain.tiles.columns, self._queries
        held = self._held or self._fragments(queries)
        scores = build.zero(self._kind(columns))
        for number, one in enumerate(held):
            at = {"k": build.index(number * _K)}
            other = keys.fragment(at, {"n": columns, "k": _K})
            scores = contract(one, queries.loops, other, keys.loops, scores, "mnk")
        if rows:
            weights, smaller, *rows = self._powers(scores, column, rows)
            accumulators = arith.mulf(accumulators, self._along(smaller, self.chain.d))
        else:
            weights = self._narrow(self._elements("weights", scores, column, 0.0))
        accumulators = self._multiplied(weights, values, accumulators)
        return [accumulators, *rows]

    def _powers(
        self, scores: ir.Value, column: ir.Value, rows: Sequence[ir.Value]
    ) -> list[Any]:
        """Weights, what corrects accumulators so far, and maximum, offset, total."""
        maximum, offset, total = rows
        scale = self.chain.scale
        assert scale is not None  # there is a maximum
        elements = self._elements("elements", scores, column, -math.inf)
        larger = self._reduced(self.chain.combine, elements, maximum)
        powers = row_powers(scale, larger)
        columns = self.chain.tiles.columns
        weights = powers.of(elements, lambda rows: self._along(rows, columns))
        smaller = powers.corrected(offset)
        # First: what the total is of may be kept for long by the machine's compiler.
        narrow = self._narrow(weights)
        # At most 1: lanes may multiply their parts of a total, see alcop-defer-totals.
        allowed = ir.Attribute.parse("#arith.fastmath<reassoc>")
        before = arith.mulf(total, smaller, fastmath=allowed)
        total = self._reduced("arith.addf", weights, before)
        return [narrow, smaller, larger, powers.offset, total]

    def _multiplied(
        self, weights: ir.Value, values: ChainMatrix, accumulators: ir.Value
    ) -> Any:
        """Accumulators, with the weights of a tile times its values."""
        narrow = weights.type.element_type
        columns = self.chain.tiles.columns
        rows = self.chain.tiles.rows
        for first in range(0, columns, _K):
            part = vector.extract_strided_slice(
                ir.VectorType.get([rows, _K], narrow),
                weights, [0, first], [rows, _K], [1, 1],
            )  # fmt: skip
            at = {"n": build.index(first)}
            other = values.fragment(at, {"n": _K, "d": self.chain.d})
            accumulators = contract(
                part, "mn", other, values.loops, accumulators, "mdn"
            )
        return accumulators

    def _narrow(self, weights: ir.Value) -> Any:
        """Weights in the type of the values that they are multiplied by."""
        values = self.chain.steps["contracted"].view.inputs[1]
        kind = values.value.type.element_type
        return arith.truncf(ir.VectorType.get(weights.type.shape, kind), weights)

    def _reduced(self, combine: str, elements: ir.Value, start: ir.Value) -> Any:
        """Rows combined with what they had before."""
        name = {"arith.addf": "add"}.get(combine, combine.removeprefix("arith."))
        kind = ir.Attribute.parse(f"#vector.kind<{name}>")
        return vector.multi_reduction(kind, elements, start, [1])

    def _elements(
        self, role: str, scores: ir.Value, column: ir.Value, absent: float
    ) -> Any:
        """What a role makes of scores; `absent` in columns that there are not."""
        chain = self.chain
        elements = scores
        if role in chain.steps:
            numbers = {chain.batch: self._row, chain.batch + 1: column}
            elements = self._computed(
                chain.steps[role], {"scores": scores}, numbers, scores.type
            )
        if self._is_whole or divides(chain.tiles.columns, self.numbers.n):
            return elements
        numbers = self._numbers(column, scores.type, 1)
        exists = arith.cmpi(arith.CmpIPredicate.slt, numbers, self._end_of_columns)
        return arith.select(
            exists, elements, as_vector(_constant(absent), scores.type.shape, {})
        )

    def _numbers(self, first: ir.Value, kind: ir.Type, dimension: int) -> Any:
        """The number of each row (0) or column (1) of a vector, as i32."""
        word = build.integer(32)
        (rows, columns) = kind.shape
        size = kind.shape[dimension]
        step = arith.index_cast(
            ir.VectorType.get([size], word),
            vector.step(ir.VectorType.get([size], ir.IndexType.get())),
        )
        start = vector.broadcast(step.type, arith.index_cast(word, first))
        numbers = arith.addi(step, start)
        if dimension == 0:
            return self._along(numbers, columns)
        return vector.broadcast(ir.VectorType.get([rows, columns], word), numbers)

    # -- bodies ------------------------------------------------------------------------

    def _computed(
        self,
        step: Step,
        given: Mapping[str, ir.Value],
        numbers: Mapping[int, ir.Value],
        kind: ir.Type,
    ) -> Any:
        """What the body of a step makes, on vectors of this kind.

        given:   what the roles that it reads have made
        numbers: the first index that the vector has, by loop
        """
        shape = list(kind.shape)
        known: dict[Any, Any] = {}
        totals: dict[Any, Any] = {}  # of rows
        for operand, role in zip(step.view.inputs, step.sources, strict=True):
            value = given[role] if role else self._read(operand, numbers, shape)
            if value.type.rank == 1:
                if role == "total":
                    totals[operand.argument] = value
                value = self._along(value, shape[1])
            known[operand.argument] = value
        *body, end = (op.operation for op in step.view.block.operations)
        for op in body:
            if self._is_whole and is_true(op, self.chain):
                known[op.results[0]] = arith.constant(build.integer(1), 1)
            elif op.name == "linalg.index":
                known[op.results[0]] = self._index(op, numbers, kind)
            elif op.name == "arith.divf" and op.operands[1] in totals:
                quotient = self._divided(
                    as_vector(op.operands[0], shape, known), totals[op.operands[1]]
                )
                known[op.results[0]] = quotient
            elif op.name == "arith.index_cast" and op.operands[0] in known:
                known[op.results[0]] = known[op.operands[0]]  # i32 already
            else:
                compute([op], shape, known)
        return as_vector(end.operands[0], shape, known)

    def _divided(self, elements: ir.Value, totals: ir.Value) -> Any:
        """Elements of rows divided by their totals, by one division per row.

        The error is a unit in the last place at most, instead of half of one: totals of
        weights below 1, or little above, have an inverse that f32 holds.
        """
        inverse = arith.divf(self._rows(1.0), totals)
        return arith.mulf(elements, self._along(inverse, elements.type.shape[1]))

    def _index(
        self, op: ir.Operation, numbers: Mapping[int, ir.Value], kind: ir.Type
    ) -> Any:
        loop = op.attributes["dim"].value
        if loop not in numbers:
            return _number_of(self.batch[loop], kind)
        dimension = loop - self.chain.batch
        if dimension == 0 and kind.shape == self._rows_of_scores.type.shape:
            return self._rows_of_scores
        return self._numbers(numbers[loop], kind, dimension)

    def _read(
        self, operand: Operand, numbers: Mapping[int, ir.Value], shape: list[int]
    ) -> Any:
        """An input for rows and columns, the same along what it lacks."""
        count = self.chain.batch
        memory, letters = self._matrix(operand, "mn")
        element = memory.type.element_type
        kind = ir.VectorType.get(shape, element)
        indices = [numbers[count + "mn".index(one)] for one in letters]
        if not letters:
            return vector.broadcast(kind, memref.load(memory, []))
        by = build.loop_map(
            len(letters),
            [letters.index(one) if one in letters else None for one in "mn"],
        )
        tiles = {"m": self.chain.tiles.block_rows, "n": self.chain.tiles.columns}
        inside = [
            one not in letters or divides(tiles[one], self._sizes[one]) for one in "mn"
        ]
        padding = build.zero(element)
        return vector.transfer_read(kind, memory, indices, by, padding, inside)

    # -- the end -----------------------------------------------------------------------

    def _store(self, accumulators: ir.Value, *rows: ir.Value) -> None:
        """Compute the result of a row and write it."""
        chain = self.chain
        given: dict[str, Any] = {"contracted": accumulators}
        if rows:
            maximum, total = self._with_columns(rows[0], rows[2])
            if chain.start == -math.inf:
                maximum = hidden(chain, maximum, total)
                total, accumulators = spoiled(
                    chain, total, accumulators, lambda one: self._along(one, chain.d)
                )
            given = {"contracted": accumulators, "maximum": maximum, "total": total}
        step = chain.steps["result"]
        numbers = {chain.batch: self._row, chain.batch + 1: build.index(0)}
        made = self._computed(step, given, numbers, accumulators.type)
        memory, letters = self._matrix(step.output, "md")
        first = {"m": self._row, "d": build.index(0)}
        inside = [divides(chain.tiles.block_rows, self.numbers.m), True]
        by = build.loop_map(2, [letters.index(one) for one in "md"])
        where = [first[one] for one in letters]
        vector.transfer_write(None, made, memory, where, by, inside)

    def _with_columns(self, maximum: ir.Value, total: ir.Value) -> tuple[Any, Any]:
        """Maximum and total of rows; 0 and 1 if there are no columns.

        Accumulators are 0 then, as the program's are, and have to stay that.
        """
        if isinstance(self.numbers.n, int):
            return maximum, total
        is_empty = arith.cmpi(
            arith.CmpIPredicate.eq, build.value(self.numbers.n), build.index(0)
        )
        return (
            arith.select(is_empty, self._rows(0.0), maximum),
            arith.select(is_empty, self._rows(1.0), total),
        )

    def _leave(
        self, partials: Partials, accumulators: ir.Value, *rows: ir.Value
    ) -> None:
        """Write what the part has; the merge computes offsets again."""
        at = [self.part, *self.batch]
        inside = divides(self.chain.tiles.block_rows, self.numbers.m)
        made: dict[str, Any] = {"accumulators": accumulators}
        if rows:
            maximum, _, total = rows
            made |= {"maximum": maximum, "total": total}
        for name, value in made.items():
            partials.write(name, value, at, self._row, inside)


def _constant(number: float) -> Any:
    wide = ir.F32Type.get()
    return arith.constant(wide, ir.FloatAttr.get(wide, number))


def _number_of(value: ir.Value, kind: ir.Type) -> Any:
    """An index as i32, in all elements."""
    word = build.integer(32)
    return vector.broadcast(
        ir.VectorType.get(kind.shape, word), arith.index_cast(word, value)
    )
