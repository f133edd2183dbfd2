// RUN: alcop-opt %s --alcop-drop-unused-results --split-input-file | FileCheck %s

// Maximum and its index, of which the index is unused: so is what it was counted with.
// CHECK-LABEL: @maximum(
// CHECK-SAME:  %[[X:.*]]: tensor<8x32xf32>, %[[A:.*]]: tensor<8xf32>
// CHECK:       %[[R:.*]] = linalg.generic {{.*}} ins(%[[X]] : {{.*}}) outs(%[[A]] : tensor<8xf32>)
// CHECK:       ^bb0(%[[IN:.*]]: f32, %[[OUT:.*]]: f32):
// CHECK-NOT:   select
// CHECK:       %[[M:.*]] = arith.maximumf %[[IN]], %[[OUT]]
// CHECK:       linalg.yield %[[M]] : f32
// CHECK:       return %[[R]]
#id = affine_map<(i, j) -> (i, j)>
#row = affine_map<(i, j) -> (i)>
func.func @maximum(%x: tensor<8x32xf32>, %a: tensor<8xf32>, %b: tensor<8xi64>) -> tensor<8xf32> {
  %r:2 = linalg.generic {indexing_maps = [#id, #row, #row], iterator_types = ["parallel", "reduction"]}
    ins(%x : tensor<8x32xf32>) outs(%a, %b : tensor<8xf32>, tensor<8xi64>) {
  ^bb0(%in: f32, %m: f32, %n: i64):
    %i = linalg.index 1 : index
    %j = arith.index_cast %i : index to i64
    %max = arith.maximumf %in, %m : f32
    %is = arith.cmpf ogt, %in, %m : f32
    %k = arith.select %is, %j, %n : i64
    linalg.yield %max, %k : f32, i64
  } -> (tensor<8xf32>, tensor<8xi64>)
  return %r#0 : tensor<8xf32>
}

// -----

// The index is computed from the maximum so far: both stay.
// CHECK-LABEL: @index(
// CHECK:       %{{.*}}:2 = linalg.generic
#id = affine_map<(i, j) -> (i, j)>
#row = affine_map<(i, j) -> (i)>
func.func @index(%x: tensor<8x32xf32>, %a: tensor<8xf32>, %b: tensor<8xi64>) -> tensor<8xi64> {
  %r:2 = linalg.generic {indexing_maps = [#id, #row, #row], iterator_types = ["parallel", "reduction"]}
    ins(%x : tensor<8x32xf32>) outs(%a, %b : tensor<8xf32>, tensor<8xi64>) {
  ^bb0(%in: f32, %m: f32, %n: i64):
    %i = linalg.index 1 : index
    %j = arith.index_cast %i : index to i64
    %max = arith.maximumf %in, %m : f32
    %is = arith.cmpf ogt, %in, %m : f32
    %k = arith.select %is, %j, %n : i64
    linalg.yield %max, %k : f32, i64
  } -> (tensor<8xf32>, tensor<8xi64>)
  return %r#1 : tensor<8xi64>
}

// -----

// An assertion is not dropped, nor what it asks: here what the other result held.
// CHECK-LABEL: @asserted(
// CHECK:       %{{.*}}:2 = linalg.generic
// CHECK:       cf.assert
#id = affine_map<(i) -> (i)>
func.func @asserted(%a: tensor<8xi32>, %b: tensor<8xi1>) -> tensor<8xi32> {
  %r:2 = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel"]}
    outs(%a, %b : tensor<8xi32>, tensor<8xi1>) {
  ^bb0(%x: i32, %y: i1):
    cf.assert %y, "no"
    linalg.yield %x, %y : i32, i1
  } -> (tensor<8xi32>, tensor<8xi1>)
  return %r#0 : tensor<8xi32>
}

// -----

// Only the unused result tells how often the loop j runs.
// CHECK-LABEL: @size(
// CHECK:       %{{.*}}:2 = linalg.generic
#both = affine_map<(i, j) -> (i, j)>
#one = affine_map<(i, j) -> (i)>
func.func @size(%a: tensor<8x4xf32>, %b: tensor<8xf32>) -> tensor<8xf32> {
  %c = arith.constant 1.0 : f32
  %r:2 = linalg.generic {indexing_maps = [#both, #one], iterator_types = ["parallel", "reduction"]}
    outs(%a, %b : tensor<8x4xf32>, tensor<8xf32>) {
  ^bb0(%x: f32, %y: f32):
    %s = arith.addf %y, %c : f32
    linalg.yield %c, %s : f32, f32
  } -> (tensor<8x4xf32>, tensor<8xf32>)
  return %r#1 : tensor<8xf32>
}

// -----

// What does not read zeros does not start from them; a sum does.
// CHECK-LABEL: @filled(
// CHECK:       %[[E:.*]] = tensor.empty() : tensor<8xf32>
// CHECK:       %[[F:.*]] = linalg.fill {{.*}} outs(%[[E]] : tensor<8xf32>)
// CHECK:       linalg.generic {{.*}} outs(%[[E]] : tensor<8xf32>)
// CHECK:       linalg.generic {{.*}} outs(%[[F]] : tensor<8xf32>)
#n = affine_map<(i) -> (i)>
#both = affine_map<(i, j) -> (i, j)>
#one = affine_map<(i, j) -> (i)>
func.func @filled(%x: tensor<8xf32>, %y: tensor<8x4xf32>) -> (tensor<8xf32>, tensor<8xf32>) {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<8xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<8xf32>) -> tensor<8xf32>
  %r = linalg.generic {indexing_maps = [#n, #n], iterator_types = ["parallel"]} ins(%x : tensor<8xf32>) outs(%f : tensor<8xf32>) {
  ^bb0(%a: f32, %o: f32):
    %b = math.exp %a : f32
    linalg.yield %b : f32
  } -> tensor<8xf32>
  %s = linalg.generic {indexing_maps = [#both, #one], iterator_types = ["parallel", "reduction"]} ins(%y : tensor<8x4xf32>) outs(%f : tensor<8xf32>) {
  ^bb0(%a: f32, %o: f32):
    %b = arith.addf %a, %o : f32
    linalg.yield %b : f32
  } -> tensor<8xf32>
  return %r, %s : tensor<8xf32>, tensor<8xf32>
}
