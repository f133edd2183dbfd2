"""Rotary embeddings and their like are computed by the kernel of the contraction."""

from __future__ import annotations

import numpy as np
import pytest
from rotations import Rotated

import alcop_mlir

# Kernels beside the contraction's copy what the function returns in another order, or
# of some columns.
CASES = [
    (Rotated(), 1),
    (Rotated(sequences=2, rows=32, heads=3, length=32), 1),
    (Rotated(sequences=2, rows=32, heads=3, reads_own=True), 1),
    (Rotated(rows=1, heads=4), 1),  # a step of a decoder
    (Rotated(sequences=2, order="bhtpc"), 2),
    (Rotated(rows=40, first=1, more=2), 3),
    (Rotated(sequences=2, rows=32, heads=3, concat=True), 2),  # as transformers
    (Rotated(rows=32, heads=3, between=32), 3),  # the first half of each head
    (Rotated(rows=16, first=1, between=64, more=1, reads_own=True), 3),
]


@pytest.mark.parametrize(("case", "kernels"), CASES)
def test_rotations_are_epilogues(case: Rotated, kernels: int) -> None:
    program = alcop_mlir.compile(case.text())
    assert len(program.function.launches) == kernels
    _check(case, program)


# Sequences begin in the middle of 16 rows; 16 columns have no partner in a warp's; the
# weight is one of the call.
@pytest.mark.parametrize(
    ("case", "schedule", "said"),
    [
        (Rotated(sequences=2, rows=40), "", "no multiples of 16"),
        (Rotated(), "block=16,16,32 warp=16,16", "expected a multiple of 32"),
        (Rotated(mark=""), "", "is no weight ('alcop.weight')"),
        (Rotated(between=16), "", "from 0 on, every 48, expected multiples of 32"),
        (Rotated(between=48), "", "from 0 on, every 80, expected multiples of 32"),
        (Rotated(length=8, between=48), "", "2 parts of 8 columns, expected 2 or 4"),
        (Rotated(length=24), "", "2 parts of 24 columns, expected 2 or 4 of a mult"),
    ],
)
def test_others_are_kernels_and_right(
    case: Rotated, schedule: str, said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    program = alcop_mlir.compile(case.text(), schedule=schedule or None)
    assert said in capsys.readouterr().err
    assert len(program.function.launches) == (3 if case.rest else 2)
    _check(case, program)


# Columns that a block has and C lacks are not stored.
def test_blocks_of_more_columns() -> None:
    case = Rotated(heads=3)
    program = alcop_mlir.compile(case.text(), schedule="block=32,64,32 warp=16,32")
    assert len(program.function.launches) == 1
    _check(case, program)


# What no rotation reads passes through as it is, NaN and infinities too.
def test_other_columns_are_not_rotated() -> None:
    case = Rotated(rows=16, heads=1, more=1)
    program = alcop_mlir.compile(case.text())
    arguments = case.drawn()
    arguments[1][40:43, 0] = np.inf, np.nan, -np.inf
    arguments[0][:, 0] = 1
    _, rest = program(*arguments)
    with np.errstate(invalid="ignore"):
        wanted = case.expected(arguments)[1]
    assert np.array_equal(np.isnan(rest), np.isnan(wanted))
    assert np.array_equal(np.isinf(rest), np.isinf(wanted))
    plain = np.isfinite(wanted)
    assert plain.sum() > 300
    distance = np.abs(rest[plain] - wanted[plain])
    assert distance.max() < 1e-3 * np.abs(wanted[plain]).max()


def _check(case: Rotated, program: alcop_mlir.Program) -> None:
    arguments = case.drawn()
    got = program(*arguments)
    results = got if isinstance(got, tuple) else (got,)
    for one, wanted in zip(results, case.expected(arguments), strict=True):
        assert np.abs(one - wanted).max() < 1e-3 * np.abs(wanted).max()
