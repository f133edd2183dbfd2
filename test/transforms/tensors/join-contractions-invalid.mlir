// RUN: alcop-opt %s --alcop-join-contractions --split-input-file --verify-diagnostics | FileCheck %s

// Whoever calls may give other matrices each time.
// CHECK-LABEL: @unmarked(
// CHECK-COUNT-2: linalg.matmul
#mk = affine_map<(m, n, k) -> (m, k)>
#nk = affine_map<(m, n, k) -> (n, k)>
#mn = affine_map<(m, n, k) -> (m, n)>
#all = affine_map<(m, n) -> (m, n)>
func.func @unmarked(%x: tensor<64x32xf16>, %w: tensor<16x32xf16>, %v: tensor<16x32xf16>) -> (tensor<2x32x16xf32>, tensor<2x32x16xf32>) {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<64x16xf32>
  %i = linalg.fill ins(%zero : f32) outs(%e : tensor<64x16xf32>) -> tensor<64x16xf32>
  %c = linalg.matmul indexing_maps = [#mk, #nk, #mn] ins(%x, %w : tensor<64x32xf16>, tensor<16x32xf16>) outs(%i : tensor<64x16xf32>) -> tensor<64x16xf32>
  %f = tensor.empty() : tensor<64x16xf32>
  %j = linalg.fill ins(%zero : f32) outs(%f : tensor<64x16xf32>) -> tensor<64x16xf32>
  // expected-remark @below {{contractions of one input are not made one: their other operands are no weights ('alcop.weight'), so that joining them would cost a copy in each call}}
  %d = linalg.matmul indexing_maps = [#mk, #nk, #mn] ins(%x, %v : tensor<64x32xf16>, tensor<16x32xf16>) outs(%j : tensor<64x16xf32>) -> tensor<64x16xf32>
  %p = tensor.expand_shape %c [[0, 1], [2]] output_shape [2, 32, 16] : tensor<64x16xf32> into tensor<2x32x16xf32>
  %q = tensor.expand_shape %d [[0, 1], [2]] output_shape [2, 32, 16] : tensor<64x16xf32> into tensor<2x32x16xf32>
  return %p, %q : tensor<2x32x16xf32>, tensor<2x32x16xf32>
}

// -----

// Rows of the second part would not begin at whole 16 bytes.
// CHECK-LABEL: @odd(
// CHECK-COUNT-2: linalg.matmul
#mk = affine_map<(m, n, k) -> (m, k)>
#nk = affine_map<(m, n, k) -> (n, k)>
#mn = affine_map<(m, n, k) -> (m, n)>
#all = affine_map<(m, n) -> (m, n)>
func.func private @read(tensor<2x32x3xf32>, tensor<2x32x16xf32>)
func.func @odd(%x: tensor<64x32xf16>, %w: tensor<3x32xf16> {alcop.weight}, %v: tensor<16x32xf16> {alcop.weight}) {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<64x3xf32>
  %i = linalg.fill ins(%zero : f32) outs(%e : tensor<64x3xf32>) -> tensor<64x3xf32>
  // expected-remark @below {{contractions of one input are not made one: 3 columns of f32 are no whole 16 bytes}}
  %c = linalg.matmul indexing_maps = [#mk, #nk, #mn] ins(%x, %w : tensor<64x32xf16>, tensor<3x32xf16>) outs(%i : tensor<64x3xf32>) -> tensor<64x3xf32>
  %f = tensor.empty() : tensor<64x16xf32>
  %j = linalg.fill ins(%zero : f32) outs(%f : tensor<64x16xf32>) -> tensor<64x16xf32>
  %d = linalg.matmul indexing_maps = [#mk, #nk, #mn] ins(%x, %v : tensor<64x32xf16>, tensor<16x32xf16>) outs(%j : tensor<64x16xf32>) -> tensor<64x16xf32>
  %p = tensor.expand_shape %c [[0, 1], [2]] output_shape [2, 32, 3] : tensor<64x3xf32> into tensor<2x32x3xf32>
  %q = tensor.expand_shape %d [[0, 1], [2]] output_shape [2, 32, 16] : tensor<64x16xf32> into tensor<2x32x16xf32>
  call @read(%p, %q) : (tensor<2x32x3xf32>, tensor<2x32x16xf32>) -> ()
  return
}

// -----

// What is returned has an array of its own.
// CHECK-LABEL: @returned(
// CHECK-COUNT-2: linalg.matmul
#mk = affine_map<(m, n, k) -> (m, k)>
#nk = affine_map<(m, n, k) -> (n, k)>
#mn = affine_map<(m, n, k) -> (m, n)>
#all = affine_map<(m, n) -> (m, n)>
func.func @returned(%x: tensor<64x32xf16>, %w: tensor<16x32xf16> {alcop.weight}, %v: tensor<16x32xf16> {alcop.weight}) -> (tensor<64x16xf32>, tensor<64x16xf32>) {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<64x16xf32>
  %i = linalg.fill ins(%zero : f32) outs(%e : tensor<64x16xf32>) -> tensor<64x16xf32>
  %c = linalg.matmul indexing_maps = [#mk, #nk, #mn] ins(%x, %w : tensor<64x32xf16>, tensor<16x32xf16>) outs(%i : tensor<64x16xf32>) -> tensor<64x16xf32>
  %f = tensor.empty() : tensor<64x16xf32>
  %j = linalg.fill ins(%zero : f32) outs(%f : tensor<64x16xf32>) -> tensor<64x16xf32>
  // expected-remark @below {{contractions of one input are not made one: the function returns one of them, in a memref of its own, and columns of one result would have to be copied there}}
  %d = linalg.matmul indexing_maps = [#mk, #nk, #mn] ins(%x, %v : tensor<64x32xf16>, tensor<16x32xf16>) outs(%j : tensor<64x16xf32>) -> tensor<64x16xf32>
  return %c, %d : tensor<64x16xf32>, tensor<64x16xf32>
}

// -----

// So it is if it is returned with more dimensions.
// CHECK-LABEL: @reshaped(
// CHECK-COUNT-2: linalg.matmul
#mk = affine_map<(m, n, k) -> (m, k)>
#nk = affine_map<(m, n, k) -> (n, k)>
#mn = affine_map<(m, n, k) -> (m, n)>
#all = affine_map<(m, n) -> (m, n)>
func.func @reshaped(%x: tensor<64x32xf16>, %w: tensor<16x32xf16> {alcop.weight}, %v: tensor<16x32xf16> {alcop.weight}) -> (tensor<2x32x16xf32>, tensor<64x4x4xf32>) {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<64x16xf32>
  %i = linalg.fill ins(%zero : f32) outs(%e : tensor<64x16xf32>) -> tensor<64x16xf32>
  %c = linalg.matmul indexing_maps = [#mk, #nk, #mn] ins(%x, %w : tensor<64x32xf16>, tensor<16x32xf16>) outs(%i : tensor<64x16xf32>) -> tensor<64x16xf32>
  %f = tensor.empty() : tensor<64x16xf32>
  %j = linalg.fill ins(%zero : f32) outs(%f : tensor<64x16xf32>) -> tensor<64x16xf32>
  // expected-remark @below {{contractions of one input are not made one: the function returns one of them, in a memref of its own, and columns of one result would have to be copied there}}
  %d = linalg.matmul indexing_maps = [#mk, #nk, #mn] ins(%x, %v : tensor<64x32xf16>, tensor<16x32xf16>) outs(%j : tensor<64x16xf32>) -> tensor<64x16xf32>
  %p = tensor.expand_shape %c [[0, 1], [2]] output_shape [2, 32, 16] : tensor<64x16xf32> into tensor<2x32x16xf32>
  %q = tensor.expand_shape %d [[0], [1, 2]] output_shape [64, 4, 4] : tensor<64x16xf32> into tensor<64x4x4xf32>
  return %p, %q : tensor<2x32x16xf32>, tensor<64x4x4xf32>
}

// -----

// A part with strides is not one dimension.
// CHECK-LABEL: @flat(
// CHECK-COUNT-2: linalg.matmul
#mk = affine_map<(m, n, k) -> (m, k)>
#nk = affine_map<(m, n, k) -> (n, k)>
#mn = affine_map<(m, n, k) -> (m, n)>
#all = affine_map<(m, n) -> (m, n)>
func.func private @take(tensor<2x32x16xf32>)
func.func @flat(%x: tensor<64x32xf16>, %w: tensor<16x32xf16> {alcop.weight}, %v: tensor<16x32xf16> {alcop.weight}) -> (tensor<1024xf32>) {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<64x16xf32>
  %i = linalg.fill ins(%zero : f32) outs(%e : tensor<64x16xf32>) -> tensor<64x16xf32>
  // expected-remark @below {{contractions of one input are not made one: one of them is reshaped to fewer dimensions}}
  %c = linalg.matmul indexing_maps = [#mk, #nk, #mn] ins(%x, %w : tensor<64x32xf16>, tensor<16x32xf16>) outs(%i : tensor<64x16xf32>) -> tensor<64x16xf32>
  %f = tensor.empty() : tensor<64x16xf32>
  %j = linalg.fill ins(%zero : f32) outs(%f : tensor<64x16xf32>) -> tensor<64x16xf32>
  %d = linalg.matmul indexing_maps = [#mk, #nk, #mn] ins(%x, %v : tensor<64x32xf16>, tensor<16x32xf16>) outs(%j : tensor<64x16xf32>) -> tensor<64x16xf32>
  %p = tensor.collapse_shape %c [[0, 1]] : tensor<64x16xf32> into tensor<1024xf32>
  %q = tensor.expand_shape %d [[0, 1], [2]] output_shape [2, 32, 16] : tensor<64x16xf32> into tensor<2x32x16xf32>
  call @take(%q) : (tensor<2x32x16xf32>) -> ()
  return %p : tensor<1024xf32>
}

// -----

// An op reads one of both, and can be its epilogue.
// CHECK-LABEL: @read(
// CHECK-COUNT-2: linalg.matmul
#mk = affine_map<(m, n, k) -> (m, k)>
#nk = affine_map<(m, n, k) -> (n, k)>
#mn = affine_map<(m, n, k) -> (m, n)>
#all = affine_map<(m, n) -> (m, n)>
#turned = affine_map<(m, n) -> (n, m)>
func.func private @take(tensor<2x32x16xf32>)
func.func @read(%x: tensor<64x32xf16>, %w: tensor<16x32xf16> {alcop.weight}, %v: tensor<16x32xf16> {alcop.weight}) -> (tensor<64x16xf32>) {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<64x16xf32>
  %i = linalg.fill ins(%zero : f32) outs(%e : tensor<64x16xf32>) -> tensor<64x16xf32>
  // expected-remark @below {{contractions of one input are not made one: 'linalg.generic' reads one of them, and can be its epilogue}}
  %c = linalg.matmul indexing_maps = [#mk, #nk, #mn] ins(%x, %w : tensor<64x32xf16>, tensor<16x32xf16>) outs(%i : tensor<64x16xf32>) -> tensor<64x16xf32>
  %d = linalg.matmul indexing_maps = [#mk, #nk, #mn] ins(%x, %v : tensor<64x32xf16>, tensor<16x32xf16>) outs(%i : tensor<64x16xf32>) -> tensor<64x16xf32>
  %r = linalg.generic {indexing_maps = [#all, #all], iterator_types = ["parallel", "parallel"]} ins(%c : tensor<64x16xf32>) outs(%e : tensor<64x16xf32>) {
  ^bb0(%a: f32, %o: f32):
    %t = math.exp %a : f32
    linalg.yield %t : f32
  } -> tensor<64x16xf32>
  %q = tensor.expand_shape %d [[0, 1], [2]] output_shape [2, 32, 16] : tensor<64x16xf32> into tensor<2x32x16xf32>
  call @take(%q) : (tensor<2x32x16xf32>) -> ()
  return %r : tensor<64x16xf32>
}

// -----

// What an op combines has whole groups of columns.
// CHECK-LABEL: @groups(
// CHECK-COUNT-2: linalg.matmul
#mk = affine_map<(m, n, k) -> (m, k)>
#nk = affine_map<(m, n, k) -> (n, k)>
#mn = affine_map<(m, n, k) -> (m, n)>
#all = affine_map<(m, n) -> (m, n)>
#turned = affine_map<(m, n) -> (n, m)>
func.func @groups(%x: tensor<64x32xf16>, %w: tensor<24x32xf16> {alcop.weight}, %v: tensor<24x32xf16> {alcop.weight}) -> tensor<64x24xf32> {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<64x24xf32>
  %i = linalg.fill ins(%zero : f32) outs(%e : tensor<64x24xf32>) -> tensor<64x24xf32>
  %c = linalg.matmul indexing_maps = [#mk, #nk, #mn] ins(%x, %w : tensor<64x32xf16>, tensor<24x32xf16>) outs(%i : tensor<64x24xf32>) -> tensor<64x24xf32>
  // expected-remark @below {{contractions of one input are not made one: an op combines columns of theirs, and they have 24, expected one number, a multiple of 16}}
  %d = linalg.matmul indexing_maps = [#mk, #nk, #mn] ins(%x, %v : tensor<64x32xf16>, tensor<24x32xf16>) outs(%i : tensor<64x24xf32>) -> tensor<64x24xf32>
  %r = linalg.mul ins(%c, %d : tensor<64x24xf32>, tensor<64x24xf32>) outs(%e : tensor<64x24xf32>) -> tensor<64x24xf32>
  return %r : tensor<64x24xf32>
}

// -----

// Matrices that each call gives are not joined for what combines their results.
// CHECK-LABEL: @combined(
// CHECK-COUNT-2: linalg.matmul
#mk = affine_map<(m, n, k) -> (m, k)>
#nk = affine_map<(m, n, k) -> (n, k)>
#mn = affine_map<(m, n, k) -> (m, n)>
#all = affine_map<(m, n) -> (m, n)>
#turned = affine_map<(m, n) -> (n, m)>
func.func @combined(%x: tensor<64x32xf16>, %w: tensor<16x32xf16>, %v: tensor<16x32xf16>) -> tensor<64x16xf32> {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<64x16xf32>
  %i = linalg.fill ins(%zero : f32) outs(%e : tensor<64x16xf32>) -> tensor<64x16xf32>
  %c = linalg.matmul indexing_maps = [#mk, #nk, #mn] ins(%x, %w : tensor<64x32xf16>, tensor<16x32xf16>) outs(%i : tensor<64x16xf32>) -> tensor<64x16xf32>
  // expected-remark @below {{contractions of one input are not made one: their other operands are no weights ('alcop.weight'), so that joining them would cost a copy in each call}}
  %d = linalg.matmul indexing_maps = [#mk, #nk, #mn] ins(%x, %v : tensor<64x32xf16>, tensor<16x32xf16>) outs(%i : tensor<64x16xf32>) -> tensor<64x16xf32>
  %r = linalg.mul ins(%c, %d : tensor<64x16xf32>, tensor<64x16xf32>) outs(%e : tensor<64x16xf32>) -> tensor<64x16xf32>
  return %r : tensor<64x16xf32>
}

// -----

// What else reads one of them needs it in memory.
// CHECK-LABEL: @other_reader(
// CHECK-COUNT-2: linalg.matmul
#mk = affine_map<(m, n, k) -> (m, k)>
#nk = affine_map<(m, n, k) -> (n, k)>
#mn = affine_map<(m, n, k) -> (m, n)>
#all = affine_map<(m, n) -> (m, n)>
#turned = affine_map<(m, n) -> (n, m)>
func.func @other_reader(%x: tensor<64x32xf16>, %w: tensor<16x32xf16> {alcop.weight}, %v: tensor<16x32xf16> {alcop.weight}) -> (tensor<64x16xf32>, tensor<64x16xf32>) {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<64x16xf32>
  %i = linalg.fill ins(%zero : f32) outs(%e : tensor<64x16xf32>) -> tensor<64x16xf32>
  // expected-remark @below {{contractions of one input are not made one: the function returns one of them, in a memref of its own, and columns of one result would have to be copied there}}
  %c = linalg.matmul indexing_maps = [#mk, #nk, #mn] ins(%x, %w : tensor<64x32xf16>, tensor<16x32xf16>) outs(%i : tensor<64x16xf32>) -> tensor<64x16xf32>
  %d = linalg.matmul indexing_maps = [#mk, #nk, #mn] ins(%x, %v : tensor<64x32xf16>, tensor<16x32xf16>) outs(%i : tensor<64x16xf32>) -> tensor<64x16xf32>
  %r = linalg.mul ins(%c, %d : tensor<64x16xf32>, tensor<64x16xf32>) outs(%e : tensor<64x16xf32>) -> tensor<64x16xf32>
  return %r, %c : tensor<64x16xf32>, tensor<64x16xf32>
}

// -----

// The op reads one of them transposed.
// CHECK-LABEL: @transposed(
// CHECK-COUNT-2: linalg.matmul
#mk = affine_map<(m, n, k) -> (m, k)>
#nk = affine_map<(m, n, k) -> (n, k)>
#mn = affine_map<(m, n, k) -> (m, n)>
#all = affine_map<(m, n) -> (m, n)>
#turned = affine_map<(m, n) -> (n, m)>
func.func @transposed(%x: tensor<64x32xf16>, %w: tensor<64x32xf16> {alcop.weight}, %v: tensor<64x32xf16> {alcop.weight}) -> tensor<64x64xf32> {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<64x64xf32>
  %i = linalg.fill ins(%zero : f32) outs(%e : tensor<64x64xf32>) -> tensor<64x64xf32>
  // expected-remark @below {{contractions of one input are not made one: 'linalg.generic' reads one of them, and can be its epilogue}}
  %c = linalg.matmul indexing_maps = [#mk, #nk, #mn] ins(%x, %w : tensor<64x32xf16>, tensor<64x32xf16>) outs(%i : tensor<64x64xf32>) -> tensor<64x64xf32>
  %d = linalg.matmul indexing_maps = [#mk, #nk, #mn] ins(%x, %v : tensor<64x32xf16>, tensor<64x32xf16>) outs(%i : tensor<64x64xf32>) -> tensor<64x64xf32>
  %r = linalg.generic {indexing_maps = [#all, #turned, #all], iterator_types = ["parallel", "parallel"]} ins(%c, %d : tensor<64x64xf32>, tensor<64x64xf32>) outs(%e : tensor<64x64xf32>) {
  ^bb0(%a: f32, %b: f32, %o: f32):
    %t = arith.mulf %a, %b : f32
    linalg.yield %t : f32
  } -> tensor<64x64xf32>
  return %r : tensor<64x64xf32>
}

// -----

// What asserts is no epilogue of theirs.
// CHECK-LABEL: @asserting(
// CHECK-COUNT-2: linalg.matmul
#mk = affine_map<(m, n, k) -> (m, k)>
#nk = affine_map<(m, n, k) -> (n, k)>
#mn = affine_map<(m, n, k) -> (m, n)>
#all = affine_map<(m, n) -> (m, n)>
func.func @asserting(%x: tensor<64x32xf16>, %w: tensor<16x32xf16> {alcop.weight}, %v: tensor<16x32xf16> {alcop.weight}) -> tensor<64x16xf32> {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<64x16xf32>
  %i = linalg.fill ins(%zero : f32) outs(%e : tensor<64x16xf32>) -> tensor<64x16xf32>
  %c = linalg.matmul indexing_maps = [#mk, #nk, #mn] ins(%x, %w : tensor<64x32xf16>, tensor<16x32xf16>) outs(%i : tensor<64x16xf32>) -> tensor<64x16xf32>
  // expected-remark @below {{contractions of one input are not made one: 'linalg.generic' reads one of them, and can be its epilogue}}
  %d = linalg.matmul indexing_maps = [#mk, #nk, #mn] ins(%x, %v : tensor<64x32xf16>, tensor<16x32xf16>) outs(%i : tensor<64x16xf32>) -> tensor<64x16xf32>
  %r = linalg.generic {indexing_maps = [#all, #all, #all], iterator_types = ["parallel", "parallel"]} ins(%c, %d : tensor<64x16xf32>, tensor<64x16xf32>) outs(%e : tensor<64x16xf32>) {
  ^bb0(%a: f32, %b: f32, %o: f32):
    %s = arith.cmpf one, %b, %zero : f32
    cf.assert %s, "expected no zero"
    %t = arith.divf %a, %b : f32
    linalg.yield %t : f32
  } -> tensor<64x16xf32>
  return %r : tensor<64x16xf32>
}

// -----

// A number is not a tensor.

#all = affine_map<(m, n) -> (m, n)>
#none = affine_map<(m, n) -> ()>
#m = affine_map<(m, n) -> (m)>

// CHECK-LABEL: func.func @scalar
// CHECK: linalg.generic
// CHECK-NOT: tensor.extract_slice
func.func @scalar(%x: tensor<64x32xi32>, %e: tensor<64xi32>) -> tensor<64xi32> {
  %three = arith.constant 3 : i32
  %y = linalg.generic {indexing_maps = [#all, #none, #m], iterator_types = ["parallel", "reduction"]} ins(%x, %three : tensor<64x32xi32>, i32) outs(%e : tensor<64xi32>) {
  ^bb0(%a: i32, %b: i32, %c: i32):
    %p = arith.muli %a, %b : i32
    %s = arith.addi %c, %p : i32
    linalg.yield %s : i32
  } -> tensor<64xi32>
  return %y : tensor<64xi32>
}
