// RUN: alcop-opt %s --pass-pipeline='builtin.module(alcop-version-loops,canonicalize,cse)' \
// RUN:   --split-input-file --verify-diagnostics | FileCheck %s
// RUN: alcop-opt %s --pass-pipeline='builtin.module(alcop-version-loops,canonicalize,cse,alcop-plan-pipelines{stages=3,1})' \
// RUN:   --split-input-file --verify-diagnostics | FileCheck %s --check-prefix=PLAN

// Two versions, by the bytes of both arguments; the first has buffers of its own. Planning
// takes the promise, and says nothing of the other version.
// CHECK-LABEL: @two_versions
// CHECK-DAG:     %[[BYTES:.*]] = arith.constant 16384 : index
// CHECK-DAG:     %[[OWN:.*]] = memref.alloc() : memref<64xf32, #gpu.address_space<workgroup>>
// CHECK-DAG:     %[[A:.*]] = memref.extract_aligned_pointer_as_index %arg0
// CHECK-DAG:     %[[AEND:.*]] = arith.addi %[[A]], %[[BYTES]]
// CHECK-DAG:     %[[C:.*]] = memref.extract_aligned_pointer_as_index %arg1
// CHECK-DAG:     %[[CEND:.*]] = arith.addi %[[C]], %[[BYTES]]
// CHECK-DAG:     %[[BELOW:.*]] = arith.cmpi ule, %[[CEND]], %[[A]]
// CHECK-DAG:     %[[ABOVE:.*]] = arith.cmpi ule, %[[AEND]], %[[C]]
// CHECK:         %[[APART:.*]] = arith.ori %[[BELOW]], %[[ABOVE]]
// CHECK:         %[[SUM:.*]] = scf.if %[[APART]] -> (f32) {
// CHECK-NEXT:      %[[FAST:.*]] = scf.for
// CHECK:             memref.store %{{.*}}, %[[OWN]]
// CHECK:           } {alcop.noalias = true}
// CHECK-NEXT:      scf.yield %[[FAST]]
// CHECK-NEXT:    } else {
// CHECK-NEXT:      %[[PLAIN:.*]] = scf.for
// CHECK-NOT:         memref.store %{{.*}}, %[[OWN]][
// CHECK:           } {alcop.noalias = false}
// CHECK-NEXT:      scf.yield %[[PLAIN]]
// CHECK:         memref.store %[[SUM]]
// PLAN-LABEL: @two_versions
// PLAN:          scf.if
// PLAN:          alcop.pipeline
// PLAN:          } else {
// PLAN-NOT:      alcop.pipeline
// PLAN-NOT:      alcop.noalias
// PLAN:          return
#ws = #gpu.address_space<workgroup>
func.func @two_versions(%A: memref<64x64xf32>, %C: memref<64x64xf32>, %n: index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %zero = arith.constant 0.0 : f32
  %t = gpu.thread_id x
  %a = memref.alloc() : memref<64xf32, #ws>
  %sum = scf.for %k = %c0 to %n step %c1 iter_args(%acc = %zero) -> (f32) {
    %v = memref.load %A[%k, %t] : memref<64x64xf32>
    memref.store %v, %a[%t] : memref<64xf32, #ws>
    gpu.barrier
    %x = memref.load %a[%t] : memref<64xf32, #ws>
    memref.store %x, %C[%k, %t] : memref<64x64xf32>
    %next = arith.addf %acc, %x : f32
    gpu.barrier
    scf.yield %next : f32
  }
  memref.store %sum, %C[%c0, %t] : memref<64x64xf32>
  return
}

// -----

