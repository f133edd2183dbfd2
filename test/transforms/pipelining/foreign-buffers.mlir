// RUN: alcop-opt %s --pass-pipeline='builtin.module(alcop-plan-pipelines{stages=3,1 assume-noalias-args=true},alcop-multi-buffer,alcop-expand-pipelines)' \
// RUN:   --split-input-file --verify-diagnostics | FileCheck %s

// Allocated in the loop: its slots outlive the iterations.
// CHECK-LABEL: @in_the_loop
// CHECK:         memref.alloc() : memref<3x64xf32
// CHECK:         nvgpu.device_async_copy
// CHECK:         "alcop.producer_commit"
// CHECK:         scf.for
// CHECK:           "alcop.consumer_wait"
// CHECK:           nvgpu.device_async_copy
// CHECK:           memref.load
// CHECK:         {alcop.unroll = 3 : i64}
#ws = #gpu.address_space<workgroup>
func.func @in_the_loop(%A: memref<64x64xf32>, %C: memref<64xf32>, %n: index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c63 = arith.constant 63 : index
  %zero = arith.constant 0.0 : f32
  %t = gpu.thread_id x
  %other = arith.subi %c63, %t : index
  %sum = scf.for %k = %c0 to %n step %c1 iter_args(%acc = %zero) -> (f32) {
    %a = memref.alloc() : memref<64xf32, #ws>
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

// Seen through a view made before the loop: it is made again, of each slot.
// CHECK-LABEL: @hoisted_view
// CHECK:         memref.alloc() : memref<3x128xf32
// CHECK:         scf.for
// CHECK:           %[[SLOT:.*]] = memref.subview %{{.*}}[%{{.*}}, 0] [1, 128] [1, 1]
// CHECK:           memref.subview %[[SLOT]][64] [64] [1]
#ws = #gpu.address_space<workgroup>
func.func @hoisted_view(%A: memref<64x64xf32>, %C: memref<64xf32>, %n: index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c63 = arith.constant 63 : index
  %zero = arith.constant 0.0 : f32
  %t = gpu.thread_id x
  %other = arith.subi %c63, %t : index
  %a = memref.alloc() : memref<128xf32, #ws>
  %v0 = memref.subview %a[64] [64] [1] : memref<128xf32, #ws> to memref<64xf32, strided<[1], offset: 64>, #ws>
  %sum = scf.for %k = %c0 to %n step %c1 iter_args(%acc = %zero) -> (f32) {
    %v = memref.load %A[%k, %t] : memref<64x64xf32>
    memref.store %v, %v0[%t] : memref<64xf32, strided<[1], offset: 64>, #ws>
    gpu.barrier
    %x = memref.load %v0[%other] : memref<64xf32, strided<[1], offset: 64>, #ws>
    %next = arith.addf %acc, %x : f32
    gpu.barrier
    scf.yield %next : f32
  }
  memref.store %sum, %C[%t] : memref<64xf32>
  return
}

// -----

// A view of other shape, made before the loop.
// CHECK-LABEL: @expanded_view
// CHECK:         memref.alloc() : memref<3x64xf32
// CHECK:         scf.for
// CHECK:           memref.expand_shape
#ws = #gpu.address_space<workgroup>
func.func @expanded_view(%A: memref<64x64xf32>, %C: memref<64xf32>, %n: index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c63 = arith.constant 63 : index
  %zero = arith.constant 0.0 : f32
  %t = gpu.thread_id x
  %other = arith.subi %c63, %t : index
  %a = memref.alloc() : memref<64xf32, #ws>
  %c4 = arith.constant 4 : index
  %v0 = memref.expand_shape %a [[0, 1]] output_shape [16, 4] : memref<64xf32, #ws> into memref<16x4xf32, #ws>
  %sum = scf.for %k = %c0 to %n step %c1 iter_args(%acc = %zero) -> (f32) {
    %v = memref.load %A[%k, %t] : memref<64x64xf32>
    memref.store %v, %a[%t] : memref<64xf32, #ws>
    gpu.barrier
    %row = arith.divui %other, %c4 : index
    %column = arith.remui %other, %c4 : index
    %x = memref.load %v0[%row, %column] : memref<16x4xf32, #ws>
    %next = arith.addf %acc, %x : f32
    gpu.barrier
    scf.yield %next : f32
  }
  memref.store %sum, %C[%t] : memref<64xf32>
  return
}

// -----

// Read after the loop: which slot would that be?
// CHECK-LABEL: @read_afterwards
// CHECK-NOT:     alcop.
#ws = #gpu.address_space<workgroup>
func.func @read_afterwards(%A: memref<64x64xf32>, %C: memref<64xf32>, %n: index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c63 = arith.constant 63 : index
  %zero = arith.constant 0.0 : f32
  %t = gpu.thread_id x
  %other = arith.subi %c63, %t : index
  %a = memref.alloc() : memref<64xf32, #ws>
  %sum = scf.for %k = %c0 to %n step %c1 iter_args(%acc = %zero) -> (f32) {
    %v = memref.load %A[%k, %t] : memref<64x64xf32>
    // expected-remark @below {{not pipelined (rule 4): its buffer is read by 'memref.load' outside of the loop; read it in the iteration that fills it}}
    memref.store %v, %a[%t] : memref<64xf32, #ws>
    gpu.barrier
    %x = memref.load %a[%other] : memref<64xf32, #ws>
    %next = arith.addf %acc, %x : f32
    gpu.barrier
    scf.yield %next : f32
  }
  %last = memref.load %a[%other] : memref<64xf32, #ws>
  memref.store %last, %C[%t] : memref<64xf32>
  return
}

// -----

// Each iteration fills another part, and may read what an older one left.
// CHECK-LABEL: @part_that_moves
// CHECK-NOT:     alcop.
#ws = #gpu.address_space<workgroup>
func.func @part_that_moves(%A: memref<64x64xf32>, %C: memref<64xf32>, %n: index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c63 = arith.constant 63 : index
  %zero = arith.constant 0.0 : f32
  %t = gpu.thread_id x
  %other = arith.subi %c63, %t : index
  %a = memref.alloc() : memref<64xf32, #ws>
  %sum = scf.for %k = %c0 to %n step %c1 iter_args(%acc = %zero) -> (f32) {
    %v = memref.load %A[%k, %t] : memref<64x64xf32>
    %place = arith.xori %t, %k : index
    // expected-remark @below {{not pipelined (rule 2): where it writes in its buffer changes from iteration to iteration; fill the same part of the buffer in every iteration}}
    memref.store %v, %a[%place] : memref<64xf32, #ws>
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

// Bytes, seen as floats: there is no such view of a slot.
// CHECK-LABEL: @bytes_seen_as_floats
// CHECK-NOT:     alcop.
#ws = #gpu.address_space<workgroup>
func.func @bytes_seen_as_floats(%A: memref<64x64xf32>, %C: memref<64xf32>, %n: index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %t = gpu.thread_id x
  %bytes = memref.alloc() : memref<256xi8, #ws>
  %a = memref.view %bytes[%c0][] : memref<256xi8, #ws> to memref<64xf32, #ws>
  scf.for %k = %c0 to %n step %c1 {
    %v = memref.load %A[%k, %t] : memref<64x64xf32>
    // expected-remark @below {{not pipelined (rule 4): its buffer is used through 'memref.view', which cannot view one slot of several; allocate the buffer with the type that it is used with, as alcop-separate-views does with views at constant offsets}}
    memref.store %v, %a[%t] : memref<64xf32, #ws>
    gpu.barrier
    %x = memref.load %a[%t] : memref<64xf32, #ws>
    memref.store %x, %C[%t] : memref<64xf32>
    gpu.barrier
  }
  return
}
