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
