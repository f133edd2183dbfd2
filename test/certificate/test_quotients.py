"""Quotients by numbers have one form, whatever instructions they are made by."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from alcop_mlir.certificate.linear import Linear, Symbols, at_least
from alcop_mlir.certificate.search.answers import Found
from alcop_mlir.certificate.uniform_arithmetic import (
    NoTerm,
    UniformArithmetic,
    limited,
)
from alcop_mlir.certificate.values import Uniform
from alcop_mlir.checker.bounds.products import ProductFacts
from alcop_mlir.checker.listed_states import ListedStates
from alcop_mlir.checker.logic import terms
from alcop_mlir.checker.logic.facts import Answers, Facts
from alcop_mlir.checker.logic.terms import Quotient, Term
from alcop_mlir.checker.machine import arithmetic, divisions
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


@pytest.mark.parametrize(("times", "plus"), [(32, 0), (-3, 7), (1, -40), (0, 5)])
def test_the_range_of_a_choice_is_that_of_what_is_chosen(times: int, plus: int) -> None:
    """`times * x + plus` where x is below 5, else `x - 5`; x is up to 9."""
    x, value = Linear({"x": 1}), Linear({"x": times}, plus)
    ends = sorted((plus, times * 9 + plus))
    is_below = at_least(-x + 4)
    a, b = Uniform(value, *ends), Uniform(x - 5, -5, 4)
    proven = UniformArithmetic(Symbols({"x": (0, 9)})).chosen(is_below, a, b)
    values = [times * n + plus if n < 5 else n - 5 for n in range(10)]
    if times:
        assert (proven.low, proven.high) == (min(values), max(values))
    test = arithmetic.at_least({"x": -1, "": 4})
    first = arithmetic.Same({"x": times, "": plus}, *ends)
    checked = arithmetic.chosen(test, first, arithmetic.Same({"x": 1, "": -5}, -5, 4))
    assert (proven.low, proven.high) == (checked.low, checked.high)
    assert proven.low <= min(values) <= max(values) <= proven.high


@pytest.mark.parametrize("count", [1, 5, 26, 31])
@pytest.mark.parametrize("high", [63, 2**31 - 1])
def test_shifts_without_a_sign_shift_zeros_in(count: int, high: int) -> None:
    """Of numbers of 32 bits from -64 on."""
    x, parts = Linear({"x": 1}), ["shr", "u32"]
    by = Uniform(Linear({}, count), count, count)
    symbols = Symbols({"x": (-64, high)})
    proven = UniformArithmetic(symbols).compute(
        ("shr", "u32"), [Uniform(x, -64, high), by]
    )
    given = [arithmetic.Same({"x": 1}, -64, high)]
    given.append(arithmetic.Same(terms.number(count), count, count))
    checked = arithmetic.linear(parts, given)
    assert (proven.low, proven.high) == (checked.low, checked.high)
    for number in (-64, -63, -1, 0, 1, 63, high):
        value = number % 2**32 >> count
        assert value_of(checked.term, {"x": number}) == value
        assert checked.low <= value <= checked.high
        found = symbols.replaced(proven.term, {"x": Linear({}, number)})
        assert not found.terms
        assert found.constant == value


def test_the_rest_of_a_division_by_what_is_not_known() -> None:
    """`x - x / n * n`, of x up to 9 and n from 1 to 4, has the range of a rest."""
    symbols = Symbols({"x": (0, 9), "n": (1, 4)})
    arith = UniformArithmetic(symbols)
    x, n = Uniform(Linear({"x": 1}), 0, 9), Uniform(Linear({"n": 1}), 1, 4)
    proven = arith.quotient(x, n)
    assert (proven.low, proven.high) == (0, 9)
    left = arith.compute(("sub", "s64"), [x, arith.whole(n, proven)])
    assert (left.low, left.high) == (0, 9)
    facts = Facts(Answers([], [], []))
    a, b = arithmetic.Same({"x": 1}, 0, 9), arithmetic.Same({"n": 1}, 1, 4)
    checked = divisions.quotient(a, b, facts)
    assert checked is not None
    assert (checked.low, checked.high) == (0, 9)
    product = divisions.whole(b, checked, facts)
    assert product is not None
    rest = arithmetic.linear(["sub", "s64"], [a, product])
    assert (rest.low, rest.high) == (0, 9)
    # Times another number it is no part of x, nor is what is not the quotient alone.
    other = arithmetic.Same({"m": 1}, 1, 4)
    more = arithmetic.Same(terms.plus(checked.term, {"": 1}), 1, 10)
    for one, by in ((checked, other), (more, b), (b, b)):
        assert divisions.whole(one, by, facts) is None
    with pytest.raises(NoTerm):
        arith.whole(proven, Uniform(Linear({"m": 1}), 1, 4))
    # By what may be 0, and of what may be negative, nothing is known.
    zero = arithmetic.Same({"n": 1}, 0, 4)
    assert divisions.quotient(a, zero, facts) is None
    assert divisions.quotient(arithmetic.Same({"x": 1}, -1, 9), b, facts) is None
    with pytest.raises(NoTerm):
        arith.quotient(x, Uniform(Linear({"n": 1}), 0, 4))


def test_a_number_is_below_what_a_fact_says() -> None:
    """Of `x <= c`, c up to 7, and of 2 <= x; of 3 * x is said nothing here."""
    x, c = Linear({"x": 1}), Linear({"c": 1})
    ranges = {"c": (0, 7)}
    found = limited(Uniform(x, 0, 99), [c - x, x - 2, x * 3 - 15], ranges)
    assert (found.low, found.high) == (2, 7)
    facts = [{"c": 1, "x": -1}, {"x": 1, "": -2}, {"x": 3, "": -15}]
    checked = arithmetic.limited(arithmetic.Same({"x": 1}, 0, 99), facts, ranges)
    assert (checked.low, checked.high) == (2, 7)


def test_a_listed_state_does_not_say_what_is_a_quotient() -> None:
    """Though facts say that both are 0: what is `q * n` where q is no quotient?"""
    facts = Facts(Found())
    x, n = arithmetic.Same({"x": 1}, 0, 3), arithmetic.Same({"n": 1}, 4, 9)
    quotient = divisions.quotient(x, n, facts)
    assert quotient is not None
    facts.limit("y", 0, 0)
    kernel = SimpleNamespace(width=lambda name: 64)
    states: Any = SimpleNamespace(
        machine=SimpleNamespace(kernel=kernel, facts=facts),
        _is_between=lambda *given: True,
    )
    arrived: Any = SimpleNamespace(
        registers={"%r1": arithmetic.Same({"y": 1}, 0, 0)}, facts=[], clauses=[]
    )
    half = terms.quotient(terms.plus(quotient.term, {"x": 1}), 2)
    for term, is_accepted in (({"": 0}, True), (quotient.term, False), (half, False)):
        head: Any = SimpleNamespace(pc=0, terms={"%r1": (term, 0, 0)})
        found = ListedStates._has_term(states, head, arrived, "%r1", {})
        assert found == is_accepted
    arrived.registers["%r1"] = quotient
    head = SimpleNamespace(pc=0, terms={"%r1": (quotient.term, 0, 0)})
    assert ListedStates._has_term(states, head, arrived, "%r1", {})
