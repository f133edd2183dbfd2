// RUN: alcop-opt %s --pass-pipeline='builtin.module(alcop-plan-pipelines{stages=3,1 assume-noalias-args=true},alcop-multi-buffer,alcop-expand-pipelines)' \
// RUN:   --split-input-file --verify-diagnostics | FileCheck %s

// Each thread moves one element of 4 bytes.
// CHECK-LABEL: @scalar
// CHECK:         memref.alloc() : memref<3x64xf32
// CHECK:         nvgpu.device_async_copy
// CHECK:         "alcop.producer_commit"
// CHECK:         scf.for
// CHECK:           "alcop.consumer_wait"
// CHECK:           nvgpu.device_async_copy
// CHECK:           memref.load
// CHECK:         {alcop.unroll = 3 : i64}
#ws = #gpu.address_space<workgroup>
func.func @scalar(%A: memref<64x64xf32>, %C: memref<64xf32>, %n: index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c63 = arith.constant 63 : index
  %zero = arith.constant 0.0 : f32
  %t = gpu.thread_id x
  %other = arith.subi %c63, %t : index
  %a = memref.alloc() : memref<64xf32, #ws>
  %sum = scf.for %k = %c0 to %n step %c1 iter_args(%acc = %zero) -> (f32) {
    %v = memref.load %A[%k, %t] : memref<64x64xf32>
    memref.store %v, %a[%t] : memref<64xf32, #ws>
    gpu.barrier
    %x = memref.load %a[%other] : memref<64xf32, #ws>
    %next = arith.addf %acc, %x : f32
    gpu.barrier
    scf.yield %next : f32
  }
  memref.store %sum, %C[%t] : memref<64xf32>
  return
}

// -----

