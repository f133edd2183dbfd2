"""Gathered tiles, compiled and run on the emulator, against NumPy.

Tile code of `gathered_kernels`. No race, no bank conflict, and no sector read that the
rows do not cover; what is not valid is not read.
"""

from __future__ import annotations

import importlib
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from gathered_kernels import Tile, embedding, pages, sheared
from gathered_windows import Window, convolution

from alcop_mlir.compilation import compiler, inputs
from alcop_mlir.pipelines.driver import run_pipeline
from alcop_mlir.runtime.emulator import emulate
from alcop_mlir.runtime.emulator.observers.counters import Counters
from alcop_mlir.runtime.launch import Program, grid_of
from alcop_mlir.schedule import Schedule

BENCH = Path(__file__).resolve().parents[2] / "bench"
TILE = Tile()
NUMPY = {"f16": np.float16, "f32": np.float32, "i8": np.int8}
SMALL = (1, 9, 7, 64)


@dataclass(frozen=True)
class Ran:
    """C as a kernel left it, and what the emulator counted."""

    out: np.ndarray
    counters: Counters
    ptx: str


@cache
def compiled(text: str) -> Program:
    bundle = compiler.compile_source(
        inputs.read(text), compiler.Options(use_ptxas=False)
    )
    return Program(bundle, device="emulator")


def run(text: str, out: np.ndarray, *inputs_: np.ndarray) -> Ran:
    """Run a kernel of (%x flat, %b, %c, ...) and check it for races."""
    program = compiled(text)
    (kernel,) = program.function.kernels
    x, b, *more = inputs_
    out = np.copy(out)
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


def arrays(window: Window, kind: str = "f16") -> tuple[np.ndarray, ...]:
    """C full of NaN, x and B: numbers that are summed up exactly in any order."""
    random = np.random.default_rng(0)
    x = random.integers(-8, 9, window.image).astype(NUMPY[kind])
    b = random.integers(-8, 9, (window.filters, window.columns)).astype(NUMPY[kind])
    of_c = np.int32 if kind == "i8" else np.float32
    nothing = 7777 if kind == "i8" else np.nan
    return np.full((window.rows, window.filters), nothing, of_c), x, b


def is_ideal(ran: Ran) -> bool:
    """No bank conflict, and no sector but those that hold what is asked for."""
    counters = ran.counters
    is_whole = counters.global_sectors == counters.global_sectors_ideal
    return is_whole and counters.bank_conflicts == 0


WINDOWS = {
    "3x3": Window(),
    "stride 2": Window(stride=(2, 2)),
    "dilation 2": Window(SMALL, dilation=(2, 2), low=(2, 2), high=(2, 2)),
    "1x3, two images": Window((2, 9, 7, 64), size=(1, 3), low=(0, 1), high=(0, 1)),
    "one side": Window(SMALL, stride=(2, 2), low=(0, 0), high=(1, 1)),
    "48 channels": Window((1, 9, 7, 48)),
    "40 channels, two tiles of filters": Window((1, 5, 6, 40), filters=128),
}


@pytest.mark.parametrize("name", WINDOWS)
def test_windows(name: str) -> None:
    window = WINDOWS[name]
    c, x, b = arrays(window)
    ran = run(convolution(window, TILE), c, x, b)
    np.testing.assert_array_equal(ran.out, window.reference(x, b))
    assert ran.counters.bank_conflicts == 0
    # Else rows begin within sectors of 32 bytes.
    assert is_ideal(ran) or window.image[-1] % 16
    assert "cp.async.cg" in ran.ptx


def test_more_taps_than_bits() -> None:
    """49 taps: a bit per row and per column of the window."""
    window = Window((1, 5, 6, 64), size=(7, 7), low=(3, 3), high=(3, 3))
    c, x, b = arrays(window)
    ran = run(convolution(window, TILE, masks="sides"), c, x, b)
    np.testing.assert_array_equal(ran.out, window.reference(x, b))
    assert is_ideal(ran)


# By type: a tile of 64 bytes, and channels that end inside of one.
TYPES = {
    "f32": (Tile((64, 64, 16)), 24),
    "i8": (Tile((64, 64, 64)), 96),
}


@pytest.mark.parametrize("kind", TYPES)
def test_types(kind: str) -> None:
    tile, channels = TYPES[kind]
    window = Window((1, 6, 5, channels))
    c, x, b = arrays(window, kind)
    ran = run(convolution(window, tile, kind=kind), c, x, b)
    wide = "i4" if kind == "i8" else "f4"
    np.testing.assert_array_equal(ran.out, window.reference(x, b, wide))
    assert is_ideal(ran)
    assert "cp.async.cg" in ran.ptx


