// RUN: alcop-opt %s --pass-pipeline='builtin.module(alcop-plan-pipelines{stages=3,1 assume-noalias-args=true},alcop-multi-buffer,alcop-expand-pipelines)' \
// RUN:   --split-input-file --verify-diagnostics | FileCheck %s

// A tile copied by the whole block.
// CHECK-LABEL: @memref_copy
// CHECK:         memref.alloc() : memref<3x64x4xf32
// CHECK:         "alcop.async_copy"
// CHECK:         "alcop.producer_commit"
// CHECK:         scf.for
// CHECK:           "alcop.consumer_wait"
// CHECK:           "alcop.async_copy"
// CHECK:           memref.load
// CHECK:         {alcop.unroll = 3 : i64}
#ws = #gpu.address_space<workgroup>
func.func @memref_copy(%A: memref<64x64xf32>, %C: memref<64xf32>, %n: index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c63 = arith.constant 63 : index
  %zero = arith.constant 0.0 : f32
  %t = gpu.thread_id x
  %other = arith.subi %c63, %t : index
  %a = memref.alloc() : memref<64x4xf32, #ws>
  %sum = scf.for %k = %c0 to %n step %c1 iter_args(%acc = %zero) -> (f32) {
    %tile = memref.subview %A[0, %k] [64, 4] [1, 1] : memref<64x64xf32> to memref<64x4xf32, strided<[64, 1], offset: ?>>
    memref.copy %tile, %a : memref<64x4xf32, strided<[64, 1], offset: ?>> to memref<64x4xf32, #ws>
    gpu.barrier
    %x = memref.load %a[%other, %c0] : memref<64x4xf32, #ws>
    %next = arith.addf %acc, %x : f32
    gpu.barrier
    scf.yield %next : f32
  }
  memref.store %sum, %C[%t] : memref<64xf32>
  return
}

// -----

// The same as a linalg.copy.
// CHECK-LABEL: @linalg_copy
// CHECK:         memref.alloc() : memref<3x64x4xf32
// CHECK:         "alcop.async_copy"
// CHECK:         "alcop.producer_commit"
// CHECK:         scf.for
// CHECK:           "alcop.consumer_wait"
// CHECK:           "alcop.async_copy"
// CHECK:           memref.load
// CHECK:         {alcop.unroll = 3 : i64}
#ws = #gpu.address_space<workgroup>
func.func @linalg_copy(%A: memref<64x64xf32>, %C: memref<64xf32>, %n: index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c63 = arith.constant 63 : index
  %zero = arith.constant 0.0 : f32
  %t = gpu.thread_id x
  %other = arith.subi %c63, %t : index
  %a = memref.alloc() : memref<64x4xf32, #ws>
  %sum = scf.for %k = %c0 to %n step %c1 iter_args(%acc = %zero) -> (f32) {
    %tile = memref.subview %A[0, %k] [64, 4] [1, 1] : memref<64x64xf32> to memref<64x4xf32, strided<[64, 1], offset: ?>>
    linalg.copy ins(%tile : memref<64x4xf32, strided<[64, 1], offset: ?>>) outs(%a : memref<64x4xf32, #ws>)
    gpu.barrier
    %x = memref.load %a[%other, %c0] : memref<64x4xf32, #ws>
    %next = arith.addf %acc, %x : f32
    gpu.barrier
    scf.yield %next : f32
  }
  memref.store %sum, %C[%t] : memref<64xf32>
  return
}

// -----

// The same as a linalg.generic that yields its input.
// CHECK-LABEL: @identity_generic
// CHECK:         memref.alloc() : memref<3x64x4xf32
// CHECK:         "alcop.async_copy"
// CHECK:         "alcop.producer_commit"
// CHECK:         scf.for
// CHECK:           "alcop.consumer_wait"
// CHECK:           "alcop.async_copy"
// CHECK:           memref.load
// CHECK:         {alcop.unroll = 3 : i64}
#ws = #gpu.address_space<workgroup>
func.func @identity_generic(%A: memref<64x64xf32>, %C: memref<64xf32>, %n: index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c63 = arith.constant 63 : index
  %zero = arith.constant 0.0 : f32
  %t = gpu.thread_id x
  %other = arith.subi %c63, %t : index
  %a = memref.alloc() : memref<64x4xf32, #ws>
  %sum = scf.for %k = %c0 to %n step %c1 iter_args(%acc = %zero) -> (f32) {
    %tile = memref.subview %A[0, %k] [64, 4] [1, 1] : memref<64x64xf32> to memref<64x4xf32, strided<[64, 1], offset: ?>>
    linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i, j)>], iterator_types = ["parallel", "parallel"]} ins(%tile : memref<64x4xf32, strided<[64, 1], offset: ?>>) outs(%a : memref<64x4xf32, #ws>) {
    ^bb0(%in: f32, %out: f32):
      linalg.yield %in : f32
    }
    gpu.barrier
    %x = memref.load %a[%other, %c0] : memref<64x4xf32, #ws>
    %next = arith.addf %acc, %x : f32
    gpu.barrier
    scf.yield %next : f32
  }
  memref.store %sum, %C[%t] : memref<64xf32>
  return
}

// -----

// One that computes is no copy.
// CHECK-LABEL: @scaling_generic
// CHECK-NOT:     alcop.
#ws = #gpu.address_space<workgroup>
func.func @scaling_generic(%A: memref<64x64xf32>, %C: memref<64xf32>, %n: index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c63 = arith.constant 63 : index
  %zero = arith.constant 0.0 : f32
  %t = gpu.thread_id x
  %other = arith.subi %c63, %t : index
  %a = memref.alloc() : memref<64x4xf32, #ws>
  %sum = scf.for %k = %c0 to %n step %c1 iter_args(%acc = %zero) -> (f32) {
    %tile = memref.subview %A[0, %k] [64, 4] [1, 1] : memref<64x64xf32> to memref<64x4xf32, strided<[64, 1], offset: ?>>
    // expected-remark @below {{not pipelined (rule 1): 'linalg.generic' computes what it stores; copy the input, and compute where it is read}}
    linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i, j)>], iterator_types = ["parallel", "parallel"]} ins(%tile : memref<64x4xf32, strided<[64, 1], offset: ?>>) outs(%a : memref<64x4xf32, #ws>) {
    ^bb0(%in: f32, %out: f32):
      %twice = arith.addf %in, %in : f32
      linalg.yield %twice : f32
    }
    gpu.barrier
    %x = memref.load %a[%other, %c0] : memref<64x4xf32, #ws>
    %next = arith.addf %acc, %x : f32
    gpu.barrier
    scf.yield %next : f32
  }
  memref.store %sum, %C[%t] : memref<64xf32>
  return
}
