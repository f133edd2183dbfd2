"""Chains whose columns are split over blocks, and merged, on the emulator.

Random forms with a given number of parts, some of which are empty, against the
reference of the program; rows that a mask leaves nothing of, in one part or in all,
against NumPy.
"""

from __future__ import annotations

import random
from dataclasses import replace

import numpy as np
import pytest
from chain_forms import Form, drawn
from chain_runs import (
    MODES,
    check_equal_scores,
    checked,
    compiled,
    drawn_arrays,
    expected,
    first_grid,
    run,
)

CASES = {
    "one row": (Form(m=1, n=256), 4),
    "one row, ragged": (Form(m=1, n=200, batch=2, dtype="bf16"), 3),
    "one row of each head in a group": (Form(m=1, n=181, heads=8, groups=4), 2),
    "one row, tokens": (Form(m=1, n=150, heads=6, groups=3, tokens=True), 3),
    "one row, keys across": (Form(m=1, n=136, keys_first=True), 3),
    "one row, mask": (Form(m=1, n=136, mask="additive", batch=2), 2),
    "15 rows, window": (Form(m=15, n=150, mask="window"), 1),
    "rows after others": (Form(m=72, n=264, mask="columns"), 5),
    "causal": (Form(m=150, n=200, mask="causal"), 3),
    "an empty part": (Form(m=5, n=320), 4),
    "window": (Form(m=150, n=264, mask="window"), 3),
    "no row is reduced": (Form(m=5, n=200, weights="sigmoid"), 4),
    "decay": (Form(m=130, n=150, weights="decay", batch=2), 3),
    "long heads": (Form(m=1, n=100, k=256, d=256), 4),
}


@pytest.mark.sample(3)
@pytest.mark.parametrize("name", CASES)
def test_parts_are_merged(name: str) -> None:
    form, parts = CASES[name]
    check = checked(form, list(CASES).index(name), parts)
    assert check.ok, check
    assert check.unchecked < check.elements / 4, check


@pytest.mark.sample(3)
@pytest.mark.parametrize("number", range(300, 312))
def test_random_chains_in_parts(number: int) -> None:
    choose = random.Random(number)
    rows, columns = choose.choice((1, 2, 15, 40, 130)), choose.choice((72, 136, 264))
    form = replace(drawn(number), m=rows, n=columns, open="")
    check = checked(form, number, choose.choice((1, 2)))
    assert check.ok, (form, check)


@pytest.mark.parametrize("rows", [1, 40])
@pytest.mark.parametrize("scale", [0.25, 3.0])
def test_rows_of_masks(rows: int, scale: float) -> None:
    """Nothing seen, one part, one column, the others, +inf, NaN, the least numbers."""
    form = Form(batch=8, heads=1, m=rows, n=200, mask="additive", scale=scale)
    q, k, v = drawn_arrays(1, *((8, 1, count, 32) for count in (rows, 200, 200)))
    mask = np.zeros((8, 1, rows, 200), np.float32)
    mask[0] = -np.inf
    mask[1, ..., :130] = -np.inf
    mask[2, ..., 1:] = -np.inf
    mask[3, ..., 64:] = -np.inf
    mask[4, ..., 150] = np.inf
    mask[5, ..., 9] = np.nan
    mask[6] = -3e38
    mask[7, ..., :64] = -3e38
    wanted = expected(q, k, v, mask, scale)
    for parts in (2, 4):
        found = run(compiled(form.text(), parts), q, k, v, mask)
        np.testing.assert_allclose(found, wanted, atol=2e-3)
        assert np.isnan(found[[0, 4, 5]]).all()
        assert np.isfinite(found[[1, 2, 3, 6, 7]]).all()


@pytest.mark.parametrize("exponent", [-17, -12, 12, 17])
def test_rows_of_equal_scores_of_any_size(exponent: int) -> None:
    """Parts whose offsets are rounded by far more than 1 are merged as they are."""
    check_equal_scores(exponent, 16, 200, parts=4)


def test_any_number_of_stages_gives_the_same_bits() -> None:
    form = Form(batch=1, heads=2, m=40, n=600, groups=2)
    keys = (1, 1, 600, 32)
    given = drawn_arrays(6, (1, 2, 40, 32), keys, keys, largest=3)
    one, *others = (
        run(compiled(form.text(), 3, stages), *given)
        for stages in ("1,1", "2,1", "2,2", "3,2")
    )
    for other in others:
        np.testing.assert_array_equal(one, other)


@pytest.mark.parametrize(
    ("form", "blocks"),
    [
        (Form(batch=1, heads=8, groups=4, m=1, n=1024, k=128, d=128), 2 * 8),
        (Form(batch=1, heads=6, m=1, n=2048), 6 * 16),
        # Enough blocks, or too few tiles.
        (Form(batch=60, heads=2, m=1, n=1024), 120),
        (Form(batch=1, heads=2, m=1, n=320), 2),
        # Of 64 rows, 2 blocks: a merge takes less time than tiles one after another.
        (Form(batch=1, heads=1, m=64, n=1024, k=64, d=64), 2 * 8),
        (Form(batch=1, heads=1, m=64, n=512, k=64, d=64), 2 * 4),
    ],
)
def test_parts_are_chosen_by_blocks_and_columns(
    form: Form, blocks: int, capsys: pytest.CaptureFixture[str]
) -> None:
    bundle = compiled(form.text())
    assert first_grid(bundle) == (blocks, 1, 1)
    _, *others = bundle.function().launches
    said = capsys.readouterr().err.count("remark: columns are split into")
    assert len(others) == said


@pytest.mark.parametrize("parts", [1, 4])
@pytest.mark.parametrize("rows", [1, 5])
def test_caches_of_lengths_known_at_run_time(parts: int, rows: int) -> None:
    """Of no token, one, some tiles and a part of one, all, and more than there are."""
    lengths = np.array([0, 1, 130, 200, 2**32 + 1, -(2**33) + 5], np.int64)
    form = Form(batch=6, heads=4, groups=2, m=rows, n=200, mask="lengths")
    bundle = compiled(form.text(), parts)
    assert len(bundle.function().launches) == 1 + (parts > 1), "a chain, and a merge"
    shared = (6, 2, 200, 32)
    q, k, v = drawn_arrays(9, (6, 4, rows, 32), shared, shared)
    seen = np.arange(200) < lengths[:, None]
    mask = np.where(seen, 0, -np.inf)[:, None, None]
    keys, values = (np.repeat(one, 2, axis=1) for one in (k, v))
    wanted = expected(q, keys, values, mask, form.scale)
    for mode in MODES:
        found = run(bundle, q, k, v, lengths, mode=mode)
        np.testing.assert_allclose(found, wanted, atol=2e-3)
        assert np.isnan(found[[0, 5]]).all()
        assert np.isfinite(found[1:5]).all()
