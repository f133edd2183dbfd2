// source: triton-lang/triton 004311d2a0780ccae8d030069745b50f42eb9144 test/TritonGPU/loop-pipeline.mlir
// function: masked_add_kernel
// does: the same, with minus infinity where the mask is off
// expect: pipelined register=2
// options: noalias
// stages: 3,2
// sizes: 0,9 1,30 2,100 7,448 7,400
module attributes {gpu.container_module} {
  gpu.module @kernels {
    gpu.func @kernel(%A: memref<448xf32>, %B: memref<448xf32>, %C: memref<448xf32>, %n: index, %most: index)
        kernel attributes {known_block_size = array<i32: 64, 1, 1>} {
      %c0 = arith.constant 0 : index
      %c64 = arith.constant 64 : index
      %t = gpu.thread_id x
      %ninf = arith.constant 0xFF800000 : f32
      %end = arith.muli %n, %c64 : index
      scf.for %k = %c0 to %end step %c64 {
        %i = arith.addi %k, %t : index
        %in = arith.cmpi ult, %i, %most : index
        %x = scf.if %in -> (f32) {
          %l = memref.load %A[%i] : memref<448xf32>
          scf.yield %l : f32
        } else {
          scf.yield %ninf : f32
        }
        %y = scf.if %in -> (f32) {
          %l = memref.load %B[%i] : memref<448xf32>
          scf.yield %l : f32
        } else {
          scf.yield %ninf : f32
        }
        %s = arith.addf %x, %y : f32
        scf.if %in {
          memref.store %s, %C[%i] : memref<448xf32>
        }
      }
      gpu.return
    }
  }
}
