// source: triton-lang/triton 004311d2a0780ccae8d030069745b50f42eb9144 test/TritonGPU/loop-pipeline.mlir
// function: matmul_nested_ops
// does: the pointer grows twice while the index is below a bound: it comes out of an `scf.if`
// expect: pipelined shared=1
// options: noalias
// sizes: 0,3 1,0 2,1 7,3
#ws = #gpu.address_space<workgroup>
module attributes {gpu.container_module} {
  gpu.module @kernels {
    gpu.func @kernel(%A: memref<256x64xf32>, %B: memref<256x64xf32>, %C: memref<256x64xf32>, %n: index, %ext: index)
        workgroup(%a : memref<64xf32, #ws>, %b : memref<64xf32, #ws>)
        kernel attributes {known_block_size = array<i32: 64, 1, 1>} {
      %c0 = arith.constant 0 : index
      %c1 = arith.constant 1 : index
      %c4 = arith.constant 4 : index
      %c63 = arith.constant 63 : index
      %zero = arith.constant 0.0 : f32
      %t = gpu.thread_id x
      %other = arith.subi %c63, %t : index
      %w = memref.load %B[%c0, %t] : memref<256x64xf32>
      memref.store %w, %b[%t] : memref<64xf32, #ws>
      gpu.barrier
      %sum:2 = scf.for %k = %c0 to %n step %c1 iter_args(%acc = %zero, %pa = %c0) -> (f32, index) {
        %few = arith.cmpi ult, %k, %ext : index
        %qa = scf.if %few -> (index) {
          %far = arith.addi %pa, %c4 : index
          scf.yield %far : index
        } else {
          scf.yield %pa : index
        }
        %v = memref.load %A[%qa, %t] : memref<256x64xf32>
        memref.store %v, %a[%t] : memref<64xf32, #ws>
        gpu.barrier
        %x = memref.load %a[%other] : memref<64xf32, #ws>
        %y = memref.load %b[%t] : memref<64xf32, #ws>
        %m = arith.mulf %x, %y : f32
        %next = arith.addf %acc, %m : f32
        gpu.barrier
        %na = arith.addi %qa, %c4 : index
        scf.yield %next, %na : f32, index
      }
      memref.store %sum#0, %C[%c0, %t] : memref<256x64xf32>
      gpu.return
    }
  }
}
