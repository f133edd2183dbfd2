// source: llvm/llvm-project 00b172da43e9fefe6cb44f6dfdb0036226ec9c8c mlir/test/Dialect/SCF/loop-pipelining.mlir
// function: yield_constant_loop
// does: a constant is carried; the result is stored where it was loaded, while the next element is
// expect: pipelined register=1
// options: noalias
// stages: 1,2
module attributes {gpu.container_module} {
  gpu.module @kernels {
    gpu.func @kernel(%A: memref<7x64xf32>, %n: index)
        kernel attributes {known_block_size = array<i32: 64, 1, 1>} {
      %c0 = arith.constant 0 : index
      %c1 = arith.constant 1 : index
      %zero = arith.constant 0.0 : f32
      %two = arith.constant 2.0 : f32
      %t = gpu.thread_id x
      %last = scf.for %k = %c0 to %n step %c1 iter_args(%acc = %two) -> (f32) {
        %a = memref.load %A[%k, %t] : memref<7x64xf32>
        %b = arith.addf %a, %acc : f32
        %c = arith.mulf %zero, %b : f32
        memref.store %c, %A[%k, %t] : memref<7x64xf32>
        scf.yield %zero : f32
      }
      gpu.return
    }
  }
}
