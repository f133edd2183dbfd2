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

// -----

// A fill per op that starts from it, each of an empty tensor of its own.
// CHECK-LABEL: @fills
// CHECK:       %[[E:.*]] = tensor.empty()
// CHECK:       %[[F:.*]] = linalg.fill ins(%[[ZERO:.*]] : f32) outs(%[[E]]
// CHECK:       linalg.reduce {{.*}} outs(%[[F]]
// CHECK:       %[[G:.*]] = tensor.empty()
// CHECK-NEXT:  %[[H:.*]] = linalg.fill ins(%[[ZERO]] : f32) outs(%[[G]]
// CHECK-NEXT:  linalg.reduce {{.*}} outs(%[[H]]
func.func @fills(%x: tensor<8x4xf32>, %y: tensor<8x4xf32>) -> (tensor<8xf32>, tensor<8xf32>) {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<8xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<8xf32>) -> tensor<8xf32>
  %a = linalg.reduce { arith.addf } ins(%x : tensor<8x4xf32>) outs(%f : tensor<8xf32>) dimensions = [1]
  %b = linalg.reduce { arith.addf } ins(%y : tensor<8x4xf32>) outs(%f : tensor<8xf32>) dimensions = [1]
  return %a, %b : tensor<8xf32>, tensor<8xf32>
}

// -----

// One that is read as well is kept as it was, and written by none.
// CHECK-LABEL: @is_read
// CHECK:       %[[E:.*]] = tensor.empty()
// CHECK:       %[[F:.*]] = linalg.fill ins(%[[ZERO:.*]] : f32) outs(%[[E]]
// CHECK:       %[[G:.*]] = tensor.empty()
// CHECK-NEXT:  %[[H:.*]] = linalg.fill ins(%[[ZERO]] : f32) outs(%[[G]]
// CHECK-NEXT:  %[[A:.*]] = linalg.reduce {{.*}} outs(%[[H]]
// CHECK:       %[[K:.*]] = tensor.empty()
// CHECK-NEXT:  linalg.add ins(%[[A]], %[[F]] : {{.*}}) outs(%[[K]]
func.func @is_read(%x: tensor<8x4xf32>) -> tensor<8xf32> {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<8xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<8xf32>) -> tensor<8xf32>
  %a = linalg.reduce { arith.addf } ins(%x : tensor<8x4xf32>) outs(%f : tensor<8xf32>) dimensions = [1]
  %b = linalg.add ins(%a, %f : tensor<8xf32>, tensor<8xf32>) outs(%e : tensor<8xf32>) -> tensor<8xf32>
  return %b : tensor<8xf32>
}

// -----

// What is inserted into a fill writes it too.
// CHECK-LABEL: @paddings
// CHECK-COUNT-2: linalg.fill
// CHECK-NOT:     linalg.fill
func.func @paddings(%x: tensor<8xf32>, %y: tensor<8xf32>) -> (tensor<10xf32>, tensor<10xf32>) {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<10xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<10xf32>) -> tensor<10xf32>
  %a = tensor.insert_slice %x into %f[1] [8] [1] : tensor<8xf32> into tensor<10xf32>
  %b = tensor.insert_slice %y into %f[1] [8] [1] : tensor<8xf32> into tensor<10xf32>
  return %a, %b : tensor<10xf32>, tensor<10xf32>
}
