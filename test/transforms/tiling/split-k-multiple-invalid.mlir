// RUN: alcop-opt %s --alcop-split-k --verify-diagnostics

// What is known of K is not enough.
func.func @known_multiple(%a: memref<64x?xf16>, %b: memref<?x64xf16>, %c: memref<64x64xf32>) {
  // expected-error @+1 {{splits K, but K is 8, expected a multiple of 16: parts of whole 16 bytes}}
  linalg.matmul {alcop.contraction = #alcop.contraction<{init = "read", k_multiple = 8, lhs = "mk", rhs = "kn"}>,
                 alcop.schedule = #alcop.schedule<{block = [64, 64, 32], split_k = 2, stages = [2, 1], warp = [32, 32]}>}
    ins(%a, %b : memref<64x?xf16>, memref<?x64xf16>) outs(%c : memref<64x64xf32>)
  return
}
