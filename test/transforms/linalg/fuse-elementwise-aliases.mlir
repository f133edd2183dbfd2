// RUN: alcop-opt %s --alcop-fuse-elementwise --verify-diagnostics
// RUN: alcop-opt %s --alcop-fuse-elementwise=assume-noalias-args=true | FileCheck %s

// D may be A, of which other blocks still read rows: unless arguments do not overlap.
// CHECK: linalg.exp {alcop.contraction = #alcop.contraction<{role = "epilogue"}>}
func.func @arguments(%A: memref<64x64xf16>, %B: memref<64x64xf16>, %D: memref<64x64xf16>) {
  %C = memref.alloc() : memref<64x64xf16>
  linalg.matmul {alcop.contraction = #alcop.contraction<{lhs = "mk", rhs = "kn", init = "zero"}>} ins(%A, %B : memref<64x64xf16>, memref<64x64xf16>) outs(%C : memref<64x64xf16>)
  // expected-remark @+1 {{'linalg.exp' is not fused into the contraction: writes memory that the contraction's kernel may use elsewhere (memref<64x64xf16> and memref<64x64xf16> may overlap)}}
  linalg.exp ins(%C : memref<64x64xf16>) outs(%D : memref<64x64xf16>)
  return
}
