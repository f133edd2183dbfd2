// source: apache/tvm 5d4dc8721307cf9677becacf0395c19be130e206 tests/python/s_tir/transform/test_s_tir_transform_inject_ptx_async_copy.py
// function: test_inject_async_copy#2
// does: a loop fills a row of shared memory, 4 f16 at a time; all copies asynchronous, one wait after the loop; no pipeline
// expect: refused: (rule 2): where it writes in its buffer changes from iteration to iteration
// there: refused
// options: noalias
#ws = #gpu.address_space<workgroup>
module attributes {gpu.container_module} {
  gpu.module @kernels {
    gpu.func @kernel(%A: memref<32x128xf16>, %B: memref<32x128xf16>)
        workgroup(%S : memref<32x128xf16, #ws>)
        kernel attributes {known_block_size = array<i32: 32, 1, 1>} {
      %c0 = arith.constant 0 : index
      %c1 = arith.constant 1 : index
      %c4 = arith.constant 4 : index
      %c31 = arith.constant 31 : index
      %c128 = arith.constant 128 : index
      %t = gpu.thread_id x
      scf.for %i = %c0 to %c128 step %c4 {
        %v = vector.load %A[%t, %i] : memref<32x128xf16>, vector<4xf16>
        vector.store %v, %S[%t, %i] : memref<32x128xf16, #ws>, vector<4xf16>
      }
      gpu.barrier
      %other = arith.subi %c31, %t : index
      scf.for %i = %c0 to %c128 step %c1 {
        %x = memref.load %S[%other, %i] : memref<32x128xf16, #ws>
        memref.store %x, %B[%other, %i] : memref<32x128xf16>
      }
      gpu.return
    }
  }
}
