// RUN: alcop-opt %s --alcop-fold-concats --mlir-print-local-scope --split-input-file --verify-diagnostics | FileCheck %s

// Parts that are not equal.
// CHECK-LABEL: @sizes(
// CHECK:         tensor.concat
#all = affine_map<(m, n) -> (m, n)>
func.func @sizes(%x: tensor<4x8xf32>, %y: tensor<4x4xf32>) -> (tensor<4x12xf32>) {
  %e = tensor.empty() : tensor<4x8xf32>
  %a = linalg.generic {indexing_maps = [#all, #all], iterator_types = ["parallel", "parallel"]} ins(%x : tensor<4x8xf32>) outs(%e : tensor<4x8xf32>) {
  ^bb0(%p: f32, %o: f32):
    %t = arith.negf %p : f32
    linalg.yield %t : f32
  } -> tensor<4x8xf32>
  %f = tensor.empty() : tensor<4x4xf32>
  %b = linalg.generic {indexing_maps = [#all, #all], iterator_types = ["parallel", "parallel"]} ins(%y : tensor<4x4xf32>) outs(%f : tensor<4x4xf32>) {
  ^bb0(%p: f32, %o: f32):
    %t = arith.negf %p : f32
    linalg.yield %t : f32
  } -> tensor<4x4xf32>
  // expected-remark @below {{parts are computed, and then put together: its parts have sizes that differ, or are known at run time only}}
  %c = tensor.concat dim(1) %a, %b : (tensor<4x8xf32>, tensor<4x4xf32>) -> tensor<4x12xf32>
  return %c : tensor<4x12xf32>
}

// -----

// Each element would take an exponential, whichever part it is of.
// CHECK-LABEL: @functions(
// CHECK:         tensor.concat
#all = affine_map<(m, n) -> (m, n)>
func.func @functions(%x: tensor<4x8xf32>, %y: tensor<4x8xf32>) -> (tensor<4x16xf32>) {
  %e = tensor.empty() : tensor<4x8xf32>
  %a = linalg.generic {indexing_maps = [#all, #all], iterator_types = ["parallel", "parallel"]} ins(%x : tensor<4x8xf32>) outs(%e : tensor<4x8xf32>) {
  ^bb0(%p: f32, %o: f32):
    %t = math.exp %p : f32
    linalg.yield %t : f32
  } -> tensor<4x8xf32>
  %f = tensor.empty() : tensor<4x8xf32>
  %b = linalg.generic {indexing_maps = [#all, #all], iterator_types = ["parallel", "parallel"]} ins(%y : tensor<4x8xf32>) outs(%f : tensor<4x8xf32>) {
  ^bb0(%p: f32, %o: f32):
    %t = arith.negf %p : f32
    linalg.yield %t : f32
  } -> tensor<4x8xf32>
  // expected-remark @below {{parts are computed, and then put together: its parts take long to compute, and all would be for each element}}
  %c = tensor.concat dim(1) %a, %b : (tensor<4x8xf32>, tensor<4x8xf32>) -> tensor<4x16xf32>
  return %c : tensor<4x16xf32>
}

// -----

// A part is needed by itself.
// CHECK-LABEL: @read(
// CHECK:         tensor.concat
#all = affine_map<(m, n) -> (m, n)>
func.func @read(%x: tensor<4x8xf32>, %y: tensor<4x8xf32>) -> (tensor<4x16xf32>, tensor<4x8xf32>) {
  %e = tensor.empty() : tensor<4x8xf32>
  %a = linalg.generic {indexing_maps = [#all, #all], iterator_types = ["parallel", "parallel"]} ins(%x : tensor<4x8xf32>) outs(%e : tensor<4x8xf32>) {
  ^bb0(%p: f32, %o: f32):
    %t = arith.negf %p : f32
    linalg.yield %t : f32
  } -> tensor<4x8xf32>
  %f = tensor.empty() : tensor<4x8xf32>
  %b = linalg.generic {indexing_maps = [#all, #all], iterator_types = ["parallel", "parallel"]} ins(%y : tensor<4x8xf32>) outs(%f : tensor<4x8xf32>) {
  ^bb0(%p: f32, %o: f32):
    %t = arith.negf %p : f32
    linalg.yield %t : f32
  } -> tensor<4x8xf32>
  // expected-remark @below {{parts are computed, and then put together: other ops read a part}}
  %c = tensor.concat dim(1) %a, %b : (tensor<4x8xf32>, tensor<4x8xf32>) -> tensor<4x16xf32>
  return %c, %a : tensor<4x16xf32>, tensor<4x8xf32>
}

// -----

// An argument beside what is computed: another op may have to be told where to write.
// CHECK-LABEL: @argument(
// CHECK:         tensor.concat
#all = affine_map<(m, n) -> (m, n)>
func.func @argument(%x: tensor<4x8xf32>, %y: tensor<4x8xf32>) -> tensor<4x16xf32> {
  %e = tensor.empty() : tensor<4x8xf32>
  %a = linalg.generic {indexing_maps = [#all, #all], iterator_types = ["parallel", "parallel"]} ins(%x : tensor<4x8xf32>) outs(%e : tensor<4x8xf32>) {
  ^bb0(%p: f32, %o: f32):
    %t = arith.negf %p : f32
    linalg.yield %t : f32
  } -> tensor<4x8xf32>
  // expected-remark @below {{parts are computed, and then put together: a part is neither made by an element-wise op nor a slice}}
  %c = tensor.concat dim(1) %a, %y : (tensor<4x8xf32>, tensor<4x8xf32>) -> tensor<4x16xf32>
  return %c : tensor<4x16xf32>
}
