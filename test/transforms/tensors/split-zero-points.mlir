// RUN: alcop-opt %s --alcop-split-zero-points --split-input-file --mlir-print-local-scope | FileCheck %s

// What each filter and each window adds up to is multiplied with the other's zero point.
// CHECK-LABEL: @convolution
// CHECK-SAME:  %[[X:.*]]: tensor<1x6x6x16xi8>, %[[W:.*]]: tensor<3x3x16x8xi8>, %[[I:.*]]: tensor<1x4x4x8xi32>
// CHECK-DAG:   %[[ZX:.*]] = arith.constant 3 : i32
// CHECK-DAG:   %[[ZW:.*]] = arith.constant -2 : i32
// CHECK:       %[[F:.*]] = linalg.generic {indexing_maps = [affine_map<(d0, d1, d2, d3) -> (d1, d2, d3, d0)>, affine_map<(d0, d1, d2, d3) -> ()>, affine_map<(d0, d1, d2, d3) -> (d0)>], iterator_types = ["parallel", "reduction", "reduction", "reduction"]} ins(%[[W]], %[[ZW]]
// CHECK:         arith.extsi
// CHECK-NEXT:    arith.subi
// CHECK-NEXT:    arith.addi
// CHECK:       %[[E:.*]] = tensor.empty() : tensor<3x3xi32>
// CHECK:       %[[P:.*]] = linalg.generic {indexing_maps = [affine_map<(d0, d1, d2, d3, d4, d5) -> (d0, d1 + d3, d2 + d4, d5)>, affine_map<(d0, d1, d2, d3, d4, d5) -> (d3, d4)>, affine_map<(d0, d1, d2, d3, d4, d5) -> (d0, d1, d2)>]
// CHECK-SAME:    ins(%[[X]], %[[E]]
// CHECK:       %[[C:.*]] = linalg.conv_2d_nhwc_hwcf {dilations = dense<1> : {{.*}}, strides = dense<1> : {{.*}}} ins(%[[X]], %[[W]] : {{.*}}) outs(%[[I]]
// CHECK:       %[[Y:.*]] = linalg.generic {{.*}} ins(%[[C]], %[[F]], %[[ZX]], %[[P]], %[[ZW]] :
// CHECK:         arith.muli
// CHECK-NEXT:    arith.subi
// CHECK-NEXT:    arith.muli
// CHECK-NEXT:    arith.subi
// CHECK:       return %[[Y]]
func.func @convolution(%x: tensor<1x6x6x16xi8>, %w: tensor<3x3x16x8xi8>, %i: tensor<1x4x4x8xi32>) -> tensor<1x4x4x8xi32> {
  %zx = arith.constant 3 : i32
  %zw = arith.constant -2 : i32
  %y = linalg.conv_2d_nhwc_hwcf_q {dilations = dense<1> : tensor<2xi64>, strides = dense<1> : tensor<2xi64>}
    ins(%x, %w, %zx, %zw : tensor<1x6x6x16xi8>, tensor<3x3x16x8xi8>, i32, i32) outs(%i : tensor<1x4x4x8xi32>) -> tensor<1x4x4x8xi32>
  return %y : tensor<1x4x4x8xi32>
}

// -----

// Nothing is added up for a zero point of 0.
// CHECK-LABEL: @symmetric
// CHECK-NOT:   linalg.generic
// CHECK:       linalg.quantized_matmul
// CHECK-LABEL: @one_sided
// CHECK:       linalg.generic {{.*}} ins(%{{.*}}, %{{.*}} : tensor<?x8xi8>, i32)
// CHECK:       linalg.matmul
// CHECK:       linalg.generic {{.*}} ins(%{{.*}}, %{{.*}}, %{{.*}} : tensor<?x8xi32>, tensor<8xi32>, i32)
func.func @symmetric(%x: memref<4x16xi8>, %w: memref<16x8xi8>, %y: memref<4x8xi32>, %z: i32) {
  linalg.quantized_matmul ins(%x, %w, %z, %z : memref<4x16xi8>, memref<16x8xi8>, i32, i32) outs(%y : memref<4x8xi32>)
  return
}
func.func @one_sided(%x: tensor<?x?xi8>, %w: tensor<?x8xi8>, %i: tensor<?x8xi32>, %zx: i32) -> tensor<?x8xi32> {
  %zero = arith.constant 0 : i32
  %y = linalg.quantized_matmul ins(%x, %w, %zx, %zero : tensor<?x?xi8>, tensor<?x8xi8>, i32, i32) outs(%i : tensor<?x8xi32>) -> tensor<?x8xi32>
  return %y : tensor<?x8xi32>
}

// -----

// Left unchanged: groups of 8 channels, and a channel for each filter.
// CHECK-LABEL: @small_groups
// CHECK:       linalg.conv_2d_nhwgc_gfhwc_q
// CHECK:       linalg.depthwise_conv_2d_nhwc_hwc_q
func.func @small_groups(%x: tensor<1x6x6x2x8xi8>, %w: tensor<2x8x3x3x8xi8>, %i: tensor<1x4x4x2x8xi32>, %a: tensor<1x6x6x8xi8>, %b: tensor<3x3x8xi8>, %j: tensor<1x4x4x8xi32>) -> (tensor<1x4x4x2x8xi32>, tensor<1x4x4x8xi32>) {
  %z = arith.constant 3 : i32
  %y = linalg.conv_2d_nhwgc_gfhwc_q {dilations = dense<1> : tensor<2xi64>, strides = dense<1> : tensor<2xi64>}
    ins(%x, %w, %z, %z : tensor<1x6x6x2x8xi8>, tensor<2x8x3x3x8xi8>, i32, i32) outs(%i : tensor<1x4x4x2x8xi32>) -> tensor<1x4x4x2x8xi32>
  %v = linalg.depthwise_conv_2d_nhwc_hwc_q {dilations = dense<1> : tensor<2xi64>, strides = dense<1> : tensor<2xi64>}
    ins(%a, %b, %z, %z : tensor<1x6x6x8xi8>, tensor<3x3x8xi8>, i32, i32) outs(%j : tensor<1x4x4x8xi32>) -> tensor<1x4x4x8xi32>
  return %y, %v : tensor<1x4x4x2x8xi32>, tensor<1x4x4x8xi32>
}
