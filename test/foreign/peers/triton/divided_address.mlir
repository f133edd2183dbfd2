// source: triton-lang/triton 287c9cc32aa4f100a6a9fbaa4648112aae6a67d2 test/TritonGPU/loop-pipeline-expand.mlir
// function: predicate_non_speculatable
// does: the address is a quotient by what is left of the loop, which must not be computed for iterations that there are not
// expect: pipelined shared=1
#ws = #gpu.address_space<workgroup>
module attributes {gpu.container_module} {
  gpu.module @kernels {
    gpu.func @kernel(%A: memref<8x64xf32>, %C: memref<8x64xf32>, %n: index)
        workgroup(%a : memref<64xf32, #ws>)
        kernel attributes {known_block_size = array<i32: 64, 1, 1>} {
      %c0 = arith.constant 0 : index
      %c1 = arith.constant 1 : index
      %c63 = arith.constant 63 : index
      %zero = arith.constant 0.0 : f32
      %t = gpu.thread_id x
      %other = arith.subi %c63, %t : index
      %sum = scf.for %k = %c0 to %n step %c1 iter_args(%acc = %zero) -> (f32) {
        %left = arith.subi %n, %k : index
        %row = arith.divui %n, %left : index
        %v = memref.load %A[%row, %t] : memref<8x64xf32>
        memref.store %v, %a[%t] : memref<64xf32, #ws>
        gpu.barrier
        %x = memref.load %a[%other] : memref<64xf32, #ws>
        %next = arith.addf %acc, %x : f32
        gpu.barrier
        scf.yield %next : f32
      }
      memref.store %sum, %C[%c0, %t] : memref<8x64xf32>
      gpu.return
    }
  }
}
