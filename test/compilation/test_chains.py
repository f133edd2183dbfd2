"""Chains of contractions with softmax or maps between as one kernel, on the emulator.

Random forms are checked against the reference of the program as given, with NaN,
infinities and the largest numbers among the inputs; rows that are masked as a whole,
and rows of which the first columns are, against NumPy. `ALCOP_CHAINS=200` draws more.
"""

from __future__ import annotations

import os

import numpy as np
import pytest
from chain_forms import MAPS, MASKS, Form, drawn, drawn_map
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

from alcop_mlir.errors import LaunchError

DRAWN = int(os.environ.get("ALCOP_CHAINS", "12"))
CASES = {
    **{mask: Form(mask=mask, n=80) for mask in MASKS},
    "segments": Form(mask="segments", batch=2),
    "bf16": Form(dtype="bf16"),
    "several tiles": Form(n=200, m=150, mask="causal"),
    "tokens": Form(tokens=True, batch=2),
    "shared heads": Form(heads=4, groups=2, tokens=True),
    "keys across": Form(keys_first=True, n=72),
    "long heads": Form(k=256, d=256, heads=1),
    "heads of two lengths": Form(k=16, d=128, heads=1),
    "few rows": Form(m=16, n=16),
    "one row": Form(m=1, n=100, batch=2),
    "one row of each head in a group": Form(m=1, n=181, heads=8, groups=4),
    "one row, tokens": Form(m=1, n=72, heads=6, groups=3, tokens=True, mask="additive"),
    "one row, causal": Form(m=1, n=72, heads=2, groups=2, mask="causal"),
    "one row, keys across": Form(m=1, n=72, heads=4, groups=2, keys_first=True),
    "five rows": Form(m=5, n=90, heads=4, groups=2, mask="columns"),
    "15 rows, window": Form(m=15, n=150, mask="window", dtype="bf16"),
    "open batch": Form(batch=2, n=80, open="b"),
    "open rows": Form(m=72, mask="window", open="m"),
    "open columns, across": Form(n=136, keys_first=True, open="n"),
    "open, causal": Form(m=72, n=136, mask="causal", open="bhmn"),
    "open, tokens": Form(m=130, n=200, tokens=True, mask="additive", open="bhmn"),
    "open cache": Form(m=1, n=181, heads=4, groups=2, mask="cached", open="bn"),
    **{name: Form(weights=name, m=150, n=200) for name in MAPS},
    "squared, bf16": Form(weights="squared", dtype="bf16", n=128, m=130),
    "decay, tokens": Form(weights="decay", tokens=True, m=130, n=136, batch=2),
    "sigmoid, groups": Form(weights="sigmoid", heads=4, groups=2, m=200, n=136),
}


@pytest.mark.sample(8)
@pytest.mark.parametrize("name", CASES)
def test_a_chain_is_one_kernel(name: str) -> None:
    check = checked(CASES[name], list(CASES).index(name))
    assert check.ok, check
    assert check.unchecked < check.elements / 4, check


@pytest.mark.sample(3)
@pytest.mark.parametrize("number", range(DRAWN))
def test_random_chains(number: int) -> None:
    form = drawn(number)
    check = checked(form, number)
    assert check.ok, (form, check)


@pytest.mark.parametrize("number", range(8))
def test_random_chains_without_reductions(number: int) -> None:
    form = drawn_map(number)
    check = checked(form, number)
    assert check.ok, (form, check)


@pytest.mark.parametrize(("n", "d"), [(100, 32), (128, 64)])
def test_a_result_of_which_a_mask_is_left(n: int, d: int) -> None:
    """Its columns are not those of the weights, of which the last tile may be whole."""
    form = Form(batch=1, heads=1, n=n, d=d, mask="causal")
    rounded = "    %0 = arith.truncf %a : f32 to f16\n    linalg.yield %0"
    text = form.text()
    assert text.count(rounded) == 1
    mask = """\
    %i = linalg.index 2 : index
    %j = linalg.index 3 : index
    %sees = arith.cmpi sle, %j, %i : index
    %left = arith.select %sees, %a, %zero : f32
"""
    bundle = compiled(text.replace(rounded, mask + rounded.replace("%a", "%left")))
    assert len(bundle.function().kernels) == 1
    q, k, v = drawn_arrays(4, *((1, 1, *one) for one in ((64, 32), (n, 32), (n, d))))
    sees = np.where(np.tri(64, n, dtype=bool), 0, -np.inf)
    wanted = expected(q, k, v, sees, form.scale) * np.tri(64, d)
    np.testing.assert_allclose(run(bundle, q, k, v), wanted, atol=2e-3)


