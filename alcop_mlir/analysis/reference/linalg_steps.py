"""The steps of a linalg op, on the values of its operands."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from alcop_mlir.analysis.linalg.accumulator_init import starts_from_zero
from alcop_mlir.analysis.linalg.scalar_code import constant
from alcop_mlir.analysis.linalg.view import LinalgView, Loops, Window, linalg_view
from alcop_mlir.analysis.reference.buffer_values import (
    BufferValues,
    Content,
    NotUnderstood,
    loops,
)
from alcop_mlir.analysis.reference.loop_bodies import (
    Indices,
    OutputExpression,
    loops_of,
    operand_indices,
    output_expressions,
)
from alcop_mlir.analysis.reference.scattered import Scattered, gathered_indices
from alcop_mlir.analysis.reference.table_reads import TableRead, body_values
from alcop_mlir.bindings import ir
from alcop_mlir.extents import Extent
from alcop_mlir.frozen import frozen
from alcop_mlir.reference.expressions import (
    INTEGERS,
    Argument,
    Constant,
    Expression,
    Operation,
    arguments,
    substitute,
    without_casts,
)
from alcop_mlir.reference.steps import (
    Einsum,
    Fold,
    Gather,
    Iota,
    Map,
    Reduction,
    Reshape,
    ScatteredViews,
    WindowViews,
)

_LETTERS = "ijklpqrstuvwxyzabcdefgho"
# Loop letters of contractions: rows of C, columns of C, reduced, in all three.
_CONTRACTION_LETTERS = {"m": "mpqr", "n": "nstu", "k": "kxyz", "b": "bcde"}
_EXACT_CASTS = ("arith.extf", "arith.extsi")
_CONTRACTION_CASTS = (*_EXACT_CASTS, "arith.truncf")
_NEUTRAL = {
    "arith.addf": 0.0,
    "arith.addi": 0.0,
    "arith.mulf": 1.0,
    "arith.maximumf": -math.inf,
    "arith.minimumf": math.inf,
    "arith.maxnumf": -math.inf,
    "arith.minnumf": math.inf,
}


def run_linalg(op: ir.Operation, values: BufferValues, allow_tf32: bool) -> None:
    """Add the steps of a linalg op. Raises NotUnderstood where they cannot express it.

    allow_tf32: whether contractions of f32 may round A and B to tf32
    """
    view = linalg_view(op)
    if view is None:
        raise NotUnderstood
    if starts_from_zero(op):
        values.write(op.operands[-1], Constant(0.0))  # by a fill that was folded
    given = [operand_indices(operand) for operand in view.operands]
    indices = gathered_indices(given, view)
    used = [loops_of(one) for one in indices]
    body = body_values(view, used)
    reads = body.reads
    # The number of an iteration, and what is read of a table, are as operands.
    rows: list[Loops] = [
        *((loop,) for loop in range(view.rank)),
        *(read.loops for read in reads),
    ]
    reader = _Reader(
        [*(operand.value for operand in view.operands), *[None] * view.rank]
        + [read.element for read in reads],
        values,
        [*indices, *rows],
        [*used, *rows],
        allow_tf32,
        view,
    )
    for read in reads:
        values.write(read.element, reader.gather(read, body.first_loop))
    recipes = output_expressions(view, body.known, used[len(view.inputs) :])
    if indices != given and (reads or not all(map(_multiplied, recipes))):
        raise NotUnderstood
    made = [reader.content(one, recipes) for one in recipes]
    written = list(op.results) or [output.value for output in view.outputs]
    for array, content in zip(written, made, strict=True):
        values.write(array, content)


@frozen
class _Reader:
    """Adds the steps of one op; `used` are the loops of each operand's indices."""

    arrays: list[Any]  # operands, scalars too; None per loop; elements read of tables
    values: BufferValues
    indices: list[Indices]
    used: list[Loops]
    allow_tf32: bool
    view: LinalgView

    def content(
        self, recipe: OutputExpression, every: Sequence[OutputExpression]
    ) -> Content:
        """The value of the output after the op, of which `every` output is known."""
        made = self._made(recipe, every)
        if None not in self.used[recipe.output] or isinstance(made, Constant):
            return made
        return self.values.add(
            Reshape(made, "", self.values.shape(self.arrays[recipe.output]))
        )

    def _made(
        self, recipe: OutputExpression, every: Sequence[OutputExpression]
    ) -> Content:
        """The value, without dimensions that no loop indexes."""
        if recipe.is_folded:
            return self._fold(recipe, {one.output: one.yielded for one in every})
        recipe = replace(recipe, expression=self._inlined(recipe.expression))
        if recipe.combine is None:
            return self._map(recipe)
        multiplied = _multiplied(recipe)
        if multiplied is None or any(
            self.arrays[number] is None or None in self.used[number]
            for number in multiplied
        ):
            return self._reduction(recipe)
        return self._contraction(recipe, multiplied)

    def gather(self, read: TableRead, first_loop: int) -> str:
        """The name of what the body reads of a table."""
        every = {number for one in read.indices for number in arguments(one)}
        loops_ = range(first_loop, first_loop + self.view.rank)
        numbers = sorted(every.difference(loops_))
        renumbered = {number: Argument(n) for n, number in enumerate(numbers)}
        for position, loop in enumerate(read.loops):
            renumbered[first_loop + loop] = Argument(len(numbers) + position)
        return self.values.add(
            Gather(
                self.values.name(read.table),
                tuple(self._name(number) for number in numbers),
                self._letters([self.used[number] for number in numbers], read.loops),
                "",
                tuple(substitute(one, renumbered) for one in read.indices),
                tuple(map(self._loop_size, read.loops)),
            )
        )

    def _map(self, recipe: OutputExpression) -> Content:
        if isinstance(recipe.expression, Constant):
            return recipe.expression
        numbers = sorted(arguments(recipe.expression))
        out = self._kept(recipe.output)
        match recipe.expression:
            case Argument(number) if self.used[number] == out:
                return self._name(number)
        shape = tuple(map(self._loop_size, out))
        return self.values.add(Map(*self._inputs(recipe, numbers), shape))

    def _reduction(self, recipe: OutputExpression) -> Content:
        assert recipe.combine is not None
        numbers = self._with_all_loops(sorted(arguments(recipe.expression)))
        inputs, start = self._inputs(recipe, numbers), self._start(recipe)
        return self.values.add(Reduction(*inputs, recipe.combine, recipe.dtype, start))

    def _fold(self, recipe: OutputExpression, every: Mapping[int, Expression]) -> str:
        """Of the outputs that it is computed from, in each iteration."""
        needed, pending = set[int](), [recipe.output]
        while pending:
            number = pending.pop()
            needed.add(number)
            read = arguments(every[number]).intersection(every)
            pending += read.difference(needed)
        folded = sorted(needed)
        if len({self.used[number] for number in folded}) > 1:
            raise NotUnderstood
        known = {number: self._inlined(every[number], folded) for number in folded}
        read = {n for one in known.values() for n in arguments(one)}
        numbers = self._with_all_loops(sorted(read.difference(folded)))
        inputs, out = [self.used[n] for n in numbers], self._kept(recipe.output)
        letters = self._letters_of(inputs, out)
        order = [loop for loop in range(self.view.rank) if loop not in out]
        return self.values.add(
            Fold(
                tuple(self._name(number) for number in numbers),
                tuple(map(self._init, folded)),
                self._letters(inputs, out),
                "".join(letters[loop] for loop in order),
                "",
                tuple(_renumbered(known[n], [*numbers, *folded]) for n in folded),
                folded.index(recipe.output),
            )
        )

    def _inputs(
        self, recipe: OutputExpression, numbers: list[int]
    ) -> tuple[tuple[str, ...], str, str, Expression]:
        """The first fields of a step that computes the expression of these operands."""
        names = tuple(self._name(number) for number in numbers)
        expression = _renumbered(recipe.expression, numbers)
        return names, self._maps(numbers, recipe.output), "", expression

    def _contraction(
        self, recipe: OutputExpression, multiplied: dict[int, Expression]
    ) -> Content:
        (lhs, rhs), out = multiplied, self._kept(recipe.output)
        self._check_covered([lhs, rhs])
        types = [
            operand.dtype if isinstance(operand, Operation) else self._element_type(n)
            for n, operand in multiplied.items()
        ]
        return self.values.add(
            Einsum(
                self._operand(lhs, multiplied[lhs]),
                self._operand(rhs, multiplied[rhs]),
                "",
                _einsum(self.used[lhs], self.used[rhs], out),
                self._start(recipe),
                "tf32" if self.allow_tf32 and types == ["f32", "f32"] else None,
                self._element_type(recipe.output),
                recipe.dtype,
            )
        )

    def _check_covered(self, numbers: list[int]) -> None:
        """Raise NotUnderstood where no operand has the size of a loop."""
        if self._with_all_loops(numbers) != numbers:
            raise NotUnderstood

    def _with_all_loops(self, numbers: list[int]) -> list[int]:
        """These operands, and the loops that index none of them."""
        covered = {loop for number in numbers for loop in self.used[number]}
        left = (loop for loop in range(self.view.rank) if loop not in covered)
        return [*numbers, *(len(self.view.operands) + loop for loop in left)]

    def _kept(self, number: int) -> tuple[int, ...]:
        """The loops that index an operand."""
        return tuple(loop for loop in self.used[number] if loop is not None)

    def _inlined(self, expression: Expression, but: Sequence[int] = ()) -> Expression:
        """`expression` with numbers for operands all of whose elements are one, `but`
        for these.
        """
        known = {
            number: content
            for number in arguments(expression).difference(but)
            if isinstance(content := self._content(number), Constant)
        }
        return substitute(expression, known)

    def _content(self, number: int) -> Content:
        operand = self.arrays[number]
        if operand is None:
            return ""  # no number, but one for each iteration
        if self._has_loops(number):
            return self.values.content(operand)
        content = constant(operand)
        if content is None:
            raise NotUnderstood
        return content

    def _has_loops(self, number: int) -> bool:
        """Whether it is an array, or what is read of one."""
        is_read = number >= len(self.view.operands)
        return is_read or hasattr(self.arrays[number].type, "shape")

    def _shape(self, number: int) -> tuple[Extent, ...] | None:
        if number < len(self.view.operands):
            return self.values.known_shape(self.arrays[number])
        return tuple(map(self._loop_size, self._kept(number)))

    def _loop_size(self, loop: int) -> Extent:
        """The size of a loop: of a dimension that it alone indexes."""
        for operand, indices in zip(self.view.operands, self.indices, strict=False):
            shape = self.values.known_shape(operand.value) if loop in indices else None
            if shape is not None:
                return shape[indices.index(loop)]
        raise NotUnderstood

    def _name(self, number: int) -> str:
        """The name of an operand's value, with a dimension for each of its loops."""
        if self.arrays[number] is None:
            (loop,) = self._kept(number)
            return self.values.add(Iota("", self._loop_size(loop)))
        return self._seen(number, self.values.name(self.arrays[number]))

    def _seen(self, number: int, name: str) -> str:
        """The name of what an operand's windows see of the array `name`."""
        position = 0
        for index in self.indices[number]:
            if isinstance(index, Window):
                name = self.values.add(self._windows(name, position, index))
                position += index.tap is not None
            position += 1
        return name

    def _windows(
        self, source: str, dimension: int, window: Window
    ) -> WindowViews | ScatteredViews:
        taps = None if window.tap is None else self._loop_size(window.tap)
        views = ScatteredViews if isinstance(window, Scattered) else WindowViews
        return views(
            source,
            "",
            dimension,
            self._loop_size(window.position),
            window.stride,
            taps,
            window.dilation,
            window.offset,
        )

    def _start(self, recipe: OutputExpression) -> str | None:
        """The name of the initial value; None if that is the neutral element."""
        content = self._content(recipe.output)
        if content == Constant(_NEUTRAL.get(recipe.combine or "", math.nan)):
            return None
        return self._init(recipe.output)

    def _init(self, number: int) -> str:
        """The name of the initial value, without dimensions that no loop indexes."""
        name = self.values.named(self._content(number), self.arrays[number])
        if None not in self.used[number]:
            return name
        shape = tuple(map(self._loop_size, self._kept(number)))
        return self.values.add(Reshape(name, "", shape))

    def _operand(self, number: int, operand: Expression) -> str:
        """The name of what is multiplied: an operand, or a transform of it."""
        if operand == Argument(number):
            return self._name(number)
        expression = _renumbered(operand, [number])
        shape = self._shape(number)
        if shape is None:  # as of what is padded: windows of it have known sizes
            used = self.used[number]
            seen = tuple(1 if one is None else self._loop_size(one) for one in used)
            return self._transformed(self._name(number), expression, seen)
        name = self.values.name(self.arrays[number])
        return self._seen(number, self._transformed(name, expression, shape))

    def _transformed(
        self, name: str, expression: Expression, shape: tuple[Extent, ...]
    ) -> str:
        own = loops(len(shape))
        return self.values.add(Map((name,), f"{own}->{own}", "", expression, shape))

    def _element_type(self, number: int) -> str:
        kind = self.arrays[number].type
        return str(getattr(kind, "element_type", kind))

    def _maps(self, numbers: list[int], output: int) -> str:
        """The loops of these operands and of the output, as letters."""
        return self._letters([self.used[n] for n in numbers], self._kept(output))

    def _letters(self, inputs: Sequence[Loops], output: Loops) -> str:
        letters = self._letters_of(inputs, output)
        texts = ["".join(letters[loop] for loop in one) for one in (*inputs, output)]
        return ",".join(texts[:-1]) + "->" + texts[-1]

    def _letters_of(
        self, inputs: Sequence[Loops], output: Loops
    ) -> dict[int | None, str]:
        every = dict.fromkeys(
            loop for one in (output, *inputs) for loop in one if loop is not None
        )
        if len(every) > len(_LETTERS):
            raise NotUnderstood
        return {None: ".", **dict(zip(every, _LETTERS, strict=False))}


