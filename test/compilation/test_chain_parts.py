"""Chains whose columns are split over blocks, and merged, on the emulator.

Random forms with a given number of parts, some of which are empty, against the
reference of the program; rows that a mask leaves nothing of, in one part or in all,
against NumPy.
"""

from __future__ import annotations

import random
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pytest
from chain_forms import Form, drawn

from alcop_mlir import dtypes
from alcop_mlir.compilation import compiler, inputs
from alcop_mlir.pipelines.named import AlcopCompile
from alcop_mlir.runtime import checking
from alcop_mlir.runtime.bundle import Bundle
from alcop_mlir.runtime.emulation import Emulation, EmulatorOptions
from alcop_mlir.runtime.launch import Program, grid_of

Array = np.ndarray[Any, Any]
MODES = (
    EmulatorOptions(visibility="late", schedule="lockstep"),
    EmulatorOptions(visibility="early", schedule="ascending"),
    EmulatorOptions(visibility="late", schedule="descending"),
    EmulatorOptions(visibility="early", schedule="random"),
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


@dataclass(frozen=True)
class Parts(compiler.Options):
    """With so many parts and stages, and what pipelining made checked."""

    parts: int = 0
    stages: str = "2,1"

    def pipeline(self) -> str:
        """As `alcop-compile`, with these."""
        text = ",".join(AlcopCompile(target=self.target.name).steps())
        for old, new in (
            ("alcop-tile-chains{", f"alcop-tile-chains{{parts={self.parts} "),
            ("alcop-plan-pipelines{", f"alcop-plan-pipelines{{stages={self.stages} "),
            ("alcop-place-waits", "alcop-place-waits,alcop-check-pipelines"),
        ):
            assert text.count(old) == 1
            text = text.replace(old, new)
        return f"builtin.module({text})"


def bundle_of(form: Form, parts: int, stages: str = "2,1") -> Bundle:
    source = inputs.read_text(form.text())
    options = Parts(use_ptxas=False, parts=parts, stages=stages)
    return compiler.compile_source(source, options)


def checked(form: Form, parts: int, mode: EmulatorOptions, seed: int) -> Any:
    """The worst element of one run; EmulationError where there is a hazard."""
    bundle = bundle_of(form, parts)
    function = bundle.function()
    assert len(function.launches) == 1 + (parts > 1), "a chain, and a merge"
    arrays = checking.random_arrays(function, seed)
    out = function.parameters[-1].name
    given = [arrays[one.name] for one in function.parameters[:-1]]
    made = Program(bundle, None, "emulator", Emulation(mode))(*given)
    return checking.check(function, arrays, {**arrays, out: np.asarray(made)})


@pytest.mark.parametrize("name", CASES)
def test_parts_are_merged(name: str) -> None:
    number = list(CASES).index(name)
    form, parts = CASES[name]
    check = checked(form, parts, MODES[number % len(MODES)], number)
    assert check.ok, check
    assert check.unchecked < check.elements / 4, check


@pytest.mark.parametrize("number", range(300, 312))
def test_random_chains_in_parts(number: int) -> None:
    choose = random.Random(number)
    rows, columns = choose.choice((1, 2, 15, 40, 130)), choose.choice((72, 136, 264))
    form = replace(drawn(number), m=rows, n=columns)
    check = checked(form, choose.choice((1, 2)), MODES[number % len(MODES)], number)
    assert check.ok, (form, check)


def expected(q: Array, k: Array, v: Array, mask: Array, scale: float) -> Array:
    """Softmax in float64, as NumPy has it: NaN for a row of -inf."""
    with np.errstate(all="ignore"):
        scores = np.einsum("bhmk,bhnk->bhmn", *(x.astype(float) for x in (q, k)))
        scores = scores * scale + mask
        weights = np.exp(scores - scores.max(-1, keepdims=True))
        weights /= weights.sum(-1, keepdims=True)
        return np.einsum("bhmn,bhnd->bhmd", weights, v.astype(float))


@pytest.mark.parametrize("rows", [1, 40])
@pytest.mark.parametrize("scale", [0.25, 3.0])
def test_rows_of_masks(rows: int, scale: float) -> None:
    """Nothing seen, one part, one column, the others, +inf, NaN, the least numbers."""
    form = Form(batch=8, heads=1, m=rows, n=200, mask="additive", scale=scale)
    draw = np.random.default_rng(1)
    q, k, v = (
        draw.uniform(-1, 1, (8, 1, count, 32)).astype(np.float16)
        for count in (rows, 200, 200)
    )
    mask = np.zeros((8, 1, rows, 200), np.float32)
    mask[0] = -np.inf
    mask[1, ..., :130] = -np.inf
    mask[2, ..., 1:] = -np.inf
    mask[3, ..., 64:] = -np.inf
    mask[4, ..., 150] = np.inf
    mask[5, ..., 9] = np.nan
    mask[6] = -3e38
    mask[7, ..., :64] = -3e38
    for parts in (2, 4):
        made = Program(bundle_of(form, parts), None, "emulator")(q, k, v, mask)
        found = np.asarray(made, np.float64)
        wanted = expected(q, k, v, mask, scale)
        np.testing.assert_allclose(found, wanted, atol=2e-3)
        assert np.isnan(found[[0, 4, 5]]).all()
        assert np.isfinite(found[[1, 2, 3, 6, 7]]).all()


@pytest.mark.parametrize("exponent", [-17, -12, 12, 17])
def test_rows_of_equal_scores_of_any_size(exponent: int) -> None:
    """Parts whose offsets are rounded by far more than 1 are merged as they are."""
    form = Form(batch=1, heads=1, m=16, n=200, scale=0.3, dtype="bf16")
    size = 1.37 * 2.0 ** abs(exponent)
    q = dtypes.encode(np.full((1, 1, 16, 32), size), "bf16")
    k = dtypes.encode(np.full((1, 1, 200, 32), size * np.sign(exponent)), "bf16")
    v = np.random.default_rng(4).uniform(-1, 1, (1, 1, 200, 32))
    bundle = bundle_of(form, 4)
    made = Program(bundle, None, "emulator")(q, k, dtypes.encode(v, "bf16"))
    mean = np.broadcast_to(v.mean(axis=2, keepdims=True), made.shape)
    np.testing.assert_allclose(dtypes.decode(made, "bf16"), mean, atol=2e-3)


def test_any_number_of_stages_gives_the_same_bits() -> None:
    form = Form(batch=1, heads=2, m=40, n=600, mask="causal", groups=2)
    draw = np.random.default_rng(6)
    given = [
        draw.uniform(-3, 3, (1, heads, rows, 32)).astype(np.float16)
        for heads, rows in ((2, 40), (1, 600), (1, 600))
    ]
    form = replace(form, mask="none")
    made = [
        np.asarray(Program(bundle_of(form, 3, one), None, "emulator")(*given))
        for one in ("1,1", "2,1", "2,2", "3,2")
    ]
    for one in made[1:]:
        np.testing.assert_array_equal(one, made[0])


@pytest.mark.parametrize(
    ("form", "blocks"),
    [
        # 16 tiles: the fewest of a part are 2.
        (Form(batch=1, heads=8, groups=4, m=1, n=1024, k=128, d=128), 2 * 8),
        # 108 SMs for 6 blocks are 18 parts, of 2 tiles.
        (Form(batch=1, heads=6, m=1, n=2048), 6 * 16),
        # Enough blocks, or too few tiles.
        (Form(batch=60, heads=2, m=1, n=1024), 120),
        (Form(batch=1, heads=2, m=1, n=320), 2),
        # Of 64 rows, what parts leave has to be little beside what they read.
        (Form(batch=1, heads=1, m=64, n=1024, k=64, d=64), 2),
        (Form(batch=1, heads=1, m=64, n=512, k=64, d=64), 1),
    ],
)
def test_parts_are_chosen_by_blocks_and_columns(
    form: Form, blocks: int, capsys: pytest.CaptureFixture[str]
) -> None:
    source = inputs.read_text(form.text())
    bundle = compiler.compile_source(source, compiler.Options(use_ptxas=False))
    first, *others = bundle.function().launches
    (kernel,) = first.variants[0].kernels
    assert grid_of(kernel, {}) == (blocks, 1, 1)
    said = capsys.readouterr().err.count("remark: columns are split into")
    assert len(others) == said


def with_lengths(form: Form) -> str:
    """The form, of which each sequence sees as many columns as an array says."""
    kind = f"tensor<{form.batch}x{form.n}xi1>"
    made = f"""
  %em = tensor.empty() : {kind}
  %mask = linalg.generic {{indexing_maps = [affine_map<(b, n) -> (b)>,
      affine_map<(b, n) -> (b, n)>], iterator_types = ["parallel", "parallel"]}}
      ins(%lengths : tensor<{form.batch}xi64>) outs(%em : {kind}) {{
  ^bb0(%l: i64, %c: i1):
    %j = linalg.index 1 : index
    %n = arith.index_cast %j : index to i64
    %sees = arith.cmpi slt, %n, %l : i64
    linalg.yield %sees : i1
  }} -> {kind}
  %es ="""
    text = replace(form, mask="columns").text()
    for old, new in (
        (f"%mask: {kind.replace('i1', 'f32')}", f"%lengths: tensor<{form.batch}xi64>"),
        (f"{kind.replace('i1', 'f32')})", f"{kind})"),
        (
            "%b: f32, %c: f32):\n    %0 = arith.mulf",
            "%b: i1, %c: f32):\n    %0 = arith.mulf",
        ),
        ("arith.addf %0, %b", "arith.select %b, %0, %low"),
        ("\n  %es =", made),
    ):
        assert text.count(old) == 1, old
        text = text.replace(old, new)
    return text


@pytest.mark.parametrize("parts", [1, 4])
@pytest.mark.parametrize("rows", [1, 5])
def test_caches_of_lengths_known_at_run_time(parts: int, rows: int) -> None:
    """Of no token, one, some tiles and a part of one, all, and more than there are."""
    lengths = np.array([0, 1, 130, 200, 1000, -3], np.int64)
    form = Form(batch=6, heads=4, groups=2, m=rows, n=200)
    source = inputs.read_text(with_lengths(form))
    bundle = compiler.compile_source(source, Parts(use_ptxas=False, parts=parts))
    assert len(bundle.function().launches) == 2 + (parts > 1), "mask, chain, merge"
    draw = np.random.default_rng(9)
    q, k, v = (
        draw.uniform(-1, 1, (6, heads, count, 32)).astype(np.float16)
        for heads, count in ((4, rows), (2, 200), (2, 200))
    )
    seen = np.arange(200) < lengths[:, None]
    mask = np.where(seen, 0, -np.inf)[:, None, None]
    keys, values = (np.repeat(one, 2, axis=1) for one in (k, v))
    wanted = expected(q, keys, values, mask, form.scale)
    for mode in MODES:
        made = Program(bundle, None, "emulator", Emulation(mode))(q, k, v, lengths)
        found = np.asarray(made, np.float64)
        np.testing.assert_allclose(found, wanted, atol=2e-3)
        assert np.isnan(found[[0, 5]]).all()
        assert np.isfinite(found[1:5]).all()
