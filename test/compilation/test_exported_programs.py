"""Forms in which torch-mlir exports a network's layers, on the emulator."""

from __future__ import annotations

import numpy as np

import alcop_mlir
from alcop_mlir.runtime import checking
from alcop_mlir.runtime.launch import Program

MAPS = """
  #both = affine_map<(i, j) -> (i, j)>
  #kept = affine_map<(i, j) -> (i, 0)>
  #row = affine_map<(i, j) -> (i)>
  #column = affine_map<(i, j) -> (j)>
"""
PARALLEL = 'iterator_types = ["parallel", "parallel"]'
ROWS = 'iterator_types = ["parallel", "reduction"]'
SOFTMAX = f"""
  {MAPS}
  func.func @softmax(%x: tensor<24x40xf16>) -> tensor<24x40xf16> {{
    %least = arith.constant 0xFF800000 : f32
    %zero = arith.constant 0.0 : f32
    %none = arith.constant 0 : i64
    %d = tensor.empty() : tensor<24x40xf32>
    %w = linalg.generic {{indexing_maps = [#both, #both], {PARALLEL}}}
      ins(%x : tensor<24x40xf16>) outs(%d : tensor<24x40xf32>) {{
    ^bb0(%a: f16, %o: f32):
      %r = arith.extf %a : f16 to f32
      linalg.yield %r : f32
    }} -> tensor<24x40xf32>
    %e = tensor.empty() : tensor<24xf32>
    %n = tensor.empty() : tensor<24xi64>
    %fe = linalg.fill ins(%least : f32) outs(%e : tensor<24xf32>) -> tensor<24xf32>
    %fn = linalg.fill ins(%none : i64) outs(%n : tensor<24xi64>) -> tensor<24xi64>
    %m:2 = linalg.generic {{indexing_maps = [#both, #row, #row], {ROWS}}}
      ins(%w : tensor<24x40xf32>) outs(%fe, %fn : tensor<24xf32>, tensor<24xi64>) {{
    ^bb0(%a: f32, %o: f32, %p: i64):
      %j = linalg.index 1 : index
      %i = arith.index_cast %j : index to i64
      %r = arith.maximumf %a, %o : f32
      %g = arith.cmpf ogt, %a, %o : f32
      %s = arith.select %g, %i, %p : i64
      linalg.yield %r, %s : f32, i64
    }} -> (tensor<24xf32>, tensor<24xi64>)
    %k = tensor.expand_shape %m#0 [[0, 1]] output_shape [24, 1]
      : tensor<24xf32> into tensor<24x1xf32>
    %q = linalg.generic {{indexing_maps = [#both, #kept, #both], {PARALLEL}}}
      ins(%w, %k : tensor<24x40xf32>, tensor<24x1xf32>) outs(%d : tensor<24x40xf32>) {{
    ^bb0(%a: f32, %b: f32, %o: f32):
      %c = arith.subf %a, %b : f32
      %r = math.exp %c : f32
      linalg.yield %r : f32
    }} -> tensor<24x40xf32>
    %h = tensor.empty() : tensor<24x1xf32>
    %fh = linalg.fill ins(%zero : f32) outs(%h : tensor<24x1xf32>) -> tensor<24x1xf32>
    %t = linalg.generic {{indexing_maps = [#both, #kept], {ROWS}}}
      ins(%q : tensor<24x40xf32>) outs(%fh : tensor<24x1xf32>) {{
    ^bb0(%a: f32, %o: f32):
      %r = arith.addf %a, %o : f32
      linalg.yield %r : f32
    }} -> tensor<24x1xf32>
    %z = tensor.empty() : tensor<24x40xf16>
    %y = linalg.generic {{indexing_maps = [#both, #kept, #both], {PARALLEL}}}
      ins(%q, %t : tensor<24x40xf32>, tensor<24x1xf32>) outs(%z : tensor<24x40xf16>) {{
    ^bb0(%a: f32, %b: f32, %o: f16):
      %c = arith.divf %a, %b : f32
      %r = arith.truncf %c : f32 to f16
      linalg.yield %r : f16
    }} -> tensor<24x40xf16>
    return %y : tensor<24x40xf16>
  }}"""
# The mean of squares in f64.
STATISTICS = f"""
  {MAPS}
  #one = affine_map<(i) -> (i)>
  func.func @statistics(%x: tensor<24x40xf32>) -> tensor<24xf32> {{
    %zero = arith.constant 0.0 : f64
    %n = arith.constant 40.0 : f64
    %e = tensor.empty() : tensor<24xf64>
    %d = tensor.empty() : tensor<24xf32>
    %f = linalg.fill ins(%zero : f64) outs(%e : tensor<24xf64>) -> tensor<24xf64>
    %s = linalg.generic {{indexing_maps = [#both, #row], {ROWS}}}
      ins(%x : tensor<24x40xf32>) outs(%f : tensor<24xf64>) {{
    ^bb0(%a: f32, %o: f64):
      %w = arith.extf %a : f32 to f64
      %p = arith.mulf %w, %w : f64
      %r = arith.addf %p, %o : f64
      linalg.yield %r : f64
    }} -> tensor<24xf64>
    %y = linalg.generic {{indexing_maps = [#one, #one], iterator_types = ["parallel"]}}
      ins(%s : tensor<24xf64>) outs(%d : tensor<24xf32>) {{
    ^bb0(%a: f64, %o: f32):
      %c = arith.divf %a, %n : f64
      %r = arith.truncf %c : f64 to f32
      linalg.yield %r : f32
    }} -> tensor<24xf32>
    return %y : tensor<24xf32>
  }}"""