# Channels of a tap, bytes of f16 that rows are so aligned to, and what copies them.
ALIGNMENTS = [(44, "cp.async.ca", ", 8"), (42, "cp.async.ca", ", 4"), (41, "ld.", "")]


@pytest.mark.parametrize(("channels", "copy", "size"), ALIGNMENTS)
def test_narrow_rows(channels: int, copy: str, size: str) -> None:
    """Copies of 8 and 4 bytes; of an odd number of halves, loads and stores."""
    window = Window((1, 5, 4, channels))
    c, x, b = arrays(window)
    ran = run(convolution(window, TILE), c, x, b)
    np.testing.assert_array_equal(ran.out, window.reference(x, b))
    lines = [one for one in ran.ptx.splitlines() if copy in one]
    assert lines
    assert not size or all(f"{size};" in one or f"{size}," in one for one in lines)
    assert size or "cp.async" not in ran.ptx


STAGES = [(1, 1), (1, 2), (3, 3), (6, 1)]


def test_all_stages_are_equal() -> None:
    """To the last bit, with rounding, and a row's end inside of a tile."""
    window = Window((1, 6, 7, 48), stride=(1, 2))
    random = np.random.default_rng(1)
    c, x, b = arrays(window)
    x = random.standard_normal(x.shape).astype(np.float16)
    b = random.standard_normal(b.shape).astype(np.float16)
    found = [
        run(convolution(window, Tile(stages=stages)), c, x, b).out for stages in STAGES
    ]
    assert len({out.tobytes() for out in found}) == 1
    np.testing.assert_allclose(found[0], window.reference(x, b), atol=1e-3, rtol=0)


@pytest.mark.parametrize("masks", ["word", "sides"])
def test_each_bit_of_a_mask_counts(masks: str) -> None:
    """With one bit of all masks dropped, the result is another one."""
    window = Window((1, 5, 4, 64))
    c, x, b = arrays(window)
    x, b = np.abs(x) + 1, np.abs(b) + 1  # no term is zero
    text = convolution(window, TILE, masks=masks, has_bits=True)
    expected = window.reference(x, b)
    count = 9 if masks == "word" else 6
    every = np.array([(1 << count) - 1], np.int32)
    np.testing.assert_array_equal(run(text, c, x, b, every).out, expected)
    for bit in range(count):
        out = run(text, c, x, b, every ^ 1 << bit).out
        assert not np.array_equal(out, expected), bit


def test_pixels_that_no_window_has_are_not_read() -> None:
    """Every second pixel is NaN; a tile of 32 channels ends in one's neighbour."""
    window = Window((1, 9, 9, 48), size=(1, 1), stride=(2, 2), low=(0, 0), high=(0, 0))
    c, x, b = arrays(window)
    expected = window.reference(x, b)
    spoilt = np.full_like(x, np.nan)
    spoilt[:, ::2, ::2] = x[:, ::2, ::2]
    ran = run(convolution(window, TILE), c, spoilt, b)
    np.testing.assert_array_equal(ran.out, expected)


@pytest.mark.parametrize("whole", [True, False])
def test_rows_that_a_table_names(whole: bool) -> None:
    """Of 100 rows some are of no index; the table may end inside of a tile."""
    m, n, k, rows = 100, 64, 128, 50
    random = np.random.default_rng(0)
    table = random.integers(-8, 9, (rows, k)).astype(np.float16)
    b = random.integers(-8, 9, (n, k)).astype(np.float16)
    indices = random.integers(-1, rows, 128 if whole else m, dtype=np.int32)
    indices[:4] = -1
    text = embedding((m, n, k), rows, TILE, whole)
    ran = run(text, np.full((m, n), np.nan, np.float32), table, b, indices)
    used = indices[:m, None]
    expected = np.where(used >= 0, table[used[:, 0]].astype("f4") @ b.astype("f4").T, 0)
    np.testing.assert_array_equal(ran.out, expected)
    assert is_ideal(ran)


