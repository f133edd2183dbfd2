// RUN: alcop-opt %s --pass-pipeline='builtin.module(alcop-plan-pipelines{stages=3,1 assume-noalias-args=true},alcop-multi-buffer,alcop-expand-pipelines,alcop-place-waits)' \
// RUN:   --split-input-file --verify-diagnostics | FileCheck %s

// An scf.forall over blocks is a kernel: pipelined inside, the forall left unchanged.
// CHECK-LABEL: @blocks
// CHECK:         scf.forall (%[[B:.*]]) in (4)
// CHECK:           memref.alloc() : memref<3x64xf32
// CHECK-NOT:       gpu.barrier
// CHECK:           nvgpu.device_async_copy
// CHECK:           scf.for
// CHECK:             nvgpu.device_async_wait {{.*}} {numGroups = 1 : i32}
// CHECK-NEXT:        gpu.barrier
// CHECK:             nvgpu.device_async_copy
// CHECK:           {alcop.unroll = 3 : i64}
// CHECK:         {mapping = [#gpu.block<x>]}
#ws = #gpu.address_space<workgroup>
func.func @blocks(%A: memref<4x64x64xf32>, %C: memref<4x64xf32>, %n: index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c63 = arith.constant 63 : index
  %zero = arith.constant 0.0 : f32
  scf.forall (%b) in (4) {
    %t = gpu.thread_id x
    %other = arith.subi %c63, %t : index
    %a = memref.alloc() : memref<64xf32, #ws>
    %sum = scf.for %k = %c0 to %n step %c1 iter_args(%acc = %zero) -> (f32) {
      %v = memref.load %A[%b, %k, %t] : memref<4x64x64xf32>
      memref.store %v, %a[%t] : memref<64xf32, #ws>
      gpu.barrier
      %x = memref.load %a[%other] : memref<64xf32, #ws>
      %next = arith.addf %acc, %x : f32
      gpu.barrier
      scf.yield %next : f32
    }
    memref.store %sum, %C[%b, %t] : memref<4x64xf32>
  } {mapping = [#gpu.block<x>]}
  return
}

// -----

// Two of them are two kernels: each has the whole shared memory for itself.
// CHECK-LABEL: @two_kernels
// CHECK-COUNT-2: memref.alloc() : memref<3x8192xf32
#ws = #gpu.address_space<workgroup>
func.func @two_kernels(%A: memref<64x8192xf32>, %C: memref<8192xf32>, %n: index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  scf.forall (%b) in (4) {
    %t = gpu.thread_id x
    %a = memref.alloc() : memref<8192xf32, #ws>
    scf.for %k = %c0 to %n step %c1 {
      %v = memref.load %A[%k, %t] : memref<64x8192xf32>
      memref.store %v, %a[%t] : memref<8192xf32, #ws>
      gpu.barrier
      %x = memref.load %a[%b] : memref<8192xf32, #ws>
      memref.store %x, %C[%t] : memref<8192xf32>
      gpu.barrier
    }
  } {mapping = [#gpu.block<x>]}
  scf.forall (%b) in (4) {
    %t = gpu.thread_id x
    %a = memref.alloc() : memref<8192xf32, #ws>
    scf.for %k = %c0 to %n step %c1 {
      %v = memref.load %A[%k, %t] : memref<64x8192xf32>
      memref.store %v, %a[%t] : memref<8192xf32, #ws>
      gpu.barrier
      %x = memref.load %a[%b] : memref<8192xf32, #ws>
      memref.store %x, %C[%t] : memref<8192xf32>
      gpu.barrier
    }
  } {mapping = [#gpu.block<x>]}
  return
}

// -----

// Bounds by the block are the same for all its threads, so that barriers may be placed.
// CHECK-LABEL: @bounds_by_block
// CHECK:         nvgpu.device_async_wait
#ws = #gpu.address_space<workgroup>
func.func @bounds_by_block(%A: memref<64x64xf32>, %C: memref<64xf32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  scf.forall (%b) in (4) {
    %t = gpu.thread_id x
    %a = memref.alloc() : memref<64xf32, #ws>
    scf.for %k = %c0 to %b step %c1 {
      %v = memref.load %A[%k, %t] : memref<64x64xf32>
      memref.store %v, %a[%t] : memref<64xf32, #ws>
      %x = memref.load %a[%t] : memref<64xf32, #ws>
      memref.store %x, %C[%t] : memref<64xf32>
    }
  } {mapping = [#gpu.block<x>]}
  return
}

// -----

// In a forall over threads each thread runs the loop for itself.
// CHECK-LABEL: @threads
// CHECK-NOT:     alcop.
// CHECK-NOT:     nvgpu.
#ws = #gpu.address_space<workgroup>
func.func @threads(%A: memref<64x64xf32>, %C: memref<64xf32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %a = memref.alloc() : memref<64xf32, #ws>
  scf.forall (%t) in (64) {
    scf.for %k = %c0 to %t step %c1 {
      %v = memref.load %A[%k, %t] : memref<64x64xf32>
      // expected-remark @below {{not pipelined (rule 3): threads of a block may run the loop differently}}
      memref.store %v, %a[%t] : memref<64xf32, #ws>
      %x = memref.load %a[%t] : memref<64xf32, #ws>
      memref.store %x, %C[%t] : memref<64xf32>
    }
  } {mapping = [#gpu.thread<x>]}
  return
}
