// RUN: alcop-opt %s --alcop-sink-reshapes --mlir-print-local-scope --split-input-file | FileCheck %s

// A residual behind a reshape goes over the loops of the product; its result is reshaped.
// CHECK-LABEL: @residual(
// CHECK-SAME:    %[[X:.*]]: tensor<2x32x128xf32>, %[[Y:.*]]: tensor<64x128xf32>)
// CHECK:         %[[C:.*]] = tensor.collapse_shape %[[X]] {{\[\[}}0, 1], [2]] : tensor<2x32x128xf32> into tensor<64x128xf32>
// CHECK:         %[[E:.*]] = tensor.empty() : tensor<64x128xf32>
// CHECK:         %[[S:.*]] = linalg.generic {indexing_maps = [affine_map<(d0, d1) -> (d0, d1)>, affine_map<(d0, d1) -> (d0, d1)>, affine_map<(d0, d1) -> (d1)>, affine_map<(d0, d1) -> (d0, d1)>], iterator_types = ["parallel", "parallel"]} ins(%[[Y]], %[[C]], %{{.*}} : {{.*}}) outs(%[[E]] :
// CHECK:         %[[R:.*]] = tensor.expand_shape %[[S]] {{\[\[}}0, 1], [2]] output_shape [2, 32, 128]
// CHECK-NEXT:    return %[[R]]
#all = affine_map<(b, m, n) -> (b, m, n)>
#n = affine_map<(b, m, n) -> (n)>
func.func @residual(%x: tensor<2x32x128xf32>, %y: tensor<64x128xf32>) -> tensor<2x32x128xf32> {
  %bias = arith.constant dense<1.0> : tensor<128xf32>
  %z = tensor.expand_shape %y [[0, 1], [2]] output_shape [2, 32, 128] : tensor<64x128xf32> into tensor<2x32x128xf32>
  %e = tensor.empty() : tensor<2x32x128xf32>
  %r = linalg.generic {indexing_maps = [#all, #all, #n, #all], iterator_types = ["parallel", "parallel", "parallel"]}
      ins(%z, %x, %bias : tensor<2x32x128xf32>, tensor<2x32x128xf32>, tensor<128xf32>) outs(%e : tensor<2x32x128xf32>) {
  ^bb0(%a: f32, %b: f32, %c: f32, %o: f32):
    %s = arith.addf %a, %b : f32
    %t = arith.mulf %s, %c : f32
    linalg.yield %t : f32
  } -> tensor<2x32x128xf32>
  return %r : tensor<2x32x128xf32>
}

// -----

// A sum of each row; what reads it has no reshape left, and keeps the number of a column.
// CHECK-LABEL: @sum(
// CHECK-SAME:    %[[Y:.*]]: tensor<64x128xf32>)
// CHECK:         %[[E:.*]] = tensor.empty() : tensor<64xf32>
// CHECK:         %[[F:.*]] = linalg.fill ins(%{{.*}} : f32) outs(%[[E]] : tensor<64xf32>)
// CHECK:         %[[S:.*]] = linalg.generic {{.*}} iterator_types = ["parallel", "reduction"]} ins(%[[Y]] : tensor<64x128xf32>) outs(%[[F]] :
// CHECK:         linalg.generic {indexing_maps = [affine_map<(d0, d1) -> (d0, d1)>, affine_map<(d0, d1) -> (d0)>, affine_map<(d0, d1) -> (d0, d1)>], iterator_types = ["parallel", "parallel"]} ins(%[[Y]], %[[S]] :
// CHECK:           linalg.index 1
#all = affine_map<(b, m, n) -> (b, m, n)>
#row = affine_map<(b, m, n) -> (b, m)>
func.func @sum(%y: tensor<64x128xf32>) -> tensor<2x32x128xf32> {
  %zero = arith.constant 0.0 : f32
  %z = tensor.expand_shape %y [[0, 1], [2]] output_shape [2, 32, 128] : tensor<64x128xf32> into tensor<2x32x128xf32>
  %f = tensor.empty() : tensor<2x32xf32>
  %init = linalg.fill ins(%zero : f32) outs(%f : tensor<2x32xf32>) -> tensor<2x32xf32>
  %s = linalg.generic {indexing_maps = [#all, #row], iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%z : tensor<2x32x128xf32>) outs(%init : tensor<2x32xf32>) {
  ^bb0(%a: f32, %o: f32):
    %t = arith.addf %a, %o : f32
    linalg.yield %t : f32
  } -> tensor<2x32xf32>
  %e = tensor.empty() : tensor<2x32x128xf32>
  %r = linalg.generic {indexing_maps = [#all, #row, #all], iterator_types = ["parallel", "parallel", "parallel"]}
      ins(%z, %s : tensor<2x32x128xf32>, tensor<2x32xf32>) outs(%e : tensor<2x32x128xf32>) {
  ^bb0(%a: f32, %b: f32, %o: f32):
    %i = linalg.index 2 : index
    %j = arith.index_cast %i : index to i32
    %c = arith.sitofp %j : i32 to f32
    %t = arith.addf %a, %b : f32
    %u = arith.addf %t, %c : f32
    linalg.yield %u : f32
  } -> tensor<2x32x128xf32>
  return %r : tensor<2x32x128xf32>
}

// -----

// A batch of one: positions are read without it.
// CHECK-LABEL: @one(
// CHECK:         linalg.generic {indexing_maps = [affine_map<(d0, d1) -> (d0, d1)>, affine_map<(d0, d1) -> (d0, d1)>, affine_map<(d0, d1) -> (d0, d1)>], iterator_types = ["parallel", "parallel"]} ins(%{{.*}}, %{{.*}} : tensor<32x8xf32>, tensor<32x8xf32>)
#all = affine_map<(b, m, n) -> (b, m, n)>
#one = affine_map<(b, m, n) -> (m, n)>
func.func @one(%y: tensor<32x8xf32>, %p: tensor<32x8xf32>) -> tensor<1x32x8xf32> {
  %z = tensor.expand_shape %y [[0, 1], [2]] output_shape [1, 32, 8] : tensor<32x8xf32> into tensor<1x32x8xf32>
  %e = tensor.empty() : tensor<1x32x8xf32>
  %r = linalg.generic {indexing_maps = [#all, #one, #all], iterator_types = ["parallel", "parallel", "parallel"]}
      ins(%z, %p : tensor<1x32x8xf32>, tensor<32x8xf32>) outs(%e : tensor<1x32x8xf32>) {
  ^bb0(%a: f32, %b: f32, %o: f32):
    %t = arith.addf %a, %b : f32
    linalg.yield %t : f32
  } -> tensor<1x32x8xf32>
  return %r : tensor<1x32x8xf32>
}

// -----

// A batch of one, which the result of a contraction lacks and an argument has.
// CHECK-LABEL: @single(
// CHECK-SAME:  %[[X:[^:]*]]: tensor<1x64x128xf32>
// CHECK:       %[[Y:.*]] = linalg.matmul
// CHECK:       %[[C:.*]] = tensor.collapse_shape %[[X]] {{\[\[}}0, 1], [2]]
// CHECK:       %[[S:.*]] = linalg.generic {indexing_maps = [affine_map<(d0, d1) -> (d0, d1)>, affine_map<(d0, d1) -> (d0, d1)>, affine_map<(d0, d1) -> (d0, d1)>], {{.*}} ins(%[[C]], %[[Y]] : tensor<64x128xf32>, tensor<64x128xf32>)
// CHECK:       tensor.expand_shape %[[S]] {{.*}} into tensor<1x64x128xf32>
func.func @single(%x: tensor<1x64x128xf32>, %a: tensor<64x32xf16>, %b: tensor<32x128xf16>, %f: tensor<64x128xf32>) -> tensor<1x64x128xf32> {
  %y = linalg.matmul ins(%a, %b : tensor<64x32xf16>, tensor<32x128xf16>) outs(%f : tensor<64x128xf32>) -> tensor<64x128xf32>
  %e = tensor.empty() : tensor<1x64x128xf32>
  %s = linalg.generic {indexing_maps = [affine_map<(n, i, j) -> (n, i, j)>, affine_map<(n, i, j) -> (i, j)>, affine_map<(n, i, j) -> (n, i, j)>], iterator_types = ["parallel", "parallel", "parallel"]}
    ins(%x, %y : tensor<1x64x128xf32>, tensor<64x128xf32>) outs(%e : tensor<1x64x128xf32>) {
  ^bb0(%u: f32, %v: f32, %o: f32):
    %c = arith.addf %u, %v : f32
    linalg.yield %c : f32
  } -> tensor<1x64x128xf32>
  return %s : tensor<1x64x128xf32>
}

// -----

// What lacks it is an argument, or a vector: all others have it, and keep it.
// CHECK-LABEL: @kept(
// CHECK-NOT:   tensor.collapse_shape
#all = affine_map<(n, i, j) -> (n, i, j)>
#both = affine_map<(n, i, j) -> (i, j)>
#row = affine_map<(n, j) -> (j)>
#two = affine_map<(n, j) -> (n, j)>
func.func @kept(%x: tensor<1x64x128xf32>, %b: tensor<64x128xf32>, %z: tensor<1x128xf32>, %h: tensor<128xf16>) -> (tensor<1x64x128xf32>, tensor<1x128xf32>) {
  %e = tensor.empty() : tensor<1x64x128xf32>
  %s = linalg.generic {indexing_maps = [#all, #both, #all], iterator_types = ["parallel", "parallel", "parallel"]}
    ins(%x, %b : tensor<1x64x128xf32>, tensor<64x128xf32>) outs(%e : tensor<1x64x128xf32>) {
  ^bb0(%u: f32, %v: f32, %o: f32):
    %c = arith.addf %u, %v : f32
    linalg.yield %c : f32
  } -> tensor<1x64x128xf32>
  %g = tensor.empty() : tensor<128xf32>
  %w = linalg.generic {indexing_maps = [affine_map<(j) -> (j)>, affine_map<(j) -> (j)>], iterator_types = ["parallel"]} ins(%h : tensor<128xf16>) outs(%g : tensor<128xf32>) {
  ^bb0(%u: f16, %o: f32):
    %c = arith.extf %u : f16 to f32
    linalg.yield %c : f32
  } -> tensor<128xf32>
  %k = tensor.empty() : tensor<1x128xf32>
  %t = linalg.generic {indexing_maps = [#two, #row, #two], iterator_types = ["parallel", "parallel"]}
    ins(%z, %w : tensor<1x128xf32>, tensor<128xf32>) outs(%k : tensor<1x128xf32>) {
  ^bb0(%u: f32, %v: f32, %o: f32):
    %c = arith.addf %u, %v : f32
    linalg.yield %c : f32
  } -> tensor<1x128xf32>
  return %s, %t : tensor<1x64x128xf32>, tensor<1x128xf32>
}

// -----

// One row of a batch of one: the result of a contraction has a row, and no batch.
// CHECK-LABEL: @single_row(
// CHECK:         %[[C:.*]] = linalg.matmul
// CHECK:         %[[X:.*]] = tensor.collapse_shape %{{.*}} {{\[\[}}0, 1], [2]] : tensor<1x1x64xf32> into tensor<1x64xf32>
// CHECK:         linalg.generic {{.*}} iterator_types = ["parallel", "parallel"]} ins(%[[C]], %[[X]] : tensor<1x64xf32>, tensor<1x64xf32>)
// CHECK:         tensor.expand_shape
#all = affine_map<(b, m, n) -> (b, m, n)>
#bn = affine_map<(b, m, n) -> (b, n)>
func.func @single_row(%a: tensor<1x32xf16>, %b: tensor<32x64xf16>, %x: tensor<1x1x64xf32>) -> tensor<1x1x64xf32> {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<1x64xf32>
  %i = linalg.fill ins(%zero : f32) outs(%e : tensor<1x64xf32>) -> tensor<1x64xf32>
  %c = linalg.matmul ins(%a, %b : tensor<1x32xf16>, tensor<32x64xf16>) outs(%i : tensor<1x64xf32>) -> tensor<1x64xf32>
  %f = tensor.empty() : tensor<1x1x64xf32>
  %r = linalg.generic {indexing_maps = [#bn, #all, #all], iterator_types = ["parallel", "parallel", "parallel"]} ins(%c, %x : tensor<1x64xf32>, tensor<1x1x64xf32>) outs(%f : tensor<1x1x64xf32>) {
  ^bb0(%p: f32, %q: f32, %o: f32):
    %s = arith.addf %p, %q : f32
    linalg.yield %s : f32
  } -> tensor<1x1x64xf32>
  return %r : tensor<1x1x64xf32>
}
