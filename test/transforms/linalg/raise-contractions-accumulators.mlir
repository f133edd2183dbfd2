// RUN: alcop-opt %s --alcop-raise-contractions --split-input-file | FileCheck %s

// A vector that is the same in all rows of C is what the sums start from.
// CHECK-LABEL: @broadcast
// CHECK:       linalg.fill
// CHECK-NEXT:  linalg.broadcast {{.*}} {alcop.contraction = #alcop.contraction<{role = "init"}>}
// CHECK-NEXT:  linalg.matmul {alcop.contraction = #alcop.contraction<{init = "copy", lhs = "mk", rhs = "kn"}>}
func.func @broadcast(%A: memref<64x32xf16>, %B: memref<32x64xf16>, %bias: memref<64xf32>, %C: memref<64x64xf32>) {
  %zero = arith.constant 0.0 : f32
  %other = memref.alloc() : memref<4xf32>
  linalg.broadcast ins(%bias : memref<64xf32>) outs(%C : memref<64x64xf32>) dimensions = [0]
  linalg.fill ins(%zero : f32) outs(%other : memref<4xf32>)
  linalg.matmul ins(%A, %B : memref<64x32xf16>, memref<32x64xf16>) outs(%C : memref<64x64xf32>)
  return
}

// -----

// The same as a generic op, extended on the way.
// CHECK-LABEL: @extended
// CHECK:       linalg.generic {{.*}} attrs = {alcop.contraction = #alcop.contraction<{role = "init"}>}
// CHECK:       linalg.matmul {alcop.contraction = #alcop.contraction<{init = "copy"
func.func @extended(%A: memref<64x32xf16>, %B: memref<32x64xf16>, %bias: memref<64xf16>, %C: memref<64x64xf32>) {
  linalg.generic {indexing_maps = [affine_map<(m, n) -> (m)>, affine_map<(m, n) -> (m, n)>], iterator_types = ["parallel", "parallel"]} ins(%bias : memref<64xf16>) outs(%C : memref<64x64xf32>) {
  ^bb0(%x: f16, %o: f32):
    %w = arith.extf %x : f16 to f32
    linalg.yield %w : f32
  }
  linalg.matmul ins(%A, %B : memref<64x32xf16>, memref<32x64xf16>) outs(%C : memref<64x64xf32>)
  return
}

// -----

// Something else is computed: C is read.
// CHECK-LABEL: @computed
// CHECK-NOT:   role
// CHECK:       init = "read"
func.func @computed(%A: memref<64x32xf16>, %B: memref<32x64xf16>, %R: memref<64x64xf32>, %C: memref<64x64xf32>) {
  linalg.exp ins(%R : memref<64x64xf32>) outs(%C : memref<64x64xf32>)
  linalg.matmul ins(%A, %B : memref<64x32xf16>, memref<32x64xf16>) outs(%C : memref<64x64xf32>)
  return
}

// -----

// The vector is overwritten before the contraction would read it.
// CHECK-LABEL: @overwritten
// CHECK-NOT:   role
// CHECK:       init = "read"
func.func @overwritten(%A: memref<64x32xf16>, %B: memref<32x64xf16>, %bias: memref<64xf32>, %C: memref<64x64xf32>) {
  %zero = arith.constant 0.0 : f32
  %own = memref.alloc() : memref<64x64xf32>
  linalg.broadcast ins(%bias : memref<64xf32>) outs(%own : memref<64x64xf32>) dimensions = [0]
  linalg.fill ins(%zero : f32) outs(%bias : memref<64xf32>)
  linalg.matmul ins(%A, %B : memref<64x32xf16>, memref<32x64xf16>) outs(%own : memref<64x64xf32>)
  memref.copy %own, %C : memref<64x64xf32> to memref<64x64xf32>
  return
}