// Each thread moves 16 bytes, past the L1 cache.
// CHECK-LABEL: @vector
// CHECK:         memref.alloc() : memref<3x64x4xf32
// CHECK:         nvgpu.device_async_copy {{.*}}, 4 {bypassL1}
// CHECK:         "alcop.producer_commit"
// CHECK:         scf.for
// CHECK:           "alcop.consumer_wait"
// CHECK:           nvgpu.device_async_copy {{.*}}, 4 {bypassL1}
// CHECK:           memref.load
// CHECK:         {alcop.unroll = 3 : i64}
#ws = #gpu.address_space<workgroup>
func.func @vector(%A: memref<64x64xf32>, %C: memref<64xf32>, %n: index) {
  %c0 = arith.constant 0 : index
  %c63 = arith.constant 63 : index
  %zero = arith.constant 0.0 : f32
  %t = gpu.thread_id x
  %other = arith.subi %c63, %t : index
  %a = memref.alloc() : memref<64x4xf32, #ws>
  %c4 = arith.constant 4 : index
  %sum = scf.for %k = %c0 to %n step %c4 iter_args(%acc = %zero) -> (f32) {
    %v = vector.load %A[%t, %k] : memref<64x64xf32>, vector<4xf32>
    vector.store %v, %a[%t, %c0] : memref<64x4xf32, #ws>, vector<4xf32>
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

// The same as transfers.
// CHECK-LABEL: @transfer
// CHECK:         memref.alloc() : memref<3x64x4xf32
// CHECK:         nvgpu.device_async_copy
// CHECK:         "alcop.producer_commit"
// CHECK:         scf.for
// CHECK:           "alcop.consumer_wait"
// CHECK:           nvgpu.device_async_copy
// CHECK:           memref.load
// CHECK:         {alcop.unroll = 3 : i64}
#ws = #gpu.address_space<workgroup>
func.func @transfer(%A: memref<64x64xf32>, %C: memref<64xf32>, %n: index) {
  %c0 = arith.constant 0 : index
  %c63 = arith.constant 63 : index
  %zero = arith.constant 0.0 : f32
  %t = gpu.thread_id x
  %other = arith.subi %c63, %t : index
  %a = memref.alloc() : memref<64x4xf32, #ws>
  %c4 = arith.constant 4 : index
  %sum = scf.for %k = %c0 to %n step %c4 iter_args(%acc = %zero) -> (f32) {
    %v = vector.transfer_read %A[%t, %k], %zero {in_bounds = [true]} : memref<64x64xf32>, vector<4xf32>
    vector.transfer_write %v, %a[%t, %c0] {in_bounds = [true]} : vector<4xf32>, memref<64x4xf32, #ws>
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

// Of 16 bytes that may begin anywhere cp.async can move none.
// CHECK-LABEL: @unaligned
// CHECK-NOT:     alcop.
#ws = #gpu.address_space<workgroup>
func.func @unaligned(%A: memref<64x64xf32>, %C: memref<64xf32>, %n: index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c63 = arith.constant 63 : index
  %zero = arith.constant 0.0 : f32
  %t = gpu.thread_id x
  %other = arith.subi %c63, %t : index
  %a = memref.alloc() : memref<64x4xf32, #ws>
  %sum = scf.for %k = %c0 to %n step %c1 iter_args(%acc = %zero) -> (f32) {
    %v = vector.load %A[%t, %k] : memref<64x64xf32>, vector<4xf32>
    // expected-remark @below {{not pipelined (rule 1): its source address is known to be aligned to 4 bytes, 16 are needed; copy 4, 8 or 16 aligned bytes per thread}}
    vector.store %v, %a[%t, %c0] : memref<64x4xf32, #ws>, vector<4xf32>
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

// Of 2 bytes neither.
// CHECK-LABEL: @half
// CHECK-NOT:     alcop.
#ws = #gpu.address_space<workgroup>
func.func @half(%A: memref<64x64xf16>, %C: memref<64xf32>, %n: index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c63 = arith.constant 63 : index
  %zero = arith.constant 0.0 : f32
  %t = gpu.thread_id x
  %other = arith.subi %c63, %t : index
  %a = memref.alloc() : memref<64xf16, #ws>
  %sum = scf.for %k = %c0 to %n step %c1 iter_args(%acc = %zero) -> (f32) {
    %v = memref.load %A[%t, %k] : memref<64x64xf16>
    // expected-remark @below {{not pipelined (rule 1): each thread copies 2 bytes at a time, cp.async 4, 8, 16; copy 4, 8 or 16 aligned bytes per thread}}
    memref.store %v, %a[%t] : memref<64xf16, #ws>
    gpu.barrier
    %h = memref.load %a[%other] : memref<64xf16, #ws>
    %x = arith.extf %h : f16 to f32
    %next = arith.addf %acc, %x : f32
    gpu.barrier
    scf.yield %next : f32
  }
  memref.store %sum, %C[%t] : memref<64xf32>
  return
}

// -----

// What is stored is computed, not loaded.
// CHECK-LABEL: @computed
// CHECK-NOT:     alcop.
#ws = #gpu.address_space<workgroup>
func.func @computed(%A: memref<64x64xf32>, %C: memref<64xf32>, %n: index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c63 = arith.constant 63 : index
  %zero = arith.constant 0.0 : f32
  %t = gpu.thread_id x
  %other = arith.subi %c63, %t : index
  %a = memref.alloc() : memref<64xf32, #ws>
  %sum = scf.for %k = %c0 to %n step %c1 iter_args(%acc = %zero) -> (f32) {
    %v = memref.load %A[%k, %t] : memref<64x64xf32>
    %w = arith.addf %v, %v : f32
    // expected-remark @below {{not pipelined (rule 1): 'memref.store' stores a value that is computed from what was loaded; copy the loaded value, and compute where it is read}}
    memref.store %w, %a[%t] : memref<64xf32, #ws>
    gpu.barrier
    %x = memref.load %a[%other] : memref<64xf32, #ws>
    %next = arith.addf %acc, %x : f32
    gpu.barrier
    scf.yield %next : f32
  }
  memref.store %sum, %C[%t] : memref<64xf32>
  return
}
