// source: triton-lang/triton 0079f6ed8799aed096366748d44e7dad701ab5c2 test/TritonGPU/pipeline-assign-latencies.mlir
// function: per_loop_stages#2
// does: the second of two loops over the same buffers, with three stages
// expect: pipelined shared=4
// options: noalias
// sizes: 0,0,1 3,4,2 1,12,3 0,7,1
#ws = #gpu.address_space<workgroup>
module attributes {gpu.container_module} {
  gpu.module @kernels {
    gpu.func @kernel(%A: memref<256x64xf32>, %B: memref<256x64xf32>, %C: memref<256x64xf32>, %low: index, %high: index, %step: index)
        workgroup(%a : memref<64xf32, #ws>, %b : memref<64xf32, #ws>)
        kernel attributes {known_block_size = array<i32: 64, 1, 1>} {
      %c0 = arith.constant 0 : index
      %c1 = arith.constant 1 : index
      %c4 = arith.constant 4 : index
      %c63 = arith.constant 63 : index
      %zero = arith.constant 0.0 : f32
      %t = gpu.thread_id x
      %other = arith.subi %c63, %t : index
      %first:3 = scf.for %k = %low to %high step %step iter_args(%acc = %zero, %pa = %c0, %pb = %c1) -> (f32, index, index) {
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
        %pa1 = arith.addi %pa, %c4 : index
        %pb1 = arith.addi %pb, %c4 : index
        scf.yield %next, %pa1, %pb1 : f32, index, index
      }
      gpu.barrier
      %sum:3 = scf.for %k = %low to %high step %step iter_args(%acc = %zero, %pa = %c0, %pb = %c1) -> (f32, index, index) {
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
        %pa1 = arith.addi %pa, %c4 : index
        %pb1 = arith.addi %pb, %c4 : index
        scf.yield %next, %pa1, %pb1 : f32, index, index
      }
      %both = arith.addf %first#0, %sum#0 : f32
      memref.store %both, %C[%c0, %t] : memref<256x64xf32>
      gpu.return
    }
  }
}
