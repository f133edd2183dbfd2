"""Multi-kernel functions on the emulator, with intermediate buffers.

The expected numbers are computed here, in float64 NumPy.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from alcop_mlir.compilation import compiler, inputs
from alcop_mlir.errors import CompileError, LaunchError
from alcop_mlir.runtime.launch import Program
from alcop_mlir.runtime.workspace import plan
from alcop_mlir.schedule import Schedule

Array = np.ndarray[Any, Any]
TILE = Schedule.parse("block=32,32,32 warp=16,16 stages=2,1")
GENERATOR = np.random.default_rng(7)


def build(text: str) -> Program:
    """The only function of a module, for the emulator."""
    options = compiler.Options(schedule=TILE, use_ptxas=False)
    bundle = compiler.compile_source(inputs.read_text(text.encode()), options)
    return Program(bundle, device="emulator")


def kernels(program: Program) -> list[str]:
    return [kernel.name for kernel in program.function.kernels]


def fallbacks(program: Program) -> list[bool]:
    """Which kernels are SIMT fallbacks."""
    return [kernel.fallback is not None for kernel in program.function.kernels]


def random(*shape: int, dtype: Any = np.float16) -> Array:
    if np.issubdtype(dtype, np.integer):
        return GENERATOR.integers(-9, 10, shape).astype(dtype)
    return GENERATOR.uniform(-1, 1, shape).astype(dtype)


def wide(array: Array) -> Array:
    return array.astype(np.float64)


MATMUL = """
  %e{n} = tensor.empty({sizes}) : tensor<{m}x{k}x{out}>
  %f{n} = linalg.fill ins(%z_{out} : {out}) outs(%e{n} : tensor<{m}x{k}x{out}>)
    -> tensor<{m}x{k}x{out}>
  %p{n} = linalg.matmul ins({a}, {b} : {ta}, {tb}) outs(%f{n} : tensor<{m}x{k}x{out}>)
    -> tensor<{m}x{k}x{out}>"""
ZEROS = """
  %z_f16 = arith.constant 0.0 : f16
  %z_f32 = arith.constant 0.0 : f32"""


def test_two_matmuls_in_a_row() -> None:
    """The first one's output is an intermediate buffer, which lives for the call."""
    first = MATMUL.format(
        n=0, sizes="", m=48, k=64, out="f16", a="%a", b="%b",
        ta="tensor<48x40xf16>", tb="tensor<40x64xf16>",
    )  # fmt: skip
    second = MATMUL.format(
        n=1, sizes="", m=48, k=36, out="f32", a="%p0", b="%c",
        ta="tensor<48x64xf16>", tb="tensor<64x36xf16>",
    )  # fmt: skip
    program = build(f"""
      func.func @chain(%a: tensor<48x40xf16>, %b: tensor<40x64xf16>,
                       %c: tensor<64x36xf16>) -> tensor<48x36xf32> {{
        {ZEROS} {first} {second}
        return %p1 : tensor<48x36xf32>
      }}""")
    assert kernels(program) == ["chain_matmul", "chain_matmul_1"]
    assert fallbacks(program) == [False, False]
    function = program.function
    space = plan(function.intermediates, function.kernels, {})
    assert space.bytes == 48 * 64 * 2
    a, b, c = random(48, 40), random(40, 64), random(64, 36)
    out = np.full((48, 36), np.nan, np.float32)
    program(a, b, c, out)
    middle = (wide(a) @ wide(b)).astype(np.float16)
    np.testing.assert_allclose(out, wide(middle) @ wide(c), atol=2e-2)


def test_a_matmul_and_what_cannot_be_fused_with_it() -> None:
    """A transposition and a reduction of rows are kernels of their own."""
    program = build("""
      func.func @f(%a: memref<40x32xf16>, %b: memref<32x24xf16>, %t: memref<24x40xf32>,
                   %s: memref<40xf32>) {
        %z = arith.constant 0.0 : f32
        %c = memref.alloc() : memref<40x24xf32>
        linalg.fill ins(%z : f32) outs(%c : memref<40x24xf32>)
        linalg.matmul ins(%a, %b : memref<40x32xf16>, memref<32x24xf16>)
          outs(%c : memref<40x24xf32>)
        linalg.transpose ins(%c : memref<40x24xf32>) outs(%t : memref<24x40xf32>)
          permutation = [1, 0]
        linalg.fill ins(%z : f32) outs(%s : memref<40xf32>)
        linalg.reduce { arith.addf } ins(%c : memref<40x24xf32>)
          outs(%s : memref<40xf32>) dimensions = [1]
        memref.dealloc %c : memref<40x24xf32>
        return
      }""")
    assert kernels(program) == ["f_matmul", "f_transpose", "f_reduce"]
    assert fallbacks(program) == [False, True, True]
    a, b = random(40, 32), random(32, 24)
    t, s = np.full((24, 40), np.nan, np.float32), np.full(40, np.nan, np.float32)
    program(a, b, t, s)
    c = wide(a) @ wide(b)
    np.testing.assert_allclose(t, c.T, atol=1e-4)
    np.testing.assert_allclose(s, c.sum(axis=1), atol=1e-4)


