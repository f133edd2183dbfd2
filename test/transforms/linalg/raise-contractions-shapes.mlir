// RUN: alcop-opt %s --alcop-raise-contractions --split-input-file | FileCheck %s

// Sizes may be anything, known or not.
// CHECK-LABEL: @sizes
// CHECK:       linalg.matmul {alcop.contraction = #alcop.contraction<{init = "read", lhs = "mk", rhs = "kn"}>}
// CHECK:       linalg.matmul {{.*}}init = "zero", lhs = "mk", rhs = "kn"
func.func @sizes(%a: memref<?x3xf16>, %b: memref<3x?xf16>, %c: memref<?x?xf32>,
                 %d: memref<7x0xf16>, %e: memref<0x5xf16>, %f: memref<7x5xf32>) {
  linalg.matmul ins(%a, %b : memref<?x3xf16>, memref<3x?xf16>) outs(%c : memref<?x?xf32>)
  %zero = arith.constant 0.0 : f32
  linalg.fill ins(%zero : f32) outs(%f : memref<7x5xf32>)
  linalg.matmul ins(%d, %e : memref<7x0xf16>, memref<0x5xf16>) outs(%f : memref<7x5xf32>)
  return
}

// -----

// Rows at a distance, and views that the function takes itself.
// CHECK-LABEL: @layouts
// CHECK:       linalg.matmul {{.*}}lhs = "mk", rhs = "kn"
// CHECK:       linalg.matmul {{.*}}lhs = "mk", rhs = "kn"
// CHECK:       linalg.matvec {{.*}}lhs = "k", {{.*}}rhs = "nk"
func.func @layouts(%a: memref<32x32xf16, strided<[40, 1]>>, %b: memref<64x64xf16>,
                   %c: memref<32x32xf32, strided<[?, 1]>>, %d: memref<64xf32>,
                   %i: index) {
  %view = memref.subview %b[%i, 8] [32, 32] [1, 1] : memref<64x64xf16> to memref<32x32xf16, strided<[64, 1], offset: ?>>
  linalg.matmul ins(%a, %view : memref<32x32xf16, strided<[40, 1]>>, memref<32x32xf16, strided<[64, 1], offset: ?>>) outs(%c : memref<32x32xf32, strided<[?, 1]>>)
  linalg.matmul ins(%view, %view : memref<32x32xf16, strided<[64, 1], offset: ?>>, memref<32x32xf16, strided<[64, 1], offset: ?>>) outs(%c : memref<32x32xf32, strided<[?, 1]>>)
  %row = memref.subview %b[%i, 0] [1, 64] [1, 1] : memref<64x64xf16> to memref<64xf16, strided<[1], offset: ?>>
  linalg.matvec ins(%b, %row : memref<64x64xf16>, memref<64xf16, strided<[1], offset: ?>>) outs(%d : memref<64xf32>)
  return
}

// -----

// Batches; one that is summed over is no loop of C.
// CHECK-LABEL: @batches
// CHECK:       linalg.batch_matmul {alcop.contraction = #alcop.contraction<{init = "read", lhs = "bmk", out = "bmn", rhs = "bkn"}>}
// CHECK:       linalg.batch_reduce_matmul {alcop.contraction = #alcop.contraction<{init = "read", lhs = "bmk", rhs = "bkn"}>}
// CHECK:       linalg.contract {{.*}}lhs = "bmk", out = "bmn", rhs = "kn"
// CHECK:       linalg.contract {{.*}}lhs = "mk", out = "bmn", rhs = "bnk"
func.func @batches(%a: memref<2x8x8xf16>, %b: memref<8x8xf16>, %c: memref<2x8x8xf32>, %d: memref<8x8xf32>) {
  linalg.batch_matmul ins(%a, %a : memref<2x8x8xf16>, memref<2x8x8xf16>) outs(%c : memref<2x8x8xf32>)
  linalg.batch_reduce_matmul ins(%a, %a : memref<2x8x8xf16>, memref<2x8x8xf16>) outs(%d : memref<8x8xf32>)
  linalg.contract indexing_maps = [affine_map<(b, m, n, k) -> (b, m, k)>, affine_map<(b, m, n, k) -> (k, n)>, affine_map<(b, m, n, k) -> (b, m, n)>]
    ins(%a, %b : memref<2x8x8xf16>, memref<8x8xf16>) outs(%c : memref<2x8x8xf32>)
  linalg.contract indexing_maps = [affine_map<(b, m, n, k) -> (m, k)>, affine_map<(b, m, n, k) -> (b, n, k)>, affine_map<(b, m, n, k) -> (b, m, n)>]
    ins(%b, %a : memref<8x8xf16>, memref<2x8x8xf16>) outs(%c : memref<2x8x8xf32>)
  return
}

