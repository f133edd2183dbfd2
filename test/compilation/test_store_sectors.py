"""Sectors that the stores of C write, where its rows are not aligned.

Counted by the emulator, with hazards on, against the sectors that C covers.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pytest
from argument_names import name_of

from alcop_mlir.compilation import compiler, inputs
from alcop_mlir.runtime.emulator import emulate
from alcop_mlir.runtime.launch import Program, grid_of
from alcop_mlir.schedule import Schedule

NUMPY = {"f16": np.float16, "f32": np.float32, "i8": np.int8, "i32": np.int32}
M, K = 130, 96


@dataclass(frozen=True)
class Stored:
    """C as a kernel left it, the sectors that it wrote, and bank conflicts."""

    out: np.ndarray
    sectors: int
    conflicts: int


def text(n: int, element: str, out: str, dynamic: bool) -> str:
    """C = A * B; of s8 with A and B both across k, so that C is interleaved twice."""
    m, k, columns = ("?", "?", "?") if dynamic else (str(M), str(K), str(n))
    across = element == "i8"
    a = f"memref<{k}x{m}x{element}>" if across else f"memref<{m}x{k}x{element}>"
    b, c = f"memref<{k}x{columns}x{element}>", f"memref<{m}x{columns}x{out}>"
    rows = "(k, m)" if across else "(m, k)"
    zero = "0 : i32" if out == "i32" else f"0.0 : {out}"
    return f"""
      func.func @matmul(%A: {a}, %B: {b}, %C: {c}) {{
        %z = arith.constant {zero}
        linalg.fill ins(%z : {out}) outs(%C : {c})
        linalg.matmul indexing_maps = [affine_map<(m, n, k) -> {rows}>,
                                       affine_map<(m, n, k) -> (k, n)>,
                                       affine_map<(m, n, k) -> (m, n)>]
          ins(%A, %B : {a}, {b}) outs(%C : {c})
        return
      }}"""


def stored(
    n: int, element: str, out: str, schedule: str, dynamic: bool = False
) -> Stored:
    options = compiler.Options(schedule=Schedule.parse(schedule), use_ptxas=False)
    source = inputs.read(text(n, element, out, dynamic))
    program = Program(compiler.compile_source(source, options), device="emulator")
    *_, kernel = program.function.kernels  # of variants the one for all rows
    a, b, c = _arrays(n, element, out)
    named = {"arg0": a, "arg1": b, "arg2": c, "M": M, "N": n, "K": K}
    result = emulate(
        program.ptx,
        kernel.name,
        grid_of(kernel, {"M": M, "N": n, "K": K}),
        kernel.block,
        [named[name_of(one)] for one in kernel.arguments],
        dynamic_shared=kernel.shared_bytes,
        counters=True,
        hazards=True,
    )
    assert not result.hazards
    assert result.counters is not None
    left = a.T if element == "i8" else a
    expected = left.astype("f8") @ b.astype("f8")
    tolerance = {"f16": 2.0**-7, "f32": K * 2.0**-22, "i32": 0}[out]
    np.testing.assert_allclose(c, expected, atol=tolerance, rtol=0)
    lines = [line for line in result.counters.lines if "st.global" in line.text]
    sectors = sum(line.global_sectors for line in lines)
    return Stored(c, sectors, result.counters.bank_conflicts)


def _arrays(n: int, element: str, out: str) -> tuple[np.ndarray, ...]:
    random = np.random.default_rng(n)
    kind = NUMPY[element]
    shapes = ((K, M) if element == "i8" else (M, K)), (K, n)
    if element == "i8":
        a, b = (random.integers(-128, 128, shape).astype(kind) for shape in shapes)
    else:
        a, b = (random.uniform(-1, 1, shape).astype(kind) for shape in shapes)
    return a, b, np.full((M, n), -1, NUMPY[out])


WIDE = "block=64,128,32 warp=32,64 stages=3,2"
SMALL = "block=64,64,32 warp=32,32 stages=2,1"
NARROW = "block=64,32,32 warp=32,16 stages=2,1"


@pytest.mark.parametrize(
    ("n", "out", "schedule", "most"),
    [
        # Rows of any alignment, which two warps share.
        (121, "f32", WIDE, 1.1),
        (121, "f32", SMALL, 1.2),
        (121, "f16", WIDE, 1.2),
        (122, "f32", WIDE, 1.1),
        (122, "f16", WIDE, 1.2),
        (124, "f16", WIDE, 1.2),
        # Columns that are no power of two.
        (121, "f32", "block=64,96,32 warp=32,48 stages=3,2", 1.2),
        # A block of 64 columns has 128 bytes of f16 in a row: 5 sectors instead of 4.
        (121, "f16", SMALL, 1.25),
        (122, "f16", SMALL, 1.25),
        (124, "f16", SMALL, 1.25),
        # 16 bytes, but not 32: a quad's 32 bytes would lie in two sectors.
        (124, "f32", WIDE, 1.2),
        (136, "f16", WIDE, 1.2),
        # Whole sectors need no way through shared memory.
        (128, "f32", WIDE, 1.0),
        (128, "f16", SMALL, 1.0),
    ],
)
def test_sectors(n: int, out: str, schedule: str, most: float) -> None:
    found = stored(n, "f16", out, schedule)
    assert found.sectors <= most * -(-found.out.nbytes // 32)


@pytest.mark.parametrize("n", [121, 122, 128])
@pytest.mark.parametrize("schedule", [WIDE, SMALL])
def test_interleaved(n: int, schedule: str) -> None:
    """Operands of s8 that are both strided along k: rows and columns interleaved."""
    found = stored(n, "i8", "i32", schedule.replace(",32 warp", ",64 warp"))
    assert found.sectors <= 1.4 * -(-found.out.nbytes // 32)
    assert found.conflicts == 0


@pytest.mark.parametrize("schedule", [WIDE, SMALL, NARROW])
@pytest.mark.parametrize("out", ["f32", "f16"])
@pytest.mark.parametrize("n", [120, 121, 122, 124])
def test_no_bank_conflicts(n: int, out: str, schedule: str) -> None:
    """In and out, with rows of 32 to 256 bytes."""
    assert stored(n, "f16", out, schedule).conflicts == 0


@pytest.mark.parametrize("out", ["f32", "f16"])
def test_sizes_at_run_time(out: str) -> None:
    """Without a promise, rows may begin anywhere."""
    found = stored(121, "f16", out, SMALL, dynamic=True)
    assert found.sectors <= 1.3 * -(-found.out.nbytes // 32)


def test_no_room() -> None:
    """Tiles too small for a row of each quad are stored lane by lane."""
    found = stored(121, "f16", "f32", "block=64,64,16 warp=16,64 stages=1,1")
    assert found.sectors > 2 * -(-found.out.nbytes // 32)


def test_stage_takes_no_memory_of_its_own() -> None:
    """It reuses the memory of the tiles."""
    sizes = []
    for n in (121, 128):
        options = compiler.Options(schedule=Schedule.parse(SMALL), use_ptxas=False)
        source = inputs.read(text(n, "f16", "f32", False))
        bundle = compiler.compile_source(source, options)
        kernel = bundle.functions[0].kernels[0]
        sizes.append(kernel.shared_bytes)
        staged = "shfl.sync" not in bundle.code_of(kernel).ptx
        assert staged == (n == 121)
    assert sizes == [12288, 16384]  # rows of B are not aligned: A alone has two slots
