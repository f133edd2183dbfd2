"""Expressions of sizes: one form of each, and orders that are proven."""

from __future__ import annotations

from typing import Any

import pytest

torch = pytest.importorskip("torch", reason="needs PyTorch: make test-torch")

import sympy  # noqa: E402
from torch.utils._sympy import functions  # noqa: E402

from alcop_mlir.torch.symbols import canonical, is_at_most, number  # noqa: E402

FloorDiv: Any = functions.FloorDiv
Mod: Any = functions.Mod
S: Any
T: Any
S, T = (sympy.Symbol(name, positive=True, integer=True) for name in ("s", "t"))
LEAST = {S: 2}


@pytest.mark.parametrize(
    "size",
    [
        FloorDiv(S - 3, 2) + 1,
        FloorDiv(FloorDiv(S + 1, 2) - 3, 2) + 1,
        FloorDiv(6 * S + 4 * T + 3, 4),
        Mod(S, 8) + FloorDiv(S, 8) * 8,
        FloorDiv(S * T, 3) * T,
    ],
)
def test_values_stay(size: Any) -> None:
    for s in range(4, 12):
        for t in (1, 5):
            known: dict[Any, Any] = {S: sympy.Integer(s), T: sympy.Integer(t)}
            assert number(canonical(size), known) == int(size.xreplace(known))


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (FloorDiv(S - 1, 2) + 1, FloorDiv(S + 1, 2)),
        (FloorDiv(FloorDiv(S, 2), 2), FloorDiv(S, 4)),
        (FloorDiv(8 * S * T, 8), S * T),
        (Mod(S, 8), S - 8 * FloorDiv(S, 8)),
    ],
)
def test_equal_sizes_have_one_form(one: Any, other: Any) -> None:
    assert canonical(one) == canonical(other)


@pytest.mark.parametrize(
    ("one", "other", "proven"),
    [
        (FloorDiv(S, 2), S, True),
        (S, FloorDiv(S, 2), False),
        (sympy.Integer(2), S, True),
        (sympy.Integer(3), S, False),
        (sympy.Integer(0), FloorDiv(S, 4), True),
        (2 * FloorDiv(S, 2), S, True),
        (2 * FloorDiv(S, 2) + 1, S, False),
        (S, 2 * FloorDiv(S, 2) + 1, True),
        (S, T, False),
        (T, sympy.Integer(2**63 - 1), True),
    ],
)
def test_orders(one: Any, other: Any, proven: bool) -> None:
    assert is_at_most(canonical(one), canonical(other), LEAST) == proven
