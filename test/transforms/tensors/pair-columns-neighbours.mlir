// RUN: alcop-opt %s --alcop-pair-columns --canonicalize --mlir-print-local-scope --split-input-file | FileCheck %s

// Pairs of neighbouring columns, of queries and keys: the columns of the weight are put
// in turn, 16 first ones and 16 second ones, but for those that pass through. Scores sum
// over the columns of both, so that the results stay in that order.
// CHECK-LABEL: @contracted(
// CHECK-SAME:    %[[W:[^ ]*]]: tensor<96x32xf16> {alcop.weight}
// CHECK:         linalg.generic
// CHECK-SAME:      affine_map<(d0, d1, d2, d3, d4) -> (d0 * 32 + (d1 * 16 + d3) * 2 + d2, d4)>
// CHECK-SAME:      affine_map<(d0, d1, d2, d3, d4) -> (d0 * 32 + d1 * 16 + d3 + d2 * 16, d4)>
// CHECK-SAME:      ins(%[[W]], %[[W]] : {{.*}}outs(%{{.*}} : tensor<3x1x2x16x32xf16>)
// CHECK:         ^bb0(%[[TURNED:.*]]: f16, %[[OWN:.*]]: f16, %{{.*}}: f16):
// CHECK:           linalg.index 0
// CHECK:           arith.select %{{.*}}, %[[TURNED]], %[[OWN]]
// CHECK:         linalg.matmul
// CHECK:         %[[D:.*]] = linalg.generic {{.*}} outs(%{{.*}} : tensor<64x3x2x16xf32>)
// CHECK-NOT:     linalg.transpose
// CHECK:         %[[ALL:.*]] = tensor.collapse_shape %[[D]] {{\[}}[0], [1, 2, 3]]
// CHECK-NOT:     linalg.transpose
// CHECK:         linalg.matmul
// CHECK-NOT:     linalg.transpose
#mk = affine_map<(m, n, k) -> (m, k)>
#nk = affine_map<(m, n, k) -> (n, k)>
#mn = affine_map<(m, n, k) -> (m, n)>
#one = affine_map<(m, c, p) -> (m, c)>
#all = affine_map<(m, c, p) -> (m, c, p)>
func.func @contracted(%x: tensor<64x32xf16>, %w: tensor<96x32xf16> {alcop.weight}) -> (tensor<64x64xf32>, tensor<64x32xf32>) {
  %zero = arith.constant 0.0 : f32
  %c0 = arith.constant 0 : index
  %e = tensor.empty() : tensor<64x96xf32>
  %i = linalg.fill ins(%zero : f32) outs(%e : tensor<64x96xf32>) -> tensor<64x96xf32>
  %c = linalg.matmul indexing_maps = [#mk, #nk, #mn] ins(%x, %w : tensor<64x32xf16>, tensor<96x32xf16>) outs(%i : tensor<64x96xf32>) -> tensor<64x96xf32>
  %o = tensor.empty() : tensor<64x16x2xf32>
  %lq = tensor.extract_slice %c[0, 0] [64, 16] [1, 2] : tensor<64x96xf32> to tensor<64x16xf32>
  %rq = tensor.extract_slice %c[0, 1] [64, 16] [1, 2] : tensor<64x96xf32> to tensor<64x16xf32>
  %zq = linalg.generic {indexing_maps = [#one, #one, #all], iterator_types = ["parallel", "parallel", "parallel"]}
      ins(%lq, %rq : tensor<64x16xf32>, tensor<64x16xf32>) outs(%o : tensor<64x16x2xf32>) {
  ^bb0(%a: f32, %b: f32, %out: f32):
    %p = linalg.index 2 : index
    %is = arith.cmpi eq, %p, %c0 : index
    %1 = arith.subf %a, %b : f32
    %2 = arith.addf %a, %b : f32
    %3 = arith.select %is, %1, %2 : f32
    linalg.yield %3 : f32
  } -> tensor<64x16x2xf32>
  %q = tensor.collapse_shape %zq [[0], [1, 2]] : tensor<64x16x2xf32> into tensor<64x32xf32>
  %lk = tensor.extract_slice %c[0, 32] [64, 16] [1, 2] : tensor<64x96xf32> to tensor<64x16xf32>
  %rk = tensor.extract_slice %c[0, 33] [64, 16] [1, 2] : tensor<64x96xf32> to tensor<64x16xf32>
  %zk = linalg.generic {indexing_maps = [#one, #one, #all], iterator_types = ["parallel", "parallel", "parallel"]}
      ins(%lk, %rk : tensor<64x16xf32>, tensor<64x16xf32>) outs(%o : tensor<64x16x2xf32>) {
  ^bb0(%a: f32, %b: f32, %out: f32):
    %p = linalg.index 2 : index
    %is = arith.cmpi eq, %p, %c0 : index
    %1 = arith.subf %a, %b : f32
    %2 = arith.addf %a, %b : f32
    %3 = arith.select %is, %1, %2 : f32
    linalg.yield %3 : f32
  } -> tensor<64x16x2xf32>
  %k = tensor.collapse_shape %zk [[0], [1, 2]] : tensor<64x16x2xf32> into tensor<64x32xf32>
  %v = tensor.extract_slice %c[0, 64] [64, 32] [1, 1] : tensor<64x96xf32> to tensor<64x32xf32>
  %es = tensor.empty() : tensor<64x64xf32>
  %is = linalg.fill ins(%zero : f32) outs(%es : tensor<64x64xf32>) -> tensor<64x64xf32>
  %s = linalg.matmul indexing_maps = [#mk, #nk, #mn] ins(%q, %k : tensor<64x32xf32>, tensor<64x32xf32>) outs(%is : tensor<64x64xf32>) -> tensor<64x64xf32>
  return %s, %v : tensor<64x64xf32>, tensor<64x32xf32>
}

// -----

// Who returns a result has it in its order.
// CHECK-LABEL: @returned(
// CHECK:         %[[D:.*]] = linalg.generic {{.*}} outs(%{{.*}} : tensor<64x2x2x16xf32>)
// CHECK-COUNT-2: linalg.transpose {{.*}} permutation = [0, 2, 1]
#mk = affine_map<(m, n, k) -> (m, k)>
#nk = affine_map<(m, n, k) -> (n, k)>
#mn = affine_map<(m, n, k) -> (m, n)>
#one = affine_map<(m, c, p) -> (m, c)>
#all = affine_map<(m, c, p) -> (m, c, p)>
func.func @returned(%x: tensor<64x32xf16>, %w: tensor<64x32xf16> {alcop.weight}) -> (tensor<64x64xf32>, tensor<64x32xf32>) {
  %zero = arith.constant 0.0 : f32
  %c0 = arith.constant 0 : index
  %e = tensor.empty() : tensor<64x64xf32>
  %i = linalg.fill ins(%zero : f32) outs(%e : tensor<64x64xf32>) -> tensor<64x64xf32>
  %c = linalg.matmul indexing_maps = [#mk, #nk, #mn] ins(%x, %w : tensor<64x32xf16>, tensor<64x32xf16>) outs(%i : tensor<64x64xf32>) -> tensor<64x64xf32>
  %o = tensor.empty() : tensor<64x16x2xf32>
  %lq = tensor.extract_slice %c[0, 0] [64, 16] [1, 2] : tensor<64x64xf32> to tensor<64x16xf32>
  %rq = tensor.extract_slice %c[0, 1] [64, 16] [1, 2] : tensor<64x64xf32> to tensor<64x16xf32>
  %zq = linalg.generic {indexing_maps = [#one, #one, #all], iterator_types = ["parallel", "parallel", "parallel"]}
      ins(%lq, %rq : tensor<64x16xf32>, tensor<64x16xf32>) outs(%o : tensor<64x16x2xf32>) {
  ^bb0(%a: f32, %b: f32, %out: f32):
    %p = linalg.index 2 : index
    %is = arith.cmpi eq, %p, %c0 : index
    %1 = arith.subf %a, %b : f32
    %2 = arith.addf %a, %b : f32
    %3 = arith.select %is, %1, %2 : f32
    linalg.yield %3 : f32
  } -> tensor<64x16x2xf32>
  %q = tensor.collapse_shape %zq [[0], [1, 2]] : tensor<64x16x2xf32> into tensor<64x32xf32>
  %lk = tensor.extract_slice %c[0, 32] [64, 16] [1, 2] : tensor<64x64xf32> to tensor<64x16xf32>
  %rk = tensor.extract_slice %c[0, 33] [64, 16] [1, 2] : tensor<64x64xf32> to tensor<64x16xf32>
  %zk = linalg.generic {indexing_maps = [#one, #one, #all], iterator_types = ["parallel", "parallel", "parallel"]}
      ins(%lk, %rk : tensor<64x16xf32>, tensor<64x16xf32>) outs(%o : tensor<64x16x2xf32>) {
  ^bb0(%a: f32, %b: f32, %out: f32):
    %p = linalg.index 2 : index
    %is = arith.cmpi eq, %p, %c0 : index
    %1 = arith.subf %a, %b : f32
    %2 = arith.addf %a, %b : f32
    %3 = arith.select %is, %1, %2 : f32
    linalg.yield %3 : f32
  } -> tensor<64x16x2xf32>
  %k = tensor.collapse_shape %zk [[0], [1, 2]] : tensor<64x16x2xf32> into tensor<64x32xf32>
  %es = tensor.empty() : tensor<64x64xf32>
  %is = linalg.fill ins(%zero : f32) outs(%es : tensor<64x64xf32>) -> tensor<64x64xf32>
  %s = linalg.matmul indexing_maps = [#mk, #nk, #mn] ins(%q, %k : tensor<64x32xf32>, tensor<64x32xf32>) outs(%is : tensor<64x64xf32>) -> tensor<64x64xf32>
  return %s, %k : tensor<64x64xf32>, tensor<64x32xf32>
}

// -----

// So has a sum over the columns of it and of something else.
// CHECK-LABEL: @other(
// CHECK:         %[[D:.*]] = linalg.generic {{.*}} outs(%{{.*}} : tensor<64x1x2x16xf32>)
// CHECK:         linalg.transpose {{.*}} permutation = [0, 2, 1]
// CHECK:         linalg.matmul
#mk = affine_map<(m, n, k) -> (m, k)>
#nk = affine_map<(m, n, k) -> (n, k)>
#mn = affine_map<(m, n, k) -> (m, n)>
#one = affine_map<(m, c, p) -> (m, c)>
#all = affine_map<(m, c, p) -> (m, c, p)>
func.func @other(%x: tensor<64x32xf16>, %w: tensor<32x32xf16> {alcop.weight}, %y: tensor<64x32xf32>) -> tensor<64x64xf32> {
  %zero = arith.constant 0.0 : f32
  %c0 = arith.constant 0 : index
  %e = tensor.empty() : tensor<64x32xf32>
  %i = linalg.fill ins(%zero : f32) outs(%e : tensor<64x32xf32>) -> tensor<64x32xf32>
  %c = linalg.matmul indexing_maps = [#mk, #nk, #mn] ins(%x, %w : tensor<64x32xf16>, tensor<32x32xf16>) outs(%i : tensor<64x32xf32>) -> tensor<64x32xf32>
  %o = tensor.empty() : tensor<64x16x2xf32>
  %lq = tensor.extract_slice %c[0, 0] [64, 16] [1, 2] : tensor<64x32xf32> to tensor<64x16xf32>
  %rq = tensor.extract_slice %c[0, 1] [64, 16] [1, 2] : tensor<64x32xf32> to tensor<64x16xf32>
  %zq = linalg.generic {indexing_maps = [#one, #one, #all], iterator_types = ["parallel", "parallel", "parallel"]}
      ins(%lq, %rq : tensor<64x16xf32>, tensor<64x16xf32>) outs(%o : tensor<64x16x2xf32>) {
  ^bb0(%a: f32, %b: f32, %out: f32):
    %p = linalg.index 2 : index
    %is = arith.cmpi eq, %p, %c0 : index
    %1 = arith.subf %a, %b : f32
    %2 = arith.addf %a, %b : f32
    %3 = arith.select %is, %1, %2 : f32
    linalg.yield %3 : f32
  } -> tensor<64x16x2xf32>
  %q = tensor.collapse_shape %zq [[0], [1, 2]] : tensor<64x16x2xf32> into tensor<64x32xf32>
  %es = tensor.empty() : tensor<64x64xf32>
  %is = linalg.fill ins(%zero : f32) outs(%es : tensor<64x64xf32>) -> tensor<64x64xf32>
  %s = linalg.matmul indexing_maps = [#mk, #nk, #mn] ins(%q, %y : tensor<64x32xf32>, tensor<64x32xf32>) outs(%is : tensor<64x64xf32>) -> tensor<64x64xf32>
  return %s : tensor<64x64xf32>
}

// -----

// What is computed with an operand of its own for each column needs the order.
// CHECK-LABEL: @scaled(
// CHECK:         %[[D:.*]] = linalg.generic {{.*}} outs(%{{.*}} : tensor<64x2x2x16xf32>)
// CHECK-COUNT-2: linalg.transpose {{.*}} permutation = [0, 2, 1]
#mk = affine_map<(m, n, k) -> (m, k)>
#nk = affine_map<(m, n, k) -> (n, k)>
#mn = affine_map<(m, n, k) -> (m, n)>
#one = affine_map<(m, c, p) -> (m, c)>
#all = affine_map<(m, c, p) -> (m, c, p)>
#whole = affine_map<(m, n) -> (m, n)>
#n = affine_map<(m, n) -> (n)>
func.func @scaled(%x: tensor<64x32xf16>, %w: tensor<64x32xf16> {alcop.weight}, %y: tensor<32xf32>) -> tensor<64x64xf32> {
  %zero = arith.constant 0.0 : f32
  %c0 = arith.constant 0 : index
  %e = tensor.empty() : tensor<64x64xf32>
  %i = linalg.fill ins(%zero : f32) outs(%e : tensor<64x64xf32>) -> tensor<64x64xf32>
  %c = linalg.matmul indexing_maps = [#mk, #nk, #mn] ins(%x, %w : tensor<64x32xf16>, tensor<64x32xf16>) outs(%i : tensor<64x64xf32>) -> tensor<64x64xf32>
  %o = tensor.empty() : tensor<64x16x2xf32>
  %lq = tensor.extract_slice %c[0, 0] [64, 16] [1, 2] : tensor<64x64xf32> to tensor<64x16xf32>
  %rq = tensor.extract_slice %c[0, 1] [64, 16] [1, 2] : tensor<64x64xf32> to tensor<64x16xf32>
  %zq = linalg.generic {indexing_maps = [#one, #one, #all], iterator_types = ["parallel", "parallel", "parallel"]}
      ins(%lq, %rq : tensor<64x16xf32>, tensor<64x16xf32>) outs(%o : tensor<64x16x2xf32>) {
  ^bb0(%a: f32, %b: f32, %out: f32):
    %p = linalg.index 2 : index
    %is = arith.cmpi eq, %p, %c0 : index
    %1 = arith.subf %a, %b : f32
    %2 = arith.addf %a, %b : f32
    %3 = arith.select %is, %1, %2 : f32
    linalg.yield %3 : f32
  } -> tensor<64x16x2xf32>
  %q = tensor.collapse_shape %zq [[0], [1, 2]] : tensor<64x16x2xf32> into tensor<64x32xf32>
  %lk = tensor.extract_slice %c[0, 32] [64, 16] [1, 2] : tensor<64x64xf32> to tensor<64x16xf32>
  %rk = tensor.extract_slice %c[0, 33] [64, 16] [1, 2] : tensor<64x64xf32> to tensor<64x16xf32>
  %zk = linalg.generic {indexing_maps = [#one, #one, #all], iterator_types = ["parallel", "parallel", "parallel"]}
      ins(%lk, %rk : tensor<64x16xf32>, tensor<64x16xf32>) outs(%o : tensor<64x16x2xf32>) {
  ^bb0(%a: f32, %b: f32, %out: f32):
    %p = linalg.index 2 : index
    %is = arith.cmpi eq, %p, %c0 : index
    %1 = arith.subf %a, %b : f32
    %2 = arith.addf %a, %b : f32
    %3 = arith.select %is, %1, %2 : f32
    linalg.yield %3 : f32
  } -> tensor<64x16x2xf32>
  %k = tensor.collapse_shape %zk [[0], [1, 2]] : tensor<64x16x2xf32> into tensor<64x32xf32>
  %et = tensor.empty() : tensor<64x32xf32>
  %t = linalg.generic {indexing_maps = [#whole, #n, #whole], iterator_types = ["parallel", "parallel"]} ins(%q, %y : tensor<64x32xf32>, tensor<32xf32>) outs(%et : tensor<64x32xf32>) {
  ^bb0(%a: f32, %b: f32, %out: f32):
    %1 = arith.mulf %a, %b : f32
    linalg.yield %1 : f32
  } -> tensor<64x32xf32>
  %es = tensor.empty() : tensor<64x64xf32>
  %is = linalg.fill ins(%zero : f32) outs(%es : tensor<64x64xf32>) -> tensor<64x64xf32>
  %s = linalg.matmul indexing_maps = [#mk, #nk, #mn] ins(%t, %k : tensor<64x32xf32>, tensor<64x32xf32>) outs(%is : tensor<64x64xf32>) -> tensor<64x64xf32>
  return %s : tensor<64x64xf32>
}
