// RUN: alcop-opt %s --alcop-join-contractions --mlir-print-local-scope --split-input-file | FileCheck %s

// One op combines both: groups of 16 rows of the weights in turn, of which it reads one
// each. What lies between, also what reads a result twice, and the cast behind are in it.
// CHECK-LABEL: @gated(
// CHECK-SAME:    %[[X:.*]]: tensor<64x32xf16>, %[[WG:[^ ]*]]: tensor<48x32xf16> {alcop.weight}, %[[WU:[^ ]*]]: tensor<48x32xf16> {alcop.weight}, %[[B:.*]]: tensor<48xf32>)
// CHECK:         %[[GS:.*]] = tensor.expand_shape %[[WG]] {{\[\[}}0, 1], [2]] output_shape [3, 16, 32]
// CHECK:         %[[W0:.*]] = tensor.insert_slice %[[GS]] into %{{.*}}[0, 0, 0, 0] [3, 1, 16, 32] [1, 1, 1, 1] : tensor<3x16x32xf16> into tensor<3x2x16x32xf16>
// CHECK:         %[[US:.*]] = tensor.expand_shape %[[WU]]
// CHECK:         %[[W1:.*]] = tensor.insert_slice %[[US]] into %[[W0]][0, 1, 0, 0] [3, 1, 16, 32] [1, 1, 1, 1]
// CHECK:         %[[W:.*]] = tensor.collapse_shape %[[W1]] {{\[\[}}0, 1, 2], [3]] : tensor<3x2x16x32xf16> into tensor<96x32xf16>
// CHECK:         %[[C:.*]] = linalg.matmul {{.*}} ins(%[[X]], %[[W]] : tensor<64x32xf16>, tensor<96x32xf16>) outs(%{{.*}} : tensor<64x96xf32>)
// CHECK-NOT:     linalg.matmul
// CHECK:         %[[Y:.*]] = linalg.generic
// CHECK-SAME:      affine_map<(d0, d1) -> (d0, (d1 floordiv 16) * 32 + d1 mod 16)>
// CHECK-SAME:      affine_map<(d0, d1) -> (d0, (d1 floordiv 16) * 32 + d1 mod 16 + 16)>
// CHECK-SAME:      ins(%[[C]], %[[C]], %[[B]], %[[C]] : {{.*}}) outs(%{{.*}} : tensor<64x48xf16>)
// CHECK:           math.exp
// CHECK:           arith.truncf
// CHECK-NOT:     linalg.generic
// CHECK:         return %[[Y]]
#mk = affine_map<(m, n, k) -> (m, k)>
#nk = affine_map<(m, n, k) -> (n, k)>
#mn = affine_map<(m, n, k) -> (m, n)>
#all = affine_map<(m, n) -> (m, n)>
#n = affine_map<(m, n) -> (n)>
func.func @gated(%x: tensor<64x32xf16>, %wg: tensor<48x32xf16> {alcop.weight}, %wu: tensor<48x32xf16> {alcop.weight}, %b: tensor<48xf32>) -> tensor<64x48xf16> {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<64x48xf32>
  %i = linalg.fill ins(%zero : f32) outs(%e : tensor<64x48xf32>) -> tensor<64x48xf32>
  %g = linalg.matmul indexing_maps = [#mk, #nk, #mn] ins(%x, %wg : tensor<64x32xf16>, tensor<48x32xf16>) outs(%i : tensor<64x48xf32>) -> tensor<64x48xf32>
  %s = linalg.exp ins(%g : tensor<64x48xf32>) outs(%e : tensor<64x48xf32>) -> tensor<64x48xf32>
  %t = linalg.mul ins(%s, %g : tensor<64x48xf32>, tensor<64x48xf32>) outs(%e : tensor<64x48xf32>) -> tensor<64x48xf32>
  %u = linalg.matmul indexing_maps = [#mk, #nk, #mn] ins(%x, %wu : tensor<64x32xf16>, tensor<48x32xf16>) outs(%i : tensor<64x48xf32>) -> tensor<64x48xf32>
  %v = linalg.generic {indexing_maps = [#all, #n, #all], iterator_types = ["parallel", "parallel"]} ins(%u, %b : tensor<64x48xf32>, tensor<48xf32>) outs(%e : tensor<64x48xf32>) {
  ^bb0(%a: f32, %c: f32, %o: f32):
    %w = arith.addf %a, %c : f32
    linalg.yield %w : f32
  } -> tensor<64x48xf32>
  %p = linalg.mul ins(%t, %v : tensor<64x48xf32>, tensor<64x48xf32>) outs(%e : tensor<64x48xf32>) -> tensor<64x48xf32>
  %h = tensor.empty() : tensor<64x48xf16>
  %y = linalg.generic {indexing_maps = [#all, #all], iterator_types = ["parallel", "parallel"]} ins(%p : tensor<64x48xf32>) outs(%h : tensor<64x48xf16>) {
  ^bb0(%a: f32, %o: f16):
    %w = arith.truncf %a : f32 to f16
    linalg.yield %w : f16
  } -> tensor<64x48xf16>
  return %y : tensor<64x48xf16>
}

// -----

// Three: two are one, of which the third's epilogue reads the product.
// CHECK-LABEL: @three(
// CHECK:         linalg.matmul {{.*}} -> tensor<64x32xf32>
// CHECK:         linalg.generic {{.*}}floordiv{{.*}} outs(%{{.*}} : tensor<64x16xf32>)
// CHECK:         linalg.matmul {{.*}} -> tensor<64x16xf32>
// CHECK:         linalg.mul
#mk = affine_map<(m, n, k) -> (m, k)>
#kn = affine_map<(m, n, k) -> (k, n)>
#mn = affine_map<(m, n, k) -> (m, n)>
func.func @three(%x: tensor<64x32xf16>, %w0: tensor<32x16xf16> {alcop.weight}, %w1: tensor<32x16xf16> {alcop.weight}, %w2: tensor<32x16xf16> {alcop.weight}) -> tensor<64x16xf32> {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<64x16xf32>
  %i = linalg.fill ins(%zero : f32) outs(%e : tensor<64x16xf32>) -> tensor<64x16xf32>
  %c0 = linalg.matmul ins(%x, %w0 : tensor<64x32xf16>, tensor<32x16xf16>) outs(%i : tensor<64x16xf32>) -> tensor<64x16xf32>
  %c1 = linalg.matmul ins(%x, %w1 : tensor<64x32xf16>, tensor<32x16xf16>) outs(%i : tensor<64x16xf32>) -> tensor<64x16xf32>
  %p = linalg.mul ins(%c0, %c1 : tensor<64x16xf32>, tensor<64x16xf32>) outs(%e : tensor<64x16xf32>) -> tensor<64x16xf32>
  %c2 = linalg.matmul ins(%x, %w2 : tensor<64x32xf16>, tensor<32x16xf16>) outs(%i : tensor<64x16xf32>) -> tensor<64x16xf32>
  %q = linalg.mul ins(%p, %c2 : tensor<64x16xf32>, tensor<64x16xf32>) outs(%e : tensor<64x16xf32>) -> tensor<64x16xf32>
  return %q : tensor<64x16xf32>
}
