// RUN: alcop-opt %s --pass-pipeline='builtin.module(alcop-plan-pipelines{stages=3,1 assume-noalias-args=true},alcop-multi-buffer,alcop-expand-pipelines)' \
// RUN:   --split-input-file --verify-diagnostics | FileCheck %s

// The address is a carried value: the copies carry their own.
// CHECK-LABEL: @carried_address
// CHECK:         scf.for {{.*}} iter_args(
// CHECK:           nvgpu.device_async_copy %{{.*}}[%[[ROW:[a-z0-9_]+]], 
// CHECK:           arith.addi %[[ROW]]
#ws = #gpu.address_space<workgroup>
func.func @carried_address(%A: memref<64x64xf32>, %C: memref<64xf32>, %n: index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c63 = arith.constant 63 : index
  %zero = arith.constant 0.0 : f32
  %t = gpu.thread_id x
  %other = arith.subi %c63, %t : index
  %a = memref.alloc() : memref<64xf32, #ws>
  %sum:2 = scf.for %k = %c0 to %n step %c1 iter_args(%acc = %zero, %row = %c1) -> (f32, index) {
    %v = memref.load %A[%row, %t] : memref<64x64xf32>
    memref.store %v, %a[%t] : memref<64xf32, #ws>
    gpu.barrier
    %x = memref.load %a[%other] : memref<64xf32, #ws>
    %next = arith.addf %acc, %x : f32
    gpu.barrier
    %two = arith.addi %c1, %c1 : index
    %after = arith.addi %row, %two : index
    scf.yield %next, %after : f32, index
  }
  memref.store %sum#0, %C[%t] : memref<64xf32>
  return
}

// -----

