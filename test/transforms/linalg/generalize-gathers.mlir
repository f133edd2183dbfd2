// RUN: alcop-opt %s --alcop-generalize-gathers --mlir-print-local-scope | FileCheck %s

// CHECK-LABEL: @rows
// CHECK-SAME:  %[[T:.*]]: tensor<100x64xf16>, %[[I:.*]]: tensor<2x20x1xi32>
// CHECK:       %[[N:.*]] = tensor.collapse_shape %[[I]] {{\[\[}}0], [1, 2]] : tensor<2x20x1xi32> into tensor<2x20xi32>
// CHECK:       linalg.generic {indexing_maps = [affine_map<(d0, d1, d2) -> (d0, d1)>, affine_map<(d0, d1, d2) -> (d0, d1, d2)>], {{.*}}} ins(%[[N]] : tensor<2x20xi32>)
// CHECK:         %[[ROW:.*]] = arith.index_cast
// CHECK:         %[[K:.*]] = linalg.index 2
// CHECK:         tensor.extract %[[T]][%[[ROW]], %[[K]]]
func.func @rows(%t: tensor<100x64xf16>, %i: tensor<2x20x1xi32>) -> tensor<2x20x64xf16> {
  %rows = tensor.gather %t[%i] gather_dims([0]) : (tensor<100x64xf16>, tensor<2x20x1xi32>) -> tensor<2x20x64xf16>
  return %rows : tensor<2x20x64xf16>
}

// Left unchanged: columns, single elements, a dimension that is kept, unknown sizes.
// CHECK-LABEL: @others
// CHECK-COUNT-4: tensor.gather
func.func @others(%t: tensor<100x64xf16>, %i: tensor<40x1xindex>, %two: tensor<40x2xindex>, %open: tensor<?x1xindex>)
    -> (tensor<40x100xf16>, tensor<40xf16>, tensor<40x1x64xf16>, tensor<?x64xf16>) {
  %0 = tensor.gather %t[%i] gather_dims([1]) : (tensor<100x64xf16>, tensor<40x1xindex>) -> tensor<40x100xf16>
  %1 = tensor.gather %t[%two] gather_dims([0, 1]) : (tensor<100x64xf16>, tensor<40x2xindex>) -> tensor<40xf16>
  %2 = tensor.gather %t[%i] gather_dims([0]) : (tensor<100x64xf16>, tensor<40x1xindex>) -> tensor<40x1x64xf16>
  %3 = tensor.gather %t[%open] gather_dims([0]) : (tensor<100x64xf16>, tensor<?x1xindex>) -> tensor<?x64xf16>
  return %0, %1, %2, %3 : tensor<40x100xf16>, tensor<40xf16>, tensor<40x1x64xf16>, tensor<?x64xf16>
}
