// RUN: alcop-opt %s --alcop-pair-columns --split-input-file --verify-diagnostics | FileCheck %s

// The product is returned, too, in its own order.
// CHECK-LABEL: @read_otherwise
// CHECK:         linalg.matmul {{.*}} ins(%arg0, %arg1 :
#mk = affine_map<(m, n, k) -> (m, k)>
#nk = affine_map<(m, n, k) -> (n, k)>
#mn = affine_map<(m, n, k) -> (m, n)>
#half = affine_map<(m, p, c) -> (m, c)>
#all = affine_map<(m, p, c) -> (m, p, c)>
func.func @read_otherwise(%x: tensor<64x32xf16>, %w: tensor<32x32xf16> {alcop.weight}) -> (tensor<64x2x16xf32>, tensor<64x32xf32>) {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<64x32xf32>
  %i = linalg.fill ins(%zero : f32) outs(%e : tensor<64x32xf32>) -> tensor<64x32xf32>
  %c = linalg.matmul indexing_maps = [#mk, #nk, #mn] ins(%x, %w : tensor<64x32xf16>, tensor<32x32xf16>) outs(%i : tensor<64x32xf32>) -> tensor<64x32xf32>
  %l = tensor.extract_slice %c[0, 0] [64, 16] [1, 1] : tensor<64x32xf32> to tensor<64x16xf32>
  %r = tensor.extract_slice %c[0, 16] [64, 16] [1, 1] : tensor<64x32xf32> to tensor<64x16xf32>
  %o = tensor.empty() : tensor<64x2x16xf32>
  // expected-remark@+1 {{columns of a contraction are combined by an op of its own: what it reads is read otherwise, too}}
  %z = linalg.generic {indexing_maps = [#half, #half, #all], iterator_types = ["parallel", "parallel", "parallel"]}
      ins(%l, %r : tensor<64x16xf32>, tensor<64x16xf32>) outs(%o : tensor<64x2x16xf32>) {
  ^bb0(%a: f32, %b: f32, %out: f32):
    %1 = arith.subf %a, %b : f32
    linalg.yield %1 : f32
  } -> tensor<64x2x16xf32>
  return %z, %c : tensor<64x2x16xf32>, tensor<64x32xf32>
}

// -----

// The weight is one of the call.
// CHECK-LABEL: @of_the_call
// CHECK:         linalg.matmul {{.*}} ins(%arg0, %arg1 :
#mk = affine_map<(m, n, k) -> (m, k)>
#nk = affine_map<(m, n, k) -> (n, k)>
#mn = affine_map<(m, n, k) -> (m, n)>
#half = affine_map<(m, p, c) -> (m, c)>
#all = affine_map<(m, p, c) -> (m, p, c)>
func.func @of_the_call(%x: tensor<64x32xf16>, %w: tensor<32x32xf16>) -> tensor<64x2x16xf32> {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<64x32xf32>
  %i = linalg.fill ins(%zero : f32) outs(%e : tensor<64x32xf32>) -> tensor<64x32xf32>
  %c = linalg.matmul indexing_maps = [#mk, #nk, #mn] ins(%x, %w : tensor<64x32xf16>, tensor<32x32xf16>) outs(%i : tensor<64x32xf32>) -> tensor<64x32xf32>
  %l = tensor.extract_slice %c[0, 0] [64, 16] [1, 1] : tensor<64x32xf32> to tensor<64x16xf32>
  %r = tensor.extract_slice %c[0, 16] [64, 16] [1, 1] : tensor<64x32xf32> to tensor<64x16xf32>
  %o = tensor.empty() : tensor<64x2x16xf32>
  // expected-remark@+1 {{what has its columns is no weight ('alcop.weight'), so that another order would cost a copy in each call}}
  %z = linalg.generic {indexing_maps = [#half, #half, #all], iterator_types = ["parallel", "parallel", "parallel"]}
      ins(%l, %r : tensor<64x16xf32>, tensor<64x16xf32>) outs(%o : tensor<64x2x16xf32>) {
  ^bb0(%a: f32, %b: f32, %out: f32):
    %1 = arith.subf %a, %b : f32
    linalg.yield %1 : f32
  } -> tensor<64x2x16xf32>
  return %z : tensor<64x2x16xf32>
}

// -----

// Each column and its neighbour, which is the first of another pair: nothing is said, as
// nothing is read in parts of blocks.
// CHECK-LABEL: @neighbours
// CHECK:         linalg.matmul {{.*}} ins(%arg0, %arg1 :
#mk = affine_map<(m, n, k) -> (m, k)>
#nk = affine_map<(m, n, k) -> (n, k)>
#mn = affine_map<(m, n, k) -> (m, n)>
#half = affine_map<(m, c, p) -> (m, c)>
#all = affine_map<(m, c, p) -> (m, c, p)>
func.func @neighbours(%x: tensor<64x32xf16>, %w: tensor<32x32xf16> {alcop.weight}) -> tensor<64x16x2xf32> {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<64x32xf32>
  %i = linalg.fill ins(%zero : f32) outs(%e : tensor<64x32xf32>) -> tensor<64x32xf32>
  %c = linalg.matmul indexing_maps = [#mk, #nk, #mn] ins(%x, %w : tensor<64x32xf16>, tensor<32x32xf16>) outs(%i : tensor<64x32xf32>) -> tensor<64x32xf32>
  %l = tensor.extract_slice %c[0, 0] [64, 16] [1, 1] : tensor<64x32xf32> to tensor<64x16xf32>
  %r = tensor.extract_slice %c[0, 1] [64, 16] [1, 1] : tensor<64x32xf32> to tensor<64x16xf32>
  %o = tensor.empty() : tensor<64x16x2xf32>
  %z = linalg.generic {indexing_maps = [#half, #half, #all], iterator_types = ["parallel", "parallel", "parallel"]}
      ins(%l, %r : tensor<64x16xf32>, tensor<64x16xf32>) outs(%o : tensor<64x16x2xf32>) {
  ^bb0(%a: f32, %b: f32, %out: f32):
    %1 = arith.subf %a, %b : f32
    linalg.yield %1 : f32
  } -> tensor<64x16x2xf32>
  return %z : tensor<64x16x2xf32>
}

// -----

// Heads of 48 columns, of which the first 32 are rotated: 32 does not divide 48.
// CHECK-LABEL: @not_blocks
// CHECK:         linalg.matmul {{.*}} ins(%arg0, %arg1 :
#mk = affine_map<(m, n, k) -> (m, k)>
#nk = affine_map<(m, n, k) -> (n, k)>
#mn = affine_map<(m, n, k) -> (m, n)>
#half = affine_map<(m, h, p, c) -> (m, h, c)>
#all = affine_map<(m, h, p, c) -> (m, h, p, c)>
func.func @not_blocks(%x: tensor<64x32xf16>, %w: tensor<96x32xf16> {alcop.weight}) -> tensor<64x2x2x16xf32> {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<64x96xf32>
  %i = linalg.fill ins(%zero : f32) outs(%e : tensor<64x96xf32>) -> tensor<64x96xf32>
  %c = linalg.matmul indexing_maps = [#mk, #nk, #mn] ins(%x, %w : tensor<64x32xf16>, tensor<96x32xf16>) outs(%i : tensor<64x96xf32>) -> tensor<64x96xf32>
  %h = tensor.expand_shape %c [[0], [1, 2]] output_shape [64, 2, 48] : tensor<64x96xf32> into tensor<64x2x48xf32>
  %l = tensor.extract_slice %h[0, 0, 0] [64, 2, 16] [1, 1, 1] : tensor<64x2x48xf32> to tensor<64x2x16xf32>
  %r = tensor.extract_slice %h[0, 0, 16] [64, 2, 16] [1, 1, 1] : tensor<64x2x48xf32> to tensor<64x2x16xf32>
  %o = tensor.empty() : tensor<64x2x2x16xf32>
  // expected-remark@+1 {{columns of a contraction are combined by an op of its own: it reads blocks of 32 columns from 0 on, every 48, expected multiples of 32}}
  %z = linalg.generic {indexing_maps = [#half, #half, #all], iterator_types = ["parallel", "parallel", "parallel", "parallel"]}
      ins(%l, %r : tensor<64x2x16xf32>, tensor<64x2x16xf32>) outs(%o : tensor<64x2x2x16xf32>) {
  ^bb0(%a: f32, %b: f32, %out: f32):
    %1 = arith.subf %a, %b : f32
    linalg.yield %1 : f32
  } -> tensor<64x2x2x16xf32>
  return %z : tensor<64x2x2x16xf32>
}