def linear() -> str:
    """A contraction of f16 with a bias, which is computed in f32."""
    wide = [
        f"""%w{name} = linalg.generic {{indexing_maps = [{maps}, {maps}],
          iterator_types = [{", ".join(['"parallel"'] * kind.count("x"))}]}}
          ins(%{name} : tensor<{kind}f16>) outs(%e{name} : tensor<{kind}f32>) {{
        ^bb0(%a: f16, %o: f32):
          %r = arith.extf %a : f16 to f32
          linalg.yield %r : f32
        }} -> tensor<{kind}f32>"""
        for name, kind, maps in (
            ("x", "32x64x", "#both"),
            ("t", "64x48x", "#both"),
            ("b", "48x", "#one"),
        )
    ]
    return f"""
      {MAPS}
      #one = affine_map<(i) -> (i)>
      func.func @linear(%x: tensor<32x64xf16>, %v: tensor<48x64xf16>,
                        %b: tensor<48xf16>) -> tensor<32x48xf16> {{
        %zero = arith.constant 0.0 : f32
        %ex = tensor.empty() : tensor<32x64xf32>
        %et = tensor.empty() : tensor<64x48xf32>
        %eb = tensor.empty() : tensor<48xf32>
        %ev = tensor.empty() : tensor<64x48xf16>
        %t = linalg.transpose ins(%v : tensor<48x64xf16>)
          outs(%ev : tensor<64x48xf16>) permutation = [1, 0]
        {" ".join(wide)}
        %d = tensor.empty() : tensor<32x48xf32>
        %f = linalg.fill ins(%zero : f32) outs(%d : tensor<32x48xf32>)
          -> tensor<32x48xf32>
        %m = linalg.matmul ins(%wx, %wt : tensor<32x64xf32>, tensor<64x48xf32>)
          outs(%f : tensor<32x48xf32>) -> tensor<32x48xf32>
        %z = tensor.empty() : tensor<32x48xf16>
        %y = linalg.generic {{indexing_maps = [#both, #column, #both], {PARALLEL}}}
          ins(%m, %wb : tensor<32x48xf32>, tensor<48xf32>)
          outs(%z : tensor<32x48xf16>) {{
        ^bb0(%a: f32, %c: f32, %o: f16):
          %s = arith.addf %a, %c : f32
          %r = arith.truncf %s : f32 to f16
          linalg.yield %r : f16
        }} -> tensor<32x48xf16>
        return %y : tensor<32x48xf16>
      }}"""


def checked(program: Program) -> dict[str, np.ndarray]:
    """The arrays before and after, which are right by the reference."""
    before = checking.random_arrays(program.function)
    after = {name: array.copy() for name, array in before.items()}
    program(*after.values())
    assert checking.check(program.function, before, after).ok
    return after


def test_a_softmax_that_keeps_its_dimensions() -> None:
    """The index of the maximum is not computed."""
    program = alcop_mlir.compile(SOFTMAX, device="emulator")
    assert [kernel.name for kernel in program.function.kernels] == ["softmax"]
    after = checked(program)
    x = after["arg0"].astype(np.float64)
    finite = np.isfinite(x).all(axis=1)
    powers = np.exp(x[finite] - x[finite].max(axis=1, keepdims=True))
    expected = powers / powers.sum(axis=1, keepdims=True)
    np.testing.assert_allclose(after["result"][finite], expected, atol=1e-3)


def test_statistics_of_f64() -> None:
    """Computed in f32, and not expected to be better than that."""
    program = alcop_mlir.compile(STATISTICS, device="emulator")
    checked(program)
    before = checking.random_arrays(program.function, values="plain")
    result = checking.evaluate(program.function, before)["result"]
    relative = result.error / result.values
    assert (relative > 40 * 2.0**-25).all()
    assert (relative < 100 * 2.0**-24).all()
    doubled = STATISTICS.replace("40.0 : f64", "1.0e300 : f64")  # no number of f32
    for text, has in ((STATISTICS, False), (doubled, True)):
        code = alcop_mlir.compile(text, device="emulator").bundle.code.values()
        assert any(".f64" in one.ptx for one in code) == has


def test_linear_of_f16_runs_on_tensor_cores() -> None:
    """One kernel, whose copies are pipelined."""
    program = alcop_mlir.compile(linear(), device="emulator")
    (kernel,) = program.function.kernels
    assert kernel.schedule is not None
    assert {one.level for one in kernel.pipelines} == {"shared", "register"}
    checked(program)
