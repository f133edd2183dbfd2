// source: llvm/llvm-project 00b172da43e9fefe6cb44f6dfdb0036226ec9c8c mlir/test/Dialect/SCF/loop-pipelining.mlir
// function: distance_1_use
// does: the address is a carried index
// expect: pipelined register=1
// options: noalias
// stages: 3,2
module attributes {gpu.container_module} {
  gpu.module @kernels {
    gpu.func @kernel(%A: memref<7x64xf32>, %C: memref<7x64xf32>, %n: index)
        kernel attributes {known_block_size = array<i32: 64, 1, 1>} {
      %c0 = arith.constant 0 : index
      %c1 = arith.constant 1 : index
      %t = gpu.thread_id x
      %last = scf.for %k = %c0 to %n step %c1 iter_args(%i = %c0) -> (index) {
        %a = memref.load %A[%i, %t] : memref<7x64xf32>
        %next = arith.addi %i, %c1 : index
        memref.store %a, %C[%i, %t] : memref<7x64xf32>
        scf.yield %next : index
      }
      gpu.return
    }
  }
}
