// source: llvm/llvm-project b33191d2b027f8dc1df60897c2f5cb263f82bb98 mlir/test/Dialect/SCF/transform-ops.mlir
// function: loop_pipeline_op
// does: a load, an addition and a store, pipelined by a transform script with a latency of reads
// expect: pipelined register=1
// options: noalias
// stages: 3,2
module attributes {gpu.container_module} {
  gpu.module @kernels {
    gpu.func @kernel(%A: memref<7x64xf32>, %C: memref<7x64xf32>)
        kernel attributes {known_block_size = array<i32: 64, 1, 1>} {
      %c0 = arith.constant 0 : index
      %c1 = arith.constant 1 : index
      %c4 = arith.constant 4 : index
      %one = arith.constant 1.0 : f32
      %t = gpu.thread_id x
      scf.for %k = %c0 to %c4 step %c1 {
        %a = memref.load %A[%k, %t] : memref<7x64xf32>
        %b = arith.addf %a, %one : f32
        memref.store %b, %C[%k, %t] : memref<7x64xf32>
      }
      gpu.return
    }
  }
}
