// RUN: alcop-opt %s --pass-pipeline='builtin.module(alcop-plan-pipelines{stages=3,1 assume-noalias-args=true},alcop-multi-buffer,alcop-expand-pipelines,canonicalize,cse,alcop-place-waits,alcop-check-pipelines)' \
// RUN:   --split-input-file --verify-diagnostics | FileCheck %s

// Two commit groups in an iteration become one, of both copies, and one wait for it.
// CHECK-LABEL: @two_groups
// CHECK:         scf.for
// CHECK:           nvgpu.device_async_wait {{.*}} {numGroups = 1 : i32}
// CHECK-NEXT:      gpu.barrier
// CHECK:           nvgpu.device_async_copy
// CHECK-NOT:       nvgpu.device_async_create_group
// CHECK:           nvgpu.device_async_copy
// CHECK:           nvgpu.device_async_create_group
// CHECK-NOT:       nvgpu.device_async_wait
// CHECK:           scf.yield
#ws = #gpu.address_space<workgroup>
func.func @two_groups(%A: memref<64x256xf32>, %B: memref<64x256xf32>, %C: memref<64xf32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c4 = arith.constant 4 : index
  %c64 = arith.constant 64 : index
  %t = gpu.thread_id x
  %t4 = arith.muli %t, %c4 : index
  %a = memref.alloc() : memref<256xf32, #ws>
  %b = memref.alloc() : memref<256xf32, #ws>
  scf.for %k = %c0 to %c64 step %c1 {
    %ta = nvgpu.device_async_copy %A[%k, %t4], %a[%t4], 4 : memref<64x256xf32> to memref<256xf32, #ws>
    %ga = nvgpu.device_async_create_group %ta
    %tb = nvgpu.device_async_copy %B[%k, %t4], %b[%t4], 4 : memref<64x256xf32> to memref<256xf32, #ws>
    %gb = nvgpu.device_async_create_group %tb
    nvgpu.device_async_wait %ga {numGroups = 1 : i32}
    nvgpu.device_async_wait %gb {numGroups = 0 : i32}
    gpu.barrier
    %x = memref.load %a[%t] : memref<256xf32, #ws>
    %y = memref.load %b[%t] : memref<256xf32, #ws>
    %s = arith.addf %x, %y : f32
    memref.store %s, %C[%t] : memref<64xf32>
    gpu.barrier
  }
  return
}

// -----

// A group of someone else's in flight over the loop: older than ours, so that each wait
// covers it, and none lets a group fly for it.
// CHECK-LABEL: @foreign_group
// CHECK:         nvgpu.device_async_copy %{{.*}}, %[[TABLE:.*]][
// CHECK:         %[[FOREIGN:.*]] = nvgpu.device_async_create_group
// CHECK:         scf.for
// CHECK:           nvgpu.device_async_wait {{.*}} {numGroups = 1 : i32}
// CHECK:         nvgpu.device_async_wait %[[FOREIGN]]
// CHECK:         memref.load %[[TABLE]]
#ws = #gpu.address_space<workgroup>
func.func @foreign_group(%A: memref<64x256xf32>, %T: memref<256xf32>, %C: memref<64xf32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c4 = arith.constant 4 : index
  %c64 = arith.constant 64 : index
  %t = gpu.thread_id x
  %t4 = arith.muli %t, %c4 : index
  %table = memref.alloc() : memref<256xf32, #ws>
  %a = memref.alloc() : memref<256xf32, #ws>
  %copy = nvgpu.device_async_copy %T[%t4], %table[%t4], 4 : memref<256xf32> to memref<256xf32, #ws>
  %foreign = nvgpu.device_async_create_group %copy
  scf.for %k = %c0 to %c64 step %c1 {
    %v = vector.load %A[%k, %t4] : memref<64x256xf32>, vector<4xf32>
    vector.store %v, %a[%t4] : memref<256xf32, #ws>, vector<4xf32>
    gpu.barrier
    %x = memref.load %a[%t] : memref<256xf32, #ws>
    memref.store %x, %C[%t] : memref<64xf32>
    gpu.barrier
  }
  nvgpu.device_async_wait %foreign {numGroups = 0 : i32}
  gpu.barrier
  %y = memref.load %table[%t] : memref<256xf32, #ws>
  memref.store %y, %C[%t] : memref<64xf32>
  return
}

// -----

// Two loops, one after the other, over buffers of their own: the second loop's first
// copies need no barrier, as nobody read its slots before.
// CHECK-LABEL: @two_loops
// CHECK-COUNT-2: memref.alloc() : memref<3x64xf32
// CHECK:         nvgpu.device_async_copy
// CHECK:         scf.for
// CHECK:         nvgpu.device_async_copy
// CHECK:         scf.for
#ws = #gpu.address_space<workgroup>
func.func @two_loops(%A: memref<64x64xf32>, %B: memref<64x64xf32>, %C: memref<64xf32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c63 = arith.constant 63 : index
  %c64 = arith.constant 64 : index
  %t = gpu.thread_id x
  %other = arith.subi %c63, %t : index
  %a = memref.alloc() : memref<64xf32, #ws>
  %b = memref.alloc() : memref<64xf32, #ws>
  scf.for %k = %c0 to %c64 step %c1 {
    %v = memref.load %A[%k, %t] : memref<64x64xf32>
    memref.store %v, %a[%t] : memref<64xf32, #ws>
    gpu.barrier
    %x = memref.load %a[%other] : memref<64xf32, #ws>
    memref.store %x, %C[%t] : memref<64xf32>
    gpu.barrier
  }
  scf.for %k = %c0 to %c64 step %c1 {
    %v = memref.load %B[%k, %t] : memref<64x64xf32>
    memref.store %v, %b[%t] : memref<64xf32, #ws>
    gpu.barrier
    %x = memref.load %b[%other] : memref<64xf32, #ws>
    memref.store %x, %C[%t] : memref<64xf32>
    gpu.barrier
  }
  return
}
