// RUN: alcop-opt %s --alcop-lower-to-nvvm | FileCheck %s

// Kernels are converted one by one: equal declarations are made one, texts of the same
// name are told apart.
// CHECK-LABEL: gpu.module @printing
// CHECK-DAG:     llvm.func internal @__nv_expf(
// CHECK-DAG:     constant @[[B:printfFormat_0_1]]("b %f
// CHECK-DAG:     constant @[[A:printfFormat_0]]("a %f
// CHECK-DAG:     constant @[[E:printfFormat_1]]("e %f
// CHECK-NOT:     @vprintf_
// CHECK:       llvm.func @a
// CHECK-DAG:     llvm.mlir.addressof @[[A]]
// CHECK-DAG:     llvm.mlir.addressof @[[E]]
// CHECK:       llvm.func @b
// CHECK-DAG:     llvm.mlir.addressof @[[B]]
// CHECK-DAG:     llvm.mlir.addressof @[[E]]
// CHECK:         llvm.call @vprintf(
// CHECK:         llvm.call @__nv_expf(
// CHECK-NOT:   gpu.module
gpu.module @printing {
  gpu.func @a(%x: f32) kernel {
    gpu.printf "a %f\n", %x : f32
    %y = math.exp %x : f32
    gpu.printf "e %f\n", %y : f32
    gpu.return
  }
  gpu.func @b(%x: f32) kernel {
    gpu.printf "b %f\n", %x : f32
    %y = math.exp %x : f32
    gpu.printf "e %f\n", %y : f32
    gpu.return
  }
}
