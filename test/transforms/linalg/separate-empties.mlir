// RUN: alcop-opt %s --alcop-separate-empties --split-input-file | FileCheck %s

// One empty tensor per use, just before the op; of the first use it stays where it is.
// CHECK-LABEL: @three
// CHECK:       %[[E:.*]] = tensor.empty()
// CHECK:       %[[A:.*]] = linalg.exp ins(%{{.*}}) outs(%[[E]]
// CHECK:       %[[F:.*]] = tensor.empty()
// CHECK:       %[[B:.*]] = linalg.exp ins(%[[A]] : {{.*}}) outs(%[[F]]
// CHECK:       %[[G:.*]] = tensor.empty()
// CHECK:       linalg.exp ins(%[[B]] : {{.*}}) outs(%[[G]]
// CHECK-NOT:   tensor.empty
func.func @three(%x: tensor<8xf32>) -> tensor<8xf32> {
  %e = tensor.empty() : tensor<8xf32>
  %a = linalg.exp ins(%x : tensor<8xf32>) outs(%e : tensor<8xf32>) -> tensor<8xf32>
  %b = linalg.exp ins(%a : tensor<8xf32>) outs(%e : tensor<8xf32>) -> tensor<8xf32>
  %c = linalg.exp ins(%b : tensor<8xf32>) outs(%e : tensor<8xf32>) -> tensor<8xf32>
  return %c : tensor<8xf32>
}

// -----

// Sizes are operands of the copies too.
// CHECK-LABEL: @open
// CHECK-SAME:  , %[[N:.*]]: index
// CHECK-COUNT-2: tensor.empty(%[[N]])
func.func @open(%x: tensor<?xf32>, %n: index) -> tensor<?xf32> {
  %e = tensor.empty(%n) : tensor<?xf32>
  %a = linalg.exp ins(%x : tensor<?xf32>) outs(%e : tensor<?xf32>) -> tensor<?xf32>
  %b = linalg.exp ins(%a : tensor<?xf32>) outs(%e : tensor<?xf32>) -> tensor<?xf32>
  return %b : tensor<?xf32>
}
