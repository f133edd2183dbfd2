// source: triton-lang/triton 004311d2a0780ccae8d030069745b50f42eb9144 test/TritonGPU/loop-pipeline.mlir
// function: dep_arg_two_uses
// does: a pointer that grows by an entry of a table, loaded in the iteration before and used twice
// expect: pipelined shared=2
#ws = #gpu.address_space<workgroup>
module attributes {gpu.container_module} {
  gpu.module @kernels {
    gpu.func @kernel(%A: memref<256x64xf32>, %B: memref<256x64xf32>, %I: memref<7xi32>, %C: memref<256x64xf32>, %n: index)
        workgroup(%a : memref<64xf32, #ws>, %b : memref<64xf32, #ws>)
        kernel attributes {known_block_size = array<i32: 64, 1, 1>} {
      %c0 = arith.constant 0 : index
      %c1 = arith.constant 1 : index
      %c2 = arith.constant 2 : index
      %c63 = arith.constant 63 : index
      %zero = arith.constant 0.0 : f32
      %t = gpu.thread_id x
      %other = arith.subi %c63, %t : index
      %sum:4 = scf.for %k = %c0 to %n step %c1 iter_args(%acc = %zero, %pa = %c0, %ji = %c1, %pb = %c0) -> (f32, index, index, index) {
        %na = arith.addi %pa, %ji : index
        %twice = arith.addi %na, %ji : index
        %v = memref.load %A[%twice, %t] : memref<256x64xf32>
        memref.store %v, %a[%t] : memref<64xf32, #ws>
        %ei = memref.load %I[%k] : memref<7xi32>
        %e = arith.index_cast %ei : i32 to index
        %w = memref.load %B[%pb, %t] : memref<256x64xf32>
        memref.store %w, %b[%t] : memref<64xf32, #ws>
        gpu.barrier
        %x = memref.load %a[%other] : memref<64xf32, #ws>
        %y = memref.load %b[%t] : memref<64xf32, #ws>
        %m = arith.mulf %x, %y : f32
        %next = arith.addf %acc, %m : f32
        gpu.barrier
        %nb = arith.addi %pb, %c2 : index
        scf.yield %next, %na, %e, %nb : f32, index, index, index
      }
      memref.store %sum#0, %C[%c0, %t] : memref<256x64xf32>
      gpu.return
    }
  }
}
