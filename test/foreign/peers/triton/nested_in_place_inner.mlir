// source: triton-lang/triton 004311d2a0780ccae8d030069745b50f42eb9144 test/TritonGPU/loop-pipeline.mlir
// function: nested_loops (second)#2
// does: the inner of these loops, which stores to the elements that it loads
// expect: pipelined shared=1
// options: noalias
#ws = #gpu.address_space<workgroup>
module attributes {gpu.container_module} {
  gpu.module @kernels {
    gpu.func @kernel(%A: memref<7x64xf32>, %C: memref<7x64xf32>, %n: index)
        workgroup(%b : memref<64xf32, #ws>)
        kernel attributes {known_block_size = array<i32: 64, 1, 1>} {
      %c0 = arith.constant 0 : index
      %c1 = arith.constant 1 : index
      %c63 = arith.constant 63 : index
      %zero = arith.constant 0.0 : f32
      %two = arith.constant 2.0 : f32
      %t = gpu.thread_id x
      %other = arith.subi %c63, %t : index
      %sum = scf.for %k = %c0 to %n step %c1 iter_args(%acc = %zero) -> (f32) {
        %w = memref.load %A[%k, %t] : memref<7x64xf32>
        memref.store %w, %b[%t] : memref<64xf32, #ws>
        gpu.barrier
        %y = memref.load %b[%other] : memref<64xf32, #ws>
        %next = arith.mulf %two, %y : f32
        memref.store %next, %A[%k, %t] : memref<7x64xf32>
        gpu.barrier
        scf.yield %next : f32
      }
      memref.store %sum, %C[%c0, %t] : memref<7x64xf32>
      gpu.return
    }
  }
}