// -----

// Several batch loops, in any order: heads of attention before the tokens and after, a head
// of keys for two of queries, and heads that are summed over.
// CHECK-LABEL: @batch_loops
// CHECK:       linalg.contract {{.*}}init = "read", lhs = "bmck", out = "bcmn", rhs = "bnck"
// CHECK:       linalg.contract {{.*}}lhs = "bcmk", out = "bmcn", rhs = "bkcn"
// CHECK:       linalg.contract {{.*}}lhs = "bdcmk", out = "bcdmn", rhs = "bdnk"
// CHECK:       linalg.contract {{.*}}lhs = "bcmk", out = "bmn", rhs = "ckn"
// CHECK:       linalg.contract {{.*}}lhs = "mbk", out = "bmn", rhs = "kn"
// CHECK:       linalg.contract {{.*}}lhs = "kbm", out = "mbn", rhs = "kn"
func.func @batch_loops(%q: memref<2x8x4x16xf16>, %s: memref<2x4x8x8xf16>, %c: memref<2x4x8x8xf32>, %o: memref<2x8x4x16xf32>,
                       %g: memref<2x4x3x8x16xf16>, %h: memref<2x4x8x16xf16>, %d: memref<2x3x4x8x8xf32>, %w: memref<4x8x16xf16>, %y: memref<2x8x16xf32>,
                       %x: memref<8x2x16xf16>, %v: memref<16x8xf16>, %z: memref<2x8x8xf32>, %t: memref<16x2x8xf16>, %u: memref<8x2x8xf32>) {
  linalg.contract indexing_maps = [affine_map<(b, h, m, n, k) -> (b, m, h, k)>, affine_map<(b, h, m, n, k) -> (b, n, h, k)>, affine_map<(b, h, m, n, k) -> (b, h, m, n)>]
    ins(%q, %q : memref<2x8x4x16xf16>, memref<2x8x4x16xf16>) outs(%c : memref<2x4x8x8xf32>)
  linalg.contract indexing_maps = [affine_map<(b, h, m, n, k) -> (b, h, m, k)>, affine_map<(b, h, m, n, k) -> (b, k, h, n)>, affine_map<(b, h, m, n, k) -> (b, m, h, n)>]
    ins(%s, %q : memref<2x4x8x8xf16>, memref<2x8x4x16xf16>) outs(%o : memref<2x8x4x16xf32>)
  linalg.contract indexing_maps = [affine_map<(b, h, g, m, n, k) -> (b, h, g, m, k)>, affine_map<(b, h, g, m, n, k) -> (b, h, n, k)>, affine_map<(b, h, g, m, n, k) -> (b, g, h, m, n)>]
    ins(%g, %h : memref<2x4x3x8x16xf16>, memref<2x4x8x16xf16>) outs(%d : memref<2x3x4x8x8xf32>)
  linalg.contract indexing_maps = [affine_map<(b, h, m, n, k) -> (b, h, m, k)>, affine_map<(b, h, m, n, k) -> (h, k, n)>, affine_map<(b, h, m, n, k) -> (b, m, n)>]
    ins(%s, %w : memref<2x4x8x8xf16>, memref<4x8x16xf16>) outs(%y : memref<2x8x16xf32>)
  linalg.contract indexing_maps = [affine_map<(b, m, n, k) -> (m, b, k)>, affine_map<(b, m, n, k) -> (k, n)>, affine_map<(b, m, n, k) -> (b, m, n)>]
    ins(%x, %v : memref<8x2x16xf16>, memref<16x8xf16>) outs(%z : memref<2x8x8xf32>)
  linalg.contract indexing_maps = [affine_map<(b, m, n, k) -> (k, b, m)>, affine_map<(b, m, n, k) -> (k, n)>, affine_map<(b, m, n, k) -> (m, b, n)>]
    ins(%t, %v : memref<16x2x8xf16>, memref<16x8xf16>) outs(%u : memref<8x2x8xf32>)
  return
}

