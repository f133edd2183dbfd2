"""Booleans of a row that say whether its maximum is -inf, and others."""

from __future__ import annotations

import math

import pytest

from alcop_mlir.analysis.chains.elements import BOOLEAN, FLOAT, Element, Pool
from alcop_mlir.analysis.chains.hidden_rows import of_maximum
from alcop_mlir.bindings import arith, ir

ALL, ANY, ROW = "arith.andi", "arith.ori", 1
Predicate = arith.CmpFPredicate


def _compared(pool: Pool, predicate: Predicate, number: float) -> Element:
    scores = pool.leaf("scores", FLOAT, None, frozenset((0, ROW)))
    with ir.Context(), ir.Location.unknown():
        kind = ir.IntegerType.get_signless(64)
        attributes = {"predicate": ir.IntegerAttr.get(kind, int(predicate))}
        operands = (scores, pool.constant(number, FLOAT))
        return pool.op("arith.cmpf", operands, BOOLEAN, attributes)


def _not(pool: Pool, one: Element) -> Element:
    return pool.op("arith.xori", (one, pool.constant(True, BOOLEAN)), BOOLEAN)


def test_all_and_any_ask_the_maximum() -> None:
    pool = Pool()
    is_lowest = _compared(pool, Predicate.OEQ, -math.inf)
    found = of_maximum(ALL, is_lowest, 1, ROW, pool)
    assert found is not None
    assert found.name == "arith.cmpf"
    (maximum,) = found.reductions
    assert maximum.operands == is_lowest.operands[:1]
    assert maximum.detail == ("arith.maximumf", -math.inf)
    assert found.loops == {0}
    # Not all, asked as torch does.
    other = of_maximum(ANY, _not(pool, is_lowest), 0, ROW, pool)
    assert other is _not(pool, found)


@pytest.mark.parametrize(
    ("combine", "predicate", "number", "start", "negated"),
    [
        (ALL, Predicate.OEQ, -math.inf, 0, False),
        (ALL, Predicate.OEQ, -3e38, 1, False),
        (ALL, Predicate.UEQ, -math.inf, 1, False),  # true for NaN
        (ALL, Predicate.OEQ, -math.inf, 1, True),
        (ANY, Predicate.OEQ, -math.inf, 0, False),
        (ANY, Predicate.OEQ, -math.inf, 1, True),
        (ANY, Predicate.UEQ, -math.inf, 0, True),
    ],
)
def test_others_do_not(
    combine: str, predicate: Predicate, number: float, start: int, negated: bool
) -> None:
    pool = Pool()
    term = _compared(pool, predicate, number)
    term = _not(pool, term) if negated else term
    assert of_maximum(combine, term, start, ROW, pool) is None
