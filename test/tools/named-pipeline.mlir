// RUN: alcop-opt %s --alcop-compile=target=sm_80 | FileCheck %s
// RUN: alcop-opt %s --cse --sparsifier --alcop-compile --dump-pass-pipeline -o %t 2>&1 \
// RUN:   | FileCheck %s --check-prefix=DUMP

// A function without work comes through untouched. Our pipelines and MLIR's stand next
// to passes.
// CHECK: func.func @nothing
// DUMP:  builtin.module(cse,sparsifier,alcop-compile)
// RUN: alcop-opt %s --alcop-pipeline='stages=3,1 assume-noalias-args=true' \
// RUN:   | FileCheck %s --check-prefix=LOOP
func.func @nothing() {
  return
}

// A copy before the loop and one in it: both are asynchronous, the second has slots.
// LOOP-LABEL: gpu.func @rows
// LOOP-SAME:    workgroup(%{{.*}} : memref<64xf32, {{.*}}>, %{{.*}} : memref<3x64xf32, {{.*}}>)
// LOOP:         %[[FIRST:.*]] = nvgpu.device_async_create_group
// LOOP:         nvgpu.device_async_wait %[[FIRST]] {numGroups = 0 : i32}
// LOOP-NEXT:    gpu.barrier
// LOOP:         nvgpu.device_async_create_group
// LOOP:         nvgpu.device_async_create_group
// LOOP:         scf.for
// LOOP:           nvgpu.device_async_wait %{{.*}} {numGroups = 1 : i32}
// LOOP-NEXT:      gpu.barrier
#ws = #gpu.address_space<workgroup>
gpu.module @kernels {
  gpu.func @rows(%A: memref<64x64xf32>, %B: memref<64xf32>, %C: memref<64xf32>)
      workgroup(%b: memref<64xf32, #ws>, %a: memref<64xf32, #ws>) kernel {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c63 = arith.constant 63 : index
    %c64 = arith.constant 64 : index
    %t = gpu.thread_id x
    %other = arith.subi %c63, %t : index
    %u = memref.load %B[%t] : memref<64xf32>
    memref.store %u, %b[%t] : memref<64xf32, #ws>
    gpu.barrier
    %start = memref.load %b[%other] : memref<64xf32, #ws>
    %r = scf.for %k = %c0 to %c64 step %c1 iter_args(%s = %start) -> (f32) {
      %v = memref.load %A[%k, %t] : memref<64x64xf32>
      memref.store %v, %a[%t] : memref<64xf32, #ws>
      gpu.barrier
      %x = memref.load %a[%other] : memref<64xf32, #ws>
      %y = arith.addf %s, %x : f32
      gpu.barrier
      scf.yield %y : f32
    }
    memref.store %r, %C[%t] : memref<64xf32>
    gpu.return
  }

  // What threads keep on their stacks is made values: a copy through one buffer, under
  // the same condition twice, and a sum in another.
  // LOOP-LABEL: gpu.func @stacks
  // LOOP-NOT:     memref.alloca
  // LOOP:         scf.for %{{.*}} iter_args(%{{.*}} = %cst
  // LOOP:           scf.if
  // LOOP-NEXT:        nvgpu.device_async_copy
  gpu.func @stacks(%A: memref<64x64xf32>, %C: memref<64xf32>, %on: i1)
      workgroup(%a: memref<64xf32, #ws>) kernel {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c63 = arith.constant 63 : index
    %c64 = arith.constant 64 : index
    %zero = arith.constant 0.0 : f32
    %t = gpu.thread_id x
    %other = arith.subi %c63, %t : index
    %sum = memref.alloca() : memref<1xf32, #gpu.address_space<private>>
    memref.store %zero, %sum[%c0] : memref<1xf32, #gpu.address_space<private>>
    scf.for %k = %c0 to %c64 step %c1 {
      %p = memref.alloca() : memref<1xf32>
      scf.if %on {
        %v = memref.load %A[%k, %t] : memref<64x64xf32>
        memref.store %v, %p[%c0] : memref<1xf32>
      }
      scf.if %on {
        %w = memref.load %p[%c0] : memref<1xf32>
        memref.store %w, %a[%t] : memref<64xf32, #ws>
      }
      gpu.barrier
      %s = memref.load %sum[%c0] : memref<1xf32, #gpu.address_space<private>>
      %x = memref.load %a[%other] : memref<64xf32, #ws>
      %y = arith.addf %s, %x : f32
      memref.store %y, %sum[%c0] : memref<1xf32, #gpu.address_space<private>>
      gpu.barrier
    }
    %r = memref.load %sum[%c0] : memref<1xf32, #gpu.address_space<private>>
    memref.store %r, %C[%t] : memref<64xf32>
    gpu.return
  }
}
