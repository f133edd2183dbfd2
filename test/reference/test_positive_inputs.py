"""Which inputs are drawn positive: those of which roots and logarithms are taken."""

from __future__ import annotations

import numpy as np
import pytest

from alcop_mlir.manifest.arrays import Parameter
from alcop_mlir.manifest.functions import Function
from alcop_mlir.reference.expressions import (
    Argument,
    Constant,
    Expression,
    Operation,
)
from alcop_mlir.reference.positive_inputs import positive_inputs
from alcop_mlir.reference.steps import Map, Reduction, Reshape, Slice, Step
from alcop_mlir.runtime import checking

WIDER = Operation("arith.extf", "f32", (Argument(0),))


def plus(expression: Expression, number: float) -> Operation:
    return Operation("arith.addf", "f32", (expression, Constant(number)))


def root(expression: Expression) -> Operation:
    return Operation("math.rsqrt", "f32", (expression,))


def applied(expression: Expression, source: str = "v", out: str = "y") -> Map:
    return Map((source,), "n->n", out, expression, (8,))


@pytest.mark.parametrize(
    "steps",
    [
        [applied(root(Argument(0)))],
        [applied(root(plus(WIDER, 1e-5)))],
        # As torch-mlir has a batch norm: widened, moved up, cut, and then a root.
        [
            applied(WIDER, out="%0"),
            applied(plus(Argument(0), 1e-5), "%0", "%1"),
            Slice("%1", "%2", (0,), (4,), (1,)),
            Reshape("%2", "%3", (4, 1)),
            Map(("x", "%3"), "nm,nm->nm", "y", root(Argument(1)), (4, 1)),
        ],
        [
            Reduction(
                ("v",),
                "n->",
                "y",
                Operation("math.log", "f32", (Argument(0),)),
                "arith.addf",
                "f32",
            )
        ],
    ],
)
def test_of_what_roots_are_taken(steps: list[Step]) -> None:
    assert positive_inputs(steps, {"x", "v"}) == {"v"}


@pytest.mark.parametrize(
    "steps",
    [
        # Of other elements, or moved down.
        [applied(root(Operation("math.absf", "f32", (Argument(0),))))],
        [applied(root(plus(Argument(0), -1.0)))],
        [applied(plus(Argument(0), 1.0))],
        # An array that is written before it is read.
        [applied(Constant(4.0), "x", "v"), applied(root(Argument(0)))],
    ],
)
def test_of_what_none_are_taken(steps: list[Step]) -> None:
    assert positive_inputs(steps, {"x", "v"}) == set()


@pytest.mark.parametrize("values", checking.VALUES)
def test_drawn_without_extremes(values: checking.Values) -> None:
    """In the upper half of what others are drawn from: no NaN is checked."""
    parameters = (
        Parameter("v", "bf16", (64,), "in"),
        Parameter("y", "f32", (64,), "out"),
    )
    step = Map(("v",), "n->n", "y", root(plus(WIDER, 1e-5)), (64,))
    function = Function("f", parameters, (), (step,))
    arrays = checking.random_arrays(function, 0, values)
    drawn = checking.dtypes.decode(arrays["v"], "bf16")
    largest = 0.125 if values == "small" else 1.0
    assert drawn.min() >= largest / 2
    assert drawn.max() <= largest
    assert np.unique(drawn).size > 8
