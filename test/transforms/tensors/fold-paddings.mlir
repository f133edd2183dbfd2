// RUN: alcop-opt %s --alcop-fold-paddings --canonicalize --split-input-file | FileCheck %s

// Windows of 3 by 3, two apart, of an image with one row and column around it: rows and
// columns that are not there are -inf, whatever is read for them.
// CHECK-LABEL: @pool(
// CHECK-SAME:  %[[X:.*]]: tensor<2x8x9x16xf16>
// CHECK-NOT:   tensor.pad
// CHECK-DAG:   %[[LOW:.*]] = arith.constant 0xFC00 : f16
// CHECK-DAG:   %[[ZERO:.*]] = arith.constant 0 : index
// CHECK-DAG:   %[[ROWS:.*]] = arith.constant 8 : index
// CHECK-DAG:   %[[COLUMNS:.*]] = arith.constant 9 : index
// CHECK:       linalg.generic {{.*}} ins(%{{.*}} : tensor<3x3xf16>)
// CHECK:         %[[IN_ROWS:.*]] = arith.cmpi ult, %[[H:.*]], %[[ROWS]]
// CHECK:         %[[ROW:.*]] = arith.select %[[IN_ROWS]], %[[H]], %[[ZERO]]
// CHECK:         %[[IN_COLUMNS:.*]] = arith.cmpi ult, %[[W:.*]], %[[COLUMNS]]
// CHECK:         %[[COLUMN:.*]] = arith.select %[[IN_COLUMNS]], %[[W]], %[[ZERO]]
// CHECK:         %[[INSIDE:.*]] = arith.andi %[[IN_ROWS]], %[[IN_COLUMNS]]
// CHECK:         %[[READ:.*]] = tensor.extract %[[X]][%{{.*}}, %[[ROW]], %[[COLUMN]], %{{.*}}]
// CHECK:         %[[ELEMENT:.*]] = arith.select %[[INSIDE]], %[[READ]], %[[LOW]]
// CHECK:         arith.maximumf %{{.*}}, %[[ELEMENT]]
func.func @pool(%x: tensor<2x8x9x16xf16>) -> tensor<2x4x5x16xf16> {
  %low = arith.constant 0xFC00 : f16
  %p = tensor.pad %x low[0, 1, 1, 0] high[0, 1, 1, 0] {
  ^bb0(%i: index, %j: index, %k: index, %l: index):
    tensor.yield %low : f16
  } : tensor<2x8x9x16xf16> to tensor<2x10x11x16xf16>
  %w = tensor.empty() : tensor<3x3xf16>
  %e = tensor.empty() : tensor<2x4x5x16xf16>
  %f = linalg.fill ins(%low : f16) outs(%e : tensor<2x4x5x16xf16>) -> tensor<2x4x5x16xf16>
  %y = linalg.pooling_nhwc_max {strides = dense<2> : tensor<2xi64>} ins(%p, %w : tensor<2x10x11x16xf16>, tensor<3x3xf16>) outs(%f : tensor<2x4x5x16xf16>) -> tensor<2x4x5x16xf16>
  return %y : tensor<2x4x5x16xf16>
}

// -----

// A sum of windows that cut off a part of an image, of which the other sizes are open.
// CHECK-LABEL: @sum(
// CHECK-SAME:  %[[X:.*]]: tensor<?x8xf32>
// CHECK-NOT:   tensor.pad
// CHECK:       linalg.generic
// CHECK:         tensor.extract %[[X]]
func.func @sum(%x: tensor<?x8xf32>, %n: index) -> tensor<?x5xf32> {
  %zero = arith.constant 0.0 : f32
  %p = tensor.pad %x low[0, -1] high[0, 0] {
  ^bb0(%i: index, %j: index):
    tensor.yield %zero : f32
  } : tensor<?x8xf32> to tensor<?x7xf32>
  %w = tensor.empty() : tensor<3xf32>
  %e = tensor.empty(%n) : tensor<?x5xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<?x5xf32>) -> tensor<?x5xf32>
  %y = linalg.generic {indexing_maps = [affine_map<(n, w, j) -> (n, w + j)>, affine_map<(n, w, j) -> (j)>, affine_map<(n, w, j) -> (n, w)>], iterator_types = ["parallel", "parallel", "reduction"]}
    ins(%p, %w : tensor<?x7xf32>, tensor<3xf32>) outs(%f : tensor<?x5xf32>) {
  ^bb0(%a: f32, %b: f32, %o: f32):
    %c = arith.addf %a, %o : f32
    linalg.yield %c : f32
  } -> tensor<?x5xf32>
  return %y : tensor<?x5xf32>
}
