// RUN: alcop-opt %s --pass-pipeline='builtin.module(alcop-multi-buffer,alcop-expand-pipelines,canonicalize,cse)' | FileCheck %s
// RUN: alcop-opt %s --pass-pipeline='builtin.module(alcop-plan-pipelines{stages=3,2 assume-noalias-args=true},alcop-multi-buffer,alcop-expand-pipelines,canonicalize,cse)' | FileCheck %s

// Plans by lists of stages and orders that rewrite the loop in another order; planning
// before, also of loads into registers, leaves them as they are.

// What is stored is computed, so that no asynchronous copy can store it: a load and a
// store of the next iteration, into the other of two slots, and one barrier.
// CHECK-LABEL: gpu.func @computed_early
// CHECK-SAME:    workgroup(%[[B:.*]] : memref<2x16xf32,
// CHECK:         memref.store
// CHECK:         scf.for %[[I:.*]] = %c0 to %c14
// CHECK-NEXT:      gpu.barrier
// CHECK-NEXT:      %[[NEXT:.*]] = arith.addi %[[I]], %c1
// CHECK-NEXT:      %[[A:.*]] = memref.load %{{.*}}, %[[NEXT]]]
// CHECK-NEXT:      %[[V:.*]] = arith.mulf %[[A]]
// CHECK:           memref.store %[[V]]
// CHECK:           memref.load
// CHECK-NOT:       gpu.barrier
// CHECK:           scf.yield
// CHECK:         scf.for
// CHECK:           scf.if
#ws = #gpu.address_space<workgroup>
module attributes {gpu.container_module} {
  gpu.module @kernels {
    gpu.func @computed_early(%A: memref<16x16xf32>, %C: memref<16x16xf32>)
        workgroup(%B : memref<16xf32, #ws>) kernel {
      %c0 = arith.constant 0 : index
      %c1 = arith.constant 1 : index
      %c15 = arith.constant 15 : index
      %c16 = arith.constant 16 : index
      %two = arith.constant 2.0 : f32
      %t = gpu.thread_id x
      %other = arith.subi %c15, %t : index
      scf.for %i = %c0 to %c16 step %c1 {
        %a = memref.load %A[%t, %i] : memref<16x16xf32>
        %b = arith.mulf %a, %two : f32
        memref.store %b, %B[%t] : memref<16xf32, #ws>
        gpu.barrier
        %x = memref.load %B[%other] : memref<16xf32, #ws>
        memref.store %x, %C[%t, %i] : memref<16x16xf32>
        gpu.barrier
      } {alcop.pipeline = #alcop.pipeline<{stage = [0, 0, 0, 0, 1, 1, 1], order = [0, 1, 2, 3, 4, 5, 6]}>}
      gpu.return
    }

// The store and the load of %B are in one stage: no slots, but a barrier between them
// in each iteration that runs them, also in the one before the loop.
// CHECK-LABEL: gpu.func @barrier_early
// CHECK-SAME:    workgroup(%[[B:.*]] : memref<16xf32,
// CHECK:         memref.store %{{.*}}, %[[B]]
// CHECK-NEXT:    gpu.barrier
// CHECK-NEXT:    %[[FIRST:.*]] = memref.load %[[B]]
// CHECK:         scf.for {{.*}} iter_args(%[[X:.*]] = %[[FIRST]])
// CHECK-NEXT:      gpu.barrier
// CHECK:           memref.store %{{.*}}, %[[B]]
// CHECK-NEXT:      gpu.barrier
// CHECK-NEXT:      %[[Y:.*]] = memref.load %[[B]]
// CHECK-NEXT:      memref.store %[[X]]
// CHECK-NEXT:      scf.yield %[[Y]]
    gpu.func @barrier_early(%A: memref<16x16xf32>, %C: memref<16x16xf32>)
        workgroup(%B : memref<16xf32, #ws>) kernel {
      %c0 = arith.constant 0 : index
      %c1 = arith.constant 1 : index
      %c15 = arith.constant 15 : index
      %c16 = arith.constant 16 : index
      %two = arith.constant 2.0 : f32
      %t = gpu.thread_id x
      %other = arith.subi %c15, %t : index
      scf.for %i = %c0 to %c16 step %c1 {
        %a = memref.load %A[%t, %i] : memref<16x16xf32>
        %b = arith.mulf %a, %two : f32
        memref.store %b, %B[%t] : memref<16xf32, #ws>
        gpu.barrier
        %x = memref.load %B[%other] : memref<16xf32, #ws>
        memref.store %x, %C[%t, %i] : memref<16x16xf32>
        gpu.barrier
      } {alcop.pipeline = #alcop.pipeline<{stage = [0, 0, 0, 0, 0, 1, 1], order = [0, 1, 2, 3, 4, 5, 6]}>}
      gpu.return
    }

// The second copy comes between what is stored of the first and of the second.
// CHECK-LABEL: gpu.func @copy_in_between
// CHECK:         scf.for
// CHECK:           alcop.consumer_wait
// CHECK-NEXT:      "alcop.producer_acquire"
// CHECK:           nvgpu.device_async_copy %arg0
// CHECK:           memref.store
// CHECK:           nvgpu.device_async_copy %arg1
// CHECK-NEXT:      "alcop.producer_commit"
// CHECK:           memref.store
// CHECK:           scf.yield
    gpu.func @copy_in_between(%A: memref<16x16xf32>, %B: memref<16x16xf32>, %C: memref<16x16xf32>, %D: memref<16x16xf32>)
        workgroup(%AS : memref<16xf32, #ws>, %BS : memref<16xf32, #ws>) kernel {
      %c0 = arith.constant 0 : index
      %c1 = arith.constant 1 : index
      %c15 = arith.constant 15 : index
      %c16 = arith.constant 16 : index
      %t = gpu.thread_id x
      %other = arith.subi %c15, %t : index
      scf.for %i = %c0 to %c16 step %c1 {
        %a = memref.load %A[%t, %i] : memref<16x16xf32>
        memref.store %a, %AS[%t] : memref<16xf32, #ws>
        %b = memref.load %B[%t, %i] : memref<16x16xf32>
        memref.store %b, %BS[%t] : memref<16xf32, #ws>
        gpu.barrier
        %x = memref.load %AS[%other] : memref<16xf32, #ws>
        memref.store %x, %C[%t, %i] : memref<16x16xf32>
        %y = memref.load %BS[%other] : memref<16xf32, #ws>
        memref.store %y, %D[%t, %i] : memref<16x16xf32>
        gpu.barrier
      } {alcop.pipeline = #alcop.pipeline<{stage = [0, 0, 0, 0, 0, 1, 1, 1, 1, 1], order = [0, 1, 4, 5, 6, 2, 3, 7, 8, 9]}>}
      gpu.return
    }

// Not known how often: all is under one condition. The buffer that each iteration
// allocates is one, filled for the next when this one has been read.
// CHECK-LABEL: gpu.func @any_trips
// CHECK:         %[[L:.*]] = memref.alloca
// CHECK:         scf.if
// CHECK:           memref.store %{{.*}}, %[[L]]
// CHECK:           scf.for
// CHECK-NOT:         memref.alloca
// CHECK:             memref.load %[[L]]
// CHECK:             memref.store
// CHECK:             memref.store %{{.*}}, %[[L]]
    gpu.func @any_trips(%A: memref<16x16xf32>, %C: memref<16x16xf32>, %n: index) kernel {
      %c0 = arith.constant 0 : index
      %c1 = arith.constant 1 : index
      %t = gpu.thread_id x
      scf.for %i = %c0 to %n step %c1 {
        %l = memref.alloca() : memref<1xf32>
        %a = memref.load %A[%t, %i] : memref<16x16xf32>
        memref.store %a, %l[%c0] : memref<1xf32>
        %x = memref.load %l[%c0] : memref<1xf32>
        memref.store %x, %C[%t, %i] : memref<16x16xf32>
      } {alcop.pipeline = #alcop.pipeline<{stage = [0, 0, 0, 1, 1], order = [0, 3, 4, 1, 2]}>}
      gpu.return
    }
  }
}
