// RUN: alcop-opt %s --pass-pipeline='builtin.module(alcop-split-guards)' --split-input-file | FileCheck %s
// RUN: alcop-opt %s --pass-pipeline='builtin.module(alcop-split-guards,alcop-plan-pipelines{stages=3,1 assume-noalias-args=true})' \
// RUN:   --split-input-file | FileCheck %s --check-prefix=PLAN

// The copy, a barrier for all iterations, and the use, which yields.
// CHECK-LABEL: @block
// CHECK:         scf.for
// CHECK:           %[[GO:.*]] = arith.cmpi ne
// CHECK-NEXT:      scf.if %[[GO]] {
// CHECK-NEXT:        memref.load
// CHECK-NEXT:        memref.store
// CHECK-NEXT:      }
// CHECK-NEXT:      gpu.barrier
// CHECK-NEXT:      %[[R:.*]] = scf.if %[[GO]] -> (f32) {
// CHECK-NEXT:        memref.load
// CHECK-NEXT:        arith.addf
// CHECK-NEXT:        scf.yield
// CHECK-NEXT:      } else {
// CHECK-NEXT:        memref.store
// CHECK-NEXT:        scf.yield
// CHECK-NEXT:      }
// CHECK-NEXT:      gpu.barrier
// CHECK-NEXT:      scf.yield %[[R]]
// PLAN-LABEL: @block
// PLAN:         memref.load %{{.*}} {alcop.op = 0
// PLAN:         } {alcop.op = 1
// PLAN:         kind = "fetch"{{.*}}kind = "fill"
#ws = #gpu.address_space<workgroup>
func.func @block(%A: memref<64x64xf32>, %mask: memref<64xi8>, %C: memref<64xf32>, %n: index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c63 = arith.constant 63 : index
  %none = arith.constant 0 : i8
  %zero = arith.constant 0.0 : f32
  %t = gpu.thread_id x
  %u = arith.subi %c63, %t : index
  %a = memref.alloc() : memref<64xf32, #ws>
  %sum = scf.for %k = %c0 to %n step %c1 iter_args(%old = %zero) -> (f32) {
    %m = memref.load %mask[%k] : memref<64xi8>
    %go = arith.cmpi ne, %m, %none : i8
    %new = scf.if %go -> (f32) {
      %v = memref.load %A[%k, %t] : memref<64x64xf32>
      memref.store %v, %a[%t] : memref<64xf32, #ws>
      gpu.barrier
      %x = memref.load %a[%u] : memref<64xf32, #ws>
      %y = arith.addf %old, %x : f32
      gpu.barrier
      scf.yield %y : f32
    } else {
      memref.store %old, %C[%t] : memref<64xf32>
      scf.yield %old : f32
    }
    scf.yield %new : f32
  }
  memref.store %sum, %C[%t] : memref<64xf32>
  return
}

// -----

// Loads of addresses are apart, one for each level of tables; a number that copy and use
// need is computed before both.
// CHECK-LABEL: @addresses
// CHECK:         scf.for
// CHECK:           %[[GO:.*]] = arith.cmpi
// CHECK-NEXT:      %[[ID:.*]] = scf.if %[[GO]] -> (i32) {
// CHECK:             memref.load
// CHECK:           } else {
// CHECK-NEXT:        %[[P:.*]] = arith.constant 0 : i32
// CHECK-NEXT:        scf.yield %[[P]]
// CHECK:           %[[ROW:.*]] = scf.if %[[GO]] -> (i32) {
// CHECK-NEXT:        %[[IX:.*]] = arith.index_cast %[[ID]]
// CHECK-NEXT:        memref.load %{{.*}}[%[[IX]]]
// CHECK:           %[[SHARED:.*]] = arith.index_cast %[[ROW]]
// CHECK-NEXT:      scf.if %[[GO]] {
// CHECK-NEXT:        memref.load %{{.*}}[%[[SHARED]], %{{.*}}]
// CHECK-NEXT:        memref.store
// CHECK-NEXT:      }
// CHECK-NEXT:      gpu.barrier
// CHECK-NEXT:      scf.if %[[GO]] {
// CHECK:             memref.store %{{.*}}, %{{.*}}[%[[SHARED]]]
// PLAN-LABEL: @addresses
// PLAN:         kind = "fetch"{{.*}}kind = "fetch"{{.*}}kind = "fill"
#ws = #gpu.address_space<workgroup>
func.func @addresses(%A: memref<64x64xf32>, %ids: memref<64xi32>, %rows: memref<64xi32>, %C: memref<64xf32>, %n: index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c63 = arith.constant 63 : index
  %t = gpu.thread_id x
  %u = arith.subi %c63, %t : index
  %a = memref.alloc() : memref<64xf32, #ws>
  scf.for %k = %c0 to %n step %c1 {
    %go = arith.cmpi ugt, %k, %c1 : index
    scf.if %go {
      %id = memref.load %ids[%k] : memref<64xi32>
      %ix = arith.index_cast %id : i32 to index
      %row = memref.load %rows[%ix] : memref<64xi32>
      %r = arith.index_cast %row : i32 to index
      %v = memref.load %A[%r, %t] : memref<64x64xf32>
      memref.store %v, %a[%t] : memref<64xf32, #ws>
      gpu.barrier
      %x = memref.load %a[%u] : memref<64xf32, #ws>
      memref.store %x, %C[%r] : memref<64xf32>
      gpu.barrier
    }
  }
  return
}

