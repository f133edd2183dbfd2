"""Quotients by numbers have one form, whatever instructions they are made by."""

from __future__ import annotations

import pytest

from alcop_mlir.certificate.linear import Linear, Symbols
from alcop_mlir.certificate.search.answers import Found
from alcop_mlir.certificate.uniform_arithmetic import UniformArithmetic
from alcop_mlir.checker.bounds.products import ProductFacts
from alcop_mlir.checker.logic import terms
from alcop_mlir.checker.logic.terms import Quotient, Term
from alcop_mlir.checker.machine.arithmetic import fitting

MOST = {"x": 95, "y": 31}
MAGIC = 715827883  # 2**32 + 2 divided by 6

# What is divided, by what, and in what form: a coefficient of x, of y, a number added.
CASES = [
    ((1, 0, 7), 16, "x + 7 / 16"),
    ((32, 1, 0), 64, "x / 2"),
    ((32, 1, 1), 64, "32 * x + y + 1 / 64"),  # y + 1 may be 32
    ((32, 0, 31), 64, "x / 2"),
    ((MAGIC, 0, 0), 1 << 32, "x / 6"),
    ((MAGIC, 0, 0), 1 << 34, "x / 24"),
    ((MAGIC + 1, 0, 0), 1 << 32, "x / 6"),
    ((3, 0, 0), 4, "3 * x / 4"),
]


def checked() -> ProductFacts:
    facts = ProductFacts(Found(), 1)
    for name, most in MOST.items():
        facts.limit(name, 0, most)
    return facts


@pytest.mark.parametrize(("whole", "by", "form"), CASES)
def test_a_quotient_is_what_it_is_in_one_form(
    whole: tuple[int, int, int], by: int, form: str
) -> None:
    term = {"x": whole[0], "y": whole[1], "": whole[2]}
    found = checked().folded(terms.quotient({s: c for s, c in term.items() if c}, by))
    assert written(found) == form
    for a in range(MOST["x"] + 1):
        for b in (0, 1, MOST["y"]):
            numbers = {"x": a, "y": b}
            value = (whole[0] * a + whole[1] * b + whole[2]) // by
            assert value_of(found, numbers) == value


def value_of(term: Term, numbers: dict[str, int]) -> int:
    found = term.get("", 0)
    for symbol, factor in term.items():
        if isinstance(symbol, Quotient):
            found += factor * (value_of(symbol.dividend, numbers) // symbol.divisor)
        elif symbol:
            found += factor * numbers[symbol]
    return found


def written(term: Term) -> str:
    (symbol,) = (s for s in term if s)
    assert isinstance(symbol, Quotient)
    parts = [
        f"{c} * {s}" if s and c > 1 else s or str(c)
        for s, c in symbol.dividend.items()
        if c
    ]
    return f"{' + '.join(parts)} / {symbol.divisor}"


@pytest.mark.parametrize("many", [1, 3])
@pytest.mark.parametrize("by", [2, 24, 64])
def test_the_rest_of_a_division_is_below_what_divides(many: int, by: int) -> None:
    facts = checked()
    quotient = terms.quotient({"x": 1}, by)
    term = terms.plus({"x": many, "y": 1}, quotient, -many * by)
    assert facts.span(term) == (0, many * (by - 1) + MOST["y"])
    more = terms.plus(term, {"x": 1})
    low, high = facts.span(more)
    for a in range(MOST["x"] + 1):
        assert low <= value_of(more, {"x": a, "y": 0}) <= high


@pytest.mark.parametrize(
    ("times", "plus", "rest", "low", "high"),
    [
        (32, 32, 32, 32, 64),  # 32 * (x % 2) + 32
        (-3, 5, -3, 2, 5),
        (32, 0, 31, -96, 96),  # no rest
    ],
)
def test_the_range_of_a_rest_is_that_of_the_rest(
    times: int, plus: int, rest: int, low: int, high: int
) -> None:
    """What is asked is `times * x + plus - 2 * rest * (x / 2)`, of x up to 3."""
    symbols, x = Symbols({"x": (0, 3)}), Linear({"x": 1})
    term = x * times - symbols.quotient(x, 2) * 2 * rest + plus
    proven = UniformArithmetic(symbols).fitting(term, -96, 96, 64)
    assert (proven.low, proven.high) == (low, high)
    half = terms.quotient({"x": 1}, 2)
    checked = terms.plus({"x": times, "": plus}, half, -2 * rest)
    found = fitting(checked, -96, 96, 64)
    assert (found.low, found.high) == (proven.low, proven.high)
    values = [times * n + plus - 2 * rest * (n // 2) for n in range(4)]
    assert low <= min(values) <= max(values) <= high
