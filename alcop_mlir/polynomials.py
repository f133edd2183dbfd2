"""Polynomials in sizes, such as `M * N + 2`: what hosts compute of shapes."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping

from alcop_mlir.frozen import frozen


@frozen
class Polynomial:
    """Terms: a coefficient, not 0, and the sizes that it is multiplied by.

    Terms are in a fixed order, and no two have the same sizes, which are names.
    """

    terms: tuple[tuple[int, tuple[str, ...]], ...]

    def __add__(self, other: Polynomial) -> Polynomial:
        return collected((*self.terms, *other.terms))

    def __sub__(self, other: Polynomial) -> Polynomial:
        return self + other * constant(-1)

    def __mul__(self, other: Polynomial) -> Polynomial:
        return collected(
            (one * another, (*factors, *others))
            for one, factors in self.terms
            for another, others in other.terms
        )

    def __str__(self) -> str:
        """`8 * M + N - 2`."""
        text = ""
        for coefficient, factors in self.terms:
            size = abs(coefficient)
            parts = [str(size)] if size != 1 or not factors else []
            sign = "-" if coefficient < 0 else "+"
            lead = f" {sign} " if text else sign.replace("+", "")
            text += lead + " * ".join([*parts, *map(str, factors)])
        return text or "0"

    @property
    def known(self) -> int | None:
        """The value where it does not depend on any size."""
        if any(factors for _, factors in self.terms):
            return None
        return sum(coefficient for coefficient, _ in self.terms)

    @property
    def is_never_negative(self) -> bool:
        """Whether no term is subtracted, so that it is 0 or more for all sizes."""
        return all(coefficient > 0 for coefficient, _ in self.terms)

    def value(self, sizes: Mapping[str, int]) -> int:
        """The value for these values of the sizes."""
        return sum(
            coefficient * math.prod(sizes[factor] for factor in factors)
            for coefficient, factors in self.terms
        )


def constant(number: int) -> Polynomial:
    """A number."""
    return collected([(number, ())])


def size(factor: str) -> Polynomial:
    """One size."""
    return Polynomial(((1, (factor,)),))


def collected(terms: Iterable[tuple[int, tuple[str, ...]]]) -> Polynomial:
    """The polynomial with these terms, those of highest degree first."""
    sums: dict[tuple[str, ...], int] = {}
    for coefficient, factors in terms:
        key = tuple(sorted(factors, key=repr))
        sums[key] = sums.get(key, 0) + coefficient
    order = sorted(sums, key=lambda factors: (-len(factors), repr(factors)))
    return Polynomial(tuple((sums[key], key) for key in order if sums[key]))
