// source: apache/tvm 5d4dc8721307cf9677becacf0395c19be130e206 tests/python/s_tir/transform/test_s_tir_transform_inject_ptx_async_copy.py
// function: test_multiplication_nodes_are_inlined
// does: a loop fills a row of a flat buffer; offsets are computed by an op of their own; no pipeline
// expect: refused: (rule 2): where it writes in its buffer changes from iteration to iteration
// there: refused
// options: noalias
#ws = #gpu.address_space<workgroup>
module attributes {gpu.container_module} {
  gpu.module @kernels {
    gpu.func @kernel(%A: memref<4096xf16>, %B: memref<4096xf16>)
        workgroup(%S : memref<4096xf16, #ws>)
        kernel attributes {known_block_size = array<i32: 32, 1, 1>} {
      %c0 = arith.constant 0 : index
      %c1 = arith.constant 1 : index
      %c8 = arith.constant 8 : index
      %c16 = arith.constant 16 : index
      %c31 = arith.constant 31 : index
      %c128 = arith.constant 128 : index
      %t = gpu.thread_id x
      %row = arith.muli %t, %c128 : index
      scf.for %i = %c0 to %c16 step %c1 {
        %part = arith.muli %i, %c8 : index
        %at = arith.addi %row, %part : index
        %v = vector.load %A[%at] : memref<4096xf16>, vector<8xf16>
        vector.store %v, %S[%at] : memref<4096xf16, #ws>, vector<8xf16>
      }
      gpu.barrier
      %other = arith.subi %c31, %t : index
      %from = arith.muli %other, %c128 : index
      %x = vector.load %S[%from] : memref<4096xf16, #ws>, vector<8xf16>
      vector.store %x, %B[%from] : memref<4096xf16>, vector<8xf16>
      gpu.return
    }
  }
}
