"""Multi-kernel functions with fusion: the number of kernels, and the results.

Named ops, ops in place, several contractions, split-K; ops that cannot be fused run as
kernels of their own. On the emulator with hazards, against NumPy's float64.
"""

from __future__ import annotations

import numpy as np
import pytest

from alcop_mlir.compilation import compiler, inputs
from alcop_mlir.runtime.launch import Program
from alcop_mlir.schedule import Schedule

Array = np.ndarray
SCHEDULE = "block=32,32,32 warp=16,16 stages=2,1"
A, B, C = "64x96xf16", "96x48xf16", "64x48xf32"
FILL = f"""
  %zero = arith.constant 0.0 : f32
  %space = tensor.empty() : tensor<{C}>
  %start = linalg.fill ins(%zero : f32) outs(%space : tensor<{C}>) -> tensor<{C}>"""
PRODUCT = f"""
  %p = linalg.matmul ins(%A, %B : tensor<{A}>, tensor<{B}>) outs(%start : tensor<{C}>)
    -> tensor<{C}>"""


def compiled(text: str, kernels: int, schedule: str = SCHEDULE) -> Program:
    """The only function of the text; it must have that many kernels."""
    options = compiler.Options(schedule=Schedule.parse(schedule), use_ptxas=False)
    bundle = compiler.compile_source(inputs.read(text), options)
    (function,) = bundle.functions
    names = [kernel.name for kernel in function.kernels]
    assert len(names) == kernels, names
    return Program(bundle, device="emulator")


def uniform(*shape: int, kind: str = "f4") -> Array:
    return np.random.default_rng(sum(shape)).uniform(-1, 1, shape).astype(kind)


def wide(*arrays: Array) -> list[Array]:
    return [array.astype("f8") for array in arrays]


def close(result: Array, expected: Array) -> None:
    bound = 2.0**-9 if result.dtype == np.float16 else 2.0**-17
    np.testing.assert_allclose(result, expected, rtol=bound, atol=bound)


def test_named_ops_on_tensors() -> None:
    """The bias initialises the accumulators."""
    t = f"tensor<{C}>"
    program = compiled(
        f"""
        func.func @f(%A: tensor<{A}>, %B: tensor<{B}>, %bias: tensor<48xf32>,
                     %r: {t}) -> {t} {{
          %e = tensor.empty() : {t}
          %start = linalg.broadcast ins(%bias : tensor<48xf32>) outs(%e : {t})
            dimensions = [0]
          {PRODUCT}
          %s = linalg.add ins(%p, %r : {t}, {t}) outs(%e : {t}) -> {t}
          %x = linalg.exp ins(%s : {t}) outs(%e : {t}) -> {t}
          %m = linalg.map {{ arith.addf }} ins(%x, %r : {t}, {t}) outs(%e : {t})
          %y = linalg.elementwise kind=#linalg.elementwise_kind<tanh>
            ins(%m : {t}) outs(%e : {t}) -> {t}
          return %y : {t}
        }}""",
        kernels=1,
    )
    a, b, bias = uniform(64, 96, kind="f2"), uniform(96, 48, kind="f2"), uniform(48)
    residual, result = uniform(64, 48), np.full((64, 48), np.nan, "f4")
    program(a, b, bias, residual, result)
    a, b, bias, residual = wide(a, b, bias, residual)
    close(result, np.tanh(np.exp(a @ b + bias + residual) + residual))


def test_residual_is_overwritten_in_place() -> None:
    program = compiled(
        f"""
        func.func @f(%A: memref<{A}>, %B: memref<{B}>, %R: memref<{C}>) {{
          %zero = arith.constant 0.0 : f32
          %C = memref.alloc() : memref<{C}>
          linalg.fill ins(%zero : f32) outs(%C : memref<{C}>)
          linalg.matmul ins(%A, %B : memref<{A}>, memref<{B}>) outs(%C : memref<{C}>)
          linalg.add ins(%C, %R : memref<{C}>, memref<{C}>) outs(%R : memref<{C}>)
          return
        }}""",
        kernels=1,
    )
    a, b, residual = (
        uniform(64, 96, kind="f2"),
        uniform(96, 48, kind="f2"),
        uniform(64, 48),
    )
    expected = a.astype("f8") @ b.astype("f8") + residual
    program(a, b, residual)
    close(residual, expected)


def test_matmul_is_changed_in_place() -> None:
    """C += A * B, then relu on C itself."""
    program = compiled(
        f"""
        #mn = affine_map<(m, n) -> (m, n)>
        func.func @f(%A: memref<{A}>, %B: memref<{B}>, %C: memref<64x48xf16>) {{
          %zero = arith.constant 0.0 : f16
          linalg.matmul ins(%A, %B : memref<{A}>, memref<{B}>)
            outs(%C : memref<64x48xf16>)
          linalg.generic {{indexing_maps = [#mn],
              iterator_types = ["parallel", "parallel"]}}
            outs(%C : memref<64x48xf16>) {{
          ^bb0(%x: f16):
            %r = arith.maximumf %x, %zero : f16
            linalg.yield %r : f16
          }}
          return
        }}""",
        kernels=1,
    )
    a, b = uniform(64, 96, kind="f2"), uniform(96, 48, kind="f2")
    c = uniform(64, 48, kind="f2")
    expected = np.maximum(a.astype("f8") @ b.astype("f8") + c, 0)
    program(a, b, c)
    close(c, expected)


