// source: triton-lang/triton 004311d2a0780ccae8d030069745b50f42eb9144 test/TritonGPU/loop-pipeline.mlir
// function: nested_loops (second)#1
// does: two loops that load what the inner one stores to
// expect: refused: (rule 6): its source may be written by 'memref.store' in the loop
// options: noalias
// beside: shared=1
#ws = #gpu.address_space<workgroup>
module attributes {gpu.container_module} {
  gpu.module @kernels {
    gpu.func @kernel(%A: memref<7x64xf32>, %n: index)
        workgroup(%a : memref<64xf32, #ws>, %b : memref<64xf32, #ws>)
        kernel attributes {known_block_size = array<i32: 64, 1, 1>} {
      %c0 = arith.constant 0 : index
      %c1 = arith.constant 1 : index
      %c2 = arith.constant 2 : index
      %c63 = arith.constant 63 : index
      %t = gpu.thread_id x
      %other = arith.subi %c63, %t : index
      scf.for %p = %c0 to %n step %c1 {
        %v = memref.load %A[%p, %t] : memref<7x64xf32>
        memref.store %v, %a[%t] : memref<64xf32, #ws>
        gpu.barrier
        %x = memref.load %a[%other] : memref<64xf32, #ws>
        scf.for %k = %c0 to %c2 step %c1 {
          %w = memref.load %A[%k, %t] : memref<7x64xf32>
          memref.store %w, %b[%t] : memref<64xf32, #ws>
          gpu.barrier
          %y = memref.load %b[%other] : memref<64xf32, #ws>
          %m = arith.mulf %x, %y : f32
          memref.store %m, %A[%k, %t] : memref<7x64xf32>
          gpu.barrier
        }
      }
      gpu.return
    }
  }
}
