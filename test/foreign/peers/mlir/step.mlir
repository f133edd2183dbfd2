// source: llvm/llvm-project 00b172da43e9fefe6cb44f6dfdb0036226ec9c8c mlir/test/Dialect/SCF/loop-pipelining.mlir
// function: simple_pipeline_step
// does: a load two stages early, by steps of three
// expect: pipelined register=1
// options: noalias
// stages: 3,2
module attributes {gpu.container_module} {
  gpu.module @kernels {
    gpu.func @kernel(%A: memref<11x64xf32>, %C: memref<11x64xf32>)
        kernel attributes {known_block_size = array<i32: 64, 1, 1>} {
      %c0 = arith.constant 0 : index
      %c3 = arith.constant 3 : index
      %c11 = arith.constant 11 : index
      %one = arith.constant 1.0 : f32
      %t = gpu.thread_id x
      scf.for %k = %c0 to %c11 step %c3 {
        %a = memref.load %A[%k, %t] : memref<11x64xf32>
        %b = arith.addf %a, %one : f32
        memref.store %b, %C[%k, %t] : memref<11x64xf32>
      }
      gpu.return
    }
  }
}