@pytest.mark.parametrize(
    ("kind", "dtype", "why"),
    [
        ("f32", np.float32, "has f32 inputs, which tensor cores round to tf32"),
        ("f64", np.float64, "computes in f64"),
        ("i32", np.int32, "has i32 inputs"),
        ("i64", np.int64, "computes in i64"),
    ],
)
def test_matmuls_that_tensor_cores_do_not_support(
    kind: str, dtype: Any, why: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """One SIMT fallback, initialised by the fill; the remark says why."""
    zero = "0" if kind.startswith("i") else "0.0"
    program = build(f"""
      func.func @f(%a: tensor<10x7x{kind}>, %b: tensor<7x30x{kind}>)
          -> tensor<10x30x{kind}> {{
        %z = arith.constant {zero} : {kind}
        %e = tensor.empty() : tensor<10x30x{kind}>
        %f = linalg.fill ins(%z : {kind}) outs(%e : tensor<10x30x{kind}>)
          -> tensor<10x30x{kind}>
        %p = linalg.matmul ins(%a, %b : tensor<10x7x{kind}>, tensor<7x30x{kind}>)
          outs(%f : tensor<10x30x{kind}>) -> tensor<10x30x{kind}>
        return %p : tensor<10x30x{kind}>
      }}""")
    assert kernels(program) == ["f"]
    assert f"'linalg.matmul' runs as a SIMT fallback: {why}" in capsys.readouterr().err
    a, b = random(10, 7, dtype=dtype), random(7, 30, dtype=dtype)
    out = np.zeros((10, 30), dtype)
    program(a, b, out)
    np.testing.assert_allclose(out, a @ b, rtol=1e-5, atol=1e-6)


def test_a_convolution() -> None:
    """Indices that add loops, four reduction loops."""
    program = build("""
      func.func @f(%a: memref<2x10x9x3xf32>, %b: memref<3x2x3x5xf32>,
                   %c: memref<2x8x8x5xf32>) {
        linalg.conv_2d_nhwc_hwcf
          ins(%a, %b : memref<2x10x9x3xf32>, memref<3x2x3x5xf32>)
          outs(%c : memref<2x8x8x5xf32>)
        return
      }""")
    a, b = random(2, 10, 9, 3, dtype=np.float32), random(3, 2, 3, 5, dtype=np.float32)
    before = random(2, 8, 8, 5, dtype=np.float32)
    out = before.copy()
    program(a, b, out)
    expected = wide(before)
    for i in range(3):
        for j in range(2):
            expected += np.einsum(
                "nhwc,cf->nhwf", wide(a)[:, i : i + 8, j : j + 8], b[i, j]
            )
    np.testing.assert_allclose(out, expected, atol=1e-4)


def test_a_contraction_of_two_loops() -> None:
    """Two reduction loops that are no batch: no tensor cores, the right numbers."""
    program = build("""
      func.func @f(%a: memref<6x5x4x3xf16>, %b: memref<5x4x3x7xf16>,
                   %c: memref<6x7xf32>) {
        linalg.contract indexing_maps = [
            affine_map<(m, n, j, k, l) -> (m, j, k, l)>,
            affine_map<(m, n, j, k, l) -> (j, k, l, n)>,
            affine_map<(m, n, j, k, l) -> (m, n)>]
          ins(%a, %b : memref<6x5x4x3xf16>, memref<5x4x3x7xf16>)
          outs(%c : memref<6x7xf32>)
        return
      }""")
    a, b = random(6, 5, 4, 3), random(5, 4, 3, 7)
    out = np.ones((6, 7), np.float32)
    program(a, b, out)
    np.testing.assert_allclose(
        out, 1 + np.einsum("mjkl,jkln->mn", wide(a), wide(b)), atol=1e-4
    )


SOFTMAX = """
  #ij = affine_map<(i, j) -> (i, j)>
  #i = affine_map<(i, j) -> (i)>
  func.func @softmax(%x: tensor<{rows}x50xf32>) -> tensor<{rows}x50xf32> {{
    %zero = arith.constant 0.0 : f32
    %low = arith.constant 0xFF800000 : f32
    {dim}
    %v = tensor.empty({sizes}) : tensor<{rows}xf32>
    %m = tensor.empty({sizes}) : tensor<{rows}x50xf32>
    %v0 = linalg.fill ins(%low : f32) outs(%v : tensor<{rows}xf32>)
      -> tensor<{rows}xf32>
    %max = linalg.reduce {{ arith.maximumf }} ins(%x : tensor<{rows}x50xf32>)
      outs(%v0 : tensor<{rows}xf32>) dimensions = [1]
    %exp = linalg.generic {{
      indexing_maps = [#ij, #i, #ij], iterator_types = ["parallel", "parallel"]
    }} ins(%x, %max : tensor<{rows}x50xf32>, tensor<{rows}xf32>)
       outs(%m : tensor<{rows}x50xf32>) {{
    ^bb0(%a: f32, %b: f32, %c: f32):
      %0 = arith.subf %a, %b : f32
      %1 = math.exp %0 : f32
      linalg.yield %1 : f32
    }} -> tensor<{rows}x50xf32>
    %v1 = linalg.fill ins(%zero : f32) outs(%v : tensor<{rows}xf32>)
      -> tensor<{rows}xf32>
    %sum = linalg.reduce {{ arith.addf }} ins(%exp : tensor<{rows}x50xf32>)
      outs(%v1 : tensor<{rows}xf32>) dimensions = [1]
    %y = linalg.generic {{
      indexing_maps = [#ij, #i, #ij], iterator_types = ["parallel", "parallel"]
    }} ins(%exp, %sum : tensor<{rows}x50xf32>, tensor<{rows}xf32>)
       outs(%m : tensor<{rows}x50xf32>) {{
    ^bb0(%a: f32, %b: f32, %c: f32):
      %0 = arith.divf %a, %b : f32
      linalg.yield %0 : f32
    }} -> tensor<{rows}x50xf32>
    return %y : tensor<{rows}x50xf32>
  }}"""


def softmax(x: Array) -> Array:
    exp = np.exp(wide(x) - wide(x).max(axis=1, keepdims=True, initial=-np.inf))
    return exp / exp.sum(axis=1, keepdims=True)


def test_reductions_and_elements_without_any_matmul() -> None:
    """Four kernels; buffers that are not live together share bytes."""
    program = build(SOFTMAX.format(rows=37, dim="", sizes=""))
    x = random(37, 50, dtype=np.float32)
    out = np.full((37, 50), np.nan, np.float32)
    program(x, out)
    np.testing.assert_allclose(out, softmax(x), rtol=1e-5)


@pytest.mark.parametrize("rows", [1, 5, 600, 0])
def test_sizes_known_at_run_time(rows: int) -> None:
    """The arrays of the call determine intermediate buffers and grids."""
    dim = "%c0 = arith.constant 0 : index %n = tensor.dim %x, %c0 : tensor<?x50xf32>"
    program = build(SOFTMAX.format(rows="?", dim=dim, sizes="%n"))
    sizes = {size for one in program.function.intermediates for size in one.shape}
    assert sizes <= {"arg0_0", 50}
    x = random(rows, 50, dtype=np.float32)
    out = np.full((rows, 50), np.nan, np.float32)
    program(x, out)
    np.testing.assert_allclose(out, softmax(x), rtol=1e-5)


def test_a_matmul_of_run_time_size_writes_an_intermediate_buffer() -> None:
    """The tensor-core kernel writes the buffer that the reduction reads."""
    program = build("""
      func.func @f(%a: memref<?x64xf16> {alcop.row_alignment = 16 : i64},
                   %b: memref<64x40xf16>, %s: memref<40xf32>) {
        %c0 = arith.constant 0 : index
        %z = arith.constant 0.0 : f32
        %m = memref.dim %a, %c0 : memref<?x64xf16>
        %c = memref.alloc(%m) : memref<?x40xf32>
        linalg.fill ins(%z : f32) outs(%c : memref<?x40xf32>)
        linalg.matmul ins(%a, %b : memref<?x64xf16>, memref<64x40xf16>)
          outs(%c : memref<?x40xf32>)
        linalg.fill ins(%z : f32) outs(%s : memref<40xf32>)
        linalg.reduce { arith.addf } ins(%c : memref<?x40xf32>)
          outs(%s : memref<40xf32>) dimensions = [0]
        return
      }""")
    assert [one.shape for one in program.function.intermediates] == [("M", 40)]
    for rows in (70, 1, 0):
        a, b = random(rows, 64), random(64, 40)
        out = np.full(40, np.nan, np.float32)
        program(a, b, out)
        np.testing.assert_allclose(out, (wide(a) @ wide(b)).sum(axis=0), atol=1e-3)


def test_promised_rows_are_promised_of_intermediate_buffers() -> None:
    """The second matmul reads rows as long as an argument's: it is pipelined."""
    promise = "{alcop.row_alignment = 16 : i64}"
    program = build(f"""
      func.func @f(%x: memref<?x?xf16> {promise}, %w: memref<?x?xf16> {promise},
                   %v: memref<?x?xf16> {promise}, %r: memref<?x?xf32>) {{
        %c0 = arith.constant 0 : index
        %c1 = arith.constant 1 : index
        %z = arith.constant 0.0 : f16
        %m = memref.dim %x, %c0 : memref<?x?xf16>
        %n = memref.dim %w, %c1 : memref<?x?xf16>
        %h = memref.alloc(%m, %n) : memref<?x?xf16>
        linalg.fill ins(%z : f16) outs(%h : memref<?x?xf16>)
        linalg.matmul ins(%x, %w : memref<?x?xf16>, memref<?x?xf16>)
          outs(%h : memref<?x?xf16>)
        linalg.matmul ins(%h, %v : memref<?x?xf16>, memref<?x?xf16>)
          outs(%r : memref<?x?xf32>)
        return
      }}""")
    (_, second) = program.function.kernels
    assert {p.buffer for p in second.pipelines if p.level == "shared"} == {
        "tmp0 32x32xf16",
        "arg2 32x32xf16",
    }
    x, w, v = random(37, 40), random(40, 72), random(72, 24)
    out = np.ones((37, 24), np.float32)
    program(x, w, v, out)
    middle = (wide(x) @ wide(w)).astype(np.float16)
    np.testing.assert_allclose(out, 1 + wide(middle) @ wide(v), atol=5e-2)


def test_sizes_that_contradict_each_other() -> None:
    """A window must not exceed the array; equal sizes have one name."""
    program = build("""
      func.func @f(%a: memref<?x6xf32>, %w: memref<3x6xf32>, %c: memref<?x6xf32>) {
        linalg.generic {
          indexing_maps = [affine_map<(i, c, k) -> (i * 2 + k, c)>,
                           affine_map<(i, c, k) -> (k, c)>,
                           affine_map<(i, c, k) -> (i, c)>],
          iterator_types = ["parallel", "parallel", "reduction"]
        } ins(%a, %w : memref<?x6xf32>, memref<3x6xf32>) outs(%c : memref<?x6xf32>) {
        ^bb0(%x: f32, %y: f32, %z: f32):
          %0 = arith.mulf %x, %y : f32
          %1 = arith.addf %z, %0 : f32
          linalg.yield %1 : f32
        }
        return
      }""")
    a, w = random(23, 6, dtype=np.float32), random(3, 6, dtype=np.float32)
    out = np.zeros((11, 6), np.float32)
    program(a, w, out)
    expected = sum(wide(a)[k : k + 21 : 2] * w[k] for k in range(3))
    np.testing.assert_allclose(out, expected, atol=1e-5)
    with pytest.raises(
        LaunchError,
        match=r"arg0_0 is 22, expected at least 2 \* arg2_0 \+ 1, which is 23",
    ):
        program(a[1:].copy(), w, out)


def test_in_place() -> None:
    """An array that is read and written is passed once."""
    program = build("""
      func.func @f(%a: memref<9x5xf32>) {
        linalg.exp ins(%a : memref<9x5xf32>) outs(%a : memref<9x5xf32>)
        linalg.add ins(%a, %a : memref<9x5xf32>, memref<9x5xf32>)
          outs(%a : memref<9x5xf32>)
        return
      }""")
    assert [p.role for p in program.function.parameters] == ["inout"]
    a = random(9, 5, dtype=np.float32)
    out = a.copy()
    program(out)
    np.testing.assert_allclose(out, 2 * np.exp(wide(a)), rtol=1e-6)


def test_masks_are_intermediate_buffers() -> None:
    """Intermediate buffers may have types that arguments cannot have."""
    program = build("""
      #v = affine_map<(i) -> (i)>
      #turned = affine_map<(i) -> (299 - i)>
      func.func @f(%a: tensor<300xf32>, %b: tensor<300xf32>) -> tensor<300xf32> {
        %zero = arith.constant 0.0 : f32
        %e = tensor.empty() : tensor<300xi1>
        %r = tensor.empty() : tensor<300xi1>
        %o = tensor.empty() : tensor<300xf32>
        %positive = linalg.generic {
          indexing_maps = [#v, #v], iterator_types = ["parallel"]
        } ins(%a : tensor<300xf32>) outs(%e : tensor<300xi1>) {
        ^bb0(%x: f32, %y: i1):
          %0 = arith.cmpf ogt, %x, %zero : f32
          linalg.yield %0 : i1
        } -> tensor<300xi1>
        %turned = linalg.generic {
          indexing_maps = [#turned, #v], iterator_types = ["parallel"]
        } ins(%positive : tensor<300xi1>) outs(%r : tensor<300xi1>) {
        ^bb0(%x: i1, %y: i1):
          linalg.yield %x : i1
        } -> tensor<300xi1>
        %chosen = linalg.generic {
          indexing_maps = [#v, #v, #v, #v], iterator_types = ["parallel"]
        } ins(%turned, %a, %b : tensor<300xi1>, tensor<300xf32>, tensor<300xf32>)
          outs(%o : tensor<300xf32>) {
        ^bb0(%p: i1, %x: f32, %y: f32, %z: f32):
          %0 = arith.select %p, %x, %y : f32
          linalg.yield %0 : f32
        } -> tensor<300xf32>
        return %chosen : tensor<300xf32>
      }""")
    assert "i1" in {one.dtype for one in program.function.intermediates}
    a, b = random(300, dtype=np.float32), random(300, dtype=np.float32)
    out = np.full(300, np.nan, np.float32)
    program(a, b, out)
    np.testing.assert_array_equal(out, np.where(a[::-1] > 0, a, b))


def test_constant_arrays() -> None:
    """They come with the kernels; a matmul's accumulators start from one."""
    program = build("""
      #ij = affine_map<(i, j) -> (i, j)>
      #j = affine_map<(i, j) -> (j)>
      func.func @f(%a: tensor<32x16xf16>, %b: tensor<16x4xf16>) -> tensor<32x4xf32> {
        %zeros = arith.constant dense<0.0> : tensor<32x4xf32>
        %scales = arith.constant dense<[1.0, 0.5, -3.0, 8.0]> : tensor<4xf32>
        %e = tensor.empty() : tensor<32x4xf32>
        %p = linalg.matmul ins(%a, %b : tensor<32x16xf16>, tensor<16x4xf16>)
          outs(%zeros : tensor<32x4xf32>) -> tensor<32x4xf32>
        %r = linalg.generic {
          indexing_maps = [#ij, #j, #ij], iterator_types = ["parallel", "parallel"]
        } ins(%p, %scales : tensor<32x4xf32>, tensor<4xf32>)
          outs(%e : tensor<32x4xf32>) {
        ^bb0(%x: f32, %s: f32, %y: f32):
          %0 = arith.mulf %x, %s : f32
          linalg.yield %0 : f32
        } -> tensor<32x4xf32>
        return %r : tensor<32x4xf32>
      }""")
    assert kernels(program)[0].startswith("f")
    a, b = random(32, 16), random(16, 4)
    out = np.full((32, 4), np.nan, np.float32)
    program(a, b, out)
    scales = np.array([1.0, 0.5, -3.0, 8.0])
    np.testing.assert_allclose(out, wide(a) @ wide(b) * scales, atol=1e-4)


@pytest.mark.parametrize(
    ("op", "kind", "start", "expected"),
    [
        ("addf", "f32", "1.5", lambda x: 1.5 + x.sum(axis=(0, 2))),
        ("maximumf", "f32", "0.5", lambda x: np.maximum(0.5, x.max(axis=(0, 2)))),
        ("minimumf", "f32", "0.5", lambda x: np.minimum(0.5, x.min(axis=(0, 2)))),
        ("addi", "i32", "7", lambda x: 7 + x.sum(axis=(0, 2))),
        ("maxsi", "i32", "-3", lambda x: np.maximum(-3, x.max(axis=(0, 2)))),
        ("minsi", "i32", "4", lambda x: np.minimum(4, x.min(axis=(0, 2)))),
    ],
)
@pytest.mark.parametrize("columns", [32, 45, 200])
def test_warp_reductions(
    op: str, kind: str, start: str, expected: Any, columns: int
) -> None:
    """Any number of terms, none for some lanes, over two loops."""
    program = build(f"""
      func.func @f(%a: tensor<3x9x{columns}x{kind}>) -> tensor<9x{kind}> {{
        %s = arith.constant {start} : {kind}
        %e = tensor.empty() : tensor<9x{kind}>
        %f = linalg.fill ins(%s : {kind}) outs(%e : tensor<9x{kind}>)
          -> tensor<9x{kind}>
        %r = linalg.reduce {{ arith.{op} }} ins(%a : tensor<3x9x{columns}x{kind}>)
          outs(%f : tensor<9x{kind}>) dimensions = [0, 2]
        return %r : tensor<9x{kind}>
      }}""")
    dtype = np.float32 if kind == "f32" else np.int32
    a, out = random(3, 9, columns, dtype=dtype), np.zeros(9, dtype)
    assert "shfl.sync.bfly" in program.ptx
    program(a, out)
    np.testing.assert_allclose(out, expected(wide(a)), atol=1e-4)


def test_a_number_that_is_read_from_an_array() -> None:
    """Each kernel that uses the number loads it."""
    program = build("""
      func.func @f(%a: tensor<9x5xf32>, %s: tensor<3xf32>) -> tensor<9x5xf32> {
        %c1 = arith.constant 1 : index
        %x = tensor.extract %s[%c1] : tensor<3xf32>
        %e = tensor.empty() : tensor<9x5xf32>
        %f = linalg.fill ins(%x : f32) outs(%e : tensor<9x5xf32>) -> tensor<9x5xf32>
        %r = linalg.mul ins(%a, %f : tensor<9x5xf32>, tensor<9x5xf32>)
          outs(%e : tensor<9x5xf32>) -> tensor<9x5xf32>
        return %r : tensor<9x5xf32>
      }""")
    a, s = random(9, 5, dtype=np.float32), random(3, dtype=np.float32)
    out = np.full((9, 5), np.nan, np.float32)
    program(a, s, out)
    np.testing.assert_allclose(out, wide(a) * s[1], rtol=1e-6)


def test_a_result_that_is_returned_twice() -> None:
    """Each result is an array of its own."""
    program = build("""
      func.func @f(%a: tensor<5x8xf32>) -> (tensor<5x8xf32>, tensor<5x8xf32>) {
        %e = tensor.empty() : tensor<5x8xf32>
        %r = linalg.exp ins(%a : tensor<5x8xf32>) outs(%e : tensor<5x8xf32>)
          -> tensor<5x8xf32>
        return %r, %r : tensor<5x8xf32>, tensor<5x8xf32>
      }""")
    assert kernels(program) == ["f_exp", "f_copy"]
    a = random(5, 8, dtype=np.float32)
    one, other = np.zeros_like(a), np.zeros_like(a)
    program(a, one, other)
    np.testing.assert_allclose(one, np.exp(wide(a)), rtol=1e-6)
    np.testing.assert_array_equal(one, other)


@pytest.mark.parametrize(
    ("body", "message"),
    [
        (
            "linalg.softmax dimension(1) ins(%a : memref<4x8xf32>) "
            "outs(%b : memref<4x8xf32>)",
            "'linalg.softmax' was not compiled to a kernel: is not a loop nest",
        ),
        (
            "%c0 = arith.constant 0 : index "
            "%x = memref.load %a[%c0, %c0] : memref<4x8xf32> "
            "memref.store %x, %b[%c0, %c0] : memref<4x8xf32>",
            "'memref.load' was not compiled to a kernel",
        ),
    ],
)
def test_what_is_no_kernel_is_an_error(body: str, message: str) -> None:
    """It is diagnosed at the op, with the reason where a pass has one."""
    text = f"func.func @f(%a: memref<4x8xf32>, %b: memref<4x8xf32>) {{ {body} return }}"
    with pytest.raises(CompileError) as raised:
        build(text)
    assert message in str(raised.value)


def test_arguments_of_other_types_are_refused() -> None:
    """A caller's arrays must have a known NumPy dtype."""
    text = """
      func.func @f(%a: memref<4xi4>) {
        linalg.add ins(%a, %a : memref<4xi4>, memref<4xi4>) outs(%a : memref<4xi4>)
        return
      }"""
    with pytest.raises(
        CompileError,
        match=r"'linalg\.add' was not compiled.* has i4 elements",
    ):
        build(text)
