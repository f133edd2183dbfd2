// source: triton-lang/triton 004311d2a0780ccae8d030069745b50f42eb9144 test/TritonGPU/loop-pipeline.mlir
// function: post_load_inv
// does: masks by what is left of the array; the next pointers are computed of the index after the loads
// expect: pipelined shared=2
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
      %sum:3 = scf.for %k = %c0 to %n step %c1 iter_args(%acc = %zero, %pa = %c0, %pb = %c0) -> (f32, index, index) {
        %left = arith.subi %c63, %k : index
        %in = arith.cmpi ult, %t, %left : index
        %v = scf.if %in -> (f32) {
          %vl = memref.load %A[%pa, %t] : memref<256x64xf32>
          scf.yield %vl : f32
        } else {
          scf.yield %zero : f32
        }
        memref.store %v, %a[%t] : memref<64xf32, #ws>
        %w = scf.if %in -> (f32) {
          %wl = memref.load %B[%pb, %t] : memref<256x64xf32>
          scf.yield %wl : f32
        } else {
          scf.yield %zero : f32
        }
        memref.store %w, %b[%t] : memref<64xf32, #ws>
        gpu.barrier
        %x = memref.load %a[%other] : memref<64xf32, #ws>
        %y = memref.load %b[%t] : memref<64xf32, #ws>
        %m = arith.mulf %x, %y : f32
        %next = arith.addf %acc, %m : f32
        gpu.barrier
        %k1 = arith.addi %k, %c1 : index
        %pa1 = arith.muli %k1, %c2 : index
        %pb1 = arith.muli %k1, %c3 : index
        scf.yield %next, %pa1, %pb1 : f32, index, index
      }
      memref.store %sum#0, %C[%c0, %t] : memref<256x64xf32>
      gpu.return
    }
  }
}
