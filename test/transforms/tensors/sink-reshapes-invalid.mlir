// RUN: alcop-opt %s --alcop-sink-reshapes --mlir-print-local-scope --split-input-file --verify-diagnostics | FileCheck %s

// Positions are those of all batches: the two loops cannot be one.
// CHECK-LABEL: @broadcast(
// CHECK:         tensor.expand_shape
// CHECK:         iterator_types = ["parallel", "parallel", "parallel"]
#all = affine_map<(b, m, n) -> (b, m, n)>
#one = affine_map<(b, m, n) -> (m, n)>
func.func @broadcast(%y: tensor<64x8xf32>, %p: tensor<32x8xf32>) -> tensor<2x32x8xf32> {
  %z = tensor.expand_shape %y [[0, 1], [2]] output_shape [2, 32, 8] : tensor<64x8xf32> into tensor<2x32x8xf32>
  %e = tensor.empty() : tensor<2x32x8xf32>
  // expected-remark @below {{reads what was reshaped as it is: an operand has a part of what was one dimension, or has it in another order}}
  %r = linalg.generic {indexing_maps = [#all, #one, #all], iterator_types = ["parallel", "parallel", "parallel"]}
      ins(%z, %p : tensor<2x32x8xf32>, tensor<32x8xf32>) outs(%e : tensor<2x32x8xf32>) {
  ^bb0(%a: f32, %b: f32, %o: f32):
    %t = arith.addf %a, %b : f32
    linalg.yield %t : f32
  } -> tensor<2x32x8xf32>
  return %r : tensor<2x32x8xf32>
}

// -----

// A result in another order, numbers of iterations, and a sum over a part.
// CHECK-LABEL: @others(
// CHECK-COUNT-3: iterator_types = ["parallel", {{.*}}, {{.*}}]
#all = affine_map<(b, m, n) -> (b, m, n)>
#turned = affine_map<(b, m, n) -> (m, b, n)>
#part = affine_map<(b, m, n) -> (b, n)>
func.func @others(%y: tensor<64x8xf32>, %init: tensor<2x8xf32>)
    -> (tensor<32x2x8xf32>, tensor<2x32x8xf32>, tensor<2x8xf32>) {
  %z = tensor.expand_shape %y [[0, 1], [2]] output_shape [2, 32, 8] : tensor<64x8xf32> into tensor<2x32x8xf32>
  %e = tensor.empty() : tensor<32x2x8xf32>
  %r = linalg.generic {indexing_maps = [#all, #turned], iterator_types = ["parallel", "parallel", "parallel"]}
      ins(%z : tensor<2x32x8xf32>) outs(%e : tensor<32x2x8xf32>) {
  ^bb0(%a: f32, %o: f32):
    %t = arith.negf %a : f32
    linalg.yield %t : f32
  } -> tensor<32x2x8xf32>
  %g = tensor.empty() : tensor<2x32x8xf32>
  %q = linalg.generic {indexing_maps = [#all, #all], iterator_types = ["parallel", "parallel", "parallel"]}
      ins(%z : tensor<2x32x8xf32>) outs(%g : tensor<2x32x8xf32>) {
  ^bb0(%a: f32, %o: f32):
    %i = linalg.index 1 : index
    %j = arith.index_cast %i : index to i32
    %c = arith.sitofp %j : i32 to f32
    %t = arith.addf %a, %c : f32
    linalg.yield %t : f32
  } -> tensor<2x32x8xf32>
  %s = linalg.generic {indexing_maps = [#all, #part], iterator_types = ["parallel", "reduction", "parallel"]}
      ins(%z : tensor<2x32x8xf32>) outs(%init : tensor<2x8xf32>) {
  ^bb0(%a: f32, %o: f32):
    %t = arith.addf %a, %o : f32
    linalg.yield %t : f32
  } -> tensor<2x8xf32>
  return %r, %q, %s : tensor<32x2x8xf32>, tensor<2x32x8xf32>, tensor<2x8xf32>
}
