"""Gathered tiles, compiled and run on the emulator, against NumPy.

Tile code of `gathered_kernels`. No race, no bank conflict, and no sector read that the
rows do not cover; what is not valid is not read.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pytest
from gathered_kernels import Tile, Window, convolution, embedding

from alcop_mlir.compilation import compiler, inputs
from alcop_mlir.pipelines.driver import run_pipeline
from alcop_mlir.runtime.emulator import emulate
from alcop_mlir.runtime.emulator.observers.counters import Counters
from alcop_mlir.runtime.launch import Program, grid_of

TILE = Tile()


@dataclass(frozen=True)
class Ran:
    """C as a kernel left it, and what the emulator counted."""

    out: np.ndarray
    counters: Counters
    ptx: str


def run(text: str, shape: tuple[int, int], *inputs_: np.ndarray) -> Ran:
    """Run a kernel of (%x flat, %b, %c, ...) and check it for races."""
    options = compiler.Options(use_ptxas=False)
    bundle = compiler.compile_source(inputs.read(text), options)
    program = Program(bundle, device="emulator")
    (kernel,) = program.function.kernels
    out = np.full(shape, np.nan, np.float32)
    x, b, *more = inputs_
    result = emulate(
        program.ptx,
        kernel.name,
        grid_of(kernel, {}),
        kernel.block,
        [x.reshape(-1), b, out, *more],
        dynamic_shared=kernel.shared_bytes,
        counters=True,
        hazards=True,
    )
    assert not result.hazards
    assert result.counters is not None
    return Ran(out, result.counters, program.ptx)


def arrays(window: Window, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """x and B in f16."""
    random = np.random.default_rng(seed)
    x = random.uniform(-1, 1, window.image).astype(np.float16)
    b = random.uniform(-1, 1, (window.filters, window.columns)).astype(np.float16)
    return x, b


def check(window: Window, ran: Ran, x: np.ndarray, b: np.ndarray) -> None:
    """C is right, and memory was read as it should be."""
    tolerance = window.columns * 2.0**-22
    np.testing.assert_allclose(ran.out, window.reference(x, b), atol=tolerance, rtol=0)
    assert ran.counters.bank_conflicts == 0
    assert ran.counters.global_sectors == ran.counters.global_sectors_ideal
    assert "cp.async.cg" in ran.ptx


SMALL = (1, 9, 7, 64)
WINDOWS = {
    "3x3": Window(),
    "stride 2": Window(stride=(2, 2)),
    "dilation 2": Window(SMALL, dilation=(2, 2), low=(2, 2), high=(2, 2)),
    "1x3, two images": Window((2, 9, 7, 64), size=(1, 3), low=(0, 1), high=(0, 1)),
    "one side": Window(SMALL, stride=(2, 2), low=(0, 0), high=(1, 1)),
    "48 channels": Window((1, 9, 7, 48)),
}


@pytest.mark.parametrize("name", WINDOWS)
def test_windows(name: str) -> None:
    window = WINDOWS[name]
    x, b = arrays(window)
    check(
        window,
        run(convolution(window, TILE), (window.rows, window.filters), x, b),
        x,
        b,
    )


def test_more_taps_than_bits() -> None:
    """49 taps: a bit per row and per column of the window."""
    window = Window(SMALL, size=(7, 7), low=(3, 3), high=(3, 3))
    x, b = arrays(window)
    text = convolution(window, TILE, masks="sides")
    check(window, run(text, (window.rows, window.filters), x, b), x, b)


@pytest.mark.parametrize("whole", [True, False])
def test_rows_that_a_table_names(whole: bool) -> None:
    """Of 100 rows some are of no index; the table may end inside of a tile."""
    m, n, k, rows = 100, 64, 128, 50
    random = np.random.default_rng(0)
    table = random.uniform(-1, 1, (rows, k)).astype(np.float16)
    b = random.uniform(-1, 1, (n, k)).astype(np.float16)
    indices = random.integers(-1, rows, 128 if whole else m, dtype=np.int32)
    indices[:4] = -1
    text = embedding((m, n, k), rows, TILE, whole)
    ran = run(text, (m, n), table, b, indices)
    used = indices[:m, None]
    expected = np.where(used >= 0, table[used[:, 0]].astype("f4") @ b.astype("f4").T, 0)
    np.testing.assert_allclose(ran.out, expected, atol=k * 2.0**-22, rtol=0)
    assert ran.counters.bank_conflicts == 0
    assert ran.counters.global_sectors == ran.counters.global_sectors_ideal


def test_the_same_as_plain_loops() -> None:
    """The op's meaning, `alcop-lower-gathers`, gives the same to the last bit."""
    window = Window((1, 9, 7, 48), stride=(2, 1))
    x, b = arrays(window)
    source = inputs.read(convolution(window, TILE))
    with source.module.context:
        run_pipeline(source.module, "builtin.module(alcop-lower-gathers)")
        plain = str(source.module)
    assert "alcop.gather" not in plain
    shape = (window.rows, window.filters)
    both = [run(text, shape, x, b) for text in (convolution(window, TILE), plain)]
    assert both[0].out.tobytes() == both[1].out.tobytes()
    assert "cp.async" not in both[1].ptx
