"""Asserts that all know the element type f8E4M3: run in a copy that has its row.

The values of f8E4M3 are decoded here by its definition, not by what the package does.
"""

from __future__ import annotations

import math

import numpy as np

from alcop_mlir import codec, dtypes, element_types
from alcop_mlir.bindings import ir
from alcop_mlir.manifest.arrays import DTYPES, Intermediate
from alcop_mlir.pipelines.driver import run_pipeline
from alcop_mlir.reference import evaluation, expressions, steps
from alcop_mlir.runtime.emulator.api import emulate
from alcop_mlir.tools import launch_file
from alcop_mlir.tuning import problem

NAME = "f8E4M3"
MATMUL = f"""
func.func @f(%A: memref<64x64x{NAME}>, %B: memref<64x64x{NAME}>,
             %C: memref<64x64x{NAME}>) {{
  linalg.matmul ins(%A, %B : memref<64x64x{NAME}>, memref<64x64x{NAME}>)
                outs(%C : memref<64x64x{NAME}>)
  return
}}
"""
ROUNDED = """
func.func @f(%A: memref<64x64xf16>, %B: memref<64x64xf16>, %C: memref<64x64xf8E4M3>) {
  linalg.matmul ins(%A, %B : memref<64x64xf16>, memref<64x64xf16>)
                outs(%C : memref<64x64xf8E4M3>)
  return
}
"""
COPY = f"""
func.func @f(%A: memref<64x64x{NAME}>, %C: memref<64x64x{NAME}>) {{
  linalg.copy ins(%A : memref<64x64x{NAME}>) outs(%C : memref<64x64x{NAME}>)
  return
}}
"""
TO_FRAGMENTS = (
    "builtin.module(func.func(alcop-raise-contractions,alcop-select-schedule,"
    "alcop-tile-to-blocks,alcop-plan-pipelines,alcop-multi-buffer,"
    "alcop-expand-pipelines,alcop-place-waits,alcop-distribute-copies,alcop-lower-mma))"
)


def arrays() -> None:
    """NumPy has no such dtype: arrays hold bits."""
    assert dtypes.NUMPY_DTYPES[NAME] is np.uint8
    assert dtypes.fits(np.dtype(np.uint8), NAME)
    assert not dtypes.fits(np.dtype(np.int8), NAME)
    assert dtypes.expected(NAME) == "uint8 (the bits) or float8_e4m3 (of ml_dtypes)"
    bits = np.arange(256, dtype=np.uint8)
    values = dtypes.decode(bits, NAME)
    assert np.array_equal(values, [*map(value, range(256))], equal_nan=True)
    numbers = ~np.isnan(values)
    assert np.array_equal(dtypes.encode(values, NAME)[numbers], bits[numbers])
    assert np.isnan(dtypes.decode(dtypes.unwritten((4,), NAME), NAME)).all()
    halfway = dtypes.encode(np.array([1.0625, 1.1875, 248.0, -1e9]), NAME)
    rounded = [1.0, 1.25, math.inf, -math.inf]
    assert dtypes.decode(halfway, NAME).tolist() == rounded
    random = dtypes.decode(dtypes.random(np.random.default_rng(1), (64,), NAME), NAME)
    assert 0.5 < np.abs(random).max() <= 1


def value(bits: int) -> float:
    """One sign bit, four of the exponent, three of the mantissa, as IEEE 754."""
    exponent, fraction = bits >> 3 & 15, bits & 7
    sign = -1 if bits >> 7 else 1
    if exponent == 15:
        return math.nan if fraction else sign * math.inf
    whole = fraction + 8 if exponent else fraction
    return math.ldexp(sign * whole, max(exponent, 1) - 10)


def descriptions() -> None:
    """Bundles, launch files, references and problems take it."""
    assert NAME in DTYPES
    assert Intermediate("tmp0", NAME, (3, "M")).bytes({"M": 5}) == 15
    assert launch_file.DTYPES[NAME] == np.uint8
    widened = {"op": "arith.extf", "type": NAME, "operands": [{"argument": 0}]}
    form = expressions.Expression
    assert codec.encode(codec.decode(form, widened), form) == widened
    exact = evaluation.Bounded(np.array([1.0, 0.0]))
    errors = evaluation.rounded(exact, NAME).error
    assert np.array_equal(errors, [2.0**-4 + 2.0**-10, 2.0**-10])
    given = problem.dtypes((NAME, NAME), NAME, None)
    assert given == (NAME, NAME, "f32", NAME)
    made = problem.Problem(64, 64, 64, dtypes=given)
    assert (made.element_bytes, made.accumulator_bytes, made.out_bytes) == (1, 4, 1)
    assert steps.PRECISIONS == ("tf32",)


def passes() -> None:
    """Contractions of it become fragments, other ops SIMT fallbacks."""
    with ir.Context() as context, ir.Location.unknown():
        context.allow_unregistered_dialects = False
        lowered = ir.Module.parse(MATMUL)
        run_pipeline(lowered, TO_FRAGMENTS)
        text = str(lowered)
        assert "nvgpu.device_async_copy" in text
        assert f"vector<4x4x{NAME}>" in text
        assert "nvvm.mma.sync" in text
        assert "multiplicandBPtxType = #nvvm.mma_type<e4m3>" in text
        assert f"vector<2x2xf32> to vector<2x2x{NAME}>" in text
        # Bytes are moved in pairs, which ldmatrix takes across K only from bytes.
        rounded = ir.Module.parse(ROUNDED)
        run_pipeline(rounded, "builtin.module(func.func(alcop-raise-contractions))")
        assert "alcop.contraction" not in str(rounded)
        fallback = ir.Module.parse(COPY)
        run_pipeline(fallback, "builtin.module(func.func(alcop-launch-loops))")
        assert "gpu.launch" in str(fallback)


def emulator() -> None:
    """Its mma.sync multiplies it: it adds up 32 ones along k."""
    ones = int.from_bytes(bytes([0x3C] * 4), "little")  # 1.0, four times
    ptx = f"""
    .version 8.4
    .target sm_89
    .address_size 64
    .visible .entry f(.param .u64 p) {{
      .reg .b32 %a; .reg .f32 %d<4>; .reg .b64 %p;
      mov.b32 %a, {ones};
      mov.f32 %d0, 0f00000000;
      mma.sync.aligned.m16n8k32.row.col.f32.e5m2.e5m2.f32
        {{%d0, %d1, %d2, %d3}}, {{%a, %a, %a, %a}}, {{%a, %a}}, {{%d0, %d0, %d0, %d0}};
      ld.param.u64 %p, [p];
      st.global.f32 [%p], %d3;
      ret; }}"""
    result = np.zeros(1, np.float32)
    emulate(ptx, "f", (1, 1, 1), (32, 1, 1), [result], hazards=False)
    assert result[0] == 32


if __name__ == "__main__":
    print(element_types.__file__)
    emulator()
    arrays()
    descriptions()
    passes()