def _renumbered(expression: Expression, numbers: list[int]) -> Expression:
    """`expression` with the arguments `numbers` renumbered from 0."""
    positions = {number: Argument(position) for position, number in enumerate(numbers)}
    return substitute(expression, positions)


def _multiplied(recipe: OutputExpression) -> dict[int, Expression] | None:
    """The two expressions that a contraction multiplies, by the operand of each."""
    product = without_casts(recipe.expression, _CONTRACTION_CASTS)
    if recipe.combine not in ("arith.addf", "arith.addi"):
        return None
    if not isinstance(product, Operation) or product.name not in (
        "arith.mulf",
        "arith.muli",
    ):
        return None
    if recipe.dtype in INTEGERS and product.dtype != recipe.dtype:
        return None  # the multiplication wraps around before the addition
    multiplied = [without_casts(operand, _EXACT_CASTS) for operand in product.operands]
    numbers = [arguments(operand) for operand in multiplied]
    if [len(one) for one in numbers] != [1, 1] or numbers[0] == numbers[1]:
        return None
    found = {
        number: operand for (number,), operand in zip(numbers, multiplied, strict=True)
    }
    return {number: found[number] for number in sorted(found)}


def _einsum(lhs: Loops, rhs: Loops, out: Loops) -> str:
    """The loops as letters, "mk,kn->mn", by the operands that they index."""
    unused = {kind: iter(letters) for kind, letters in _CONTRACTION_LETTERS.items()}
    letters: dict[int | None, str] = {None: ""}
    for loop in sorted({loop for loop in (*lhs, *rhs, *out) if loop is not None}):
        kind = "m" if loop in lhs else "n"
        if loop not in out:
            kind = "k"
        elif loop in lhs and loop in rhs:
            kind = "b"
        letter = next(unused[kind], None)
        if letter is None:
            raise NotUnderstood
        letters[loop] = letter
    texts = ["".join(letters[loop] for loop in dims) for dims in (lhs, rhs, out)]
    return f"{texts[0]},{texts[1]}->{texts[2]}"
