// RUN: alcop-opt %s --alcop-tile-to-blocks --split-input-file --verify-diagnostics

func.func @no_init_copy(%A: memref<64x64xf16>, %B: memref<64x64xf16>, %C: memref<64x64xf32>) {
  // expected-error @+1 {{init is 'copy', but no copy into the output is marked as init}}
  linalg.matmul {
    alcop.contraction = #alcop.contraction<{lhs = "mk", rhs = "kn", init = "copy"}>,
    alcop.schedule = #alcop.schedule<{block = [64, 64, 32], warp = [32, 32], stages = [3, 2]}>
  } ins(%A, %B : memref<64x64xf16>, memref<64x64xf16>) outs(%C : memref<64x64xf32>)
  return
}
