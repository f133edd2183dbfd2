// source: triton-lang/triton 004311d2a0780ccae8d030069745b50f42eb9144 test/TritonGPU/loop-pipeline.mlir
// function: matmul_loop_single_pipeline
// does: one operand is copied before the loop and only read in it, the other is pipelined
// expect: pipelined shared=1
// options: noalias
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
      %t = gpu.thread_id x
      %other = arith.subi %c63, %t : index
      %v = memref.load %A[%c0, %t] : memref<7x64xf32>
      memref.store %v, %a[%t] : memref<64xf32, #ws>
      gpu.barrier
      %sum = scf.for %k = %c0 to %n step %c1 iter_args(%acc = %zero) -> (f32) {
        %w = memref.load %B[%k, %t] : memref<7x64xf32>
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
