// A grid has 65,535 blocks along y and z: more rows of tiles lie along x, and a larger
// batch is left to the SIMT fallback.
// RUN: alcop-opt %s --pass-pipeline='builtin.module(func.func(alcop-raise-contractions,alcop-select-schedule{schedule="block=16,16,16 warp=16,16 stages=1,1"},alcop-tile-to-blocks,canonicalize))' --verify-diagnostics | FileCheck %s

// CHECK-LABEL: @tall
// CHECK-DAG:     %[[ROWS:.*]] = arith.constant 65537 : index
// CHECK-DAG:     %[[COLUMNS:.*]] = arith.constant 2 : index
// CHECK:         gpu.launch blocks({{.*}}) in (%{{.*}} = %[[ROWS]], %{{.*}} = %[[COLUMNS]],
func.func @tall(%A: memref<1048577x16xf16>, %B: memref<16x32xf16>, %C: memref<1048577x32xf32>) {
  linalg.matmul ins(%A, %B : memref<1048577x16xf16>, memref<16x32xf16>) outs(%C : memref<1048577x32xf32>)
  return
}

// CHECK-LABEL: @large_batch
// CHECK-NOT:     gpu.launch
func.func @large_batch(%A: memref<65536x4x4xf16>, %B: memref<65536x4x4xf16>, %C: memref<65536x4x4xf32>) {
  // expected-remark @+1 {{'linalg.batch_matmul' runs as a SIMT fallback: has a batch of 65536, a grid has 65535 blocks along z}}
  linalg.batch_matmul ins(%A, %B : memref<65536x4x4xf16>, memref<65536x4x4xf16>) outs(%C : memref<65536x4x4xf32>)
  return
}
