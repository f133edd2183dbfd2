// RUN: alcop-opt %s --alcop-separate-views --split-input-file | FileCheck %s
// RUN: alcop-opt %s --pass-pipeline='builtin.module(alcop-separate-views,func.func(alcop-plan-pipelines{stages=3,1 assume-noalias-args=true},alcop-multi-buffer))' --split-input-file | FileCheck %s --check-prefix=SLOTS

// Two tiles in one allocation of bytes, seen where they are used: two buffers, which can
// then have slots.
// CHECK-LABEL: @two_tiles
// CHECK-DAG:     %[[A:.*]] = memref.alloc() : memref<64xf32, #gpu.address_space<workgroup>>
// CHECK-DAG:     %[[B:.*]] = memref.alloc() : memref<64xi32, #gpu.address_space<workgroup>>
// CHECK-NOT:     memref.view
// CHECK-NOT:     xi8
// CHECK:         memref.store %{{.*}}, %[[A]][%{{.*}}]
// CHECK:         memref.store %{{.*}}, %[[B]][%{{.*}}]
// CHECK:         memref.load %[[A]]
// CHECK:         memref.load %[[B]]
// CHECK-DAG:     memref.dealloc %[[A]]
// CHECK-DAG:     memref.dealloc %[[B]]
// SLOTS-LABEL: @two_tiles
// SLOTS-DAG:     memref.alloc() : memref<3x64xf32, #gpu.address_space<workgroup>>
// SLOTS-DAG:     memref.alloc() : memref<3x64xi32, #gpu.address_space<workgroup>>
#ws = #gpu.address_space<workgroup>
func.func @two_tiles(%A: memref<64x64xf32>, %B: memref<64x64xi32>, %C: memref<64xf32>,
                     %n: index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c256 = arith.constant 256 : index
  %t = gpu.thread_id x
  %bytes = memref.alloc() : memref<512xi8, #ws>
  %a = memref.view %bytes[%c0][] : memref<512xi8, #ws> to memref<64xf32, #ws>
  scf.for %k = %c0 to %n step %c1 {
    %b = memref.view %bytes[%c256][] : memref<512xi8, #ws> to memref<64xi32, #ws>
    %v = memref.load %A[%k, %t] : memref<64x64xf32>
    memref.store %v, %a[%t] : memref<64xf32, #ws>
    %w = memref.load %B[%k, %t] : memref<64x64xi32>
    memref.store %w, %b[%t] : memref<64xi32, #ws>
    gpu.barrier
    %x = memref.load %a[%t] : memref<64xf32, #ws>
    %again = memref.view %bytes[%c256][] : memref<512xi8, #ws> to memref<64xi32, #ws>
    %y = memref.load %again[%t] : memref<64xi32, #ws>
    %z = arith.sitofp %y : i32 to f32
    %sum = arith.addf %x, %z : f32
    memref.store %sum, %C[%t] : memref<64xf32>
    gpu.barrier
  }
  memref.dealloc %bytes : memref<512xi8, #ws>
  return
}

// -----

// Not shared memory: none of this pass's.
// CHECK-LABEL: @global
// CHECK:         memref.view
// SLOTS-LABEL: @global
func.func @global(%x: f32) {
  %c0 = arith.constant 0 : index
  %bytes = memref.alloc() : memref<256xi8>
  %a = memref.view %bytes[%c0][] : memref<256xi8> to memref<64xf32>
  memref.store %x, %a[%c0] : memref<64xf32>
  return
}

// -----

// The dynamic shared memory of a kernel is one, whichever op it comes from.
// CHECK-LABEL: @dynamic
// CHECK-DAG:     %[[A:.*]] = memref.alloc() : memref<64xf32, #gpu.address_space<workgroup>>
// CHECK-DAG:     %[[B:.*]] = memref.alloc() : memref<64xi32, #gpu.address_space<workgroup>>
// CHECK-NOT:     gpu.dynamic_shared_memory
// CHECK:         memref.store %{{.*}}, %[[A]][%{{.*}}]
// CHECK:         memref.store %{{.*}}, %[[B]][%{{.*}}]
// CHECK:         memref.load %[[A]]
// SLOTS-LABEL: @dynamic
#ws = #gpu.address_space<workgroup>
gpu.module @kernels {
  gpu.func @dynamic(%x: f32, %i: i32, %C: memref<64xf32>, %t: index, %n: index) kernel {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c256 = arith.constant 256 : index
    %bytes = gpu.dynamic_shared_memory : memref<?xi8, #ws>
    %a = memref.view %bytes[%c0][] : memref<?xi8, #ws> to memref<64xf32, #ws>
    scf.for %k = %c0 to %n step %c1 {
      %same = gpu.dynamic_shared_memory : memref<?xi8, #ws>
      %b = memref.view %same[%c256][] : memref<?xi8, #ws> to memref<64xi32, #ws>
      memref.store %x, %a[%t] : memref<64xf32, #ws>
      memref.store %i, %b[%t] : memref<64xi32, #ws>
      gpu.barrier
      %again = memref.view %same[%c0][] : memref<?xi8, #ws> to memref<64xf32, #ws>
      %y = memref.load %again[%k] : memref<64xf32, #ws>
      memref.store %y, %C[%t] : memref<64xf32>
      gpu.barrier
    }
    gpu.return
  }
}
