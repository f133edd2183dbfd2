// RUN: alcop-opt %s --alcop-sink-transposes --mlir-print-local-scope --split-input-file | FileCheck %s

// The result is not taken apart: it would have to be transposed instead.
// CHECK-LABEL: @returned(
// CHECK:       %[[T:.*]] = linalg.transpose
// CHECK:       %[[A:.*]] = tensor.collapse_shape %[[T]]
// CHECK:       %[[Y:.*]] = linalg.generic {{.*}} ins(%[[A]]
// CHECK:       return %[[Y]]
func.func @returned(%x: tensor<2x8x4xf32>) -> tensor<16x4xf32> {
  %e = tensor.empty() : tensor<8x2x4xf32>
  %t = linalg.transpose ins(%x : tensor<2x8x4xf32>) outs(%e : tensor<8x2x4xf32>) permutation = [1, 0, 2]
  %a = tensor.collapse_shape %t [[0, 1], [2]] : tensor<8x2x4xf32> into tensor<16x4xf32>
  %f = tensor.empty() : tensor<16x4xf32>
  %y = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i, j)>], iterator_types = ["parallel", "parallel"]}
    ins(%a : tensor<16x4xf32>) outs(%f : tensor<16x4xf32>) {
  ^bb0(%u: f32, %o: f32):
    %c = arith.negf %u : f32
    linalg.yield %c : f32
  } -> tensor<16x4xf32>
  return %y : tensor<16x4xf32>
}

// -----

// It is taken apart, and one reader wants it so.
// CHECK-LABEL: @read_as_it_is(
// CHECK:       %[[T:.*]] = linalg.transpose
// CHECK:       %[[A:.*]] = tensor.collapse_shape %[[T]]
// CHECK:       linalg.generic {{.*}} ins(%[[A]]
func.func @read_as_it_is(%x: tensor<2x8x4xf32>) -> (tensor<2x8x4xf32>, tensor<8x2x4xf32>) {
  %e = tensor.empty() : tensor<8x2x4xf32>
  %t = linalg.transpose ins(%x : tensor<2x8x4xf32>) outs(%e : tensor<8x2x4xf32>) permutation = [1, 0, 2]
  %a = tensor.collapse_shape %t [[0, 1], [2]] : tensor<8x2x4xf32> into tensor<16x4xf32>
  %f = tensor.empty() : tensor<16x4xf32>
  %y = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i, j)>], iterator_types = ["parallel", "parallel"]}
    ins(%a : tensor<16x4xf32>) outs(%f : tensor<16x4xf32>) {
  ^bb0(%u: f32, %o: f32):
    %c = arith.negf %u : f32
    linalg.yield %c : f32
  } -> tensor<16x4xf32>
  %p = tensor.expand_shape %y [[0, 1], [2]] output_shape [8, 2, 4] : tensor<16x4xf32> into tensor<8x2x4xf32>
  %g = tensor.empty() : tensor<2x8x4xf32>
  %z = linalg.transpose ins(%p : tensor<8x2x4xf32>) outs(%g : tensor<2x8x4xf32>) permutation = [1, 0, 2]
  return %z, %p : tensor<2x8x4xf32>, tensor<8x2x4xf32>
}

// -----

// Rows are taken apart into others than were put together.
// CHECK-LABEL: @other_parts(
// CHECK:       %[[T:.*]] = linalg.transpose
// CHECK:       %[[A:.*]] = tensor.collapse_shape %[[T]]
// CHECK:       linalg.generic {{.*}} ins(%[[A]]
func.func @other_parts(%x: tensor<2x8x4xf32>) -> tensor<4x4x4xf32> {
  %e = tensor.empty() : tensor<8x2x4xf32>
  %t = linalg.transpose ins(%x : tensor<2x8x4xf32>) outs(%e : tensor<8x2x4xf32>) permutation = [1, 0, 2]
  %a = tensor.collapse_shape %t [[0, 1], [2]] : tensor<8x2x4xf32> into tensor<16x4xf32>
  %f = tensor.empty() : tensor<16x4xf32>
  %y = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i, j)>], iterator_types = ["parallel", "parallel"]}
    ins(%a : tensor<16x4xf32>) outs(%f : tensor<16x4xf32>) {
  ^bb0(%u: f32, %o: f32):
    %c = arith.negf %u : f32
    linalg.yield %c : f32
  } -> tensor<16x4xf32>
  %p = tensor.expand_shape %y [[0, 1], [2]] output_shape [4, 4, 4] : tensor<16x4xf32> into tensor<4x4x4xf32>
  %g = tensor.empty() : tensor<4x4x4xf32>
  %z = linalg.transpose ins(%p : tensor<4x4x4xf32>) outs(%g : tensor<4x4x4xf32>) permutation = [1, 0, 2]
  return %z : tensor<4x4x4xf32>
}

// -----

