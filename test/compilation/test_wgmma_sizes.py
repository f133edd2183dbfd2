"""Kernels for sm_90a of contractions with sizes that are known at run time only.

Tensor maps are encoded at each launch; of rows a guard asks, or the user promises, that
they begin at multiples of 16 bytes.
"""

from __future__ import annotations

import re

import numpy as np
import pytest
from test_warp_roles import MODES, OPEN, operands, product, run
from test_wgmma_types import BYTES, E4, E5, TF32, Case

from alcop_mlir.compilation import compiler, inputs
from alcop_mlir.runtime.bundle import Bundle
from alcop_mlir.runtime.launch import Program
from alcop_mlir.schedule import Partial
from alcop_mlir.target import find_target

ANY = OPEN.replace(" {alcop.row_alignment = 16}", "")
SMS = find_target("sm_90a").sms


def compiled(text: str, schedule: str | None = None, variants: int = 4) -> Bundle:
    given = compiler.Options(
        target=find_target("sm_90a"),
        schedule=Partial.parse(schedule) if schedule else None,
        use_ptxas=False,
        allow_tf32=True,
        variants=variants,
    )
    return compiler.compile_source(inputs.read(text), given)


def engines(bundle: Bundle) -> list[str]:
    """Of its kernels, in the order in which their guards are asked."""
    found = [kernel.schedule for kernel in bundle.functions[0].kernels]
    return [one.engine for one in found if one is not None]


def open_text(case: Case, promised: bool) -> str:
    text = case.text(96, 48, 64)
    for size in (96, 48, 64):
        text = text.replace(f"{size}x", "?x")
    promise = r"\1 {alcop.row_alignment = 16}" if promised else r"\1"
    return re.sub(r"(%[ABC]: memref<[^>]*>)", promise, text)


def test_sizes_choose_the_kernel() -> None:
    """Large, small, less than half a tile, less than a ring; nothing, other rows."""
    bundle = compiled(ANY)
    assert engines(bundle) == ["wgmma", "wgmma", "mma", "mma"]
    large, small, *_ = bundle.functions[0].kernels
    assert (large.grid, large.block) == ((SMS, 1, 1), (384, 1, 1))
    assert small.schedule is not None
    assert small.schedule.block == (64, 128, 64)
    program = Program(bundle, device="emulator")
    cases = {(1100, 1024, 192): 0, (32, 64, 200): 1, (31, 64, 192): 2, (64, 64, 184): 2}
    cases |= {(64, 64, 0): 2, (65, 79, 201): 3}
    for (m, n, k), number in cases.items():
        a, b = operands({"m": m, "n": n, "k": k}, "nn")
        c = np.zeros((m, n), np.float32)
        program(a, b, c)
        np.testing.assert_array_equal(c, product(a, b, "nn"))
        assert program.last_variants == (number,), (m, n, k)


@pytest.mark.parametrize(
    ("case", "promised"),
    [(TF32, True), (BYTES, False), (Case(E4, E5, "f32", ""), True)],
    ids=["tf32", "i8", "f8"],
)
def test_types_of_open_sizes(case: Case, promised: bool) -> None:
    bundle = compiled(open_text(case, promised))
    assert engines(bundle)[:2] == ["wgmma", "wgmma"]
    assert "mma" in engines(bundle)
    for m, n, k in ((70, 80, 400), (8, 16, 32)):
        a, b = case.operands(m, n, k)
        got = run(bundle, [a, b, case.zeros(m, n)])
        np.testing.assert_array_equal(got, case.product(a, b))


PERSISTENT = "block=128,16,32 warp=16,16 engine=wgmma"


def test_a_kernel_for_all_sizes_goes_through_all_tiles() -> None:
    """More tiles than SMs, fewer, none; a loop of several, one and no iterations.

    No stage changes a bit, nor where copies land and warps stop.
    """
    random = np.random.default_rng(0)
    bundles = [
        compiled(OPEN, f"{PERSISTENT} stages={stages}", variants=1)
        for stages in ("3,2", "4,3")
    ]
    assert all(one.functions[0].kernels[0].grid == (SMS, 1, 1) for one in bundles)
    for m, n, k in ((134 * 128 - 8, 16, 200), (130, 24, 32), (300, 8, 0), (0, 8, 64)):
        a = random.standard_normal((m, k)).astype(np.float16)
        b = random.standard_normal((k, n)).astype(np.float16)
        found = [
            run(bundle, [a, b, np.zeros((m, n), np.float32)], mode)
            for number, bundle in enumerate(bundles)
            for mode in (MODES if m == 130 else [MODES[-number]])
        ]
        for one in found:
            np.testing.assert_array_equal(one, found[0])
        np.testing.assert_allclose(found[0], product(a, b, "nn"), atol=1e-3)


def test_clusters_of_rows_that_are_known_at_run_time_only() -> None:
    """Of an odd number of tiles the last cluster has a block beyond C."""
    bundle = compiled(OPEN, f"{PERSISTENT} stages=3,2 cluster=2", variants=1)
    (kernel,) = bundle.functions[0].kernels
    assert ".reqnctapercluster 2" in bundle.code_of(kernel).ptx
    for number, m in enumerate((100, 300, 133 * 128)):
        a, b = operands({"m": m, "n": 16, "k": 104}, "nn")
        c = np.full((m, 16), np.nan, np.float32)
        got = run(bundle, [a, b, c], MODES[number])
        np.testing.assert_array_equal(got, product(a, b, "nn"))


def test_a_whole_schedule_is_for_rows_that_maps_have() -> None:
    """Others are multiplied by the default schedule of mma.sync."""
    bundle = compiled(ANY, f"{PERSISTENT} stages=3,2")
    assert engines(bundle) == ["wgmma", "mma"]
    for n in (16, 15):
        a, b = operands({"m": 40, "n": n, "k": 80}, "nn")
        got = run(bundle, [a, b, np.zeros((40, n), np.float32)])
        np.testing.assert_array_equal(got, product(a, b, "nn"))


KNOWN = """
  func.func @f(%A: tensor<?x250xf16>, %B: tensor<250x?xf16> {alcop.row_alignment = 16},
                  %E: tensor<?x?xf32>)
      -> tensor<?x?xf32> {
    %c = linalg.matmul ins(%A, %B : tensor<?x250xf16>, tensor<250x?xf16>)
        outs(%E : tensor<?x?xf32>) -> tensor<?x?xf32>
    return %c : tensor<?x?xf32>
  }"""


@pytest.mark.parametrize(
    ("text", "variants", "message"),
    [
        (
            ANY,
            1,
            "rows of A or B have lengths or distances that are known at run time only, "
            "and are not known to begin at multiples of 16 bytes",
        ),
        (KNOWN, 1, "rows of A have 500 bytes, expected a multiple of 16"),
        (
            open_text(Case("i8", "i8", "i32", "", "nn"), True),
            1,
            "B of i8 is stored across K, expected along K, or f16 or bf16",
        ),
    ],
    ids=["any rows", "known rows", "across K"],
)
def test_a_remark_says_why_mma_sync_multiplies(
    text: str, variants: int, message: str, capfd: pytest.CaptureFixture[str]
) -> None:
    bundle = compiled(text, variants=variants)
    assert {*engines(bundle)} == {"mma"}
    said = capfd.readouterr().err
    assert f"remark: multiplied by mma.sync instead of wgmma: {message}" in said
