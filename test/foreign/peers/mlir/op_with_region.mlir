// source: llvm/llvm-project 00b172da43e9fefe6cb44f6dfdb0036226ec9c8c mlir/test/Dialect/SCF/loop-pipelining.mlir
// function: pipeline_op_with_region
// does: copies of two tiles into slots that the program numbers itself, by the index modulo 2
// expect: pipelined shared=2
// options: noalias
#ws = #gpu.address_space<workgroup>
module attributes {gpu.container_module} {
  gpu.module @kernels {
    gpu.func @kernel(%A: memref<7x64xf32>, %B: memref<7x64xf32>, %C: memref<7x64xf32>, %n: index)
        workgroup(%a : memref<2x64xf32, #ws>, %b : memref<2x64xf32, #ws>)
        kernel attributes {known_block_size = array<i32: 64, 1, 1>} {
      %c0 = arith.constant 0 : index
      %c1 = arith.constant 1 : index
      %c2 = arith.constant 2 : index
      %c63 = arith.constant 63 : index
      %t = gpu.thread_id x
      %other = arith.subi %c63, %t : index
      scf.for %k = %c0 to %n step %c1 {
        %slot = arith.remui %k, %c2 : index
        %va = memref.load %A[%k, %t] : memref<7x64xf32>
        memref.store %va, %a[%slot, %t] : memref<2x64xf32, #ws>
        %vb = memref.load %B[%k, %t] : memref<7x64xf32>
        memref.store %vb, %b[%slot, %t] : memref<2x64xf32, #ws>
        gpu.barrier
        %x = memref.load %a[%slot, %other] : memref<2x64xf32, #ws>
        %y = memref.load %b[%slot, %other] : memref<2x64xf32, #ws>
        %s = arith.addf %x, %y : f32
        %old = memref.load %C[%k, %t] : memref<7x64xf32>
        %sum = arith.addf %s, %old : f32
        memref.store %sum, %C[%k, %t] : memref<7x64xf32>
        gpu.barrier
      }
      gpu.return
    }
  }
}