// The row is loaded: one iteration before the copy, which carries it.
// CHECK-LABEL: @loaded_address
// CHECK:         scf.for {{.*}} iter_args({{.*}}, %[[ROW:[a-z0-9_]+]] = %{{.*}}, %{{.*}} = %{{.*}}, %{{.*}} = %{{.*}}) -> (f32, index, index, index, !nvgpu
// CHECK:           nvgpu.device_async_copy %{{.*}}[%[[ROW]], 
// CHECK:           %[[NEXT:.*]] = scf.if
// CHECK-NEXT:        memref.load %{{.*}} : memref<64xindex>
// CHECK:           scf.yield {{.*}}, %[[NEXT]],
#ws = #gpu.address_space<workgroup>
func.func @loaded_address(%A: memref<64x64xf32>, %I: memref<64xindex>, %C: memref<64xf32>, %n: index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c63 = arith.constant 63 : index
  %zero = arith.constant 0.0 : f32
  %t = gpu.thread_id x
  %other = arith.subi %c63, %t : index
  %a = memref.alloc() : memref<64xf32, #ws>
  %sum = scf.for %k = %c0 to %n step %c1 iter_args(%acc = %zero) -> (f32) {
    %at = memref.load %I[%k] : memref<64xindex>
    %v = memref.load %A[%at, %t] : memref<64x64xf32>
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

// The loop writes what a later iteration copies.
// CHECK-LABEL: @source_written
// CHECK-NOT:     alcop.
#ws = #gpu.address_space<workgroup>
func.func @source_written(%A: memref<64x64xf32>, %C: memref<64xf32>, %n: index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c63 = arith.constant 63 : index
  %zero = arith.constant 0.0 : f32
  %t = gpu.thread_id x
  %other = arith.subi %c63, %t : index
  %a = memref.alloc() : memref<64xf32, #ws>
  %sum = scf.for %k = %c0 to %n step %c1 iter_args(%acc = %zero) -> (f32) {
    %v = memref.load %A[%k, %t] : memref<64x64xf32>
    // expected-remark @below {{not pipelined (rule 6): its source may be written by 'memref.store' in the loop; copy from memory that the loop does not write}}
    memref.store %v, %a[%t] : memref<64xf32, #ws>
    gpu.barrier
    %x = memref.load %a[%other] : memref<64xf32, #ws>
    %next = arith.addf %acc, %x : f32
    gpu.barrier
    %later = arith.addi %k, %c1 : index
    memref.store %next, %A[%later, %t] : memref<64x64xf32>
    gpu.barrier
    scf.yield %next : f32
  }
  memref.store %sum, %C[%t] : memref<64xf32>
  return
}

// -----

// Any positive step, known when the program runs only.
// CHECK-LABEL: @odd_step
// CHECK:         arith.ceildivsi
// CHECK:         scf.for
// CHECK:           "alcop.consumer_wait"
// CHECK:           nvgpu.device_async_copy
// CHECK:           memref.load
// CHECK:         {alcop.unroll = 3 : i64}
#ws = #gpu.address_space<workgroup>
func.func @odd_step(%A: memref<64x64xf32>, %C: memref<64xf32>, %n: index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c63 = arith.constant 63 : index
  %zero = arith.constant 0.0 : f32
  %t = gpu.thread_id x
  %other = arith.subi %c63, %t : index
  %a = memref.alloc() : memref<64xf32, #ws>
  %step = arith.maxsi %n, %c1 : index
  %sum = scf.for %k = %c0 to %c63 step %step iter_args(%acc = %zero) -> (f32) {
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

// Each thread has its own bounds: a barrier may not stand in such a loop.
// CHECK-LABEL: @threads_diverge
// CHECK-NOT:     alcop.
#ws = #gpu.address_space<workgroup>
func.func @threads_diverge(%A: memref<64x64xf32>, %C: memref<64xf32>, %n: index) {
  %c1 = arith.constant 1 : index
  %zero = arith.constant 0.0 : f32
  %t = gpu.thread_id x
  %a = memref.alloc() : memref<64xf32, #ws>
  %sum = scf.for %k = %t to %n step %c1 iter_args(%acc = %zero) -> (f32) {
    %v = memref.load %A[%k, %t] : memref<64x64xf32>
    // expected-remark @below {{not pipelined (rule 3): threads of a block may run the loop differently, and it has no barrier to show that they do not; make its bounds, and the conditions around it, the same for all threads}}
    memref.store %v, %a[%t] : memref<64xf32, #ws>
    %x = memref.load %a[%t] : memref<64xf32, #ws>
    %next = arith.addf %acc, %x : f32
    scf.yield %next : f32
  }
  memref.store %sum, %C[%t] : memref<64xf32>
  return
}

// -----

// The next row is loaded where a row is copied, and so only where the loop loads it.
// CHECK-LABEL: @carried_load
// CHECK:         scf.for {{.*}} iter_args(
// CHECK:           nvgpu.device_async_copy %{{.*}}[%[[ROW:[a-z0-9_]+]], 
// CHECK-NOT:       scf.if
// CHECK:           memref.load %{{.*}}[%[[ROW]]] : memref<64xindex>
// CHECK:         scf.for {{.*}} iter_args(
// CHECK:           scf.if %{{.*}} -> (index, index)
// CHECK:             nvgpu.device_async_copy %{{.*}}[%[[ROW:[a-z0-9_]+]], 
// CHECK:             memref.load %{{.*}}[%[[ROW]]] : memref<64xindex>
#ws = #gpu.address_space<workgroup>
func.func @carried_load(%A: memref<64x64xf32>, %I: memref<64xindex>, %C: memref<64xf32>, %n: index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c63 = arith.constant 63 : index
  %zero = arith.constant 0.0 : f32
  %t = gpu.thread_id x
  %other = arith.subi %c63, %t : index
  %a = memref.alloc() : memref<64xf32, #ws>
  %sum:2 = scf.for %k = %c0 to %n step %c1 iter_args(%acc = %zero, %row = %c0) -> (f32, index) {
    %v = memref.load %A[%row, %t] : memref<64x64xf32>
    memref.store %v, %a[%t] : memref<64xf32, #ws>
    gpu.barrier
    %x = memref.load %a[%other] : memref<64xf32, #ws>
    %next = arith.addf %acc, %x : f32
    gpu.barrier
    %after = memref.load %I[%row] : memref<64xindex>
    scf.yield %next, %after : f32, index
  }
  memref.store %sum#0, %C[%t] : memref<64xf32>
  return
}

// -----

// What a thread keeps on its stack no barrier orders.
// CHECK-LABEL: gpu.func @stack
// CHECK:         nvgpu.device_async_copy
// CHECK:         {alcop.unroll = 3 : i64}
#ws = #gpu.address_space<workgroup>
gpu.module @kernels {
gpu.func @stack(%A: memref<64x64xf32>, %C: memref<64xf32>, %n: index) workgroup(%a: memref<64xf32, #ws>) kernel {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c63 = arith.constant 63 : index
  %zero = arith.constant 0.0 : f32
  %t = gpu.thread_id x
  %other = arith.subi %c63, %t : index
  %sum = scf.for %k = %c0 to %n step %c1 iter_args(%acc = %zero) -> (f32) {
    %v = memref.load %A[%k, %t] : memref<64x64xf32>
    memref.store %v, %a[%t] : memref<64xf32, #ws>
    gpu.barrier
    %x = memref.load %a[%other] : memref<64xf32, #ws>
    %kept = memref.alloca() : memref<2xf32>
    memref.store %x, %kept[%c1] : memref<2xf32>
    %y = memref.load %kept[%c1] : memref<2xf32>
    %next = arith.addf %acc, %y : f32
    gpu.barrier
    scf.yield %next : f32
  }
  memref.store %sum, %C[%t] : memref<64xf32>
  gpu.return
}
}

// -----

// It is filled twice: what is read is copied before.
// CHECK-LABEL: @two_loops
// CHECK-NOT:     alcop.
#ws = #gpu.address_space<workgroup>
func.func @two_loops(%A: memref<64x64xf32>, %C: memref<64xf32>, %n: index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c63 = arith.constant 63 : index
  %zero = arith.constant 0.0 : f32
  %t = gpu.thread_id x
  %other = arith.subi %c63, %t : index
  %a = memref.alloc() : memref<64xf32, #ws>
  %sum = scf.for %k = %c0 to %n step %c1 iter_args(%acc = %zero) -> (f32) {
    %v = memref.load %A[%k, %t] : memref<64x64xf32>
    // expected-remark @below {{not pipelined (rule 2): its buffer is also written by 'memref.store' outside of the loop; fill the buffer by copies in the loop only}}
    memref.store %v, %a[%t] : memref<64xf32, #ws>
    gpu.barrier
    %x = memref.load %a[%other] : memref<64xf32, #ws>
    %next = arith.addf %acc, %x : f32
    gpu.barrier
    scf.yield %next : f32
  }
  %more = scf.for %k = %c0 to %n step %c1 iter_args(%acc = %sum) -> (f32) {
    %v = memref.load %A[%k, %t] : memref<64x64xf32>
    // expected-remark @below {{not pipelined (rule 2): its buffer is also written by 'memref.store' outside of the loop; fill the buffer by copies in the loop only}}
    memref.store %v, %a[%t] : memref<64xf32, #ws>
    gpu.barrier
    %x = memref.load %a[%other] : memref<64xf32, #ws>
    %next = arith.mulf %acc, %x : f32
    gpu.barrier
    scf.yield %next : f32
  }
  memref.store %more, %C[%t] : memref<64xf32>
  return
}

// -----

// No barrier orders %b, and none comes between its store and its load.
// CHECK-LABEL: @other_shared
// CHECK:         scf.for
// CHECK:           nvgpu.device_async_copy
// CHECK:           memref.store
// CHECK-NOT:       gpu.barrier
// CHECK:         {alcop.unroll = 3 : i64}
#ws = #gpu.address_space<workgroup>
func.func @other_shared(%A: memref<64x64xf32>, %C: memref<64xf32>, %n: index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %zero = arith.constant 0.0 : f32
  %t = gpu.thread_id x
  %a = memref.alloc() : memref<64xf32, #ws>
  %b = memref.alloc() : memref<64xf32, #ws>
  %sum = scf.for %k = %c0 to %n step %c1 iter_args(%acc = %zero) -> (f32) {
    %v = memref.load %A[%k, %t] : memref<64x64xf32>
    memref.store %v, %a[%t] : memref<64xf32, #ws>
    %x = memref.load %a[%t] : memref<64xf32, #ws>
    memref.store %acc, %b[%t] : memref<64xf32, #ws>
    %y = memref.load %b[%t] : memref<64xf32, #ws>
    %next = arith.addf %y, %x : f32
    scf.yield %next : f32
  }
  memref.store %sum, %C[%t] : memref<64xf32>
  return
}

// -----

// Each thread has its own bounds here, too.
// CHECK-LABEL: @lanes_diverge
// CHECK-NOT:     alcop.
#ws = #gpu.address_space<workgroup>
func.func @lanes_diverge(%A: memref<64x64xf32>, %C: memref<64xf32>, %n: index) {
  %c1 = arith.constant 1 : index
  %zero = arith.constant 0.0 : f32
  %t = gpu.thread_id x
  %lane = nvvm.read.ptx.sreg.laneid : i32
  %first = arith.index_cast %lane : i32 to index
  %a = memref.alloc() : memref<64xf32, #ws>
  %sum = scf.for %k = %first to %n step %c1 iter_args(%acc = %zero) -> (f32) {
    %v = memref.load %A[%k, %t] : memref<64x64xf32>
    // expected-remark @below {{not pipelined (rule 3): threads of a block may run the loop differently}}
    memref.store %v, %a[%t] : memref<64xf32, #ws>
    %x = memref.load %a[%t] : memref<64xf32, #ws>
    %next = arith.addf %acc, %x : f32
    scf.yield %next : f32
  }
  memref.store %sum, %C[%t] : memref<64xf32>
  return
}

// -----

// %p goes from thread to thread: the second barrier stays. The others order %a, or what
// the barrier of the pipeline orders: none is left after the loop either.
// CHECK-LABEL: @passed_on
// CHECK:         scf.for
// CHECK:           nvgpu.device_async_copy
// CHECK-NOT:       gpu.barrier
// CHECK:           memref.store {{.*}} : memref<64xf32, #gpu.address_space<workgroup>>
// CHECK-NEXT:      gpu.barrier
// CHECK:           memref.load
// CHECK-NOT:       gpu.barrier
// CHECK:         {alcop.unroll = 3 : i64}
// CHECK:         scf.for
// CHECK:           gpu.barrier
// CHECK-NOT:     gpu.barrier
// CHECK:         return
#ws = #gpu.address_space<workgroup>
func.func @passed_on(%A: memref<64x64xf32>, %C: memref<64xf32>, %n: index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c63 = arith.constant 63 : index
  %zero = arith.constant 0.0 : f32
  %t = gpu.thread_id x
  %other = arith.subi %c63, %t : index
  %a = memref.alloc() : memref<64xf32, #ws>
  %p = memref.alloc() : memref<64xf32, #ws>
  %sum = scf.for %k = %c0 to %n step %c1 iter_args(%acc = %zero) -> (f32) {
    %v = memref.load %A[%k, %t] : memref<64x64xf32>
    memref.store %v, %a[%t] : memref<64xf32, #ws>
    gpu.barrier
    %x = memref.load %a[%other] : memref<64xf32, #ws>
    memref.store %x, %p[%t] : memref<64xf32, #ws>
    gpu.barrier
    %y = memref.load %p[%other] : memref<64xf32, #ws>
    %next = arith.addf %acc, %y : f32
    gpu.barrier
    scf.yield %next : f32
  }
  memref.store %sum, %C[%t] : memref<64xf32>
  return
}

// -----

// What the last iteration stores is read after the loop, and what it copies was written
// before: barriers of the loop order both.
// CHECK-LABEL: @before_and_after
// CHECK:         memref.store
// CHECK:         gpu.barrier
// CHECK:         "alcop.producer_acquire"
// CHECK:         {alcop.unroll = 3 : i64}
// CHECK:         gpu.barrier
// CHECK-NEXT:    memref.load %{{.*}} : memref<64xf32, #gpu.address_space<workgroup>>
#ws = #gpu.address_space<workgroup>
func.func @before_and_after(%A: memref<64x64xf32>, %C: memref<64xf32>, %n: index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c63 = arith.constant 63 : index
  %zero = arith.constant 0.0 : f32
  %t = gpu.thread_id x
  %other = arith.subi %c63, %t : index
  %a = memref.alloc() : memref<64xf32, #ws>
  %p = memref.alloc() : memref<64xf32, #ws>
  memref.store %zero, %A[%c1, %t] : memref<64x64xf32>
  scf.for %k = %c0 to %n step %c1 {
    gpu.barrier
    %v = memref.load %A[%k, %other] : memref<64x64xf32>
    memref.store %v, %a[%t] : memref<64xf32, #ws>
    gpu.barrier
    %x = memref.load %a[%other] : memref<64xf32, #ws>
    memref.store %x, %p[%t] : memref<64xf32, #ws>
    gpu.barrier
  }
  %y = memref.load %p[%other] : memref<64xf32, #ws>
  memref.store %y, %C[%t] : memref<64xf32>
  return
}

// -----

// A barrier that is for shared memory only does not separate accesses of global memory.
// CHECK-LABEL: @two_kinds_of_barriers
// CHECK:         gpu.barrier memfence [#gpu.address_space<workgroup>]
// CHECK-NEXT:    memref.load
// CHECK-NEXT:    gpu.barrier{{$}}
// CHECK:         {alcop.unroll = 3 : i64}
#ws = #gpu.address_space<workgroup>
func.func @two_kinds_of_barriers(%A: memref<64x64xf32>, %C: memref<64xf32>, %n: index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c63 = arith.constant 63 : index
  %zero = arith.constant 0.0 : f32
  %t = gpu.thread_id x
  %other = arith.subi %c63, %t : index
  %a = memref.alloc() : memref<64xf32, #ws>
  %p = memref.alloc() : memref<64xf32, #ws>
  scf.for %k = %c0 to %n step %c1 {
    %v = memref.load %A[%k, %t] : memref<64x64xf32>
    memref.store %v, %a[%t] : memref<64xf32, #ws>
    gpu.barrier
    %x = memref.load %a[%other] : memref<64xf32, #ws>
    memref.store %x, %C[%t] : memref<64xf32>
    memref.store %x, %p[%t] : memref<64xf32, #ws>
    gpu.barrier memfence [#gpu.address_space<workgroup>]
    %y = memref.load %p[%other] : memref<64xf32, #ws>
    gpu.barrier
    %z = memref.load %C[%other] : memref<64xf32>
    %w = arith.addf %y, %z : f32
    gpu.printf "%f", %w : f32
    gpu.barrier
  }
  return
}

// -----

// Copies into %b stand or fall together; that into %a is none of them. The buffer that
// stays is allocated once, for all parts of the pipeline.
// CHECK-LABEL: @neighbours
// CHECK:         memref.alloc() : memref<3x64xf32
// CHECK:         memref.alloc() : memref<128xf32
// CHECK-NOT:     memref.alloc
// CHECK:         scf.for
// CHECK:           nvgpu.device_async_copy {{.*}} : memref<64x64xf32> to memref<64xf32, strided<[1], offset: ?>
// CHECK-NOT:       nvgpu.device_async_copy
// CHECK:         {alcop.unroll = 3 : i64}
#ws = #gpu.address_space<workgroup>
func.func @neighbours(%A: memref<64x64xf32>, %C: memref<64xf32>, %n: index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c63 = arith.constant 63 : index
  %t = gpu.thread_id x
  %other = arith.subi %c63, %t : index
  %c64 = arith.constant 64 : index
  %far = arith.addi %t, %c64 : index
  %a = memref.alloc() : memref<64xf32, #ws>
  scf.for %k = %c0 to %n step %c1 {
    %b = memref.alloc() : memref<128xf32, #ws>
    %v = memref.load %A[%k, %t] : memref<64x64xf32>
    memref.store %v, %a[%t] : memref<64xf32, #ws>
    %w = memref.load %A[%k, %other] : memref<64x64xf32>
    // expected-remark @below {{not pipelined (rule 2): another copy into the same buffer cannot be pipelined; fill the buffer by copies only that can be pipelined}}
    memref.store %w, %b[%t] : memref<128xf32, #ws>
    %u = memref.load %C[%t] : memref<64xf32>
    // expected-remark @below {{not pipelined (rule 6): its source may be written by 'memref.store' in the loop; copy from memory that the loop does not write}}
    memref.store %u, %b[%far] : memref<128xf32, #ws>
    gpu.barrier
    %x = memref.load %a[%other] : memref<64xf32, #ws>
    %y = memref.load %b[%other] : memref<128xf32, #ws>
    %z = arith.addf %x, %y : f32
    memref.store %z, %C[%t] : memref<64xf32>
    gpu.barrier
  }
  return
}

// -----

// A barrier for a warp says nothing of the block's other threads.
// CHECK-LABEL: @warps_diverge
// CHECK-NOT:     alcop.
#ws = #gpu.address_space<workgroup>
func.func @warps_diverge(%A: memref<64x64xf32>, %C: memref<64xf32>, %n: index) {
  %c1 = arith.constant 1 : index
  %c32 = arith.constant 32 : index
  %t = gpu.thread_id x
  %warp = arith.divui %t, %c32 : index
  %a = memref.alloc() : memref<64xf32, #ws>
  scf.for %k = %warp to %n step %c1 {
    %v = memref.load %A[%k, %t] : memref<64x64xf32>
    // expected-remark @below {{not pipelined (rule 3): threads of a block may run the loop differently}}
    memref.store %v, %a[%t] : memref<64xf32, #ws>
    gpu.barrier scope <subgroup>
    %x = memref.load %a[%t] : memref<64xf32, #ws>
    memref.store %x, %C[%t] : memref<64xf32>
  }
  return
}
