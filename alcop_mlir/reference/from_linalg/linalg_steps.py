"""The steps that a linalg op is, on the values that its operands hold."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any

from alcop_mlir.analysis.linalg.scalar_code import constant
from alcop_mlir.reference.expressions import (
    INTEGERS,
    Argument,
    Constant,
    Expression,
    Operation,
    arguments,
    behind,
    substitute,
)
from alcop_mlir.reference.from_linalg.buffer_values import (
    BufferValues,
    Content,
    NotUnderstood,
    loops,
)
from alcop_mlir.reference.from_linalg.loop_bodies import (
    Indices,
    Loops,
    OutputExpression,
    WindowIndex,
    loops_of,
    operand_indices,
    recipes,
)
from alcop_mlir.reference.steps import Einsum, Map, Reduction, Size, WindowViews

_LETTERS = "ijklpqrstuvwxyzabcdefgho"
# Loop letters of products: rows of C, columns of C, reduced, in all three.
_PRODUCT_LETTERS = {"m": "mpqr", "n": "nstu", "k": "kxyz", "b": "bcde"}
_EXACT_CASTS = ("arith.extf", "arith.extsi")
_PRODUCT_CASTS = (*_EXACT_CASTS, "arith.truncf")
_NEUTRAL = {
    "arith.addf": 0.0,
    "arith.addi": 0.0,
    "arith.mulf": 1.0,
    "arith.maximumf": -math.inf,
    "arith.minimumf": math.inf,
    "arith.maxnumf": -math.inf,
    "arith.minnumf": math.inf,
}


def run_linalg(op: Any, values: BufferValues, allow_tf32: bool) -> None:
    """Take in a linalg op. Raises NotUnderstood where steps cannot say it.

    allow_tf32: whether products of f32 may round their factors to tf32
    """
    indices = operand_indices(op) or []
    used = [loops_of(one) for one in indices]
    reader = _Reader(op, values, indices, used, allow_tf32)
    made = [(one.output, reader.content(one)) for one in recipes(op) or ()]
    if not made:
        raise NotUnderstood
    for number, (output, content) in enumerate(made):
        is_tensor = len(op.results) > 0
        values.write(op.results[number] if is_tensor else op.operands[output], content)


@dataclass(frozen=True)
class _Reader:
    """Makes the steps of one op; `used` are the loops of each operand's indices."""

    op: Any
    values: BufferValues
    indices: list[Indices]
    used: list[Loops]
    allow_tf32: bool

    def content(self, recipe: OutputExpression) -> Content:
        """What the output holds after the op."""
        recipe = replace(recipe, expression=self._inlined(recipe.expression))
        if recipe.combine is None:
            return self._map(recipe)
        factors = _factors(recipe)
        if factors is None or any(None in self.used[number] for number in factors):
            return self._reduction(recipe)
        return self._contraction(recipe, factors)

    def _map(self, recipe: OutputExpression) -> Content:
        if isinstance(recipe.expression, Constant):
            return recipe.expression
        numbers = sorted(arguments(recipe.expression))
        out = self.used[recipe.output]
        match recipe.expression:
            case Argument(number) if self.used[number] == out:
                return self._name(number)
        return self.values.add(
            Map(
                tuple(self._name(number) for number in numbers),
                self._maps(numbers, recipe.output),
                "",
                _renumbered(recipe.expression, numbers),
                self.values.shape(self.op.operands[recipe.output]),
            )
        )

    def _reduction(self, recipe: OutputExpression) -> Content:
        assert recipe.combine is not None
        numbers = sorted(arguments(recipe.expression))
        self._check_covered(numbers)
        return self.values.add(
            Reduction(
                tuple(self._name(number) for number in numbers),
                self._maps(numbers, recipe.output),
                "",
                _renumbered(recipe.expression, numbers),
                recipe.combine,
                recipe.dtype,
                self._start(recipe),
            )
        )

    def _contraction(
        self, recipe: OutputExpression, factors: dict[int, Expression]
    ) -> Content:
        (lhs, rhs), out = factors, self.used[recipe.output]
        self._check_covered([lhs, rhs])
        types = [self._factor_type(n, factor) for n, factor in factors.items()]
        return self.values.add(
            Einsum(
                self._factor(lhs, factors[lhs]),
                self._factor(rhs, factors[rhs]),
                "",
                _einsum(self.used[lhs], self.used[rhs], out),
                self._start(recipe),
                "tf32" if self.allow_tf32 and types == ["f32", "f32"] else None,
                self._element_type(recipe.output),
                recipe.dtype,
            )
        )

    def _check_covered(self, numbers: list[int]) -> None:
        """NotUnderstood where the operands do not tell how often a loop runs."""
        covered = {None, *(loop for n in numbers for loop in self.used[n])}
        if not covered.issuperset(loop for used in self.used for loop in used):
            raise NotUnderstood

    def _inlined(self, expression: Expression) -> Expression:
        """With numbers for operands all of whose elements are that number."""
        known = {
            number: content
            for number in arguments(expression)
            if isinstance(content := self._content(number), Constant)
        }
        return substitute(expression, known)

    def _content(self, number: int) -> Content:
        operand = self.op.operands[number]
        if hasattr(operand.type, "shape"):
            return self.values.content(operand)
        content = constant(operand)
        if content is None:
            raise NotUnderstood
        return content

    def _name(self, number: int) -> str:
        """Of an operand, with two dimensions for each window."""
        name, place = self.values.name(self.op.operands[number]), 0
        for index in self.indices[number]:
            if isinstance(index, WindowIndex):
                name = self.values.add(self._windows(name, place, index))
                place += 1
            place += 1
        return name

    def _windows(self, source: str, dimension: int, window: WindowIndex) -> WindowViews:
        positions, taps = self._size(window.position), self._size(window.tap)
        if not isinstance(positions, int) or not isinstance(taps, int):
            raise NotUnderstood
        return WindowViews(
            source, "", dimension, positions, window.stride, taps, window.dilation
        )

    def _size(self, loop: int) -> Size:
        """Of a loop, as the operand says that it alone indexes a dimension of."""
        for number, indices in enumerate(self.indices):
            if loop in indices:
                shape = self.values.shape(self.op.operands[number])
                return shape[indices.index(loop)]
        raise NotUnderstood

    def _start(self, recipe: OutputExpression) -> str | None:
        """What the combining starts from; None where that makes no difference."""
        content = self._content(recipe.output)
        if content == Constant(_NEUTRAL.get(recipe.combine or "", math.nan)):
            return None
        return self.values.named(content, self.op.operands[recipe.output])

    def _factor(self, number: int, factor: Expression) -> str:
        """The name of a product's factor, which may be computed from an operand."""
        if factor == Argument(number):
            return self._name(number)
        if self.indices[number] != self.used[number]:
            raise NotUnderstood
        shape = self.values.shape(self.op.operands[number])
        own = loops(len(shape))
        expression = _renumbered(factor, [number])
        name = self._name(number)
        return self.values.add(Map((name,), f"{own}->{own}", "", expression, shape))

    def _factor_type(self, number: int, factor: Expression) -> str:
        if isinstance(factor, Operation):
            return factor.dtype
        return self._element_type(number)

    def _element_type(self, number: int) -> str:
        return str(self.op.operands[number].type.element_type)

    def _maps(self, numbers: list[int], output: int) -> str:
        """The loops of these operands and of the output, as letters."""
        every = dict.fromkeys(
            loop
            for number in (output, *numbers)
            for loop in self.used[number]
            if loop is not None
        )
        if len(every) > len(_LETTERS):
            raise NotUnderstood
        letters = {None: ".", **dict(zip(every, _LETTERS, strict=False))}
        texts = [
            "".join(letters[loop] for loop in self.used[number])
            for number in (*numbers, output)
        ]
        return ",".join(texts[:-1]) + "->" + texts[-1]


