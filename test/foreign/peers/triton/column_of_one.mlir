// source: triton-lang/triton 004311d2a0780ccae8d030069745b50f42eb9144 test/TritonGPU/loop-pipeline.mlir
// function: dont_pipeline_128x1
// does: one element for all, by a load that is too narrow for an asynchronous copy
// expect: refused: (rule 2): it loads the same in every iteration
// there: refused
// options: noalias
// stages: 1,2
module attributes {gpu.container_module} {
  gpu.module @kernels {
    gpu.func @kernel(%I: memref<7xi32>, %C: memref<7x64xf32>, %n: index)
        kernel attributes {known_block_size = array<i32: 64, 1, 1>} {
      %c0 = arith.constant 0 : index
      %c1 = arith.constant 1 : index
      %zero = arith.constant 0.0 : f32
      %t = gpu.thread_id x
      %best = scf.for %k = %c0 to %n step %c1 iter_args(%acc = %zero) -> (f32) {
        %ji = memref.load %I[%c0] : memref<7xi32>
        %f = arith.sitofp %ji : i32 to f32
        %next = arith.maximumf %acc, %f : f32
        scf.yield %next : f32
      }
      memref.store %best, %C[%c0, %t] : memref<7x64xf32>
      gpu.return
    }
  }
}
