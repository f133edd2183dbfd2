// RUN: alcop-opt %s --pass-pipeline='builtin.module(alcop-pipeline{stages=3,1})' | FileCheck %s

// What threads keep on their stacks between load and store is made values, so that the
// copies are plain moves: that of one element, and those of two at constant indices.
#ws = #gpu.address_space<workgroup>
module attributes {gpu.container_module} {
  gpu.module @kernels {
    // CHECK-LABEL: gpu.func @one
    // CHECK-NOT:     memref.alloca
    // CHECK:         nvgpu.device_async_copy
    gpu.func @one(%A: memref<16x64xf32>, %C: memref<16x64xf32>)
        workgroup(%a : memref<64xf32, #ws>)
        kernel attributes {known_block_size = array<i32: 64, 1, 1>} {
      %c0 = arith.constant 0 : index
      %c1 = arith.constant 1 : index
      %c16 = arith.constant 16 : index
      %c63 = arith.constant 63 : index
      %zero = arith.constant 0.0 : f32
      %t = gpu.thread_id x
      %other = arith.subi %c63, %t : index
      %p = memref.alloca() : memref<f32>
      %sum = scf.for %k = %c0 to %c16 step %c1 iter_args(%acc = %zero) -> (f32) {
        %v = memref.load %A[%k, %t] : memref<16x64xf32>
        memref.store %v, %p[] : memref<f32>
        %w = memref.load %p[] : memref<f32>
        memref.store %w, %a[%t] : memref<64xf32, #ws>
        gpu.barrier
        %x = memref.load %a[%other] : memref<64xf32, #ws>
        %next = arith.addf %acc, %x : f32
        gpu.barrier
        scf.yield %next : f32
      }
      memref.store %sum, %C[%c0, %t] : memref<16x64xf32>
      gpu.return
    }
    // CHECK-LABEL: gpu.func @two
    // CHECK-NOT:     memref.alloca
    // CHECK-COUNT-2: nvgpu.device_async_copy
    gpu.func @two(%A: memref<16x64xf32>, %B: memref<16x64xf32>, %C: memref<16x64xf32>)
        workgroup(%a : memref<64xf32, #ws>, %b : memref<64xf32, #ws>)
        kernel attributes {known_block_size = array<i32: 64, 1, 1>} {
      %c0 = arith.constant 0 : index
      %c1 = arith.constant 1 : index
      %c16 = arith.constant 16 : index
      %c63 = arith.constant 63 : index
      %zero = arith.constant 0.0 : f32
      %t = gpu.thread_id x
      %other = arith.subi %c63, %t : index
      %p = memref.alloca() : memref<2xf32>
      %sum = scf.for %k = %c0 to %c16 step %c1 iter_args(%acc = %zero) -> (f32) {
        %u = memref.load %A[%k, %t] : memref<16x64xf32>
        memref.store %u, %p[%c0] : memref<2xf32>
        %v = memref.load %B[%k, %t] : memref<16x64xf32>
        memref.store %v, %p[%c1] : memref<2xf32>
        %w = memref.load %p[%c0] : memref<2xf32>
        memref.store %w, %a[%t] : memref<64xf32, #ws>
        %y = memref.load %p[%c1] : memref<2xf32>
        memref.store %y, %b[%t] : memref<64xf32, #ws>
        gpu.barrier
        %x = memref.load %a[%other] : memref<64xf32, #ws>
        %z = memref.load %b[%other] : memref<64xf32, #ws>
        %s = arith.addf %x, %z : f32
        %next = arith.addf %acc, %s : f32
        gpu.barrier
        scf.yield %next : f32
      }
      memref.store %sum, %C[%c0, %t] : memref<16x64xf32>
      gpu.return
    }
  }
}
