"""The page about limits says what the code does."""

from __future__ import annotations

from pathlib import Path

import pytest

from alcop_mlir.limits import LIMITS, Limit

PAGE = Path(__file__).resolve().parents[2] / "docs" / "limits.md"


@pytest.mark.parametrize("limit", LIMITS, ids=lambda limit: limit.variable)
def test_each_limit_is_on_the_page(limit: Limit) -> None:
    row = f"| `{limit.variable}` | {limit.default} | {limit.unit} | {limit.of} |"
    assert row in PAGE.read_text("utf-8")


def test_the_page_has_no_other() -> None:
    assert PAGE.read_text("utf-8").count("\n| `ALCOP_MAX_") == len(LIMITS)
