// Ops that have no indexing maps are left alone, beside what is fused and raised.
// RUN: alcop-opt %s --pass-pipeline='builtin.module(func.func(alcop-fuse-producers,alcop-raise-contractions,alcop-fuse-elementwise))' | FileCheck %s

// CHECK-LABEL: @softmax
// CHECK:         linalg.matmul {alcop.contraction
// CHECK:         linalg.softmax
func.func @softmax(%A: memref<64x32xf16>, %B: memref<32x64xf16>, %S: memref<64x64xf32>, %R: memref<64x64xf32>) {
  linalg.matmul ins(%A, %B : memref<64x32xf16>, memref<32x64xf16>) outs(%S : memref<64x64xf32>)
  linalg.softmax dimension(1) ins(%S : memref<64x64xf32>) outs(%R : memref<64x64xf32>)
  return
}

// CHECK-LABEL: @pack
// CHECK:         linalg.matmul {alcop.contraction
// CHECK:         linalg.pack
func.func @pack(%A: memref<64x32xf16>, %B: memref<32x64xf16>, %S: memref<64x64xf32>, %P: memref<4x4x16x16xf32>) {
  linalg.matmul ins(%A, %B : memref<64x32xf16>, memref<32x64xf16>) outs(%S : memref<64x64xf32>)
  linalg.pack %S inner_dims_pos = [0, 1] inner_tiles = [16, 16] into %P : memref<64x64xf32> -> memref<4x4x16x16xf32>
  return
}
