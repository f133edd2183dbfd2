// RUN: alcop-opt %s --alcop-plan-pipelines='assume-noalias-args=true' --split-input-file --verify-diagnostics | FileCheck %s

// Nobody says how many stages: as many as a copy takes iterations to land. This one
// computes next to nothing, so that eight are not enough.
// CHECK-LABEL: @short_iterations
// CHECK:         slots = 8
#ws = #gpu.address_space<workgroup>
func.func @short_iterations(%A: memref<64x64xf32>, %C: memref<64xf32>, %n: index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %t = gpu.thread_id x
  %a = memref.alloc() : memref<64xf32, #ws>
  scf.for %k = %c0 to %n step %c1 {
    %v = memref.load %A[%k, %t] : memref<64x64xf32>
    memref.store %v, %a[%t] : memref<64xf32, #ws>
    gpu.barrier
    %x = memref.load %a[%t] : memref<64xf32, #ws>
    memref.store %x, %C[%t] : memref<64xf32>
    gpu.barrier
  }
  return
}

// -----

// An iteration that takes longer than a copy needs two slots only.
// CHECK-LABEL: @long_iterations
// CHECK:         slots = 2
#ws = #gpu.address_space<workgroup>
func.func @long_iterations(%A: memref<64x64xf32>, %C: memref<64xf32>, %n: index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c64 = arith.constant 64 : index
  %zero = arith.constant 0.0 : f32
  %t = gpu.thread_id x
  %a = memref.alloc() : memref<64xf32, #ws>
  scf.for %k = %c0 to %n step %c1 {
    %v = memref.load %A[%k, %t] : memref<64x64xf32>
    memref.store %v, %a[%t] : memref<64xf32, #ws>
    gpu.barrier
    scf.for %i = %c0 to %c64 step %c1 {
      %x = memref.load %a[%i] : memref<64xf32, #ws>
      %e = math.exp %x : f32
      %l = math.log %e : f32
      %s = math.sin %l : f32
      %o = math.cos %s : f32
      %u = arith.addf %o, %x : f32
      memref.store %u, %C[%i] : memref<64xf32>
      %w = arith.mulf %u, %u : f32
      memref.store %w, %C[%t] : memref<64xf32>
    }
    gpu.barrier
  }
  return
}

// -----

// No more than fit: 48 KiB are what is declared for all blocks.
// CHECK-LABEL: @large_buffer
// CHECK:         slots = 3
#ws = #gpu.address_space<workgroup>
gpu.module @kernels {
  gpu.func @large_buffer(%A: memref<64x4096xf32>, %C: memref<4096xf32>, %n: index)
      workgroup(%a : memref<4096xf32, #ws>) kernel {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %t = gpu.thread_id x
    scf.for %k = %c0 to %n step %c1 {
      %v = memref.load %A[%k, %t] : memref<64x4096xf32>
      memref.store %v, %a[%t] : memref<4096xf32, #ws>
      gpu.barrier
      %x = memref.load %a[%t] : memref<4096xf32, #ws>
      memref.store %x, %C[%t] : memref<4096xf32>
      gpu.barrier
    }
    gpu.return
  }
}

// -----

// Not even two: as much is needed, and as much there is.
// CHECK-LABEL: @too_large
// CHECK-NOT:     alcop.
#ws = #gpu.address_space<workgroup>
func.func @too_large(%A: memref<64x32768xf32>, %C: memref<32768xf32>, %n: index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %t = gpu.thread_id x
  %a = memref.alloc() : memref<32768xf32, #ws>
  scf.for %k = %c0 to %n step %c1 {
    %v = memref.load %A[%k, %t] : memref<64x32768xf32>
    // expected-remark @below {{not pipelined (rule 5): 2 slots need 262144 bytes of shared memory, there are 166912; fewer stages or smaller tiles}}
    memref.store %v, %a[%t] : memref<32768xf32, #ws>
    gpu.barrier
    %x = memref.load %a[%t] : memref<32768xf32, #ws>
    memref.store %x, %C[%t] : memref<32768xf32>
    gpu.barrier
  }
  return
}