// -----

// A vector is a matrix of one row. The inputs of `linalg.matvec` cannot be exchanged.
// CHECK-LABEL: @vectors
// CHECK:       linalg.vecmat {alcop.contraction = #alcop.contraction<{init = "read", lhs = "k", out = "n", rhs = "kn"}>}
// CHECK:       linalg.matvec {alcop.contraction = #alcop.contraction<{init = "read", lhs = "k", out = "n", rhs = "nk", swapped = true}>}
// CHECK:       linalg.contract {{.*}}lhs = "k", out = "n", rhs = "nk"
// CHECK-NOT:   swapped
// CHECK-SAME:  ins(%{{.*}}, %{{.*}} : memref<8xf16>, memref<8x8xf16>)
func.func @vectors(%a: memref<8x8xf16>, %x: memref<8xf16>, %y: memref<8xf32>) {
  linalg.vecmat ins(%x, %a : memref<8xf16>, memref<8x8xf16>) outs(%y : memref<8xf32>)
  linalg.matvec ins(%a, %x : memref<8x8xf16>, memref<8xf16>) outs(%y : memref<8xf32>)
  linalg.contract indexing_maps = [affine_map<(m, k) -> (m, k)>, affine_map<(m, k) -> (k)>, affine_map<(m, k) -> (m)>]
    ins(%a, %x : memref<8x8xf16>, memref<8xf16>) outs(%y : memref<8xf32>)
  return
}

// -----

// B comes first, and an input that nothing reads comes last: A and B are exchanged.
// CHECK-DAG:   #[[MK:.*]] = affine_map<(d0, d1, d2) -> (d0, d2)>
// CHECK-DAG:   #[[KN:.*]] = affine_map<(d0, d1, d2) -> (d2, d1)>
// CHECK-DAG:   #[[N:.*]] = affine_map<(d0, d1, d2) -> (d1)>
// CHECK-LABEL: @unread_input(
// CHECK-SAME:    %[[B:.*]]: memref<32x64xf16>, %[[A:.*]]: memref<16x32xf16>, %[[X:.*]]: memref<64xf32>
// CHECK:       linalg.generic {indexing_maps = [#[[MK]], #[[KN]], #[[N]], #{{.*}}], {{.*}}} ins(%[[A]], %[[B]], %[[X]]
// CHECK-SAME:    alcop.contraction = #alcop.contraction<{init = "read", lhs = "mk", rhs = "kn"}>
func.func @unread_input(%b: memref<32x64xf16>, %a: memref<16x32xf16>, %x: memref<64xf32>, %c: memref<16x64xf32>) {
  linalg.generic {indexing_maps = [affine_map<(m, n, k) -> (k, n)>, affine_map<(m, n, k) -> (m, k)>,
                                   affine_map<(m, n, k) -> (n)>, affine_map<(m, n, k) -> (m, n)>],
                  iterator_types = ["parallel", "parallel", "reduction"]}
    ins(%b, %a, %x : memref<32x64xf16>, memref<16x32xf16>, memref<64xf32>) outs(%c : memref<16x64xf32>) {
  ^bb0(%y: f16, %z: f16, %u: f32, %s: f32):
    %l = arith.extf %y : f16 to f32
    %r = arith.extf %z : f16 to f32
    %p = arith.mulf %l, %r : f32
    %t = arith.addf %s, %p : f32
    linalg.yield %t : f32
  }
  return
}
