// source: triton-lang/triton 004311d2a0780ccae8d030069745b50f42eb9144 test/TritonGPU/loop-pipeline.mlir
// function: matmul_indirect_pipeline
// does: index and tile are loaded at the same pointers in each iteration, added to a tile from before the loop
// expect: refused: (rule 2): it loads the same in every iteration
// options: noalias
// stages: 1,2
module attributes {gpu.container_module} {
  gpu.module @kernels {
    gpu.func @kernel(%A: memref<7x64xf32>, %B: memref<7x64xf32>, %I: memref<64xi32>, %C: memref<7x64xf32>, %n: index)
        kernel attributes {known_block_size = array<i32: 64, 1, 1>} {
      %c0 = arith.constant 0 : index
      %c1 = arith.constant 1 : index
      %t = gpu.thread_id x
      %l = memref.load %A[%c0, %t] : memref<7x64xf32>
      scf.for %k = %c0 to %n step %c1 {
        %ji = memref.load %I[%t] : memref<64xi32>
        %j = arith.index_cast %ji : i32 to index
        %v = memref.load %B[%j, %t] : memref<7x64xf32>
        %s = arith.addf %l, %v : f32
        %m = arith.mulf %l, %s : f32
        memref.store %m, %C[%k, %t] : memref<7x64xf32>
      }
      gpu.return
    }
  }
}
