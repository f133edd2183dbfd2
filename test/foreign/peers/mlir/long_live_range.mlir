// source: llvm/llvm-project 00b172da43e9fefe6cb44f6dfdb0036226ec9c8c mlir/test/Dialect/SCF/loop-pipelining.mlir
// function: long_liverange
// does: a load four stages early: four values live
// expect: pipelined register=1
// options: noalias
// stages: 5,2
module attributes {gpu.container_module} {
  gpu.module @kernels {
    gpu.func @kernel(%A: memref<10x64xf32>, %C: memref<10x64xf32>)
        kernel attributes {known_block_size = array<i32: 64, 1, 1>} {
      %c0 = arith.constant 0 : index
      %c1 = arith.constant 1 : index
      %c10 = arith.constant 10 : index
      %one = arith.constant 1.0 : f32
      %t = gpu.thread_id x
      scf.for %k = %c0 to %c10 step %c1 {
        %a = memref.load %A[%k, %t] : memref<10x64xf32>
        %b = arith.addf %a, %one : f32
        memref.store %b, %C[%k, %t] : memref<10x64xf32>
      }
      gpu.return
    }
  }
}
