// source: triton-lang/triton 004311d2a0780ccae8d030069745b50f42eb9144 test/TritonGPU/loop-pipeline.mlir
// function: cross_iter_dep
// does: the pointers are computed two iterations before their use
// expect: pipelined shared=2
// there: refused
#ws = #gpu.address_space<workgroup>
module attributes {gpu.container_module} {
  gpu.module @kernels {
    gpu.func @kernel(%A: memref<256x64xf32>, %B: memref<256x64xf32>, %C: memref<256x64xf32>, %n: index)
        workgroup(%a : memref<64xf32, #ws>, %b : memref<64xf32, #ws>)
        kernel attributes {known_block_size = array<i32: 64, 1, 1>} {
      %c0 = arith.constant 0 : index
      %c1 = arith.constant 1 : index
      %c2 = arith.constant 2 : index
      %c3 = arith.constant 3 : index
      %c63 = arith.constant 63 : index
      %zero = arith.constant 0.0 : f32
      %t = gpu.thread_id x
      %other = arith.subi %c63, %t : index
      %sum:5 = scf.for %k = %c0 to %n step %c1 iter_args(%acc = %zero, %pa = %c0, %pb = %c0, %qa = %c1, %qb = %c2) -> (f32, index, index, index, index) {
        %v = memref.load %A[%pa, %t] : memref<256x64xf32>
        memref.store %v, %a[%t] : memref<64xf32, #ws>
        %w = memref.load %B[%pb, %t] : memref<256x64xf32>
        memref.store %w, %b[%t] : memref<64xf32, #ws>
        gpu.barrier
        %x = memref.load %a[%other] : memref<64xf32, #ws>
        %y = memref.load %b[%t] : memref<64xf32, #ws>
        %m = arith.mulf %x, %y : f32
        %next = arith.addf %acc, %m : f32
        gpu.barrier
        %k2 = arith.addi %k, %c2 : index
        %ra = arith.muli %k2, %c2 : index
        %rb = arith.muli %k2, %c3 : index
        scf.yield %next, %qa, %qb, %ra, %rb : f32, index, index, index, index
      }
      memref.store %sum#0, %C[%c0, %t] : memref<256x64xf32>
      gpu.return
    }
  }
}
