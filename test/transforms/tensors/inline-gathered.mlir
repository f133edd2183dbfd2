// RUN: alcop-opt %s --alcop-inline-gathered --split-input-file --verify-diagnostics | FileCheck %s

// The element of a row that is looked up is computed of those that it depends on; what
// is known for the row is an input.
// CHECK-DAG:   #[[N:.*]] = affine_map<(d0) -> (d0)>
// CHECK-LABEL: @loss(
// CHECK-SAME:    %[[X:.*]]: tensor<8x64xf32>, %[[M:.*]]: tensor<8xf32>, %[[T:.*]]: tensor<8xi64>
// CHECK-NOT:     tensor<8x64xf32>)
// CHECK:         %[[Y:.*]] = linalg.generic {indexing_maps = [#[[N]], #[[N]], #[[N]]]
// CHECK-SAME:      ins(%[[T]], %[[M]] : tensor<8xi64>, tensor<8xf32>)
// CHECK:         ^bb0(%[[I:.*]]: i64, %[[L:.*]]: f32, %{{.*}}: f32):
// CHECK:           %[[ROW:.*]] = linalg.index 0
// CHECK:           %[[COLUMN:.*]] = arith.index_cast %[[I]]
// CHECK:           %[[V:.*]] = tensor.extract %[[X]][%[[ROW]], %[[COLUMN]]]
// CHECK:           %[[D:.*]] = arith.subf %[[V]], %[[L]]
// CHECK:           %[[C:.*]] = arith.index_cast %[[COLUMN]] : index to i32
// CHECK:           arith.sitofp %[[C]]
// CHECK-NOT:       tensor.extract
// CHECK:         return %[[Y]]
#n = affine_map<(n) -> (n)>
#row = affine_map<(m, n) -> (m)>
#all = affine_map<(m, n) -> (m, n)>
func.func @loss(%x: tensor<8x64xf32>, %m: tensor<8xf32>, %t: tensor<8xi64>) -> tensor<8xf32> {
  %e = tensor.empty() : tensor<8x64xf32>
  %s = linalg.generic {indexing_maps = [#all, #row, #all], iterator_types = ["parallel", "parallel"]} ins(%x, %m : tensor<8x64xf32>, tensor<8xf32>) outs(%e : tensor<8x64xf32>) {
  ^bb0(%a: f32, %b: f32, %o: f32):
    %0 = arith.subf %a, %b : f32
    linalg.yield %0 : f32
  } -> tensor<8x64xf32>
  %p = linalg.generic {indexing_maps = [#all, #all], iterator_types = ["parallel", "parallel"]} ins(%s : tensor<8x64xf32>) outs(%e : tensor<8x64xf32>) {
  ^bb0(%a: f32, %o: f32):
    %c = linalg.index 1 : index
    %i = arith.index_cast %c : index to i32
    %f = arith.sitofp %i : i32 to f32
    %0 = arith.mulf %a, %f : f32
    linalg.yield %0 : f32
  } -> tensor<8x64xf32>
  %g = tensor.empty() : tensor<8xf32>
  %y = linalg.generic {indexing_maps = [#n, #n], iterator_types = ["parallel"]} ins(%t : tensor<8xi64>) outs(%g : tensor<8xf32>) {
  ^bb0(%i: i64, %o: f32):
    %r = linalg.index 0 : index
    %c = arith.index_cast %i : i64 to index
    %v = tensor.extract %p[%r, %c] : tensor<8x64xf32>
    linalg.yield %v : f32
  } -> tensor<8xf32>
  return %y : tensor<8xf32>
}
