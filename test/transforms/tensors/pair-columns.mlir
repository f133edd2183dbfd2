// RUN: alcop-opt %s --alcop-pair-columns --mlir-print-local-scope --split-input-file | FileCheck %s

// Two heads of 32 columns, of which each half is made of both: the columns of the weight
// are put in turn, 16 of each half. Who reads the result reads it in its order.
// CHECK-LABEL: @rotated(
// CHECK-SAME:    %[[X:.*]]: tensor<64x32xf16>, %[[W:.*]]: tensor<64x32xf16> {alcop.weight}, %[[COS:[^ ]*]]:
// CHECK:         %[[MOVED:.*]] = linalg.generic
// CHECK-SAME:      affine_map<(d0, d1, d2, d3, d4) -> (d0 * 32 + d1 * 16 + d3 + d2 * 16, d4)>
// CHECK-SAME:      ins(%[[W]] : {{.*}}outs(%{{.*}} : tensor<2x1x2x16x32xf16>)
// CHECK:         %[[TURNED:.*]] = tensor.collapse_shape %[[MOVED]] {{\[}}[0, 1, 2, 3], [4]]
// CHECK:         %[[C:.*]] = linalg.matmul {{.*}} ins(%[[X]], %[[TURNED]] :
// CHECK:         %[[D:.*]] = linalg.generic
// CHECK-SAME:      affine_map<(d0, d1, d2, d3) -> (d0, d1 * 32 + (d3 floordiv 16) * 32 + d3 mod 16)>
// CHECK-SAME:      affine_map<(d0, d1, d2, d3) -> (d0, d1 * 32 + (d3 floordiv 16) * 32 + d3 mod 16 + 16)>
// CHECK-SAME:      affine_map<(d0, d1, d2, d3) -> (d0, d3)>
// CHECK-SAME:      ins(%[[C]], %[[C]], %[[COS]] : {{.*}}outs(%{{.*}} : tensor<64x2x2x16xf32>)
// CHECK:           %[[PART:.*]] = linalg.index 2
// CHECK:           arith.cmpi eq, %[[PART]]
// CHECK-NOT:       linalg.index
// CHECK:         %[[ALL:.*]] = tensor.collapse_shape %[[D]] {{\[}}[0], [1, 2, 3]] : tensor<64x2x2x16xf32> into tensor<64x64xf32>
// CHECK:         %[[HEADS:.*]] = tensor.expand_shape %[[ALL]] {{\[}}[0], [1, 2]] output_shape [64, 2, 32]
// CHECK:         %[[T:.*]] = linalg.transpose ins(%[[HEADS]] : {{.*}}permutation = [1, 0, 2]
// CHECK:         %[[R:.*]] = tensor.expand_shape %[[T]] {{\[}}[0], [1], [2, 3]] output_shape [2, 64, 2, 16]
// CHECK:         return %[[R]]
#mk = affine_map<(m, n, k) -> (m, k)>
#nk = affine_map<(m, n, k) -> (n, k)>
#mn = affine_map<(m, n, k) -> (m, n)>
#half = affine_map<(h, m, p, c) -> (m, h, c)>
#table = affine_map<(h, m, p, c) -> (m, c)>
#all = affine_map<(h, m, p, c) -> (h, m, p, c)>
func.func @rotated(%x: tensor<64x32xf16>, %w: tensor<64x32xf16> {alcop.weight}, %cos: tensor<64x16xf32>)
    -> tensor<2x64x2x16xf32> {
  %zero = arith.constant 0.0 : f32
  %c0 = arith.constant 0 : index
  %e = tensor.empty() : tensor<64x64xf32>
  %i = linalg.fill ins(%zero : f32) outs(%e : tensor<64x64xf32>) -> tensor<64x64xf32>
  %c = linalg.matmul indexing_maps = [#mk, #nk, #mn] ins(%x, %w : tensor<64x32xf16>, tensor<64x32xf16>) outs(%i : tensor<64x64xf32>) -> tensor<64x64xf32>
  %h = tensor.expand_shape %c [[0], [1, 2]] output_shape [64, 2, 32] : tensor<64x64xf32> into tensor<64x2x32xf32>
  %l = tensor.extract_slice %h[0, 0, 0] [64, 2, 16] [1, 1, 1] : tensor<64x2x32xf32> to tensor<64x2x16xf32>
  %r = tensor.extract_slice %h[0, 0, 16] [64, 2, 16] [1, 1, 1] : tensor<64x2x32xf32> to tensor<64x2x16xf32>
  %o = tensor.empty() : tensor<2x64x2x16xf32>
  %z = linalg.generic {indexing_maps = [#half, #half, #table, #all], iterator_types = ["parallel", "parallel", "parallel", "parallel"]}
      ins(%l, %r, %cos : tensor<64x2x16xf32>, tensor<64x2x16xf32>, tensor<64x16xf32>) outs(%o : tensor<2x64x2x16xf32>) {
  ^bb0(%a: f32, %b: f32, %t: f32, %out: f32):
    %p = linalg.index 2 : index
    %is = arith.cmpi eq, %p, %c0 : index
    %1 = arith.subf %a, %b : f32
    %2 = arith.mulf %b, %t : f32
    %3 = arith.select %is, %1, %2 : f32
    linalg.yield %3 : f32
  } -> tensor<2x64x2x16xf32>
  return %z : tensor<2x64x2x16xf32>
}

// -----

// Of three heads the second one is rotated; others pass through, and are read from the
// same result.
// CHECK-LABEL: @second
// CHECK:         %[[C:.*]] = linalg.matmul
// CHECK:         %[[D:.*]] = linalg.generic {{.*}} ins(%[[C]], %[[C]], %[[C]] : {{.*}}outs(%{{.*}} : tensor<64x3x2x16xf32>)
// CHECK:         ^bb0(%[[L:.*]]: f32, %[[R:.*]]: f32, %[[OWN:.*]]: f32, %{{.*}}: f32):
// CHECK:           %[[HEAD:.*]] = linalg.index 1
// CHECK:           %[[DISTANCE:.*]] = arith.subi %[[HEAD]], %[[ONE:.*]]
// CHECK:           %[[IS:.*]] = arith.cmpi ult, %[[DISTANCE]]
// CHECK:           arith.select %[[IS]], %{{.*}}, %[[OWN]]
// CHECK:         %[[ALL:.*]] = tensor.collapse_shape %[[D]]
// CHECK-DAG:     %[[Q:.*]] = tensor.extract_slice %[[ALL]][0, 32] [64, 32] [1, 1]
// CHECK-DAG:     %[[V:.*]] = tensor.extract_slice %[[ALL]][0, 64] [64, 32] [1, 1]
#mk = affine_map<(m, n, k) -> (m, k)>
#kn = affine_map<(m, n, k) -> (k, n)>
#mn = affine_map<(m, n, k) -> (m, n)>
#half = affine_map<(m, p, c) -> (m, c)>
#all = affine_map<(m, p, c) -> (m, p, c)>
func.func @second(%x: tensor<64x32xf16>, %w: tensor<32x96xf16> {alcop.weight}) -> (tensor<64x2x16xf32>, tensor<64x32xf32>) {
  %zero = arith.constant 0.0 : f32
  %c0 = arith.constant 0 : index
  %e = tensor.empty() : tensor<64x96xf32>
  %i = linalg.fill ins(%zero : f32) outs(%e : tensor<64x96xf32>) -> tensor<64x96xf32>
  %c = linalg.matmul indexing_maps = [#mk, #kn, #mn] ins(%x, %w : tensor<64x32xf16>, tensor<32x96xf16>) outs(%i : tensor<64x96xf32>) -> tensor<64x96xf32>
  %l = tensor.extract_slice %c[0, 32] [64, 16] [1, 1] : tensor<64x96xf32> to tensor<64x16xf32>
  %r = tensor.extract_slice %c[0, 48] [64, 16] [1, 1] : tensor<64x96xf32> to tensor<64x16xf32>
  %v = tensor.extract_slice %c[0, 64] [64, 32] [1, 1] : tensor<64x96xf32> to tensor<64x32xf32>
  %o = tensor.empty() : tensor<64x2x16xf32>
  %z = linalg.generic {indexing_maps = [#half, #half, #all], iterator_types = ["parallel", "parallel", "parallel"]}
      ins(%l, %r : tensor<64x16xf32>, tensor<64x16xf32>) outs(%o : tensor<64x2x16xf32>) {
  ^bb0(%a: f32, %b: f32, %out: f32):
    %p = linalg.index 1 : index
    %is = arith.cmpi eq, %p, %c0 : index
    %1 = arith.subf %a, %b : f32
    %2 = arith.addf %a, %b : f32
    %3 = arith.select %is, %1, %2 : f32
    linalg.yield %3 : f32
  } -> tensor<64x2x16xf32>
  return %z, %v : tensor<64x2x16xf32>, tensor<64x32xf32>
}

// -----

// The first half of each of two heads is rotated: blocks 0 and 2 of four. All columns come
// out in their order, so that those that are rotated are slices of heads.
// CHECK-LABEL: @partial
// CHECK:         %[[D:.*]] = linalg.generic {{.*}}outs(%{{.*}} : tensor<64x4x2x16xf32>)
// CHECK:           %[[BLOCK:.*]] = linalg.index 1
// CHECK:           %[[FROM:.*]] = arith.subi %[[BLOCK]]
// CHECK:           %[[INSIDE:.*]] = arith.cmpi ult, %[[FROM]]
// CHECK:           %[[REST:.*]] = arith.remui %[[FROM]]
// CHECK:           %[[FIRST:.*]] = arith.cmpi eq, %[[REST]]
// CHECK:           %[[IS:.*]] = arith.andi %[[INSIDE]], %[[FIRST]]
// CHECK:           arith.select %[[IS]]
// CHECK:         %[[ALL:.*]] = tensor.collapse_shape %[[D]]
// CHECK:         %[[REST:.*]] = tensor.extract_slice %{{.*}}[0, 0, 32] [64, 2, 32] [1, 1, 1]
// CHECK:         %[[HEADS:.*]] = tensor.expand_shape %[[ALL]] {{\[}}[0], [1, 2]] output_shape [64, 2, 64]
// CHECK:         %[[CUT:.*]] = tensor.extract_slice %[[HEADS]][0, 0, 0] [64, 2, 32] [1, 1, 1]
// CHECK:         %[[Z:.*]] = tensor.expand_shape %[[CUT]]
// CHECK:         return %[[Z]], %[[REST]]
#mk = affine_map<(m, n, k) -> (m, k)>
#nk = affine_map<(m, n, k) -> (n, k)>
#mn = affine_map<(m, n, k) -> (m, n)>
#half = affine_map<(m, h, p, c) -> (m, h, c)>
#all = affine_map<(m, h, p, c) -> (m, h, p, c)>
func.func @partial(%x: tensor<64x32xf16>, %w: tensor<128x32xf16> {alcop.weight}) -> (tensor<64x2x2x16xf32>, tensor<64x2x32xf32>) {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<64x128xf32>
  %i = linalg.fill ins(%zero : f32) outs(%e : tensor<64x128xf32>) -> tensor<64x128xf32>
  %c = linalg.matmul indexing_maps = [#mk, #nk, #mn] ins(%x, %w : tensor<64x32xf16>, tensor<128x32xf16>) outs(%i : tensor<64x128xf32>) -> tensor<64x128xf32>
  %h = tensor.expand_shape %c [[0], [1, 2]] output_shape [64, 2, 64] : tensor<64x128xf32> into tensor<64x2x64xf32>
  %l = tensor.extract_slice %h[0, 0, 0] [64, 2, 16] [1, 1, 1] : tensor<64x2x64xf32> to tensor<64x2x16xf32>
  %r = tensor.extract_slice %h[0, 0, 16] [64, 2, 16] [1, 1, 1] : tensor<64x2x64xf32> to tensor<64x2x16xf32>
  %rest = tensor.extract_slice %h[0, 0, 32] [64, 2, 32] [1, 1, 1] : tensor<64x2x64xf32> to tensor<64x2x32xf32>
  %o = tensor.empty() : tensor<64x2x2x16xf32>
  %z = linalg.generic {indexing_maps = [#half, #half, #all], iterator_types = ["parallel", "parallel", "parallel", "parallel"]}
      ins(%l, %r : tensor<64x2x16xf32>, tensor<64x2x16xf32>) outs(%o : tensor<64x2x2x16xf32>) {
  ^bb0(%a: f32, %b: f32, %out: f32):
    %1 = arith.subf %a, %b : f32
    linalg.yield %1 : f32
  } -> tensor<64x2x2x16xf32>
  return %z, %rest : tensor<64x2x2x16xf32>, tensor<64x2x32xf32>
}
