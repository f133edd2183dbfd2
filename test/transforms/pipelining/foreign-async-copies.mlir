// RUN: alcop-opt %s --pass-pipeline='builtin.module(alcop-plan-pipelines{stages=3,1 assume-noalias-args=true},alcop-multi-buffer,alcop-expand-pipelines)' \
// RUN:   --split-input-file --verify-diagnostics | FileCheck %s

// Asynchronous, and waited for at once: its group and wait are placed anew.
// CHECK-LABEL: @awaited_at_once
// CHECK-NOT:     device_async_wait
// CHECK:         memref.alloc() : memref<3x64xf32
// CHECK:         nvgpu.device_async_copy
// CHECK:         "alcop.producer_commit"
// CHECK:         scf.for
// CHECK:           "alcop.consumer_wait"
// CHECK:           nvgpu.device_async_copy
// CHECK:           memref.load
// CHECK:         {alcop.unroll = 3 : i64}
#ws = #gpu.address_space<workgroup>
func.func @awaited_at_once(%A: memref<64x64xf32>, %C: memref<64xf32>, %n: index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c63 = arith.constant 63 : index
  %zero = arith.constant 0.0 : f32
  %t = gpu.thread_id x
  %other = arith.subi %c63, %t : index
  %a = memref.alloc() : memref<64xf32, #ws>
  %sum = scf.for %k = %c0 to %n step %c1 iter_args(%acc = %zero) -> (f32) {
    %c = nvgpu.device_async_copy %A[%k, %t], %a[%t], 1 : memref<64x64xf32> to memref<64xf32, #ws>
    %g = "nvgpu.device_async_create_group"() : () -> !nvgpu.device.async.token
    nvgpu.device_async_wait %g {numGroups = 0 : i32}
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

// The group that is waited for was made in the iteration before.
// CHECK-LABEL: @pipelined_by_hand
// CHECK-NOT:     alcop.
#ws = #gpu.address_space<workgroup>
func.func @pipelined_by_hand(%A: memref<64x64xf32>, %C: memref<64xf32>, %n: index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c63 = arith.constant 63 : index
  %zero = arith.constant 0.0 : f32
  %t = gpu.thread_id x
  %other = arith.subi %c63, %t : index
  %a = memref.alloc() : memref<64xf32, #ws>
  %g0 = "nvgpu.device_async_create_group"() : () -> !nvgpu.device.async.token
  %sum:2 = scf.for %k = %c0 to %n step %c1 iter_args(%acc = %zero, %old = %g0) -> (f32, !nvgpu.device.async.token) {
    // expected-remark @below {{not pipelined (rule 3): the loop waits for a group of the iteration before: it is pipelined by hand; wait for the copies in the iteration that makes them}}
    %c = nvgpu.device_async_copy %A[%k, %t], %a[%t], 1 : memref<64x64xf32> to memref<64xf32, #ws>
    %g = "nvgpu.device_async_create_group"() : () -> !nvgpu.device.async.token
    nvgpu.device_async_wait %old {numGroups = 0 : i32}
    gpu.barrier
    %x = memref.load %a[%other] : memref<64xf32, #ws>
    %next = arith.addf %acc, %x : f32
    gpu.barrier
    scf.yield %next, %g : f32, !nvgpu.device.async.token
  }
  memref.store %sum#0, %C[%t] : memref<64xf32>
  return
}

// -----

// %b is copied from what the loop writes, and stays. The group that had both copies
// keeps that of %b.
// CHECK-LABEL: @beside_others
// CHECK:         nvgpu.device_async_copy %{{.*}}, %{{.*}}[%{{.*}}], 1
// CHECK:         "alcop.producer_commit"
// CHECK:         scf.for
// CHECK:           "alcop.consumer_wait"
// CHECK:           "alcop.producer_commit"
// CHECK:           %[[B:.*]] = nvgpu.device_async_copy %arg1
// CHECK:           %[[G:.*]] = nvgpu.device_async_create_group %[[B]]{{$}}
// CHECK:           nvgpu.device_async_wait %[[G]] {numGroups = 0 : i32}
// CHECK-NEXT:      gpu.barrier
// CHECK-NOT:       gpu.barrier
// CHECK:         {alcop.unroll = 3 : i64}
#ws = #gpu.address_space<workgroup>
func.func @beside_others(%A: memref<64x64xf32>, %C: memref<64xf32>, %n: index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c63 = arith.constant 63 : index
  %t = gpu.thread_id x
  %other = arith.subi %c63, %t : index
  %a = memref.alloc() : memref<64xf32, #ws>
  %b = memref.alloc() : memref<64xf32, #ws>
  scf.for %k = %c0 to %n step %c1 {
    %ca = nvgpu.device_async_copy %A[%k, %t], %a[%t], 1 : memref<64x64xf32> to memref<64xf32, #ws>
    // expected-remark @below {{not pipelined (rule 6): its source may be written by 'memref.store' in the loop; copy from memory that the loop does not write}}
    %cb = nvgpu.device_async_copy %C[%t], %b[%t], 1 : memref<64xf32> to memref<64xf32, #ws>
    %g = nvgpu.device_async_create_group %ca, %cb
    nvgpu.device_async_wait %g {numGroups = 0 : i32}
    gpu.barrier
    %x = memref.load %a[%other] : memref<64xf32, #ws>
    %y = memref.load %b[%other] : memref<64xf32, #ws>
    %z = arith.addf %x, %y : f32
    memref.store %z, %C[%t] : memref<64xf32>
    gpu.barrier
  }
  return
}

// -----

// The token of the copy itself leaves the iteration.
// CHECK-LABEL: @token_leaves
// CHECK-NOT:     alcop.
#ws = #gpu.address_space<workgroup>
func.func @token_leaves(%A: memref<64x64xf32>, %C: memref<64xf32>, %n: index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %t = gpu.thread_id x
  %a = memref.alloc() : memref<64xf32, #ws>
  %first = "nvgpu.device_async_create_group"() : () -> !nvgpu.device.async.token
  %last = scf.for %k = %c0 to %n step %c1 iter_args(%old = %first) -> (!nvgpu.device.async.token) {
    // expected-remark @below {{not pipelined (rule 3): its token is used by 'scf.yield'; create the group of the copy in the iteration that makes it}}
    %c = nvgpu.device_async_copy %A[%k, %t], %a[%t], 1 : memref<64x64xf32> to memref<64xf32, #ws>
    %g = "nvgpu.device_async_create_group"() : () -> !nvgpu.device.async.token
    nvgpu.device_async_wait %g {numGroups = 0 : i32}
    gpu.barrier
    %x = memref.load %a[%c0] : memref<64xf32, #ws>
    memref.store %x, %C[%t] : memref<64xf32>
    gpu.barrier
    scf.yield %c : !nvgpu.device.async.token
  }
  return
}