def _renumbered(expression: Expression, numbers: list[int]) -> Expression:
    """With the arguments `numbers` counted from 0."""
    places = {number: Argument(place) for place, number in enumerate(numbers)}
    return substitute(expression, places)


def _factors(recipe: OutputExpression) -> dict[int, Expression] | None:
    """The two factors of a sum of products, each by the operand that it is made of."""
    product = behind(recipe.expression, _PRODUCT_CASTS)
    if recipe.combine not in ("arith.addf", "arith.addi"):
        return None
    if not isinstance(product, Operation) or product.name not in (
        "arith.mulf",
        "arith.muli",
    ):
        return None
    if recipe.dtype in INTEGERS and product.dtype != recipe.dtype:
        return None  # the product wraps around before it is added
    factors = [behind(operand, _EXACT_CASTS) for operand in product.operands]
    numbers = [arguments(factor) for factor in factors]
    if [len(one) for one in numbers] != [1, 1] or numbers[0] == numbers[1]:
        return None
    found = {number: factor for (number,), factor in zip(numbers, factors, strict=True)}
    return {number: found[number] for number in sorted(found)}


def _einsum(lhs: Loops, rhs: Loops, out: Loops) -> str:
    """The loops as letters, "mk,kn->mn", by what they do."""
    counts: dict[str, int] = {}
    letters = {}
    for loop in sorted({loop for loop in (*lhs, *rhs, *out) if loop is not None}):
        kind = _kind(loop in lhs, loop in rhs, loop in out)
        place = counts.setdefault(kind, 0)
        if place == len(_PRODUCT_LETTERS[kind]):
            raise NotUnderstood
        letters[loop] = _PRODUCT_LETTERS[kind][place]
        counts[kind] = place + 1
    texts = [
        "".join(letters[i] for i in dims if i is not None) for dims in (lhs, rhs, out)
    ]
    return f"{texts[0]},{texts[1]}->{texts[2]}"


def _kind(in_lhs: bool, in_rhs: bool, in_out: bool) -> str:
    if not in_out:
        return "k"
    if in_lhs and in_rhs:
        return "b"
    return "m" if in_lhs else "n"
