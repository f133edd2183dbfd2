// source: triton-lang/triton 0218ea0a95d8a0164a56ed25298c6b8d3b308a26 test/TritonGPU/pipeline-lower-loop.mlir
// function: one_dep_sync
// does: a load of one element of 16 bits, too narrow for an asynchronous copy: it stays in registers
// expect: pipelined register=1
// options: noalias
// stages: 3,2
module attributes {gpu.container_module} {
  gpu.module @kernels {
    gpu.func @kernel(%A: memref<7x64xf16>, %C: memref<7x64xf32>, %n: index)
        kernel attributes {known_block_size = array<i32: 64, 1, 1>} {
      %c0 = arith.constant 0 : index
      %c1 = arith.constant 1 : index
      %zero = arith.constant 0.0 : f32
      %t = gpu.thread_id x
      %sum = scf.for %k = %c0 to %n step %c1 iter_args(%acc = %zero) -> (f32) {
        %h = memref.load %A[%k, %c0] : memref<7x64xf16>
        %x = arith.extf %h : f16 to f32
        %next = arith.addf %acc, %x : f32
        scf.yield %next : f32
      }
      memref.store %sum, %C[%c0, %t] : memref<7x64xf32>
      gpu.return
    }
  }
}