def test_sizes_known_at_run_time() -> None:
    """One kernel for all, also for none; without columns, nothing is added up."""
    form = Form(open="bmn")
    bundle = compiled(form.text())
    for b, m, n in ((1, 1, 1), (2, 130, 5), (1, 16, 64), (3, 5, 129), (0, 3, 9)):
        q, k, v = drawn_arrays(b, *((b, 2, rows, 32) for rows in (m, n, n)))
        wanted = expected(q, k, v, 0, form.scale) if b else np.zeros(q.shape)
        np.testing.assert_allclose(run(bundle, q, k, v), wanted, atol=2e-3)
    q, k, v = drawn_arrays(1, *((1, 2, rows, 32) for rows in (3, 0, 0)))
    assert (run(bundle, q, k, v) == 0).all()
    with pytest.raises(LaunchError, match="expected 1x2x20x32: B is 1, N is 20"):
        run(bundle, *drawn_arrays(1, *((1, 2, rows, 32) for rows in (4, 20, 24))))


@pytest.mark.parametrize("n", [128, 100])
def test_rows_of_masks(n: int) -> None:
    """Rows that see nothing, only the last tile, or one column, and rows of +inf."""
    form = Form(batch=1, heads=1, n=n, mask="additive")
    q, k, v = drawn_arrays(1, *((1, 1, rows, 32) for rows in (64, n, n)))
    mask = np.zeros((1, 1, 64, n), np.float32)
    mask[:, :, 3] = -np.inf
    mask[:, :, 5, :70] = -np.inf
    mask[:, :, 17, 1:] = -np.inf
    mask[:, :, 40, :-1] = -np.inf
    mask[:, :, 41, 7] = np.inf
    mask[:, :, 42, 9] = np.nan
    mask[:, :, 43] = -3e38
    found = run(compiled(form.text()), q, k, v, mask)
    wanted = expected(q, k, v, mask, form.scale)
    np.testing.assert_allclose(found, wanted, atol=2e-3)
    assert np.isnan(found[0, 0, [3, 41, 42]]).all()
    assert np.isfinite(np.delete(found[0, 0], [3, 41, 42], axis=0)).all()


def test_large_scores_do_not_overflow() -> None:
    form = Form(batch=1, heads=1, n=128, scale=3.0)
    q, k = drawn_arrays(2, (1, 1, 64, 32), (1, 1, 128, 32), largest=90)
    (v,) = drawn_arrays(3, (1, 1, 128, 32))
    found = run(compiled(form.text()), q, k, v)
    wanted = expected(q, k, v, 0, form.scale)
    assert np.isfinite(found).all()
    np.testing.assert_allclose(found, wanted, atol=1e-2)


@pytest.mark.parametrize("exponent", [-17, -15, -12, -5, 5, 12, 15, 17])
def test_rows_of_equal_scores_of_any_size(exponent: int) -> None:
    check_equal_scores(exponent, 64, 100)


def test_a_maximum_that_starts_from_nan() -> None:
    """As that of `linalg.softmax`: maxnum of NaN and a number is the number."""
    form = Form(batch=1, heads=1, n=100, maximum="maxnumf")
    text = form.text().replace("linalg.fill ins(%low", "linalg.fill ins(%nan")
    assert text.count("%nan") == 1
    nan = "  %nan = arith.constant 0x7FC00000 : f32\n  %low ="
    q, k, v = drawn_arrays(7, *((1, 1, rows, 32) for rows in (64, 100, 100)))
    made = run(compiled(text.replace("  %low =", nan)), q, k, v)
    wanted = expected(q, k, v, 0, form.scale)
    np.testing.assert_allclose(made, wanted, atol=2e-3)


