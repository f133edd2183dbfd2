// RUN: alcop-opt %s --alcop-protect-arguments | FileCheck %s

// CHECK-LABEL: @tensors
// CHECK-SAME:  tensor<4xf32> {bufferization.writable = false}
// CHECK-SAME:  f32, 
// CHECK-SAME:  tensor<8xf32> {bufferization.writable = true}
func.func @tensors(%a: tensor<4xf32>, %s: f32, %b: tensor<8xf32> {bufferization.writable = true}) {
  return
}

// Memrefs are not touched.
// CHECK-LABEL: @memrefs(%{{.*}}: memref<4xf32>)
func.func @memrefs(%a: memref<4xf32>) {
  return
}