def test_matrix_times_vector() -> None:
    program = compiled(
        """
        func.func @f(%A: memref<40x96xf16>, %x: memref<96xf16>, %bias: memref<40xf32>,
                     %y: memref<40xf32>) {
          %zero = arith.constant 0.0 : f32
          %C = memref.alloc() : memref<40xf32>
          linalg.fill ins(%zero : f32) outs(%C : memref<40xf32>)
          linalg.matvec ins(%A, %x : memref<40x96xf16>, memref<96xf16>)
            outs(%C : memref<40xf32>)
          linalg.add ins(%C, %bias : memref<40xf32>, memref<40xf32>)
            outs(%y : memref<40xf32>)
          return
        }""",
        kernels=1,
    )
    a, x, bias = uniform(40, 96, kind="f2"), uniform(96, kind="f2"), uniform(40)
    result = np.full(40, np.nan, "f4")
    program(a, x, bias, result)
    a, x, bias = wide(a, x, bias)
    close(result, a @ x + bias)


def test_gate_of_two_matmuls() -> None:
    """silu(x A) * (x B): the op that reads both runs in the second's kernel."""
    t = f"tensor<{C}>"
    program = compiled(
        f"""
        #mn = affine_map<(m, n) -> (m, n)>
        func.func @f(%A: tensor<{A}>, %B: tensor<{B}>, %G: tensor<{B}>) -> {t} {{
          {FILL} {PRODUCT}
          %q = linalg.matmul ins(%A, %G : tensor<{A}>, tensor<{B}>)
            outs(%start : {t}) -> {t}
          %y = linalg.generic {{indexing_maps = [#mn, #mn, #mn],
              iterator_types = ["parallel", "parallel"]}}
            ins(%p, %q : {t}, {t}) outs(%space : {t}) {{
          ^bb0(%x: f32, %g: f32, %o: f32):
            %one = arith.constant 1.0 : f32
            %n = arith.negf %g : f32
            %e = math.exp %n : f32
            %d = arith.addf %one, %e : f32
            %s = arith.divf %g, %d : f32
            %r = arith.mulf %s, %x : f32
            linalg.yield %r : f32
          }} -> {t}
          return %y : {t}
        }}""",
        kernels=2,
    )
    a, b, g = (
        uniform(64, 96, kind="f2"),
        uniform(96, 48, kind="f2"),
        uniform(48, 96, kind="f2").T.copy(),
    )
    result = np.full((64, 48), np.nan, "f4")
    program(a, b, g, result)
    a, b, g = wide(a, b, g)
    gate = a @ g
    close(result, gate / (1 + np.exp(-gate)) * (a @ b))


def test_two_layers() -> None:
    """Each contraction has its epilogue in its kernel; f16 in between."""
    hidden = "tensor<64x48xf16>"
    program = compiled(
        f"""
        #mn = affine_map<(m, n) -> (m, n)>
        #n = affine_map<(m, n) -> (n)>
        func.func @f(%A: tensor<{A}>, %B: tensor<{B}>, %bias: tensor<48xf32>,
                     %W: tensor<48x48xf16>) -> tensor<{C}> {{
          {FILL} {PRODUCT}
          %h = tensor.empty() : {hidden}
          %y = linalg.generic {{indexing_maps = [#mn, #n, #mn],
              iterator_types = ["parallel", "parallel"]}}
            ins(%p, %bias : tensor<{C}>, tensor<48xf32>) outs(%h : {hidden}) {{
          ^bb0(%x: f32, %b: f32, %o: f16):
            %s = arith.addf %x, %b : f32
            %r = arith.maximumf %s, %zero : f32
            %t = arith.truncf %r : f32 to f16
            linalg.yield %t : f16
          }} -> {hidden}
          %z = linalg.matmul ins(%y, %W : {hidden}, tensor<48x48xf16>)
            outs(%start : tensor<{C}>) -> tensor<{C}>
          %w = linalg.exp ins(%z : tensor<{C}>) outs(%space : tensor<{C}>)
            -> tensor<{C}>
          return %w : tensor<{C}>
        }}""",
        kernels=2,
    )
    a, b, bias = uniform(64, 96, kind="f2"), uniform(96, 48, kind="f2"), uniform(48)
    w = uniform(48, 48, kind="f2") / 16
    result = np.full((64, 48), np.nan, "f4")
    program(a, b, bias, w, result)
    a, b, bias, w = wide(a, b, bias, w)
    first = np.maximum(a @ b + bias, 0)
    assert np.abs(result / np.exp(first @ w) - 1).max() < 2.0**-9