@pytest.mark.parametrize("groups", [1, 3])
def test_single_rows_of_masks(groups: int) -> None:
    """Nothing seen, the last tile, one column, +inf, NaN: one sequence for each."""
    form = Form(batch=6, heads=3, groups=groups, m=1, n=100, mask="additive")
    shared = (6, 3 // groups, 100, 32)
    q, k, v = drawn_arrays(8, (6, 3, 1, 32), shared, shared)
    mask = np.zeros((6, 1, 1, 100), np.float32)
    mask[0] = -np.inf
    mask[1, ..., :70] = -np.inf
    mask[2, ..., 1:] = -np.inf
    mask[3, ..., 7] = np.inf
    mask[4, ..., 9] = np.nan
    found = run(compiled(form.text()), q, k, v, mask)
    keys, values = np.repeat(k, groups, axis=1), np.repeat(v, groups, axis=1)
    wanted = expected(q, keys, values, mask, form.scale)
    np.testing.assert_allclose(found, wanted, atol=2e-3)
    assert np.isnan(found[[0, 3, 4]]).all()
    assert np.isfinite(found[[1, 2, 5]]).all()


@pytest.mark.parametrize(("groups", "blocks"), [(1, 24), (4, 6)])
def test_heads_that_share_keys_are_rows_of_one_block(groups: int, blocks: int) -> None:
    """Of 12 heads of 2 sequences; keys and values are read once then."""
    form = Form(batch=2, heads=12, groups=groups, m=1, n=40)
    assert first_grid(compiled(form.text())) == (blocks, 1, 1)


@pytest.mark.parametrize("mode", range(len(MODES)))
@pytest.mark.parametrize("n", [192, 200])
def test_weights_that_are_not_finite_are_those_of_the_program(
    n: int, mode: int
) -> None:
    """NaN, infinities, and what overflows f16; no column beyond the last counts."""
    form = Form(batch=1, heads=1, m=144, n=n, mask="additive", weights="squared")
    q, k, v = drawn_arrays(5, *((1, 1, rows, 32) for rows in (144, n, n)))
    mask = np.zeros((1, 1, 144, n), np.float32)
    mask[:, :, 3] = -np.inf
    mask[:, :, 5, 7] = np.nan
    mask[:, :, 6, 8] = np.inf
    mask[:, :, 7, n - 1] = 300  # 9e4, infinite in f16
    found = run(compiled(form.text()), q, k, v, mask, mode=MODES[mode])[0, 0]
    with np.errstate(over="ignore", invalid="ignore"):
        scores = q[0, 0].astype(float) @ k[0, 0].astype(float).T * form.scale
        weights = np.square(np.maximum(scores + mask[0, 0], 0)).astype(np.float16)
        wanted = weights.astype(float) @ v[0, 0].astype(float)
    np.testing.assert_allclose(found, wanted, rtol=4e-3, atol=4e-3)
    assert (found[3] == 0).all()
    assert np.isnan(found[5]).all()
    assert np.isinf(found[[6, 7]]).all()
    assert np.isfinite(np.delete(found, [5, 6, 7], axis=0)).all()


@pytest.mark.parametrize("weights", ["softmax", "decay"])
@pytest.mark.parametrize("stages", ["2,1", "2,2", "3,1", "3,2"])
def test_any_number_of_stages_gives_the_same_bits(stages: str, weights: str) -> None:
    """Of both loops: whole tiles, and those with a mask, of which one is ragged."""
    form = Form(batch=1, heads=1, m=400, n=400, mask="causal", weights=weights)
    given = drawn_arrays(6, *[(1, 1, 400, 32)] * 3, largest=3)
    bundles = [compiled(form.text(), 0, each) for each in ("1,1", stages)]
    planned = {(p.level, p.stages) for p in bundles[1].function().kernels[0].pipelines}
    levels = zip(("shared", "register"), map(int, stages.split(",")), strict=True)
    assert planned == {(level, count) for level, count in levels if count > 1}
    one, other = (run(each, *given) for each in bundles)
    np.testing.assert_array_equal(one, other)


@pytest.mark.parametrize(
    "form",
    [
        Form(heads=32, m=1024, n=1024, k=128, d=128),
        Form(heads=32, m=1024, n=1024, k=128, d=128, mask="causal"),
        Form(heads=32, m=1000, n=1000, k=64, d=64),
        Form(heads=12, m=128, n=128, k=64, d=64),
        Form(heads=12, m=1000, n=1000, k=64, d=64, mask="causal"),
        Form(heads=4, m=512, n=512, k=256, d=256, mask="window"),
    ],
    ids=str,
)
def test_tiles_are_chosen_so_that_slots_fit(form: Form) -> None:
    """Keys and values of the first loop, which most tiles are in, are pipelined."""
    chain, *_ = compiled(form.text()).function().kernels
    shared = [one for one in chain.pipelines if one.level == "shared"]
    assert len(shared) >= 2
    assert all(one.stages == 2 for one in shared[:2])


def test_columns_that_no_row_of_a_block_sees_are_not_read() -> None:
    """NaN in values beyond them does not matter."""
    form = Form(batch=1, heads=1, m=64, n=256, mask="causal")
    q, k, v = drawn_arrays(3, *((1, 1, rows, 32) for rows in (64, 256, 256)))
    v[:, :, 64:] = np.nan
    assert np.isfinite(run(compiled(form.text()), q, k, v)).all()


def test_a_grid_may_have_more_matrices_than_blocks_along_y() -> None:
    form = Form(batch=4096, heads=17, m=16, n=16)
    assert first_grid(compiled(form.text())) == (4096 * 17, 1, 1)
