// source: triton-lang/triton 2635acd27fc05050ecc6fc1d221469bde34478a9 test/TritonGPU/loop-pipeline-indirect-load.mlir
// function: indirect_load_two_stages
// does: one operand gathered by a vector of indices, the other at addresses of the index of the loop, with two stages
// expect: pipelined shared=2
// stages: 2,1
// sizes: 0,0 0,1 8,24 16,72
#ws = #gpu.address_space<workgroup>
module attributes {gpu.container_module} {
  gpu.module @kernels {
    gpu.func @kernel(%A: memref<65x64xf32>, %B: memref<65x64xf32>, %I: memref<66xi32>, %C: memref<65x64xf32>, %low: index, %high: index)
        workgroup(%a : memref<64xf32, #ws>, %b : memref<64xf32, #ws>)
        kernel attributes {known_block_size = array<i32: 64, 1, 1>} {
      %c0 = arith.constant 0 : index
      %c8 = arith.constant 8 : index
      %c32 = arith.constant 32 : index
      %c63 = arith.constant 63 : index
      %zero = arith.constant 0.0 : f32
      %t = gpu.thread_id x
      %other = arith.subi %c63, %t : index
      %warp = arith.divui %t, %c32 : index
      %sum = scf.for %k = %low to %high step %c8 iter_args(%acc = %zero) -> (f32) {
        %e = arith.addi %k, %warp : index
        %ji = memref.load %I[%e] : memref<66xi32>
        %j = arith.index_cast %ji : i32 to index
        %v = memref.load %A[%j, %t] : memref<65x64xf32>
        memref.store %v, %a[%t] : memref<64xf32, #ws>
        %w = memref.load %B[%k, %t] : memref<65x64xf32>
        memref.store %w, %b[%t] : memref<64xf32, #ws>
        gpu.barrier
        %x = memref.load %a[%other] : memref<64xf32, #ws>
        %y = memref.load %b[%t] : memref<64xf32, #ws>
        %m = arith.mulf %x, %y : f32
        %next = arith.addf %acc, %m : f32
        gpu.barrier
        scf.yield %next : f32
      }
      memref.store %sum, %C[%c0, %t] : memref<65x64xf32>
      gpu.return
    }
  }
}
