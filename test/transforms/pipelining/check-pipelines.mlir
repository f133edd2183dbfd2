// RUN: alcop-opt %s --pass-pipeline='builtin.module(alcop-plan-pipelines{stages=3,2},alcop-multi-buffer,alcop-expand-pipelines,alcop-check-pipelines,canonicalize,cse,alcop-place-waits,alcop-check-pipelines,alcop-unroll-steady-state,canonicalize,cse,alcop-check-pipelines)' 2>/dev/null | FileCheck %s

// What our own passes make is right, in all its forms; the check changes nothing.
// CHECK-LABEL: @both_levels
// CHECK:         nvgpu.device_async_wait
// CHECK-NEXT:    gpu.barrier
#ws = #gpu.address_space<workgroup>
func.func @both_levels(%A: memref<64x32xf32>, %C: memref<32xf32>, %n: index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c4 = arith.constant 4 : index
  %zero = arith.constant 0.0 : f32
  %t = gpu.thread_id x
  %a = memref.alloc() : memref<32xf32, #ws>
  %sum = scf.for %k = %c0 to %n step %c1 iter_args(%acc = %zero) -> (f32) {
    %v = memref.load %A[%k, %t] : memref<64x32xf32>
    memref.store %v, %a[%t] : memref<32xf32, #ws>
    gpu.barrier
    %in = scf.for %i = %c0 to %c4 step %c1 iter_args(%s = %acc) -> (f32) {
      %at = arith.xori %t, %i : index
      %x = memref.load %a[%at] : memref<32xf32, #ws>
      %next = arith.addf %s, %x : f32
      scf.yield %next : f32
    }
    gpu.barrier
    scf.yield %in : f32
  }
  memref.store %sum, %C[%t] : memref<32xf32>
  return
}
