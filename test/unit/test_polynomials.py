"""Arithmetic on sizes that are not known yet."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from alcop_mlir.polynomials import Polynomial, collected, constant, size

TERMS = st.lists(
    st.tuples(
        st.integers(-5, 5), st.lists(st.sampled_from("MNK"), max_size=3).map(tuple)
    ),
    max_size=4,
)
SIZES = st.fixed_dictionaries({name: st.integers(0, 9) for name in "MNK"})


@given(TERMS, TERMS, SIZES)
def test_values(one: list, other: list, sizes: dict[str, int]) -> None:
    """Adding, subtracting and multiplying agree with the numbers."""
    p, q = collected(one), collected(other)
    x, y = p.value(sizes), q.value(sizes)
    assert (p + q).value(sizes) == x + y
    assert (p - q).value(sizes) == x - y
    assert (p * q).value(sizes) == x * y
    assert (p - p).known == 0


def test_equal_sums_are_equal() -> None:
    """However they were written."""
    m, n = size("M"), size("N")
    assert (m + n) * (m - n) == m * m - n * n
    assert m * n + constant(2) == constant(2) + n * m
    assert m - m == Polynomial(())


def test_text() -> None:
    m, n = size("M"), size("N")
    assert str(m * n * constant(8) - n + constant(2)) == "8 * M * N - N + 2"
    assert str(constant(-3) * m) == "-3 * M"
    assert str(constant(0)) == "0"
    assert str(m - constant(1)) == "M - 1"
