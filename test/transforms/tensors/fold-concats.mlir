// RUN: alcop-opt %s --alcop-fold-concats --mlir-print-local-scope | FileCheck %s

// Two halves, rotated and put together: one op, which computes both for each element, and
// chooses. The cast behind is in its body, and goes over the halves.
// CHECK-LABEL: @rotate(
// CHECK-SAME:    %[[X:.*]]: tensor<4x8xf32>, %[[Y:.*]]: tensor<4x8xf32>, %[[C:.*]]: tensor<4x8xf32>, %[[S:.*]]: tensor<16xf16>)
// CHECK:         %[[E:.*]] = tensor.expand_shape %[[S]] {{\[\[}}0, 1]] output_shape [2, 8] : tensor<16xf16> into tensor<2x8xf16>
// CHECK:         %[[R:.*]] = linalg.generic {indexing_maps = [
// CHECK-SAME:      iterator_types = ["parallel", "parallel", "parallel"]}
// CHECK-SAME:      outs(%{{.*}} : tensor<4x2x8xf16>)
// CHECK-DAG:       %[[P:.*]] = linalg.index 1 : index
// CHECK-DAG:       %[[A:.*]] = arith.subf
// CHECK-DAG:       %[[B:.*]] = arith.addf
// CHECK:           %[[Q:.*]] = arith.cmpi eq, %[[P]],
// CHECK:           %[[V:.*]] = arith.select %[[Q]], %[[A]], %[[B]] : f32
// CHECK:           %[[T:.*]] = arith.truncf %[[V]] : f32 to f16
// CHECK:           arith.mulf %[[T]], %{{.*}} : f16
// CHECK:         %[[J:.*]] = tensor.collapse_shape %[[R]] {{\[\[}}0], [1, 2]] : tensor<4x2x8xf16> into tensor<4x16xf16>
// CHECK:         return %[[J]]
#all = affine_map<(m, n) -> (m, n)>
#n = affine_map<(m, n) -> (n)>
func.func @rotate(%x: tensor<4x8xf32>, %y: tensor<4x8xf32>, %cos: tensor<4x8xf32>, %s: tensor<16xf16>) -> tensor<4x16xf16> {
  %e = tensor.empty() : tensor<4x8xf32>
  %a = linalg.generic {indexing_maps = [#all, #all, #all], iterator_types = ["parallel", "parallel"]} ins(%x, %cos : tensor<4x8xf32>, tensor<4x8xf32>) outs(%e : tensor<4x8xf32>) {
  ^bb0(%p: f32, %q: f32, %o: f32):
    %t = arith.subf %p, %q : f32
    linalg.yield %t : f32
  } -> tensor<4x8xf32>
  %b = linalg.generic {indexing_maps = [#all, #all, #all], iterator_types = ["parallel", "parallel"]} ins(%y, %cos : tensor<4x8xf32>, tensor<4x8xf32>) outs(%e : tensor<4x8xf32>) {
  ^bb0(%p: f32, %q: f32, %o: f32):
    %t = arith.addf %p, %q : f32
    linalg.yield %t : f32
  } -> tensor<4x8xf32>
  %c = tensor.concat dim(1) %a, %b : (tensor<4x8xf32>, tensor<4x8xf32>) -> tensor<4x16xf32>
  %h = tensor.empty() : tensor<4x16xf16>
  %r = linalg.generic {indexing_maps = [#all, #n, #all], iterator_types = ["parallel", "parallel"]} ins(%c, %s : tensor<4x16xf32>, tensor<16xf16>) outs(%h : tensor<4x16xf16>) {
  ^bb0(%p: f32, %q: f16, %o: f16):
    %t = arith.truncf %p : f32 to f16
    %u = arith.mulf %t, %q : f16
    linalg.yield %u : f16
  } -> tensor<4x16xf16>
  return %r : tensor<4x16xf16>
}

// What memory holds is put together by copies.
// CHECK-LABEL: @arguments(
// CHECK:         tensor.concat
func.func @arguments(%x: tensor<4x8xf32>, %y: tensor<4x8xf32>) -> tensor<4x16xf32> {
  %c = tensor.concat dim(1) %x, %y : (tensor<4x8xf32>, tensor<4x8xf32>) -> tensor<4x16xf32>
  return %c : tensor<4x16xf32>
}
