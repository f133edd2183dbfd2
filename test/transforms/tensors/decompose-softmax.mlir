// RUN: alcop-opt %s --alcop-decompose-softmax --split-input-file | FileCheck %s

// Of rows: their maximum, exponentials of what is below it, their total, and the parts.
// CHECK-LABEL: @rows(
// CHECK-SAME:  %[[X:[^:]*]]: tensor<8x32xf32>
// CHECK:       %[[M:.*]] = linalg.generic {{.*}} ins(%[[X]] : tensor<8x32xf32>) outs({{.*}} : tensor<8xf32>)
// CHECK:         arith.maxnumf
// CHECK:       %[[P:.*]] = linalg.generic {{.*}} ins(%[[X]], %[[M]] :
// CHECK:         arith.subf
// CHECK:         math.exp
// CHECK:       %[[S:.*]] = linalg.generic {{.*}} ins(%[[P]] :
// CHECK:         arith.addf
// CHECK:       %[[R:.*]] = linalg.generic {{.*}} ins(%[[P]], %[[S]] :
// CHECK:         arith.divf
// CHECK:       return %[[R]]
func.func @rows(%x: tensor<8x32xf32>, %e: tensor<8x32xf32>) -> tensor<8x32xf32> {
  %r = linalg.softmax dimension(1) ins(%x : tensor<8x32xf32>) outs(%e : tensor<8x32xf32>)
    -> tensor<8x32xf32>
  return %r : tensor<8x32xf32>
}

// -----

// Upstream decomposes those on tensors only.
// CHECK-LABEL: @memrefs(
// CHECK:       linalg.softmax
func.func @memrefs(%x: memref<8x32xf32>, %y: memref<8x32xf32>) {
  linalg.softmax dimension(1) ins(%x : memref<8x32xf32>) outs(%y : memref<8x32xf32>)
  return
}
