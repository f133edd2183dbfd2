// RUN: alcop-opt %s --alcop-fuse-elementwise=assume-noalias-args=true --mlir-print-local-scope --split-input-file | FileCheck %s

// A chain of two ops, over an intermediate buffer: both are fused, in order. The buffer
// of the second is allocated before the contraction.
// CHECK-LABEL: @chain
// CHECK-DAG:   %[[C:.*]] = memref.alloc() : memref<64x32xf32>
// CHECK-DAG:   %[[D:.*]] = memref.alloc() : memref<64x32xf32>
// CHECK:       linalg.matmul
// CHECK-NEXT:  linalg.generic {{.*}} ins(%[[C]], %{{.*}} : memref<64x32xf32>, memref<32xf32>) outs(%[[D]] : memref<64x32xf32>) attrs = {alcop.contraction = #alcop.contraction<{role = "epilogue"}>}
// CHECK:       linalg.generic {{.*}} ins(%[[D]] {{.*}} attrs = {alcop.contraction = #alcop.contraction<{role = "epilogue"}>}
// CHECK:       memref.copy
#mn = affine_map<(m, n) -> (m, n)>
#n = affine_map<(m, n) -> (n)>
func.func @chain(%A: memref<64x32xf16>, %B: memref<32x32xf16>, %bias: memref<32xf32>, %E: memref<64x32xf16>, %X: memref<4xf32>, %Y: memref<4xf32>) {
  %C = memref.alloc() : memref<64x32xf32>
  linalg.matmul {alcop.contraction = #alcop.contraction<{lhs = "mk", rhs = "kn", init = "read"}>} ins(%A, %B : memref<64x32xf16>, memref<32x32xf16>) outs(%C : memref<64x32xf32>)
  memref.copy %X, %Y : memref<4xf32> to memref<4xf32>
  %D = memref.alloc() : memref<64x32xf32>
  linalg.generic {indexing_maps = [#mn, #n, #mn], iterator_types = ["parallel", "parallel"]} ins(%C, %bias : memref<64x32xf32>, memref<32xf32>) outs(%D : memref<64x32xf32>) {
  ^bb0(%x: f32, %b: f32, %o: f32):
    %s = arith.addf %x, %b : f32
    linalg.yield %s : f32
  }
  linalg.generic {indexing_maps = [#mn, #mn], iterator_types = ["parallel", "parallel"]} ins(%D : memref<64x32xf32>) outs(%E : memref<64x32xf16>) {
  ^bb0(%x: f32, %o: f16):
    %h = arith.truncf %x : f32 to f16
    linalg.yield %h : f16
  }
  return
}

// -----

// Named ops, in place, the residual's buffer overwritten at the same element.
// CHECK-LABEL: @named
// CHECK:       linalg.matmul
// CHECK-NEXT:  linalg.exp {alcop.contraction = #alcop.contraction<{role = "epilogue"}>} ins(%[[C:.*]] : memref<64x32xf32>) outs(%[[C]] :
// CHECK-NEXT:  linalg.add {alcop.contraction = #alcop.contraction<{role = "epilogue"}>} ins(%[[C]], %[[R:.*]] : memref<64x32xf32>, memref<64x32xf32>) outs(%[[R]] :
// CHECK-NEXT:  return
func.func @named(%A: memref<64x32xf16>, %B: memref<32x32xf16>, %C: memref<64x32xf32>, %R: memref<64x32xf32>) {
  linalg.matmul {alcop.contraction = #alcop.contraction<{lhs = "mk", rhs = "kn", init = "zero"}>} ins(%A, %B : memref<64x32xf16>, memref<32x32xf16>) outs(%C : memref<64x32xf32>)
  linalg.exp ins(%C : memref<64x32xf32>) outs(%C : memref<64x32xf32>)
  linalg.add ins(%C, %R : memref<64x32xf32>, memref<64x32xf32>) outs(%R : memref<64x32xf32>)
  return
}

// -----

// An op that reads two contractions runs after the second; no remark that it could not
// behind the first.
// CHECK-LABEL: @two_contractions
// CHECK:       linalg.matmul
// CHECK-NEXT:  linalg.matmul
// CHECK-NEXT:  linalg.mul {alcop.contraction
func.func @two_contractions(%A: memref<64x32xf16>, %B: memref<32x32xf16>, %G: memref<32x32xf16>, %D: memref<64x32xf32>) {
  %C = memref.alloc() : memref<64x32xf32>
  %H = memref.alloc() : memref<64x32xf32>
  linalg.matmul {alcop.contraction = #alcop.contraction<{lhs = "mk", rhs = "kn", init = "zero"}>} ins(%A, %B : memref<64x32xf16>, memref<32x32xf16>) outs(%C : memref<64x32xf32>)
  linalg.matmul {alcop.contraction = #alcop.contraction<{lhs = "mk", rhs = "kn", init = "zero"}>} ins(%A, %G : memref<64x32xf16>, memref<32x32xf16>) outs(%H : memref<64x32xf32>)
  linalg.mul ins(%C, %H : memref<64x32xf32>, memref<64x32xf32>) outs(%D : memref<64x32xf32>)
  return
}

// -----

// What does not read the output is not looked at.
// CHECK-LABEL: @unrelated
// CHECK-NOT:   role
func.func @unrelated(%A: memref<64x32xf16>, %B: memref<32x32xf16>, %C: memref<64x32xf32>, %R: memref<64x32xf32>) {
  linalg.matmul {alcop.contraction = #alcop.contraction<{lhs = "mk", rhs = "kn", init = "zero"}>} ins(%A, %B : memref<64x32xf16>, memref<32x32xf16>) outs(%C : memref<64x32xf32>)
  linalg.exp ins(%R : memref<64x32xf32>) outs(%R : memref<64x32xf32>)
  return
}

// -----

// Nor an op without a body.
// CHECK-LABEL: @softmax
// CHECK:       linalg.softmax dimension(1)
func.func @softmax(%A: memref<64x32xf16>, %B: memref<32x32xf16>, %C: memref<64x32xf32>, %R: memref<64x32xf32>) {
  linalg.matmul {alcop.contraction = #alcop.contraction<{lhs = "mk", rhs = "kn", init = "zero"}>} ins(%A, %B : memref<64x32xf16>, memref<32x32xf16>) outs(%C : memref<64x32xf32>)
  linalg.softmax dimension(1) ins(%R : memref<64x32xf32>) outs(%R : memref<64x32xf32>)
  return
}

// -----

// Columns of two contractions in turn: a warp has both that an op reads. What reads the
// output of that is no part of the kernel: it has other columns.
// CHECK-LABEL: func.func @interleaved
// CHECK:       linalg.matmul
// CHECK-NEXT:  linalg.generic
// CHECK:       attrs = {alcop.contraction = #alcop.contraction<{role = "epilogue"}>}
// CHECK:       linalg.exp ins
#mn = affine_map<(m, n) -> (m, n)>
#p0 = affine_map<(m, n) -> (m, n floordiv 16 * 32 + n mod 16)>
#p1 = affine_map<(m, n) -> (m, n floordiv 16 * 32 + n mod 16 + 16)>
func.func @interleaved(%A: memref<64x32xf16>, %B: memref<32x128xf16>, %D: memref<64x64xf32>, %E: memref<64x64xf32>) {
  %C = memref.alloc() : memref<64x128xf32>
  linalg.matmul {alcop.contraction = #alcop.contraction<{lhs = "mk", rhs = "kn", init = "zero"}>, alcop.schedule = #alcop.schedule<{block = [32, 64, 32], warp = [32, 32], stages = [1, 1]}>} ins(%A, %B : memref<64x32xf16>, memref<32x128xf16>) outs(%C : memref<64x128xf32>)
  linalg.generic {indexing_maps = [#p0, #p1, #mn], iterator_types = ["parallel", "parallel"]} ins(%C, %C : memref<64x128xf32>, memref<64x128xf32>) outs(%D : memref<64x64xf32>) {
  ^bb0(%a: f32, %b: f32, %o: f32):
    %t = arith.mulf %a, %b : f32
    linalg.yield %t : f32
  }
  linalg.exp ins(%D : memref<64x64xf32>) outs(%E : memref<64x64xf32>)
  return
}
