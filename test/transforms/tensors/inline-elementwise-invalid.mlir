// RUN: alcop-opt %s --alcop-inline-elementwise --split-input-file --verify-diagnostics | FileCheck %s

// Both readers would compute two functions, to move 64 bytes less.
// CHECK-LABEL: @readers(
// CHECK:         math.tanh
// CHECK:         linalg.yield
// CHECK-COUNT-2: linalg.{{add|sub}}
func.func @readers(%x: tensor<8xf32>, %y: tensor<8xf32>) -> (tensor<8xf32>, tensor<8xf32>) {
  %e = tensor.empty() : tensor<8xf32>
  %p = linalg.exp ins(%x : tensor<8xf32>) outs(%e : tensor<8xf32>) -> tensor<8xf32>
  // expected-remark @below {{2 ops read its result, and would compute 512 operations more to move 64 bytes less, expected 384 at most}}
  %s = linalg.tanh ins(%p : tensor<8xf32>) outs(%e : tensor<8xf32>) -> tensor<8xf32>
  %a = linalg.add ins(%s, %y : tensor<8xf32>, tensor<8xf32>) outs(%e : tensor<8xf32>) -> tensor<8xf32>
  %b = linalg.sub ins(%s, %y : tensor<8xf32>, tensor<8xf32>) outs(%e : tensor<8xf32>) -> tensor<8xf32>
  return %a, %b : tensor<8xf32>, tensor<8xf32>
}

// -----