// Sizes and strides of the run, which may be negative; before the loop around the loop.
// CHECK-LABEL: @strided
// PLAN-LABEL:  @strided
// CHECK:         %[[BASE:.*]], %[[OFFSET:.*]], %[[SIZES:.*]]:2, %[[STRIDES:.*]]:2 = memref.extract_strided_metadata %arg1
// CHECK:         arith.muli %{{.*}}, %[[STRIDES]]#0
// CHECK:         arith.minsi
// CHECK:         arith.maxsi
// CHECK:         scf.for
// CHECK:           scf.if
// CHECK:             scf.for
// CHECK:             {alcop.noalias = true}
#ws = #gpu.address_space<workgroup>
#any = strided<[?, 1], offset: ?>
func.func @strided(%A: memref<64x64xf32>, %C: memref<?x?xf32, #any>, %n: index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %t = gpu.thread_id x
  %a = memref.alloc() : memref<64xf32, #ws>
  scf.for %row = %c0 to %n step %c1 {
    scf.for %k = %c0 to %n step %c1 {
      %v = memref.load %A[%k, %t] : memref<64x64xf32>
      memref.store %v, %a[%t] : memref<64xf32, #ws>
      gpu.barrier
      %x = memref.load %a[%t] : memref<64xf32, #ws>
      memref.store %x, %C[%row, %t] : memref<?x?xf32, #any>
      gpu.barrier
    }
  }
  return
}

// -----

// Nothing to ask: the arguments do not alias.
// CHECK-LABEL: @known
// CHECK-NOT:     scf.if
#ws = #gpu.address_space<workgroup>
func.func @known(%A: memref<64x64xf32> {llvm.noalias}, %C: memref<64x64xf32>, %n: index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %t = gpu.thread_id x
  %a = memref.alloc() : memref<64xf32, #ws>
  scf.for %k = %c0 to %n step %c1 {
    %v = memref.load %A[%k, %t] : memref<64x64xf32>
    memref.store %v, %a[%t] : memref<64xf32, #ws>
    gpu.barrier
    %x = memref.load %a[%t] : memref<64xf32, #ws>
    memref.store %x, %C[%k, %t] : memref<64x64xf32>
    gpu.barrier
  }
  return
}

// -----

// A store after the loop, before an older copy is waited for, is what may alias: no
// comparison before the loop decides about that.
// CHECK-LABEL: @in_flight
// CHECK-NOT:     extract_aligned_pointer
// CHECK:         scf.for
// CHECK-NOT:     alcop.noalias
#ws = #gpu.address_space<workgroup>
gpu.module @kernels {
  gpu.func @in_flight(%A: memref<69x2xf32>, %C: memref<2x32xf32>, %F: memref<2x32xi32>, %D: memref<2x32xi32>)
      workgroup(%a: memref<32x2xf32, #ws>, %f: memref<32x1xi32, #ws>) kernel {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c17 = arith.constant 17 : index
    %zero = arith.constant 0.0 : f32
    %t = gpu.thread_id x
    %copy = nvgpu.device_async_copy %F[%c0, %t], %f[%t, %c0], 1 : memref<2x32xi32> to memref<32x1xi32, #ws>
    %group = "nvgpu.device_async_create_group"() : () -> !nvgpu.device.async.token
    %r = scf.for %k = %c0 to %c17 step %c1 iter_args(%s = %zero) -> (f32) {
      gpu.barrier
      %row = arith.addi %k, %t : index
      %x = memref.load %A[%row, %c0] : memref<69x2xf32>
      memref.store %x, %a[%t, %c0] : memref<32x2xf32, #ws>
      %x1 = memref.load %A[%row, %c1] : memref<69x2xf32>
      memref.store %x1, %a[%t, %c1] : memref<32x2xf32, #ws>
      gpu.barrier
      %other = arith.xori %t, %c17 : index
      %y = memref.load %a[%other, %c0] : memref<32x2xf32, #ws>
      %z = arith.addf %s, %y : f32
      scf.yield %z : f32
    }
    memref.store %r, %C[%c0, %t] : memref<2x32xf32>
    nvgpu.device_async_wait %group {numGroups = 0 : i32}
    gpu.barrier
    %v = memref.load %f[%c1, %c0] : memref<32x1xi32, #ws>
    memref.store %v, %D[%c0, %t] : memref<2x32xi32>
    gpu.return
  }
}
