// RUN: alcop-opt %s --alcop-drop-unit-dimensions --canonicalize --split-input-file | FileCheck %s

// A sum that keeps its dimension, an op on it, and one that reads it for each element.
// CHECK-DAG:   #[[BOTH:.*]] = affine_map<(d0, d1) -> (d0, d1)>
// CHECK-DAG:   #[[ROW:.*]] = affine_map<(d0, d1) -> (d0)>
// CHECK-DAG:   #[[ONE:.*]] = affine_map<(d0) -> (d0)>
// CHECK-LABEL: @mean(
// CHECK:       %[[E:.*]] = tensor.empty() : tensor<8xf32>
// CHECK:       %[[F:.*]] = linalg.fill ins(%{{.*}} : f32) outs(%[[E]] : tensor<8xf32>)
// CHECK:       %[[S:.*]] = linalg.generic {indexing_maps = [#[[BOTH]], #[[ROW]]], iterator_types = ["parallel", "reduction"]} {{.*}} outs(%[[F]] :
// CHECK:       %[[M:.*]] = linalg.generic {indexing_maps = [#[[ONE]], #[[ONE]]], iterator_types = ["parallel"]} ins(%[[S]] : tensor<8xf32>)
// CHECK:       linalg.generic {indexing_maps = [#[[BOTH]], #[[ROW]], #[[BOTH]]], {{.*}} ins(%{{.*}}, %[[M]] :
// CHECK-NOT:   tensor.expand_shape
// CHECK:       return
#both = affine_map<(i, j) -> (i, j)>
#kept = affine_map<(i, j) -> (i, 0)>
func.func @mean(%x: tensor<8x64xf32>) -> tensor<8x64xf32> {
  %zero = arith.constant 0.0 : f32
  %n = arith.constant 64.0 : f32
  %e = tensor.empty() : tensor<8x1xf32>
  %d = tensor.empty() : tensor<8x64xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<8x1xf32>) -> tensor<8x1xf32>
  %s = linalg.generic {indexing_maps = [#both, #kept], iterator_types = ["parallel", "reduction"]}
    ins(%x : tensor<8x64xf32>) outs(%f : tensor<8x1xf32>) {
  ^bb0(%a: f32, %b: f32):
    %c = arith.addf %a, %b : f32
    linalg.yield %c : f32
  } -> tensor<8x1xf32>
  %m = linalg.generic {indexing_maps = [#both, #both], iterator_types = ["parallel", "parallel"]}
    ins(%s : tensor<8x1xf32>) outs(%e : tensor<8x1xf32>) {
  ^bb0(%a: f32, %b: f32):
    %c = arith.divf %a, %n : f32
    linalg.yield %c : f32
  } -> tensor<8x1xf32>
  %r = linalg.generic {indexing_maps = [#both, #kept, #both], iterator_types = ["parallel", "parallel"]}
    ins(%x, %m : tensor<8x64xf32>, tensor<8x1xf32>) outs(%d : tensor<8x64xf32>) {
  ^bb0(%a: f32, %b: f32, %o: f32):
    %c = arith.subf %a, %b : f32
    linalg.yield %c : f32
  } -> tensor<8x64xf32>
  return %r : tensor<8x64xf32>
}

// -----

// Of sizes known at run time; all dimensions of a sum over everything; what is returned
// is expanded. It starts from an argument.
// CHECK-LABEL: @ends(
// CHECK-SAME:  %[[X:.*]]: tensor<?x64xf32>, %[[A:.*]]: tensor<?x1xf32>, %[[B:.*]]: tensor<1x1xf32>
// CHECK:       %[[AC:.*]] = tensor.collapse_shape %[[A]] {{\[\[}}0, 1]] : tensor<?x1xf32> into tensor<?xf32>
// CHECK:       %[[S:.*]] = linalg.generic {{.*}} outs(%[[AC]] : tensor<?xf32>)
// CHECK:       %[[N:.*]] = tensor.dim
// CHECK:       %[[SE:.*]] = tensor.expand_shape %[[S]] {{\[\[}}0, 1]] output_shape [%[[N]], 1] : tensor<?xf32> into tensor<?x1xf32>
// CHECK:       %[[BC:.*]] = tensor.collapse_shape %[[B]] [] : tensor<1x1xf32> into tensor<f32>
// CHECK:       %[[T:.*]] = linalg.generic {{.*}} outs(%[[BC]] : tensor<f32>)
// CHECK:       %[[TE:.*]] = tensor.expand_shape %[[T]] [] output_shape [1, 1] : tensor<f32> into tensor<1x1xf32>
// CHECK:       return %[[SE]], %[[TE]]
#both = affine_map<(i, j) -> (i, j)>
#kept = affine_map<(i, j) -> (i, 0)>
#none = affine_map<(i, j) -> (0, 0)>
func.func @ends(%x: tensor<?x64xf32>, %a: tensor<?x1xf32>, %b: tensor<1x1xf32>) -> (tensor<?x1xf32>, tensor<1x1xf32>) {
  %s = linalg.generic {indexing_maps = [#both, #kept], iterator_types = ["parallel", "reduction"]}
    ins(%x : tensor<?x64xf32>) outs(%a : tensor<?x1xf32>) {
  ^bb0(%i: f32, %o: f32):
    %c = arith.addf %i, %o : f32
    linalg.yield %c : f32
  } -> tensor<?x1xf32>
  %t = linalg.generic {indexing_maps = [#both, #none], iterator_types = ["reduction", "reduction"]}
    ins(%x : tensor<?x64xf32>) outs(%b : tensor<1x1xf32>) {
  ^bb0(%i: f32, %o: f32):
    %c = arith.addf %i, %o : f32
    linalg.yield %c : f32
  } -> tensor<1x1xf32>
  return %s, %t : tensor<?x1xf32>, tensor<1x1xf32>
}

// -----

// Left unchanged: a batch of one image; a dimension that is no 1 where it is expanded.
// The number of a loop is that of the same loop in what has no dimension for the sum.
// CHECK-LABEL: @others(
// CHECK-SAME:  %[[X:.*]]: tensor<1x8xf32>
// CHECK:       linalg.generic {{.*}} ins(%[[X]] : tensor<1x8xf32>)
// CHECK:       %[[V:.*]] = tensor.expand_shape
// CHECK:       linalg.generic {{.*}} ins(%[[V]] : tensor<4x2xf32>)
// CHECK:       linalg.generic {{.*}} outs(%{{.*}} : tensor<8xi64>)
// CHECK:         linalg.index 1 : index
#both = affine_map<(i, j) -> (i, j)>
#kept = affine_map<(i, j) -> (i, 0)>
func.func @others(%x: tensor<1x8xf32>, %y: tensor<8xf32>, %o: tensor<4x2xf32>, %k: tensor<8x1xi64>, %z: tensor<8x2xi64>) -> (tensor<1x8xf32>, tensor<4x2xf32>, tensor<8x1xi64>) {
  %e = tensor.empty() : tensor<1x8xf32>
  %r = linalg.generic {indexing_maps = [#both, #both], iterator_types = ["parallel", "parallel"]}
    ins(%x : tensor<1x8xf32>) outs(%e : tensor<1x8xf32>) {
  ^bb0(%a: f32, %b: f32):
    %c = math.exp %a : f32
    linalg.yield %c : f32
  } -> tensor<1x8xf32>
  %v = tensor.expand_shape %y [[0, 1]] output_shape [4, 2] : tensor<8xf32> into tensor<4x2xf32>
  %s = linalg.generic {indexing_maps = [#both, #both], iterator_types = ["parallel", "parallel"]}
    ins(%v : tensor<4x2xf32>) outs(%o : tensor<4x2xf32>) {
  ^bb0(%a: f32, %b: f32):
    %c = math.exp %a : f32
    linalg.yield %c : f32
  } -> tensor<4x2xf32>
  %t = linalg.generic {indexing_maps = [#both, #kept], iterator_types = ["parallel", "reduction"]}
    ins(%z : tensor<8x2xi64>) outs(%k : tensor<8x1xi64>) {
  ^bb0(%a: i64, %b: i64):
    %i = linalg.index 1 : index
    %j = arith.index_cast %i : index to i64
    %p = arith.muli %a, %j : i64
    %c = arith.addi %p, %b : i64
    linalg.yield %c : i64
  } -> tensor<8x1xi64>
  return %r, %s, %t : tensor<1x8xf32>, tensor<4x2xf32>, tensor<8x1xi64>
}

// -----

// Elements of rows at indices with a dimension of their own, which vanishes; the number
// of its loop is 0, that of the loop behind it is the one of a loop less.
// CHECK-LABEL: @looked_up(
// CHECK-SAME:  %[[T:.*]]: tensor<8x4xi64>
// CHECK:       linalg.generic {{.*}} ins(%[[T]] : tensor<8x4xi64>) outs(%{{.*}} : tensor<8x4xi64>)
// CHECK:         %[[K:.*]] = linalg.index 1 : index
// CHECK-NOT:     linalg.index
// CHECK:         arith.index_cast %[[K]]
#every = affine_map<(i, j, k) -> (i, j, k)>
func.func @looked_up(%t: tensor<8x4xi64>) -> tensor<8x1x4xi64> {
  %v = tensor.expand_shape %t [[0, 1], [2]] output_shape [8, 1, 4] : tensor<8x4xi64> into tensor<8x1x4xi64>
  %e = tensor.empty() : tensor<8x1x4xi64>
  %r = linalg.generic {indexing_maps = [#every, #every], iterator_types = ["parallel", "parallel", "parallel"]}
    ins(%v : tensor<8x1x4xi64>) outs(%e : tensor<8x1x4xi64>) {
  ^bb0(%a: i64, %b: i64):
    %j = linalg.index 1 : index
    %k = linalg.index 2 : index
    %s = arith.addi %j, %k : index
    %i = arith.index_cast %s : index to i64
    %c = arith.addi %a, %i : i64
    linalg.yield %c : i64
  } -> tensor<8x1x4xi64>
  return %r : tensor<8x1x4xi64>
}