// The body asks for the number of the row; another input has rows in the old order; the
// result starts from rows of its own; the loop is a reduction.
// CHECK-LABEL: @bound(
// CHECK:       %[[T:.*]] = linalg.transpose
// CHECK:       %[[A:.*]] = tensor.collapse_shape %[[T]]
// CHECK:       linalg.generic {{.*}} ins(%[[A]] :
// CHECK:       linalg.generic {{.*}} ins(%[[A]], %{{.*}} :
// CHECK:       linalg.generic {{.*}} ins(%[[A]] :
// CHECK:       linalg.generic {{.*}} ins(%[[A]] :
#both = affine_map<(i, j) -> (i, j)>
func.func @bound(%x: tensor<2x8x4xf32>, %b: tensor<16x4xf32>) -> (tensor<2x8x4xf32>, tensor<2x8x4xf32>, tensor<2x8x4xf32>, tensor<4xf32>) {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<8x2x4xf32>
  %t = linalg.transpose ins(%x : tensor<2x8x4xf32>) outs(%e : tensor<8x2x4xf32>) permutation = [1, 0, 2]
  %a = tensor.collapse_shape %t [[0, 1], [2]] : tensor<8x2x4xf32> into tensor<16x4xf32>
  %f = tensor.empty() : tensor<16x4xf32>
  %g = tensor.empty() : tensor<2x8x4xf32>
  %y0 = linalg.generic {indexing_maps = [#both, #both], iterator_types = ["parallel", "parallel"]}
    ins(%a : tensor<16x4xf32>) outs(%f : tensor<16x4xf32>) {
  ^bb0(%u: f32, %o: f32):
    %i = linalg.index 0 : index
    %n = arith.index_cast %i : index to i32
    %r = arith.sitofp %n : i32 to f32
    %c = arith.addf %u, %r : f32
    linalg.yield %c : f32
  } -> tensor<16x4xf32>
  %y1 = linalg.generic {indexing_maps = [#both, #both, #both], iterator_types = ["parallel", "parallel"]}
    ins(%a, %b : tensor<16x4xf32>, tensor<16x4xf32>) outs(%f : tensor<16x4xf32>) {
  ^bb0(%u: f32, %v: f32, %o: f32):
    %c = arith.addf %u, %v : f32
    linalg.yield %c : f32
  } -> tensor<16x4xf32>
  %y2 = linalg.generic {indexing_maps = [#both, #both], iterator_types = ["parallel", "parallel"]}
    ins(%a : tensor<16x4xf32>) outs(%b : tensor<16x4xf32>) {
  ^bb0(%u: f32, %o: f32):
    %c = arith.addf %u, %o : f32
    linalg.yield %c : f32
  } -> tensor<16x4xf32>
  %h = tensor.empty() : tensor<4xf32>
  %k = linalg.fill ins(%zero : f32) outs(%h : tensor<4xf32>) -> tensor<4xf32>
  %y3 = linalg.generic {indexing_maps = [#both, affine_map<(i, j) -> (j)>], iterator_types = ["reduction", "parallel"]}
    ins(%a : tensor<16x4xf32>) outs(%k : tensor<4xf32>) {
  ^bb0(%u: f32, %o: f32):
    %c = arith.addf %u, %o : f32
    linalg.yield %c : f32
  } -> tensor<4xf32>
  %p0 = tensor.expand_shape %y0 [[0, 1], [2]] output_shape [8, 2, 4] : tensor<16x4xf32> into tensor<8x2x4xf32>
  %z0 = linalg.transpose ins(%p0 : tensor<8x2x4xf32>) outs(%g : tensor<2x8x4xf32>) permutation = [1, 0, 2]
  %p1 = tensor.expand_shape %y1 [[0, 1], [2]] output_shape [8, 2, 4] : tensor<16x4xf32> into tensor<8x2x4xf32>
  %z1 = linalg.transpose ins(%p1 : tensor<8x2x4xf32>) outs(%g : tensor<2x8x4xf32>) permutation = [1, 0, 2]
  %p2 = tensor.expand_shape %y2 [[0, 1], [2]] output_shape [8, 2, 4] : tensor<16x4xf32> into tensor<8x2x4xf32>
  %z2 = linalg.transpose ins(%p2 : tensor<8x2x4xf32>) outs(%g : tensor<2x8x4xf32>) permutation = [1, 0, 2]
  return %z0, %z1, %z2, %y3 : tensor<2x8x4xf32>, tensor<2x8x4xf32>, tensor<2x8x4xf32>, tensor<4xf32>
}

// -----

// Sizes that are not known are left unchanged.
// CHECK-LABEL: @open(
// CHECK:       %[[T:.*]] = linalg.transpose
// CHECK:       tensor.collapse_shape %[[T]]
func.func @open(%x: tensor<2x?x4xf32>, %n: index) -> tensor<?x4xf32> {
  %e = tensor.empty(%n) : tensor<?x2x4xf32>
  %t = linalg.transpose ins(%x : tensor<2x?x4xf32>) outs(%e : tensor<?x2x4xf32>) permutation = [1, 0, 2]
  %a = tensor.collapse_shape %t [[0, 1], [2]] : tensor<?x2x4xf32> into tensor<?x4xf32>
  return %a : tensor<?x4xf32>
}
