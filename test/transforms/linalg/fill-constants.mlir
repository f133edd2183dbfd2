// RUN: alcop-opt %s --alcop-fill-constants | FileCheck %s

// What an op starts from is filled in; one that is read stays a constant.
// CHECK-LABEL: func.func @start(
// CHECK-DAG:     %[[ONES:.*]] = arith.constant dense<1.000000e+00> : tensor<8x8xf32>
// CHECK-DAG:     %[[ZERO:.*]] = arith.constant 0.000000e+00 : f32
// CHECK-DAG:     %[[EMPTY:.*]] = tensor.empty() : tensor<8x8xf32>
// CHECK:         %[[FILL:.*]] = linalg.fill ins(%[[ZERO]] : f32) outs(%[[EMPTY]] : tensor<8x8xf32>)
// CHECK-NEXT:    linalg.matmul ins(%{{.*}}, %[[ONES]] : {{.*}}) outs(%[[FILL]] : tensor<8x8xf32>)
// CHECK-NOT:     dense<0.000000e+00>
func.func @start(%a: tensor<8x8xf32>) -> tensor<8x8xf32> {
  %ones = arith.constant dense<1.0> : tensor<8x8xf32>
  %zeros = arith.constant dense<0.0> : tensor<8x8xf32>
  %0 = linalg.matmul ins(%a, %ones : tensor<8x8xf32>, tensor<8x8xf32>) outs(%zeros : tensor<8x8xf32>) -> tensor<8x8xf32>
  return %0 : tensor<8x8xf32>
}

// A constant of several values stays one; so does one that is used otherwise, too.
// CHECK-LABEL: func.func @others(
// CHECK-DAG:     %[[TWO:.*]] = arith.constant dense<[1, 2]> : tensor<2xi32>
// CHECK-DAG:     %[[SAME:.*]] = arith.constant dense<3> : tensor<2xi32>
// CHECK:         linalg.add ins({{.*}}) outs(%[[TWO]] : tensor<2xi32>)
// CHECK:         linalg.fill
// CHECK:         return %{{.*}}, %{{.*}}, %[[SAME]]
func.func @others(%a: tensor<2xi32>) -> (tensor<2xi32>, tensor<2xi32>, tensor<2xi32>) {
  %two = arith.constant dense<[1, 2]> : tensor<2xi32>
  %same = arith.constant dense<3> : tensor<2xi32>
  %0 = linalg.add ins(%a, %a : tensor<2xi32>, tensor<2xi32>) outs(%two : tensor<2xi32>) -> tensor<2xi32>
  %1 = linalg.add ins(%a, %a : tensor<2xi32>, tensor<2xi32>) outs(%same : tensor<2xi32>) -> tensor<2xi32>
  return %0, %1, %same : tensor<2xi32>, tensor<2xi32>, tensor<2xi32>
}
