// source: llvm/llvm-project 00b172da43e9fefe6cb44f6dfdb0036226ec9c8c mlir/test/Dialect/SCF/loop-pipelining.mlir
// function: simple_pipeline
// does: a load one iteration before its addition and store
// expect: pipelined register=1
// options: noalias
// stages: 3,2
module attributes {gpu.container_module} {
  gpu.module @kernels {
    gpu.func @kernel(%A: memref<7x64xf32>, %C: memref<7x64xf32>, %n: index)
        kernel attributes {known_block_size = array<i32: 64, 1, 1>} {
      %c0 = arith.constant 0 : index
      %c1 = arith.constant 1 : index
      %one = arith.constant 1.0 : f32
      %t = gpu.thread_id x
      scf.for %k = %c0 to %n step %c1 {
        %a = memref.load %A[%k, %t] : memref<7x64xf32>
        %b = arith.addf %a, %one : f32
        memref.store %b, %C[%k, %t] : memref<7x64xf32>
      }
      gpu.return
    }
  }
}
