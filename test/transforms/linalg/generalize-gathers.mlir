// RUN: alcop-opt %s --alcop-generalize-gathers --mlir-print-local-scope | FileCheck %s

// CHECK-LABEL: @rows
// CHECK-SAME:  %[[T:.*]]: tensor<100x64xf16>, %[[I:.*]]: tensor<2x20x1xi32>
// CHECK:       %[[N:.*]] = tensor.collapse_shape %[[I]] {{\[\[}}0], [1, 2]] : tensor<2x20x1xi32> into tensor<2x20xi32>
// CHECK:       linalg.generic {indexing_maps = [affine_map<(d0, d1, d2) -> (d0, d1)>, affine_map<(d0, d1, d2) -> (d0, d1, d2)>], {{.*}}} ins(%[[N]] : tensor<2x20xi32>)
// CHECK-DAG:     %[[ROW:.*]] = arith.index_cast
// CHECK-DAG:     %[[K:.*]] = linalg.index 2
// CHECK:         tensor.extract %[[T]][%[[ROW]], %[[K]]]
func.func @rows(%t: tensor<100x64xf16>, %i: tensor<2x20x1xi32>) -> tensor<2x20x64xf16> {
  %rows = tensor.gather %t[%i] gather_dims([0]) : (tensor<100x64xf16>, tensor<2x20x1xi32>) -> tensor<2x20x64xf16>
  return %rows : tensor<2x20x64xf16>
}

// Columns, single elements, a dimension that is kept, unknown sizes.
// CHECK-LABEL: @others
// CHECK-SAME:  %[[T:.*]]: tensor<100x64xf16>, %{{.*}}: tensor<40x1xindex>, %[[TWO:.*]]: tensor<40x2xindex>, %[[OPEN:.*]]: tensor<?x1xindex>
// CHECK:       linalg.generic {indexing_maps = [affine_map<(d0, d1) -> (d0)>, affine_map<(d0, d1) -> (d0, d1)>]
// CHECK:       ^bb0(%[[COLUMN:.*]]: index, %{{.*}}: f16):
// CHECK:         %[[M:.*]] = linalg.index 1
// CHECK:         tensor.extract %[[T]][%[[M]], %[[COLUMN]]]
// CHECK:       linalg.generic {indexing_maps = [affine_map<(d0) -> (d0)>], {{.*}}} outs
// CHECK-DAG:     %[[FIRST:.*]] = tensor.extract %[[TWO]][%{{.*}}, %c0
// CHECK-DAG:     %[[SECOND:.*]] = tensor.extract %[[TWO]][%{{.*}}, %c1
// CHECK:         tensor.extract %[[T]][%[[FIRST]], %[[SECOND]]]
// CHECK:       linalg.generic {{.*}}affine_map<(d0, d1, d2) -> (d0, d1, d2)>
// CHECK:         %[[K:.*]] = linalg.index 2
// CHECK:         tensor.extract %[[T]][%{{.*}}, %[[K]]]
// CHECK:       %[[N:.*]] = tensor.collapse_shape %[[OPEN]]
// CHECK:       %[[ROWS:.*]] = tensor.dim %[[OPEN]], %c0
// CHECK:       tensor.empty(%[[ROWS]]) : tensor<?x64xf16>
// CHECK:       linalg.generic {{.*}} ins(%[[N]] : tensor<?xindex>)
func.func @others(%t: tensor<100x64xf16>, %i: tensor<40x1xindex>, %two: tensor<40x2xindex>, %open: tensor<?x1xindex>)
    -> (tensor<40x100xf16>, tensor<40xf16>, tensor<40x1x64xf16>, tensor<?x64xf16>) {
  %0 = tensor.gather %t[%i] gather_dims([1]) : (tensor<100x64xf16>, tensor<40x1xindex>) -> tensor<40x100xf16>
  %1 = tensor.gather %t[%two] gather_dims([0, 1]) : (tensor<100x64xf16>, tensor<40x2xindex>) -> tensor<40xf16>
  %2 = tensor.gather %t[%i] gather_dims([0]) : (tensor<100x64xf16>, tensor<40x1xindex>) -> tensor<40x1x64xf16>
  %3 = tensor.gather %t[%open] gather_dims([0]) : (tensor<100x64xf16>, tensor<?x1xindex>) -> tensor<?x64xf16>
  return %0, %1, %2, %3 : tensor<40x100xf16>, tensor<40xf16>, tensor<40x1x64xf16>, tensor<?x64xf16>
}
