// RUN: alcop-run %s | FileCheck %s
// CHECK: 0 bytes spilled
// CHECK: check {{ *}} OK
func.func @dyn(%A: memref<?x?xf16>, %B: memref<?x?xf16>, %C: memref<?x?xf32>) {
  linalg.matmul ins(%A,%B: memref<?x?xf16>, memref<?x?xf16>) outs(%C : memref<?x?xf32>)
  return
}
