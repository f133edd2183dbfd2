// source: apache/tvm 5d4dc8721307cf9677becacf0395c19be130e206 tests/python/s_tir/transform/test_s_tir_transform_inject_ptx_async_copy.py
// function: test_inject_async_copy_shared_dyn
// does: a loop fills rows of two buffers, one wait after the loop; no pipeline
// expect: refused: (rule 2): where it writes in its buffer changes from iteration to iteration
// there: refused
// options: noalias
#ws = #gpu.address_space<workgroup>
module attributes {gpu.container_module} {
  gpu.module @kernels {
    gpu.func @kernel(%A: memref<32x128xf16>, %B: memref<32x128xf16>, %C: memref<32x128xf16>)
        workgroup(%S : memref<32x128xf16, #ws>, %S2 : memref<32x128xf16, #ws>)
        kernel attributes {known_block_size = array<i32: 32, 1, 1>} {
      %c0 = arith.constant 0 : index
      %c1 = arith.constant 1 : index
      %c8 = arith.constant 8 : index
      %c31 = arith.constant 31 : index
      %c128 = arith.constant 128 : index
      %t = gpu.thread_id x
      scf.for %i = %c0 to %c128 step %c8 {
        %v = vector.load %A[%t, %i] : memref<32x128xf16>, vector<8xf16>
        vector.store %v, %S[%t, %i] : memref<32x128xf16, #ws>, vector<8xf16>
        %w = vector.load %B[%t, %i] : memref<32x128xf16>, vector<8xf16>
        vector.store %w, %S2[%t, %i] : memref<32x128xf16, #ws>, vector<8xf16>
      }
      gpu.barrier
      %other = arith.subi %c31, %t : index
      scf.for %i = %c0 to %c128 step %c1 {
        %x = memref.load %S[%other, %i] : memref<32x128xf16, #ws>
        %x2 = memref.load %S2[%other, %i] : memref<32x128xf16, #ws>
        %y = arith.addf %x, %x2 : f16
        memref.store %y, %C[%other, %i] : memref<32x128xf16>
      }
      gpu.return
    }
  }
}
