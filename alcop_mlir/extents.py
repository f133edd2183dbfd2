"""Sizes that may be known at run time only: numbers, names, polynomials."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Annotated

from alcop_mlir.codec import Stored
from alcop_mlir.codec_forms import Range
from alcop_mlir.polynomials import Polynomial, collected

# As a list of terms, such as [[8, ["M", "N"]], [2, []]] for 8 * M * N + 2.
StoredPolynomial = Annotated[
    Polynomial,
    Stored(tuple[tuple[int, tuple[str, ...]], ...], collected, lambda made: made.terms),
]
# Of what the host computes: a number, the name of a size, or a polynomial in sizes.
Extent = Annotated[int, Range(0)] | str | StoredPolynomial


def number(extent: Extent, sizes: Mapping[str, int]) -> int:
    """The number that an extent is, given the named sizes."""
    if isinstance(extent, Polynomial):
        return extent.value(sizes)
    return sizes[extent] if isinstance(extent, str) else extent


def names(extent: Extent) -> tuple[str, ...]:
    """The names of the sizes that it depends on."""
    if isinstance(extent, Polynomial):
        return tuple(name for _, factors in extent.terms for name in factors)
    return (extent,) if isinstance(extent, str) else ()


def known(shape: Iterable[Extent], sizes: Mapping[str, int]) -> tuple[Extent, ...]:
    """`shape` with numbers for what these sizes give."""
    return tuple(
        number(one, sizes) if sizes.keys() >= {*names(one)} else one for one in shape
    )
