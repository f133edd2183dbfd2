// RUN: alcop-opt %s --alcop-fold-transposes --split-input-file | FileCheck %s

// Both inputs; the second through two transposes, which cancel.
// CHECK-DAG:   #[[KM:.*]] = affine_map<(d0, d1, d2) -> (d2, d0)>
// CHECK-DAG:   #[[KN:.*]] = affine_map<(d0, d1, d2) -> (d2, d1)>
// CHECK-LABEL: @matmul(
// CHECK-SAME:  %[[A:.*]]: tensor<32x64xf16>, %[[B:.*]]: tensor<32x16xf16>
// CHECK-NOT:   linalg.transpose
// CHECK:       linalg.matmul indexing_maps = [#[[KM]], #[[KN]], #{{.*}}] ins(%[[A]], %[[B]] :
func.func @matmul(%a: tensor<32x64xf16>, %b: tensor<32x16xf16>, %c: tensor<64x16xf32>) -> tensor<64x16xf32> {
  %0 = tensor.empty() : tensor<64x32xf16>
  %1 = tensor.empty() : tensor<16x32xf16>
  %2 = tensor.empty() : tensor<32x16xf16>
  %at = linalg.transpose ins(%a : tensor<32x64xf16>) outs(%0 : tensor<64x32xf16>) permutation = [1, 0]
  %bt = linalg.transpose ins(%b : tensor<32x16xf16>) outs(%1 : tensor<16x32xf16>) permutation = [1, 0]
  %btt = linalg.transpose ins(%bt : tensor<16x32xf16>) outs(%2 : tensor<32x16xf16>) permutation = [1, 0]
  %r = linalg.matmul ins(%at, %btt : tensor<64x32xf16>, tensor<32x16xf16>) outs(%c : tensor<64x16xf32>) -> tensor<64x16xf32>
  return %r : tensor<64x16xf32>
}

// -----

// Three dimensions in a circle: dimension i of the result is number permutation[i] of
// the source. The transpose stays, as it is returned as well.
// CHECK:       #[[MAP:.*]] = affine_map<(d0, d1, d2) -> (d2, d0, d1)>
// CHECK-LABEL: @circle(
// CHECK-SAME:  %[[A:.*]]: tensor<4x2x3xf32>
// CHECK:       %[[T:.*]] = linalg.transpose
// CHECK:       linalg.generic {indexing_maps = [#[[MAP]], #{{.*}}]{{.*}} ins(%[[A]] :
// CHECK:       return %{{.*}}, %[[T]]
#id = affine_map<(i, j, k) -> (i, j, k)>
func.func @circle(%a: tensor<4x2x3xf32>, %o: tensor<2x3x4xf32>) -> (tensor<2x3x4xf32>, tensor<2x3x4xf32>) {
  %t = linalg.transpose ins(%a : tensor<4x2x3xf32>) outs(%o : tensor<2x3x4xf32>) permutation = [1, 2, 0]
  %r = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel", "parallel"]}
    ins(%t : tensor<2x3x4xf32>) outs(%o : tensor<2x3x4xf32>) {
  ^bb0(%x: f32, %y: f32):
    %z = arith.addf %x, %x : f32
    linalg.yield %z : f32
  } -> tensor<2x3x4xf32>
  return %r, %t : tensor<2x3x4xf32>, tensor<2x3x4xf32>
}

// -----

// Memrefs may change in between: left unchanged.
// CHECK-LABEL: @memrefs
// CHECK:       linalg.transpose
// CHECK:       linalg.matmul ins(%{{.*}}, %{{.*}} : memref<64x32xf16>
func.func @memrefs(%a: memref<32x64xf16>, %t: memref<64x32xf16>, %b: memref<32x16xf16>, %c: memref<64x16xf32>) {
  linalg.transpose ins(%a : memref<32x64xf16>) outs(%t : memref<64x32xf16>) permutation = [1, 0]
  linalg.matmul ins(%t, %b : memref<64x32xf16>, memref<32x16xf16>) outs(%c : memref<64x16xf32>)
  return
}

// -----

// An op that moves windows, as a convolution does, reads what is transposed: it would
// copy it otherwise, each op for itself.
// CHECK-LABEL: @windows(
// CHECK:       %[[T:.*]] = linalg.transpose
// CHECK:       linalg.generic {{.*}} ins(%[[T]], %
func.func @windows(%a: tensor<4x8xf32>, %e: tensor<8x4xf32>, %o: tensor<6x4xf32>, %w: tensor<3xf32>) -> tensor<6x4xf32> {
  %t = linalg.transpose ins(%a : tensor<4x8xf32>) outs(%e : tensor<8x4xf32>) permutation = [1, 0]
  %r = linalg.generic {indexing_maps = [affine_map<(i, j, k) -> (i + k, j)>, affine_map<(i, j, k) -> (k)>,
    affine_map<(i, j, k) -> (i, j)>], iterator_types = ["parallel", "parallel", "reduction"]}
    ins(%t, %w : tensor<8x4xf32>, tensor<3xf32>) outs(%o : tensor<6x4xf32>) {
  ^bb0(%x: f32, %u: f32, %y: f32):
    %z = arith.mulf %x, %u : f32
    %s = arith.addf %y, %z : f32
    linalg.yield %s : f32
  } -> tensor<6x4xf32>
  return %r : tensor<6x4xf32>
}
