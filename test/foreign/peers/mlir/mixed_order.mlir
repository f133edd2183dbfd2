// source: llvm/llvm-project 00b172da43e9fefe6cb44f6dfdb0036226ec9c8c mlir/test/Dialect/SCF/loop-pipelining.mlir
// function: backedge_mix_order
// does: two loads of neighbouring elements, each before a multiplication of a chain
// expect: pipelined register=2
// options: noalias
// stages: 3,2
module attributes {gpu.container_module} {
  gpu.module @kernels {
    gpu.func @kernel(%A: memref<8x64xf32>, %C: memref<8x64xf32>, %n: index)
        kernel attributes {known_block_size = array<i32: 64, 1, 1>} {
      %c0 = arith.constant 0 : index
      %c1 = arith.constant 1 : index
      %two = arith.constant 2.0 : f32
      %t = gpu.thread_id x
      %p = scf.for %k = %c0 to %n step %c1 iter_args(%acc = %two) -> (f32) {
        %a = memref.load %A[%k, %t] : memref<8x64xf32>
        %b = arith.mulf %acc, %a : f32
        %k1 = arith.addi %k, %c1 : index
        %c = memref.load %A[%k1, %t] : memref<8x64xf32>
        %d = arith.mulf %c, %b : f32
        scf.yield %d : f32
      }
      memref.store %p, %C[%c0, %t] : memref<8x64xf32>
      gpu.return
    }
  }
}
