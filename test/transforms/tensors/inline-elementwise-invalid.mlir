// RUN: alcop-opt %s --alcop-inline-elementwise --split-input-file --verify-diagnostics | FileCheck %s

// Both readers would compute the exponential.
// CHECK-LABEL: @readers(
// CHECK:         linalg.exp
// CHECK-COUNT-2: linalg.{{add|sub}}
func.func @readers(%x: tensor<8xf32>, %y: tensor<8xf32>) -> (tensor<8xf32>, tensor<8xf32>) {
  %e = tensor.empty() : tensor<8xf32>
  // expected-remark @below {{not computed by the element-wise op that reads its result: other ops use its result too, so that it is computed anyway}}
  %s = linalg.exp ins(%x : tensor<8xf32>) outs(%e : tensor<8xf32>) -> tensor<8xf32>
  %a = linalg.add ins(%s, %y : tensor<8xf32>, tensor<8xf32>) outs(%e : tensor<8xf32>) -> tensor<8xf32>
  %b = linalg.sub ins(%s, %y : tensor<8xf32>, tensor<8xf32>) outs(%e : tensor<8xf32>) -> tensor<8xf32>
  return %a, %b : tensor<8xf32>, tensor<8xf32>
}

// -----

// One exponential for each row, not for each element.
// CHECK-LABEL: @rows(
// CHECK:         linalg.exp
// CHECK:         arith.mulf
#mn = affine_map<(m, n) -> (m, n)>
#m = affine_map<(m, n) -> (m)>
func.func @rows(%x: tensor<8xf32>, %y: tensor<8x16xf32>) -> tensor<8x16xf32> {
  %e = tensor.empty() : tensor<8xf32>
  // expected-remark @below {{it would be computed several times per element, and is not cheap}}
  %s = linalg.exp ins(%x : tensor<8xf32>) outs(%e : tensor<8xf32>) -> tensor<8xf32>
  %f = tensor.empty() : tensor<8x16xf32>
  %r = linalg.generic {indexing_maps = [#m, #mn, #mn], iterator_types = ["parallel", "parallel"]} ins(%s, %y : tensor<8xf32>, tensor<8x16xf32>) outs(%f : tensor<8x16xf32>) {
  ^bb0(%a: f32, %b: f32, %o: f32):
    %t = arith.mulf %a, %b : f32
    linalg.yield %t : f32
  } -> tensor<8x16xf32>
  return %r : tensor<8x16xf32>
}

// -----

// Each is the epilogue of a contraction.
// CHECK-LABEL: @epilogues(
// CHECK:         linalg.exp
// CHECK:         linalg.add
func.func @epilogues(%a: tensor<16x16xf32>, %b: tensor<16x16xf32>) -> tensor<16x16xf32> {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<16x16xf32>
  %i = linalg.fill ins(%zero : f32) outs(%e : tensor<16x16xf32>) -> tensor<16x16xf32>
  %c = linalg.matmul ins(%a, %b : tensor<16x16xf32>, tensor<16x16xf32>) outs(%i : tensor<16x16xf32>) -> tensor<16x16xf32>
  %d = linalg.matmul ins(%b, %a : tensor<16x16xf32>, tensor<16x16xf32>) outs(%i : tensor<16x16xf32>) -> tensor<16x16xf32>
  // expected-remark @below {{each reads a contraction that the other does not, and can be computed by it}}
  %s = linalg.exp ins(%c : tensor<16x16xf32>) outs(%e : tensor<16x16xf32>) -> tensor<16x16xf32>
  %r = linalg.add ins(%s, %d : tensor<16x16xf32>, tensor<16x16xf32>) outs(%e : tensor<16x16xf32>) -> tensor<16x16xf32>
  return %r : tensor<16x16xf32>
}

// -----

// Read later, what is overwritten would be copied.
// CHECK-LABEL: @overwritten(
// CHECK:         linalg.negf
// CHECK:         linalg.add
func.func @overwritten(%x: tensor<8xf32> {alcop.in_place = 0 : i64}, %y: tensor<8xf32>) -> (tensor<8xf32>, tensor<8xf32>) {
  %e = tensor.empty() : tensor<8xf32>
  // expected-remark @below {{what it reads is overwritten in place, and would be copied before}}
  %n = linalg.negf ins(%x : tensor<8xf32>) outs(%e : tensor<8xf32>) -> tensor<8xf32>
  %z = tensor.insert_slice %y into %x[0] [8] [1] : tensor<8xf32> into tensor<8xf32>
  %r = linalg.add ins(%n, %y : tensor<8xf32>, tensor<8xf32>) outs(%e : tensor<8xf32>) -> tensor<8xf32>
  return %z, %r : tensor<8xf32>, tensor<8xf32>
}

// -----

// CHECK-LABEL: @updated(
// CHECK-COUNT-2: linalg.generic
#all = affine_map<(n) -> (n)>
func.func @updated(%x: tensor<8xf32>, %y: tensor<8xf32>, %z: tensor<8xf32>) -> tensor<8xf32> {
  // expected-remark @below {{it is computed from what its output held before}}
  %s = linalg.generic {indexing_maps = [#all, #all], iterator_types = ["parallel"]} ins(%x : tensor<8xf32>) outs(%y : tensor<8xf32>) {
  ^bb0(%a: f32, %o: f32):
    %t = arith.addf %a, %o : f32
    linalg.yield %t : f32
  } -> tensor<8xf32>
  %e = tensor.empty() : tensor<8xf32>
  %r = linalg.generic {indexing_maps = [#all, #all, #all], iterator_types = ["parallel"]} ins(%s, %z : tensor<8xf32>, tensor<8xf32>) outs(%e : tensor<8xf32>) {
  ^bb0(%a: f32, %b: f32, %o: f32):
    %t = arith.mulf %a, %b : f32
    linalg.yield %t : f32
  } -> tensor<8xf32>
  return %r : tensor<8xf32>
}

// -----

// What the reader reads once more as its output.
// CHECK-LABEL: @output(
// CHECK:         linalg.negf
// CHECK:         linalg.generic
#all = affine_map<(n) -> (n)>
func.func @output(%x: tensor<8xf32>) -> tensor<8xf32> {
  %e = tensor.empty() : tensor<8xf32>
  // expected-remark @below {{the op that reads its result updates it}}
  %n = linalg.negf ins(%x : tensor<8xf32>) outs(%e : tensor<8xf32>) -> tensor<8xf32>
  %r = linalg.generic {indexing_maps = [#all, #all], iterator_types = ["parallel"]} ins(%n : tensor<8xf32>) outs(%n : tensor<8xf32>) {
  ^bb0(%a: f32, %o: f32):
    %t = arith.mulf %a, %o : f32
    linalg.yield %t : f32
  } -> tensor<8xf32>
  return %r : tensor<8xf32>
}