@pytest.mark.parametrize("parts", [2, 3])
def test_epilogue_is_fused_into_the_adding_up_of_split_k(parts: int) -> None:
    t = f"tensor<{C}>"
    program = compiled(
        f"""
        func.func @f(%A: tensor<{A}>, %B: tensor<{B}>, %r: {t}) -> {t} {{
          {FILL} {PRODUCT}
          %s = linalg.add ins(%p, %r : {t}, {t}) outs(%space : {t}) -> {t}
          %x = linalg.exp ins(%s : {t}) outs(%space : {t}) -> {t}
          return %x : {t}
        }}""",
        kernels=2,
        schedule=f"block=32,32,16 warp=16,16 stages=2,1 split_k={parts}",
    )
    a, b = uniform(64, 96, kind="f2"), uniform(96, 48, kind="f2")
    residual, result = uniform(64, 48), np.full((64, 48), np.nan, "f4")
    program(a, b, residual, result)
    a, b, residual = wide(a, b, residual)
    np.testing.assert_allclose(result, np.exp(a @ b + residual), rtol=2.0**-14)


def test_what_is_not_fused_is_a_kernel_of_its_own() -> None:
    program = compiled(
        f"""
        func.func @f(%A: tensor<{A}>, %B: tensor<{B}>) -> tensor<48x64xf32> {{
          {FILL} {PRODUCT}
          %e = tensor.empty() : tensor<48x64xf32>
          %t = linalg.transpose ins(%p : tensor<{C}>) outs(%e : tensor<48x64xf32>)
            permutation = [1, 0]
          return %t : tensor<48x64xf32>
        }}""",
        kernels=2,
    )
    a, b = uniform(64, 96, kind="f2"), uniform(96, 48, kind="f2")
    result = np.full((48, 64), np.nan, "f4")
    program(a, b, result)
    a, b = wide(a, b)
    close(result, (a @ b).T)


def test_all_readers_compute_what_is_cheap() -> None:
    """A row with a mask of its columns, which one of two readers reads as a column."""
    program = compiled(
        """
        #n = affine_map<(n) -> (n)>
        #one = affine_map<(n) -> (0)>
        #mn = affine_map<(m, n) -> (m, n)>
        #m_ = affine_map<(m, n) -> (m)>
        #n_ = affine_map<(m, n) -> (n)>
        func.func @f(%p: tensor<1xi32>, %w: tensor<24xf32>, %X: tensor<24x40xf32>,
                     %Y: tensor<40x24xf32>) -> (tensor<24x40xf32>, tensor<40x24xf32>) {
          %zero = arith.constant 0.0 : f32
          %ev = tensor.empty() : tensor<24xf32>
          %v = linalg.generic {indexing_maps = [#n, #one, #n],
              iterator_types = ["parallel"]}
            ins(%w, %p : tensor<24xf32>, tensor<1xi32>) outs(%ev : tensor<24xf32>) {
          ^bb0(%a: f32, %b: i32, %o: f32):
            %i = linalg.index 0 : index
            %c = arith.index_cast %i : index to i32
            %d = arith.cmpi sle, %c, %b : i32
            %e = arith.addf %a, %a : f32
            %s = arith.select %d, %e, %zero : f32
            linalg.yield %s : f32
          } -> tensor<24xf32>
          %ex = tensor.empty() : tensor<24x40xf32>
          %q = linalg.generic {indexing_maps = [#m_, #mn, #mn],
              iterator_types = ["parallel", "parallel"]}
            ins(%v, %X : tensor<24xf32>, tensor<24x40xf32>)
            outs(%ex : tensor<24x40xf32>) {
          ^bb0(%a: f32, %x: f32, %o: f32):
            %t = arith.addf %a, %x : f32
            linalg.yield %t : f32
          } -> tensor<24x40xf32>
          %ey = tensor.empty() : tensor<40x24xf32>
          %r = linalg.generic {indexing_maps = [#n_, #mn, #mn],
              iterator_types = ["parallel", "parallel"]}
            ins(%v, %Y : tensor<24xf32>, tensor<40x24xf32>)
            outs(%ey : tensor<40x24xf32>) {
          ^bb0(%a: f32, %y: f32, %o: f32):
            %t = arith.mulf %a, %y : f32
            linalg.yield %t : f32
          } -> tensor<40x24xf32>
          return %q, %r : tensor<24x40xf32>, tensor<40x24xf32>
        }""",
        kernels=2,
    )
    place = np.array([15], "i4")
    w, x, y = uniform(24), uniform(24, 40), uniform(40, 24)
    sums, scaled = np.full((24, 40), np.nan, "f4"), np.full((40, 24), np.nan, "f4")
    program(place, w, x, y, sums, scaled)
    given, first, second = wide(w, x, y)
    kept = np.where(np.arange(24) <= 15, 2 * given, 0)
    close(sums, kept[:, None] + first)
    close(scaled, kept * second)
