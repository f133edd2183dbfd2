// RUN: alcop-opt %s --alcop-split-k --verify-diagnostics

func.func @both(%t: memref<9x64xf16>, %i: memref<32xindex>, %y: memref<32x32xf32>) {
  %A = "alcop.take"(%t, %i) : (memref<9x64xf16>, memref<32xindex>) -> memref<32x64xf16>
  // expected-error @below {{splits K, but A and B are gathered both}}
  linalg.generic {indexing_maps = [affine_map<(m, n, k) -> (m, k)>, affine_map<(m, n, k) -> (n, k)>, affine_map<(m, n, k) -> (m, n)>],
    iterator_types = ["parallel", "parallel", "reduction"],
    alcop.contraction = #alcop.contraction<{init = "zero", lhs = "mk", rhs = "nk"}>,
    alcop.schedule = #alcop.schedule<{block = [32, 32, 32], warp = [32, 32], stages = [2, 1], split_k = 2}>}
    ins(%A, %A : memref<32x64xf16>, memref<32x64xf16>) outs(%y : memref<32x32xf32>) {
  ^bb0(%a: f16, %b: f16, %c: f32):
    %p = arith.extf %a : f16 to f32
    %q = arith.extf %b : f16 to f32
    %r = arith.mulf %p, %q : f32
    %s = arith.addf %c, %r : f32
    linalg.yield %s : f32
  }
  return
}