// -----

// What one part makes and a later one uses is its result, zero otherwise. A loop stays
// whole, and so do barriers in it.
// CHECK-LABEL: @crossing
// CHECK:           scf.if %[[GO:.*]] {
// CHECK:           gpu.barrier
// CHECK-NEXT:      %[[X:.*]] = scf.if %[[GO]] -> (f32) {
// CHECK-NEXT:        %[[L:.*]] = memref.load
// CHECK:             scf.for
// CHECK:               gpu.barrier
// CHECK:             scf.yield %[[L]]
// CHECK:             arith.constant 0.0
// CHECK:           gpu.barrier
// CHECK-NEXT:      scf.if %[[GO]] {
// CHECK-NEXT:        memref.store %[[X]]
// CHECK-NEXT:      }
// CHECK-NEXT:    }
// PLAN-LABEL: @crossing
// PLAN:         kind = "fill"
#ws = #gpu.address_space<workgroup>
func.func @crossing(%A: memref<64x64xf32>, %C: memref<64xf32>, %n: index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c63 = arith.constant 63 : index
  %t = gpu.thread_id x
  %u = arith.subi %c63, %t : index
  %a = memref.alloc() : memref<64xf32, #ws>
  scf.for %k = %c0 to %n step %c1 {
    %go = arith.cmpi ugt, %k, %c1 : index
    scf.if %go {
      %v = memref.load %A[%k, %t] : memref<64x64xf32>
      memref.store %v, %a[%t] : memref<64xf32, #ws>
      gpu.barrier
      %x = memref.load %a[%u] : memref<64xf32, #ws>
      scf.for %i = %c0 to %n step %c1 {
        gpu.printf "%f", %x : f32
        gpu.barrier
      }
      gpu.barrier
      memref.store %x, %C[%t] : memref<64xf32>
    }
  }
  return
}

// -----

// Inner guards first; the copy is under both conditions then, and so is its use.
// CHECK-LABEL: @nested
// CHECK:           %[[GO:.*]] = arith.cmpi ugt
// CHECK-NEXT:      %[[MORE:.*]] = arith.cmpi ult
// CHECK-NEXT:      scf.if %[[GO]] {
// CHECK-NEXT:        scf.if %[[MORE]] {
// CHECK-NEXT:          memref.load
// CHECK-NEXT:          memref.store
// CHECK-NEXT:        }
// CHECK-NEXT:      }
// CHECK-NEXT:      gpu.barrier
// CHECK-NEXT:      scf.if %[[GO]] {
// CHECK-NEXT:        scf.if %[[MORE]] {
// CHECK:           gpu.barrier
// CHECK-NEXT:    }
// PLAN-LABEL: @nested
// PLAN:         kind = "fill"
#ws = #gpu.address_space<workgroup>
func.func @nested(%A: memref<64x64xf32>, %C: memref<64xf32>, %n: index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c9 = arith.constant 9 : index
  %c63 = arith.constant 63 : index
  %t = gpu.thread_id x
  %u = arith.subi %c63, %t : index
  %a = memref.alloc() : memref<64xf32, #ws>
  scf.for %k = %c0 to %n step %c1 {
    %go = arith.cmpi ugt, %k, %c1 : index
    scf.if %go {
      %more = arith.cmpi ult, %k, %c9 : index
      scf.if %more {
        %v = memref.load %A[%k, %t] : memref<64x64xf32>
        memref.store %v, %a[%t] : memref<64xf32, #ws>
        gpu.barrier
        %x = memref.load %a[%u] : memref<64xf32, #ws>
        memref.store %x, %C[%u] : memref<64xf32>
        gpu.barrier
      }
    }
  }
  return
}

// -----

// Asynchronous copies: groups and waits are for all iterations, too.
// CHECK-LABEL: @asynchronous
// CHECK:           scf.if %[[GO:.*]] {
// CHECK-NEXT:        nvgpu.device_async_copy
// CHECK-NEXT:      }
// CHECK-NEXT:      %[[G:.*]] = nvgpu.device_async_create_group{{ *$}}
// CHECK-NEXT:      nvgpu.device_async_wait %[[G]]
// CHECK-NEXT:      gpu.barrier
// CHECK-NEXT:      scf.if %[[GO]] {
// PLAN-LABEL: @asynchronous
// PLAN:         kind = "fill"
#ws = #gpu.address_space<workgroup>
func.func @asynchronous(%A: memref<64x64xf32>, %C: memref<64xf32>, %n: index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c63 = arith.constant 63 : index
  %t = gpu.thread_id x
  %u = arith.subi %c63, %t : index
  %a = memref.alloc() : memref<64xf32, #ws>
  scf.for %k = %c0 to %n step %c1 {
    %go = arith.cmpi ugt, %k, %c1 : index
    scf.if %go {
      %copied = nvgpu.device_async_copy %A[%k, %t], %a[%t], 1 : memref<64x64xf32> to memref<64xf32, #ws>
      %g = nvgpu.device_async_create_group %copied
      nvgpu.device_async_wait %g
      gpu.barrier
      %x = memref.load %a[%u] : memref<64xf32, #ws>
      memref.store %x, %C[%u] : memref<64xf32>
      gpu.barrier
    }
  }
  return
}
