"""Which numbers an array of indices may hold, and that all of a table is read."""

from __future__ import annotations

import numpy as np
import pytest

from alcop_mlir.reference.expressions import (
    Argument,
    Constant,
    Expression,
    Operation,
)
from alcop_mlir.reference.index_arrays import draw, index_values
from alcop_mlir.reference.steps import Gather, Map, Reshape, Slice, Step

X, LOOP = Argument(0), Argument(2)
SHAPES = {"T": (10, 4), "U": (6, 4), "I": (3, 5), "r": (15,), "s": (5,), "out": (15, 4)}


def rows(index: Expression, read: str = "I", table: str = "T") -> Gather:
    return Gather(table, (read,), "i->ij", "out", (index, LOOP), (15, 4))


def operation(name: str, *operands: Expression) -> Operation:
    return Operation(f"arith.{name}", "i64", operands)


WRAPPED = operation(
    "select",
    operation("cmpi.slt", X, Constant(0)),
    operation("addi", X, Constant(10)),
    X,
)
CASES = {
    "numbers of rows": (X, range(10)),
    "from the end": (WRAPPED, [-5, -4, -3, -2, -1, 0, 1, 2, 3, 4]),
    "every second": (operation("muli", X, Constant(2)), range(5)),
    "with a loop": (operation("addi", X, Argument(2)), range(7)),
    "at most 3": (operation("minsi", X, Constant(3)), range(4)),
}


@pytest.mark.parametrize("name", CASES)
def test_numbers_that_lead_to_an_index(name: str) -> None:
    index, expected = CASES[name]
    found = index_values((rows(index),), SHAPES)
    assert sorted(found["I"]) == sorted(expected)


def test_the_array_may_be_seen_otherwise() -> None:
    """In another shape, in part, as a copy, and by two tables."""
    seen: tuple[Step, ...] = (
        Reshape("I", "r", (15,)),
        Slice("r", "s", (0,), (5,), (1,)),
        Map(("s",), "i->i", "r", X, (15,)),
    )
    assert list(index_values((*seen, rows(X, "r")), SHAPES)) == ["I"]
    both = index_values((rows(X), rows(X, table="U")), SHAPES)
    assert sorted(both["I"]) == list(range(6))


def test_computed_numbers_are_not_drawn() -> None:
    made = Map(("I",), "ij->ij", "r", operation("addi", X, X), (15,))
    assert "I" not in index_values((made, rows(X, "r")), SHAPES)


def test_each_is_drawn_as_often() -> None:
    drawn = draw(np.random.default_rng(0), np.arange(10), (4, 6), np.int32)
    assert drawn.dtype == np.int32
    assert set(np.bincount(drawn.ravel(), minlength=10)) == {2, 3}
