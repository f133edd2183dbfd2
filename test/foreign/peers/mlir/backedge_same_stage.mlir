// source: llvm/llvm-project 00b172da43e9fefe6cb44f6dfdb0036226ec9c8c mlir/test/Dialect/SCF/loop-pipelining.mlir
// function: backedge_same_stage
// does: a carried value that is made in the stage it is used in
// expect: pipelined register=1
// options: noalias
// stages: 2,2
module attributes {gpu.container_module} {
  gpu.module @kernels {
    gpu.func @kernel(%A: memref<7x64xf32>, %C: memref<7x64xf32>, %n: index)
        kernel attributes {known_block_size = array<i32: 64, 1, 1>} {
      %c0 = arith.constant 0 : index
      %c1 = arith.constant 1 : index
      %two = arith.constant 2.0 : f32
      %t = gpu.thread_id x
      %sum = scf.for %k = %c0 to %n step %c1 iter_args(%acc = %two) -> (f32) {
        %a = memref.load %A[%k, %t] : memref<7x64xf32>
        %b = arith.addf %a, %acc : f32
        %c = arith.mulf %two, %b : f32
        scf.yield %c : f32
      }
      memref.store %sum, %C[%c0, %t] : memref<7x64xf32>
      gpu.return
    }
  }
}