@pytest.mark.parametrize("stages", [(1, 1), (4, 2)])
def test_a_table_that_is_read_in_each_step(stages: tuple[int, int]) -> None:
    """The rows are fetched a step before their copy; each thread has its own."""
    m, n, k, rows = 64, 64, 256, 40
    random = np.random.default_rng(0)
    table = random.integers(-8, 9, (rows, 32)).astype(np.float16)
    b = random.integers(-8, 9, (n, k)).astype(np.float16)
    indices = random.integers(-1, rows, (k // 32, m), dtype=np.int32)
    text = pages((m, n, k), rows, Tile(stages=stages))
    ran = run(text, np.full((m, n), np.nan, np.float32), table, b, indices.reshape(-1))
    pages_ = np.where(indices[..., None] >= 0, table[indices], 0).astype(np.float32)
    a = pages_.transpose(1, 0, 2).reshape(m, k)
    np.testing.assert_array_equal(ran.out, a @ b.astype("f4").T)
    assert ran.counters.bank_conflicts == 0
    assert ("cp.async" in ran.ptx) == (stages[0] > 1)
    assert ".local" not in ran.ptx  # no thread has all rows


@pytest.mark.parametrize("stages", [(1, 1), (4, 2)])
def test_rows_that_a_loop_carries(stages: tuple[int, int]) -> None:
    m, n, k, gap = 128, 64, 256, 8
    random = np.random.default_rng(0)
    x = random.integers(-8, 9, k + m * gap * (k // 32)).astype(np.float16)
    b = random.integers(-8, 9, (n, k)).astype(np.float16)
    text = sheared((m, n, k), gap, Tile(stages=stages))
    ran = run(text, np.full((m, n), np.nan, np.float32), x, b)
    row, column = np.arange(m)[:, None], np.arange(k)[None]
    a = x[column + row * gap * (column // 32)].astype(np.float32)
    np.testing.assert_array_equal(ran.out, a @ b.astype("f4").T)
    assert ran.counters.bank_conflicts == 0
    assert ("cp.async" in ran.ptx) == (stages[0] > 1)
    assert ".local" not in ran.ptx


def test_the_same_as_plain_loops() -> None:
    """The op's meaning, `alcop-lower-gathers`, gives the same to the last bit."""
    window = Window((1, 5, 4, 48), stride=(2, 1))
    text = convolution(window, TILE)
    c, x, b = arrays(window)
    x = x + np.float16(0.1)
    source = inputs.read(text)
    with source.module.context:
        run_pipeline(source.module, "builtin.module(alcop-lower-gathers)")
        plain = str(source.module)
    assert "alcop.gather" not in plain
    both = [run(one, c, x, b) for one in (text, plain)]
    assert both[0].out.tobytes() == both[1].out.tobytes()
    assert "cp.async" not in both[1].ptx


# Of a loop without any other work there is 1 for each HMMA. Stages, and the most.
MOST_PER_MATRIX = [((4, 2), 1.7), ((3, 2), 2.0)]


@pytest.mark.parametrize(("stages", "most"), MOST_PER_MATRIX)
def test_instructions_of_the_loop(
    stages: tuple[int, int], most: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of any kind for each HMMA, 3x3 with stride 2 of 256 channels; nothing spilled."""
    window = Window((8, 32, 32, 256), filters=128, stride=(2, 2))
    text = convolution(window, Tile((128, 128, 32), (64, 64), stages))
    loop = loop_of(text, monkeypatch)
    assert loop.matrix == 64 * stages[0]
    assert loop.per_matrix <= most


def test_collapsed_filters_take_no_division(monkeypatch: pytest.MonkeyPatch) -> None:
    """B is a view of which dimensions were collapsed: 2.02 per HMMA, were it folded."""
    image, filters = "memref<8x32x32x128xf16>", "memref<128x3x3x128xf16>"
    text = f"""
    func.func @f(%x: {image}, %w: {filters}, %y: memref<8x30x30x128xf32>) {{
      linalg.conv_2d_nhwc_fhwc ins(%x, %w : {image}, {filters})
                               outs(%y : memref<8x30x30x128xf32>)
      return
    }}"""
    schedule = Schedule.parse("block=128,128,32 warp=64,64 stages=4,2")
    assert loop_of(text, monkeypatch, schedule).per_matrix <= 1.7


def loop_of(
    text: str, monkeypatch: pytest.MonkeyPatch, schedule: Schedule | None = None
) -> Any:
    """The K loop of the machine code; nothing is spilled."""
    monkeypatch.syspath_prepend(BENCH)
    sass = importlib.import_module("sass")
    options = compiler.Options(schedule=schedule)
    bundle = compiler.compile_source(inputs.read(text), options)
    (code,) = bundle.code.values()
    if code.cubin is None:
        pytest.skip("needs ptxas")
    assert bundle.functions[0].kernels[0].spill_bytes == 0
    return sass.steady_state(code.cubin)
