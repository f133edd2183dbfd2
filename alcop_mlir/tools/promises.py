"""What the command line says of arrays, of the grid and of results, of a .ptx file.

A number is written as `2*M*K+8`, with parameters as sizes; a number of blocks as
`M/64*N/64`, where each division is rounded up.
"""

from __future__ import annotations

import argparse
import math
import re
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from alcop_mlir.certificate.preconditions import Count, Polynomial

_FACTOR = r"(?:\d{1,20}|[A-Za-z_$%][\w$%]*)"
_PRODUCT = re.compile(rf"{_FACTOR}(?:\*{_FACTOR})*", re.A)
_COUNT = re.compile(rf"({_FACTOR})(?:/([1-9]\d{{0,9}}))?", re.A)
_MOST = 1000  # letters
_OPERAND = r"([A-Za-z_$%][\w$%]*)\[(\d{1,9}[a-z](?:,\d{1,9}[a-z])*)\]:([1248])"
_COMPUTED = re.compile(rf"{_OPERAND}(\+?)={_OPERAND}\*{_OPERAND}", re.A)
Array = tuple[str, "Polynomial"]


def array(text: str) -> Array:
    """`PARAM=BYTES`: the parameter, and how many bytes are behind it."""
    name, equals, bytes_ = text[:_MOST].replace(" ", "").partition("=")
    parts = re.split(r"(?=[+-])", bytes_)
    terms = [_term(part) for part in parts if part]
    if not equals or not name or not terms or None in terms:
        message = f"expected PARAM=BYTES, as A=2*M*K, got '{text[:80]}'"
        raise argparse.ArgumentTypeError(message)
    return name, tuple(term for term in terms if term is not None)


def _term(text: str) -> tuple[int, tuple[str, ...]] | None:
    sign, text = (-1 if text[0] == "-" else 1), text.lstrip("+-")
    if not _PRODUCT.fullmatch(text):
        return None
    factor, names = sign, []
    for one in text.split("*"):
        if one.isdigit():
            factor *= int(one)
        else:
            names.append(one)
    return factor, tuple(names)


def grid(text: str) -> tuple[tuple[Count, ...], ...]:
    """`X,Y,Z`: the numbers of blocks along each axis, multiplied."""
    axes = text[:_MOST].replace(" ", "").split(",")
    found = [[_COUNT.fullmatch(one) for one in axis.split("*")] for axis in axes]
    if len(axes) != 3 or not all(one for counts in found for one in counts):
        message = f"expected X,Y,Z, as N/64*M/64,1,1, got '{text[:80]}'"
        raise argparse.ArgumentTypeError(message)
    return tuple(tuple(_count(one) for one in counts if one) for counts in found)


def computed(text: str) -> dict[str, Any]:
    """`C[64m,64n]:4 = A[64m,32k]:2 * B[32k,64n]:2`: a statement of a contraction, but
    for the grid. Of each loop its extent and a letter, of each array the bytes of an
    element; with `+=` it is added to what C has.
    """
    found = _COMPUTED.fullmatch(text[:_MOST].replace(" ", ""))
    if found is None:
        message = "expected C[64m,64n]:4 = A[64m,32k]:2 * B[32k,64n]:2, "
        raise argparse.ArgumentTypeError(f"{message}got '{text[:80]}'")
    out, _, _, adds, lhs, _, _, rhs, _, _ = found.groups()
    arrays, extents = {}, {}
    for name, loops, size in (found.groups()[n : n + 3] for n in (0, 4, 7)):
        known = [(one[-1], int(one[:-1])) for one in loops.split(",")]
        extents |= dict(known)
        strides = [math.prod(e for _, e in known[n + 1 :]) for n in range(len(known))]
        arrays[name] = ["".join(n for n, _ in known), strides, int(size)]
    return {
        "extents": extents,
        "arrays": arrays,
        "lhs": lhs,
        "rhs": rhs,
        "init": out if adds else None,
        "order": arrays[out][0],
        "outputs": {out: []},
    }


def _count(found: re.Match[str]) -> Count:
    name, by = found.groups()
    value = ((int(name), ()),) if name.isdigit() else ((1, (name,)),)
    return value, int(by or 1)