// Both would read three tensors instead of one.
// CHECK-LABEL: @more_bytes(
// CHECK:         linalg.generic
// CHECK-COUNT-2: linalg.{{add|sub}}
#n = affine_map<(n) -> (n)>
func.func @more_bytes(%x: tensor<8xf32>, %y: tensor<8xf32>, %u: tensor<8xf32>, %v: tensor<8xf32>, %w: tensor<8xf32>, %z: tensor<8xf32>) -> (tensor<8xf32>, tensor<8xf32>) {
  %e = tensor.empty() : tensor<8xf32>
  // expected-remark @below {{2 ops read its result, and would read 64 bytes more of what it is computed from}}
  %s = linalg.generic {indexing_maps = [#n, #n, #n, #n, #n, #n], iterator_types = ["parallel"]} ins(%x, %u, %v, %w, %z : tensor<8xf32>, tensor<8xf32>, tensor<8xf32>, tensor<8xf32>, tensor<8xf32>) outs(%e : tensor<8xf32>) {
  ^bb0(%a0: f32, %a1: f32, %a2: f32, %a3: f32, %a4: f32, %o: f32):
    %p0 = arith.addf %a0, %a1 : f32
    %p1 = arith.addf %a2, %a3 : f32
    %p2 = arith.addf %p0, %p1 : f32
    %p3 = arith.addf %p2, %a4 : f32
    linalg.yield %p3 : f32
  } -> tensor<8xf32>
  %a = linalg.add ins(%s, %y : tensor<8xf32>, tensor<8xf32>) outs(%e : tensor<8xf32>) -> tensor<8xf32>
  %b = linalg.sub ins(%s, %y : tensor<8xf32>, tensor<8xf32>) outs(%e : tensor<8xf32>) -> tensor<8xf32>
  return %a, %b : tensor<8xf32>, tensor<8xf32>
}

// -----

// It is returned too, so that it is written anyway.
// CHECK-LABEL: @returned(
// CHECK:         linalg.negf
// CHECK:         linalg.add
func.func @returned(%x: tensor<8xf32>, %y: tensor<8xf32>) -> (tensor<8xf32>, tensor<8xf32>) {
  %e = tensor.empty() : tensor<8xf32>
  // expected-remark @below {{other ops use its result too, so that it is computed anyway}}
  %s = linalg.negf ins(%x : tensor<8xf32>) outs(%e : tensor<8xf32>) -> tensor<8xf32>
  %a = linalg.add ins(%s, %y : tensor<8xf32>, tensor<8xf32>) outs(%e : tensor<8xf32>) -> tensor<8xf32>
  return %a, %s : tensor<8xf32>, tensor<8xf32>
}

// -----

// Of open sizes nobody knows what is worth it.
// CHECK-LABEL: @open(
// CHECK:         linalg.negf
// CHECK-COUNT-2: linalg.{{add|sub}}
func.func @open(%x: tensor<?xf32>, %y: tensor<?xf32>) -> (tensor<?xf32>, tensor<?xf32>) {
  %zero = arith.constant 0 : index
  %d = tensor.dim %x, %zero : tensor<?xf32>
  %e = tensor.empty(%d) : tensor<?xf32>
  // expected-remark @below {{other ops read its result too, and sizes are known at run time only}}
  %s = linalg.negf ins(%x : tensor<?xf32>) outs(%e : tensor<?xf32>) -> tensor<?xf32>
  %a = linalg.add ins(%s, %y : tensor<?xf32>, tensor<?xf32>) outs(%e : tensor<?xf32>) -> tensor<?xf32>
  %b = linalg.sub ins(%s, %y : tensor<?xf32>, tensor<?xf32>) outs(%e : tensor<?xf32>) -> tensor<?xf32>
  return %a, %b : tensor<?xf32>, tensor<?xf32>
}

// -----

// The epilogue of a contraction, which stores what several ops read.
// CHECK-LABEL: @epilogue(
// CHECK:         linalg.negf
// CHECK-COUNT-2: linalg.{{add|sub}}
func.func @epilogue(%x: tensor<16x16xf32>, %y: tensor<16x16xf32>) -> (tensor<16x16xf32>, tensor<16x16xf32>) {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<16x16xf32>
  %i = linalg.fill ins(%zero : f32) outs(%e : tensor<16x16xf32>) -> tensor<16x16xf32>
  %c = linalg.matmul ins(%x, %y : tensor<16x16xf32>, tensor<16x16xf32>) outs(%i : tensor<16x16xf32>) -> tensor<16x16xf32>
  // expected-remark @below {{other ops read its result too, and what makes its inputs can compute it}}
  %s = linalg.negf ins(%c : tensor<16x16xf32>) outs(%e : tensor<16x16xf32>) -> tensor<16x16xf32>
  %a = linalg.add ins(%s, %y : tensor<16x16xf32>, tensor<16x16xf32>) outs(%e : tensor<16x16xf32>) -> tensor<16x16xf32>
  %b = linalg.sub ins(%s, %y : tensor<16x16xf32>, tensor<16x16xf32>) outs(%e : tensor<16x16xf32>) -> tensor<16x16xf32>
  return %a, %b : tensor<16x16xf32>, tensor<16x16xf32>
}

// -----

// With the number of an iteration it would be no epilogue of the contraction.
// CHECK-LABEL: @numbered(
// CHECK:         linalg.matmul
// CHECK:         linalg.exp
// CHECK:         linalg.index
#mn = affine_map<(m, n) -> (m, n)>
func.func @numbered(%x: tensor<16x16xf32>, %y: tensor<16x16xf32>) -> tensor<16x16xf32> {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<16x16xf32>
  %i = linalg.fill ins(%zero : f32) outs(%e : tensor<16x16xf32>) -> tensor<16x16xf32>
  %c = linalg.matmul ins(%x, %y : tensor<16x16xf32>, tensor<16x16xf32>) outs(%i : tensor<16x16xf32>) -> tensor<16x16xf32>
  // expected-remark @below {{a contraction can compute it, and not the op that reads its result}}
  %s = linalg.exp ins(%c : tensor<16x16xf32>) outs(%e : tensor<16x16xf32>) -> tensor<16x16xf32>
  %r = linalg.generic {indexing_maps = [#mn, #mn], iterator_types = ["parallel", "parallel"]} ins(%s : tensor<16x16xf32>) outs(%e : tensor<16x16xf32>) {
  ^bb0(%a: f32, %o: f32):
    %m = linalg.index 0 : index
    %n = linalg.index 1 : index
    %p = arith.cmpi sle, %n, %m : index
    %t = arith.select %p, %a, %zero : f32
    linalg.yield %t : f32
  } -> tensor<16x16xf32>
  return %r : tensor<16x16xf32>
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
