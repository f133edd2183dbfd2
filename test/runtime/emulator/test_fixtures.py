"""Kernels that nvcc compiled: right numbers and no report in every mode."""

from __future__ import annotations

import gc
from typing import Any

import numpy as np
import pytest
from fixture_kernels import MODES, fixture, gemm_operands, run_gemm
from kernel_text import launch

from alcop_mlir.runtime.emulator.machine.batch import Batch
from alcop_mlir.runtime.emulator.machine.cohort import Cohort

in_every_mode = pytest.mark.parametrize(("visibility", "schedule"), MODES)


def run(
    name: str,
    kernel: str,
    grid: tuple[int, ...],
    block: tuple[int, ...],
    arguments: list[Any],
    visibility: str,
    schedule: str,
) -> None:
    result = launch(
        fixture(name),
        kernel,
        grid,
        block,
        arguments,
        visibility=visibility,
        schedule=schedule,
    )
    assert result.hazards == ()


@in_every_mode
@pytest.mark.parametrize("sizes", [(128, 128, 96), (136, 248, 72), (8, 8, 8)])
def test_gemm(sizes: tuple[int, int, int], visibility: str, schedule: str) -> None:
    result, wrong = run_gemm(
        fixture("gemm_f16_3stage"), *sizes, visibility=visibility, schedule=schedule
    )
    assert result.hazards == ()
    assert wrong == 0


@pytest.mark.parametrize("sizes", [(256, 256, 128), (1, 8, 40), (129, 136, 0)])
def test_gemm_sizes(sizes: tuple[int, int, int]) -> None:
    """Many blocks; one row; no K at all (C is then zero, and nothing is copied)."""
    result, wrong = run_gemm(fixture("gemm_f16_3stage"), *sizes)
    assert result.hazards == ()
    assert wrong == 0


@pytest.mark.parametrize("watching", [{"hazards": False}, {"counters": True}])
def test_who_watches_changes_no_bit(watching: dict[str, bool]) -> None:
    a, b, _ = gemm_operands(128, 128, 64)
    outputs = []
    for options in ({}, watching):
        c = np.zeros((128, 128), np.float32)
        arguments = [a.copy(), b.copy(), c, 128, 128, 64]
        text = fixture("gemm_f16_3stage")
        launch(text, "gemm", (1,), (128,), arguments, **options)
        outputs.append(c)
    np.testing.assert_array_equal(*outputs)


