// source: triton-lang/triton 0218ea0a95d8a0164a56ed25298c6b8d3b308a26 test/TritonGPU/pipeline-lower-loop.mlir
// function: dependent_loads
// does: a load at addresses that an earlier load brought, through shared memory
// expect: pipelined shared=1
// options: noalias
#ws = #gpu.address_space<workgroup>
module attributes {gpu.container_module} {
  gpu.module @kernels {
    gpu.func @kernel(%A: memref<7x64xf32>, %I: memref<70xi32>, %C: memref<7x64xf32>, %n: index)
        workgroup(%a : memref<64xf32, #ws>, %i : memref<64xi32, #ws>)
        kernel attributes {known_block_size = array<i32: 64, 1, 1>} {
      %c0 = arith.constant 0 : index
      %c1 = arith.constant 1 : index
      %c63 = arith.constant 63 : index
      %zero = arith.constant 0.0 : f32
      %t = gpu.thread_id x
      %other = arith.subi %c63, %t : index
      %sum = scf.for %k = %c0 to %n step %c1 iter_args(%acc = %zero) -> (f32) {
        %e = arith.addi %k, %t : index
        %ei = memref.load %I[%e] : memref<70xi32>
        memref.store %ei, %i[%t] : memref<64xi32, #ws>
        gpu.barrier
        %ji = memref.load %i[%other] : memref<64xi32, #ws>
        %j = arith.index_cast %ji : i32 to index
        %v = memref.load %A[%j, %t] : memref<7x64xf32>
        memref.store %v, %a[%t] : memref<64xf32, #ws>
        gpu.barrier
        %x = memref.load %a[%other] : memref<64xf32, #ws>
        %next = arith.addf %acc, %x : f32
        gpu.barrier
        scf.yield %next : f32
      }
      memref.store %sum, %C[%c0, %t] : memref<7x64xf32>
      gpu.return
    }
  }
}
