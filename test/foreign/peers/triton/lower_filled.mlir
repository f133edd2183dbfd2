// source: triton-lang/triton 0218ea0a95d8a0164a56ed25298c6b8d3b308a26 test/TritonGPU/pipeline-lower-loop.mlir
// function: no_shmem_pipelining_other_used
// does: two tiles loaded under a mask, with another value than zero where it is off
// expect: pipelined register=2 shared=2
// options: noalias
// stages: 3,2
#ws = #gpu.address_space<workgroup>
module attributes {gpu.container_module} {
  gpu.module @kernels {
    gpu.func @kernel(%A: memref<7x64xf32>, %B: memref<7x64xf32>, %C: memref<7x64xf32>, %n: index)
        workgroup(%a : memref<64xf32, #ws>, %b : memref<64xf32, #ws>)
        kernel attributes {known_block_size = array<i32: 64, 1, 1>} {
      %c0 = arith.constant 0 : index
      %c1 = arith.constant 1 : index
      %c63 = arith.constant 63 : index
      %zero = arith.constant 0.0 : f32
      %two = arith.constant 2.0 : f32
      %t = gpu.thread_id x
      %other = arith.subi %c63, %t : index
      %ninf = arith.constant 0xFF800000 : f32
      %sum = scf.for %k = %c0 to %n step %c1 iter_args(%acc = %zero) -> (f32) {
        %left = arith.subi %c63, %k : index
        %in = arith.cmpi ult, %t, %left : index
        %v = scf.if %in -> (f32) {
          %vl = memref.load %A[%k, %t] : memref<7x64xf32>
          scf.yield %vl : f32
        } else {
          scf.yield %ninf : f32
        }
        memref.store %v, %a[%t] : memref<64xf32, #ws>
        %w = scf.if %in -> (f32) {
          %wl = memref.load %B[%k, %t] : memref<7x64xf32>
          scf.yield %wl : f32
        } else {
          scf.yield %two : f32
        }
        memref.store %w, %b[%t] : memref<64xf32, #ws>
        gpu.barrier
        %x = memref.load %a[%other] : memref<64xf32, #ws>
        %y = memref.load %b[%t] : memref<64xf32, #ws>
        %m = arith.mulf %x, %y : f32
        %next = arith.addf %acc, %m : f32
        gpu.barrier
        scf.yield %next : f32
      }
      memref.store %sum, %C[%c0, %t] : memref<7x64xf32>
      gpu.return
    }
  }
}
