// source: apache/tvm 5d4dc8721307cf9677becacf0395c19be130e206 tests/python/s_tir/meta_schedule/test_meta_schedule_space_cuda_async.py
// function: test_cuda_gmm#2
// does: batched f32 matmul without tensor cores, stages 0, 0, 3
// expect: pipelined shared=2
// lists: kept
// options: noalias
#ws = #gpu.address_space<workgroup>
module attributes {gpu.container_module} {
  gpu.module @kernels {
    gpu.func @kernel(%A: memref<8x64xf32>, %B: memref<64x8xf32>, %C: memref<8x8xf32>)
        workgroup(%AS : memref<8x8xf32, #ws>, %BS : memref<8x8xf32, #ws>)
        kernel attributes {known_block_size = array<i32: 64, 1, 1>} {
      %c0 = arith.constant 0 : index
      %c1 = arith.constant 1 : index
      %c8 = arith.constant 8 : index
      %c64 = arith.constant 64 : index
      %zero = arith.constant 0.0 : f32
      %t = gpu.thread_id x
      %ty = arith.divui %t, %c8 : index
      %tx = arith.remui %t, %c8 : index
      %sum = scf.for %k = %c0 to %c64 step %c8 iter_args(%acc = %zero) -> (f32) {
        %ka = arith.addi %k, %tx : index
        %a = memref.load %A[%ty, %ka] : memref<8x64xf32>
        memref.store %a, %AS[%ty, %tx] : memref<8x8xf32, #ws>
        %kb = arith.addi %k, %ty : index
        %b = memref.load %B[%kb, %tx] : memref<64x8xf32>
        memref.store %b, %BS[%ty, %tx] : memref<8x8xf32, #ws>
        gpu.barrier
        %next = scf.for %j = %c0 to %c8 step %c1 iter_args(%in = %acc) -> (f32) {
          %x = memref.load %AS[%ty, %j] : memref<8x8xf32, #ws>
          %y = memref.load %BS[%j, %tx] : memref<8x8xf32, #ws>
          %p = arith.mulf %x, %y : f32
          %q = arith.addf %in, %p : f32
          scf.yield %q : f32
        }
        gpu.barrier
        scf.yield %next : f32
      } {alcop.pipeline = #alcop.pipeline<{stage = [0, 0, 0, 0, 0, 0, 0, 3, 3], order = [0, 1, 2, 3, 4, 5, 6, 7, 8]}>}
      memref.store %sum, %C[%ty, %tx] : memref<8x8xf32>
      gpu.return
    }
  }
}
