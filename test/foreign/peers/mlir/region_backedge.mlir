// source: llvm/llvm-project 00b172da43e9fefe6cb44f6dfdb0036226ec9c8c mlir/test/Dialect/SCF/loop-pipelining.mlir
// function: region_backedge_different_stage
// does: the same, where load and addition are in regions
// expect: pipelined register=1
// options: noalias
// stages: 3,2
module attributes {gpu.container_module} {
  gpu.module @kernels {
    gpu.func @kernel(%A: memref<7x64xf32>, %C: memref<7x64xf32>, %n: index)
        kernel attributes {known_block_size = array<i32: 64, 1, 1>} {
      %c0 = arith.constant 0 : index
      %c1 = arith.constant 1 : index
      %two = arith.constant 2.0 : f32
      %t = gpu.thread_id x
      %sum = scf.for %k = %c0 to %n step %c1 iter_args(%acc = %two) -> (f32) {
        %a = scf.execute_region -> f32 {
          %l = memref.load %A[%k, %t] : memref<7x64xf32>
          scf.yield %l : f32
        }
        %b = scf.execute_region -> f32 {
          %s = arith.addf %a, %acc : f32
          scf.yield %s : f32
        }
        %c = arith.mulf %two, %b : f32
        scf.yield %c : f32
      }
      memref.store %sum, %C[%c0, %t] : memref<7x64xf32>
      gpu.return
    }
  }
}
