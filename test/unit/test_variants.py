"""The variants of a contraction as data."""

from __future__ import annotations

from typing import Any

import pytest

from alcop_mlir import variants
from alcop_mlir.errors import ConfigError
from alcop_mlir.schedule import Schedule
from alcop_mlir.variants import ScheduleVariant, SizeLimit

SMALL = ScheduleVariant(
    Schedule((64, 64, 32), (32, 32)),
    "record",
    16,
    (SizeLimit("m", 64), SizeLimit("mn", 4096)),
)
SAFE = ScheduleVariant(Schedule((64, 64, 32), (32, 32)))


def test_round_trip() -> None:
    assert variants.from_list(variants.to_list([SMALL, SAFE])) == (SMALL, SAFE)


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ([], "0 variants, expected 1 to 16"),
        ([{"schedule": {}, "row_bytes": 4}], "the last variant must be for all sizes"),
        ([{"schedule": {"split_k": 2}}], "the last variant must be for all sizes"),
        (
            [{"schedule": {}, "row_bytes": 8}],
            r"row_bytes: expected one of 1, 4, 16, got 8",
        ),
        (
            [{"schedule": {}, "limits": [{"loops": "nm", "most": 2}]}],
            'loops: expected one of b, m, .*"nm"',
        ),
        ([{"schedule": {}, "limits": [{"loops": "", "most": 2}]}], "loops: "),
        ([{"schedule": {}, "limits": [{"loops": "m", "most": -1}]}], "most: "),
    ],
)
def test_what_is_no_variant(values: Any, message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        variants.from_list(values)
