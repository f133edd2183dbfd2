// RUN: alcop-opt %s --alcop-collapse-loops --split-input-file --mlir-print-local-scope | FileCheck %s

// Batches of batches, of sizes known or not: one loop, and views.
// CHECK-LABEL: @batches
// CHECK-SAME:    %[[A:.*]]: memref<2x?x64x32xf16>, %[[B:.*]]: memref<2x?x32x48xf16>, %[[C:.*]]: memref<2x?x64x48xf16>
// CHECK-DAG:   %[[VA:.*]] = memref.collapse_shape %[[A]] {{\[\[}}0, 1], [2], [3]] : memref<2x?x64x32xf16> into memref<?x64x32xf16>
// CHECK-DAG:   %[[VB:.*]] = memref.collapse_shape %[[B]] {{\[\[}}0, 1], [2], [3]]
// CHECK-DAG:   %[[VC:.*]] = memref.collapse_shape %[[C]] {{\[\[}}0, 1], [2], [3]]
// CHECK:       linalg.generic {indexing_maps = [affine_map<(d0, d1, d2, d3) -> (d0, d1, d2)>, affine_map<(d0, d1, d2, d3) -> (d0, d2, d3)>, affine_map<(d0, d1, d2, d3) -> (d0, d1, d3)>], iterator_types = ["parallel", "parallel", "reduction", "parallel"]} ins(%[[VA]], %[[VB]] : {{.*}}) outs(%[[VC]]
func.func @batches(%A: memref<2x?x64x32xf16>, %B: memref<2x?x32x48xf16>, %C: memref<2x?x64x48xf16>) {
  linalg.generic {indexing_maps = [affine_map<(b, h, m, n, k) -> (b, h, m, k)>,
                                   affine_map<(b, h, m, n, k) -> (b, h, k, n)>,
                                   affine_map<(b, h, m, n, k) -> (b, h, m, n)>],
                  iterator_types = ["parallel", "parallel", "parallel", "parallel", "reduction"]}
    ins(%A, %B : memref<2x?x64x32xf16>, memref<2x?x32x48xf16>) outs(%C : memref<2x?x64x48xf16>) {
  ^bb0(%a: f16, %b: f16, %c: f16):
    %p = arith.mulf %a, %b : f16
    %s = arith.addf %c, %p : f16
    linalg.yield %s : f16
  }
  return
}

// -----

// Fewer loops of a batch: here the first two, but not the third.
// CHECK-LABEL: @some_batches
// CHECK:       memref.collapse_shape %{{.*}} {{\[\[}}0, 1], [2], [3], [4]] : memref<2x3x64x4x32xf16> into memref<6x64x4x32xf16>
// CHECK:       linalg.contract indexing_maps = [affine_map<(d0, d1, d2, d3, d4) -> (d0, d1, d2, d3)>, affine_map<(d0, d1, d2, d3, d4) -> (d0, d2, d3, d4)>, affine_map<(d0, d1, d2, d3, d4) -> (d0, d2, d1, d4)>]
func.func @some_batches(%A: memref<2x3x64x4x32xf16>, %B: memref<2x3x4x32x48xf16>, %C: memref<2x3x4x64x48xf16>) {
  linalg.contract indexing_maps = [affine_map<(a, b, h, m, n, k) -> (a, b, m, h, k)>, affine_map<(a, b, h, m, n, k) -> (a, b, h, k, n)>, affine_map<(a, b, h, m, n, k) -> (a, b, h, m, n)>]
    ins(%A, %B : memref<2x3x64x4x32xf16>, memref<2x3x4x32x48xf16>) outs(%C : memref<2x3x4x64x48xf16>)
  return
}

// -----

// Rows of rows, where B is the same for all; a sum over two loops. With strides, as far
// as these leave no gaps between what becomes one.
// CHECK-LABEL: @rows_and_sums
// CHECK:       memref.collapse_shape %{{.*}} {{\[\[}}0, 1, 2], [3, 4]] : memref<2x4x8x16x2xf16, strided<[1280, 320, 40, 2, 1]>> into memref<64x32xf16, strided<[40, 1]>>
// CHECK:       memref.collapse_shape %{{.*}} {{\[\[}}0, 1], [2]]
// CHECK:       memref.collapse_shape %{{.*}} {{\[\[}}0, 1, 2], [3]]
// CHECK:       linalg.contract indexing_maps = [affine_map<(d0, d1, d2) -> (d0, d1)>, affine_map<(d0, d1, d2) -> (d1, d2)>, affine_map<(d0, d1, d2) -> (d0, d2)>]
func.func @rows_and_sums(%A: memref<2x4x8x16x2xf16, strided<[1280, 320, 40, 2, 1]>>,
                         %B: memref<16x2x48xf16>, %C: memref<2x4x8x48xf16>) {
  linalg.contract indexing_maps = [affine_map<(b, h, m, n, k, l) -> (b, h, m, k, l)>,
                                   affine_map<(b, h, m, n, k, l) -> (k, l, n)>,
                                   affine_map<(b, h, m, n, k, l) -> (b, h, m, n)>]
    ins(%A, %B : memref<2x4x8x16x2xf16, strided<[1280, 320, 40, 2, 1]>>, memref<16x2x48xf16>)
    outs(%C : memref<2x4x8x48xf16>)
  return
}

// -----

// Left unchanged: contractions of matrices, heads that are not contiguous, loops in
// another order, and ops that would be no contraction.
// CHECK-LABEL: @left_alone
// CHECK-NOT:   memref.collapse_shape
func.func @left_alone(%A: memref<2x8x64x32xf16>, %B: memref<8x2x64x32xf16>,
                      %S: memref<2x8x64x32xf16, strided<[32768, 32, 256, 1]>>,
                      %C: memref<2x8x64x64xf16>, %D: memref<8x64x64xf16>, %E: memref<8x64x32xf16>) {
  linalg.contract indexing_maps = [affine_map<(b, m, n, k) -> (b, m, k)>, affine_map<(b, m, n, k) -> (b, n, k)>, affine_map<(b, m, n, k) -> (b, m, n)>]
    ins(%E, %E : memref<8x64x32xf16>, memref<8x64x32xf16>) outs(%D : memref<8x64x64xf16>)
  linalg.contract indexing_maps = [affine_map<(b, h, m, n, k) -> (b, h, m, k)>, affine_map<(b, h, m, n, k) -> (b, h, n, k)>, affine_map<(b, h, m, n, k) -> (b, h, m, n)>]
    ins(%A, %S : memref<2x8x64x32xf16>, memref<2x8x64x32xf16, strided<[32768, 32, 256, 1]>>) outs(%C : memref<2x8x64x64xf16>)
  linalg.contract indexing_maps = [affine_map<(b, h, m, n, k) -> (b, h, m, k)>, affine_map<(b, h, m, n, k) -> (h, b, n, k)>, affine_map<(b, h, m, n, k) -> (b, h, m, n)>]
    ins(%A, %B : memref<2x8x64x32xf16>, memref<8x2x64x32xf16>) outs(%C : memref<2x8x64x64xf16>)
  linalg.generic {indexing_maps = [affine_map<(b, h, m, k) -> (b, h, m, k)>, affine_map<(b, h, m, k) -> (b, h, m, k)>],
                  iterator_types = ["parallel", "parallel", "parallel", "parallel"]}
    ins(%A : memref<2x8x64x32xf16>) outs(%A : memref<2x8x64x32xf16>) {
  ^bb0(%a: f16, %c: f16):
    linalg.yield %a : f16
  }
  return
}