@in_every_mode
def test_transpose(visibility: str, schedule: str) -> None:
    rows, columns = 64, 96
    source = np.random.default_rng(0).integers(0, 1 << 16, (rows, columns))
    source = source.astype(np.uint16)
    out = np.zeros((columns, rows), np.uint16)
    run(
        "transpose_u16",
        "transpose",
        (columns // 32, rows // 32),
        (128,),
        [source, out, rows, columns],
        visibility,
        schedule,
    )
    np.testing.assert_array_equal(out, source.T)


def divergent_model(value: int) -> int:
    total = 0
    for k in range(value & 15):
        if value >> k & 1:
            total += k * value
        elif k & 1:
            total = (total ^ value) + 3
    while value > 1:
        value = 3 * value + 1 if value & 1 else value >> 1
        total += 1
    return total


@in_every_mode
def test_divergent(visibility: str, schedule: str) -> None:
    values = np.random.default_rng(0).integers(0, 1 << 14, 300).astype(np.int32)
    out = np.full(300, -1, np.int32)
    run(
        "divergent", "divergent", (3,), (128,), [values, out, 300], visibility, schedule
    )
    assert out.tolist() == [divergent_model(int(value)) for value in values]


@in_every_mode
def test_warp_reduce(visibility: str, schedule: str) -> None:
    values = np.random.default_rng(0).integers(-64, 64, 512).astype(np.float32) / 4
    sums, positive = np.zeros(2, np.float32), np.zeros(16, np.uint32)
    prefix = np.zeros(512, np.int32)
    arguments = [values, sums, positive, prefix]
    run("warp_reduce", "warp_reduce", (2,), (256,), arguments, visibility, schedule)
    assert sums.tolist() == values.reshape(2, 256).sum(axis=1).tolist()
    bits = np.packbits(values > 0, bitorder="little").view(np.uint32)
    assert positive.tolist() == bits.tolist()
    whole = np.floor(values).astype(np.int32).reshape(16, 32)
    assert prefix.tolist() == np.cumsum(whole, axis=1).reshape(-1).tolist()


@in_every_mode
def test_histogram(visibility: str, schedule: str) -> None:
    values = np.random.default_rng(0).binomial(255, 0.4, 1000).astype(np.uint8)
    bins, largest = np.zeros(256, np.uint32), np.zeros(1, np.uint32)
    arguments = [values, 1000, bins, largest]
    run("histogram", "histogram", (3,), (96,), arguments, visibility, schedule)
    assert bins.tolist() == np.bincount(values, minlength=256).tolist()
    assert largest[0] == values.max()


@in_every_mode
def test_local_array(visibility: str, schedule: str) -> None:
    values = np.random.default_rng(0).integers(0, 1000, (64, 16)).astype(np.int32)
    out = np.zeros_like(values)
    run("local_array", "local_array", (2,), (32,), [values, out], visibility, schedule)
    for given, got in zip(values.tolist(), out.tolist(), strict=True):
        for k in range(16):
            other = given[k] & 15
            kept = given[other]
            given[other] = given[k] + 1
            given[k] = kept
        assert got == given


def run_mma(kernel: str, arguments: list[np.ndarray]) -> None:
    run("mma_types", kernel, (1,), (32,), arguments, "late", "lockstep")


def test_mma_bf16() -> None:
    generator = np.random.default_rng(0)
    a = generator.integers(-20, 20, (16, 16)).astype(np.float32)
    b = generator.integers(-20, 20, (8, 16)).astype(np.float32)
    halves = [(x.view(np.uint32) >> np.uint32(16)).astype(np.uint16) for x in (a, b)]
    d = np.zeros((16, 8), np.float32)
    run_mma("product_bf16", [*halves, d])
    np.testing.assert_array_equal(d, a @ b.T + 1)


def test_mma_tf32_rounds_its_operands() -> None:
    generator = np.random.default_rng(0)
    a = generator.standard_normal((16, 8)).astype(np.float32)
    b = generator.standard_normal((8, 8)).astype(np.float32)
    d = np.zeros((16, 8), np.float32)
    run_mma("product_tf32", [a, b, d])

    def rounded(x: np.ndarray) -> np.ndarray:
        bits = (x.view(np.uint32) + np.uint32(0x1000)) & np.uint32(0xFFFFE000)
        return bits.view(np.float32).astype(np.float64)

    exact = rounded(a) @ rounded(b).T
    np.testing.assert_allclose(d, exact, rtol=0, atol=4e-6)
    # and that is not what unrounded operands give
    assert np.abs(d - a.astype(np.float64) @ b.T).max() > 1e-4


def test_mma_s8_by_u8() -> None:
    generator = np.random.default_rng(0)
    a = generator.integers(-128, 128, (16, 32)).astype(np.int8)
    b = generator.integers(0, 256, (8, 32)).astype(np.uint8)
    d = np.zeros((16, 8), np.int32)
    run_mma("product_s8", [a, b, d])
    np.testing.assert_array_equal(d, a.astype(np.int32) @ b.T.astype(np.int32))


@in_every_mode
@pytest.mark.parametrize("rounds", [1, 2, 7])
def test_named_barriers(rounds: int, visibility: str, schedule: str) -> None:
    values = np.random.default_rng(0).integers(0, 100, (rounds, 32)).astype(np.int32)
    out = np.zeros((rounds, 2, 32), np.int32)
    arguments = [values, out, rounds]
    run(
        "named_barriers",
        "producer_consumer",
        (1,),
        (96,),
        arguments,
        visibility,
        schedule,
    )
    wanted = np.stack([values[:, ::-1], 2 * values[:, ::-1]], axis=1)
    np.testing.assert_array_equal(out, wanted)


@in_every_mode
def test_stmatrix(visibility: str, schedule: str) -> None:
    words = np.random.default_rng(0).integers(0, 1 << 32, (4, 32)).astype(np.uint32)
    plain, transposed = np.zeros_like(words), np.zeros_like(words)
    arguments = [words, plain, transposed]
    run("stmatrix", "store_tiles", (1,), (32,), arguments, visibility, schedule)
    tiles = words.view(np.uint16).reshape(4, 8, 8)
    np.testing.assert_array_equal(plain.view(np.uint16).reshape(4, 8, 8), tiles)
    np.testing.assert_array_equal(
        transposed.view(np.uint16).reshape(4, 8, 8), tiles.transpose(0, 2, 1)
    )


@in_every_mode
@pytest.mark.parametrize("rounds", [1, 9])
def test_llvm(rounds: int, visibility: str, schedule: str) -> None:
    """LLVM's own style of PTX: .b32 registers for floats, .ptr parameters."""
    values = np.random.default_rng(0).integers(-9, 9, (2, 128, 4)).astype(np.float32)
    out = np.zeros_like(values)
    arguments = [values, out, 0.5, rounds]
    run("scale_llvm", "scale", (2,), (128,), arguments, visibility, schedule)
    np.testing.assert_array_equal(out, values[:, ::-1] * np.float32(0.5) ** rounds)


def test_the_memory_of_a_batch_is_free_at_its_end() -> None:
    """No circle of references keeps it until the garbage collector comes by."""

    def alive() -> int:
        # By their types: objects of other packages may warn where they are asked.
        types = (Batch, Cohort)
        return sum(issubclass(type(x), types) for x in gc.get_objects())

    gc.collect()
    before = alive()
    gc.disable()
    try:
        run_gemm(fixture("gemm_f16_3stage"), 128, 128, 64)
        assert alive() == before
    finally:
        gc.enable()
