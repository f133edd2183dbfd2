// source: llvm/llvm-project 00b172da43e9fefe6cb44f6dfdb0036226ec9c8c mlir/test/Dialect/SCF/loop-pipelining.mlir
// function: dynamic_loop
// does: bounds and step are known at run time only
// expect: pipelined register=1
// options: noalias
// stages: 3,2
// sizes: 0,0,1 0,1,1 3,4,2 1,12,3 0,9,1
module attributes {gpu.container_module} {
  gpu.module @kernels {
    gpu.func @kernel(%A: memref<11x64xf32>, %C: memref<11x64xf32>, %low: index, %high: index, %step: index)
        kernel attributes {known_block_size = array<i32: 64, 1, 1>} {
      %one = arith.constant 1.0 : f32
      %t = gpu.thread_id x
      scf.for %k = %low to %high step %step {
        %a = memref.load %A[%k, %t] : memref<11x64xf32>
        %b = arith.addf %a, %one : f32
        memref.store %b, %C[%k, %t] : memref<11x64xf32>
      }
      gpu.return
    }
  }
}
