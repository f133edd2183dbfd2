// source: apache/tvm 5d4dc8721307cf9677becacf0395c19be130e206 tests/python/s_tir/transform/test_s_tir_transform_inject_ptx_async_copy.py
// function: test_vectorize_cp_async_in_if_then_else
// does: convolution as im2col: eight elements or zeros of the padded image, and the filter's, one step early
// expect: pipelined shared=2
// lists: kept
// options: noalias
#ws = #gpu.address_space<workgroup>
module attributes {gpu.container_module} {
  gpu.module @kernels {
    gpu.func @kernel(%A: memref<8x8x8xf16>, %W: memref<9x64x8xf16>, %C: memref<64xf16>)
        workgroup(%AS : memref<64x8xf16, #ws>, %WS : memref<64x8xf16, #ws>)
        kernel attributes {known_block_size = array<i32: 64, 1, 1>} {
      %c0 = arith.constant 0 : index
      %c1 = arith.constant 1 : index
      %c3 = arith.constant 3 : index
      %c8 = arith.constant 8 : index
      %c9 = arith.constant 9 : index
      %c63 = arith.constant 63 : index
      %t = gpu.thread_id x
      %y = arith.divui %t, %c8 : index
      %x = arith.remui %t, %c8 : index
      %fzero = arith.constant dense<0.0> : vector<8xf16>
      %acc0 = arith.constant 0.0 : f16
      %sum = scf.for %k = %c0 to %c9 step %c1 iter_args(%acc = %acc0) -> (f16) {
        %ky = arith.divui %k, %c3 : index
        %kx = arith.remui %k, %c3 : index
        %yy = arith.addi %y, %ky : index
        %xx = arith.addi %x, %kx : index
        %y1 = arith.subi %yy, %c1 : index
        %x1 = arith.subi %xx, %c1 : index
        %iny = arith.cmpi ult, %y1, %c8 : index
        %inx = arith.cmpi ult, %x1, %c8 : index
        %inside = arith.andi %iny, %inx : i1
        %v = scf.if %inside -> (vector<8xf16>) {
          %l = vector.load %A[%y1, %x1, %c0] : memref<8x8x8xf16>, vector<8xf16>
          scf.yield %l : vector<8xf16>
        } else {
          scf.yield %fzero : vector<8xf16>
        }
        vector.store %v, %AS[%t, %c0] : memref<64x8xf16, #ws>, vector<8xf16>
        %w = vector.load %W[%k, %t, %c0] : memref<9x64x8xf16>, vector<8xf16>
        vector.store %w, %WS[%t, %c0] : memref<64x8xf16, #ws>, vector<8xf16>
        gpu.barrier
        %r = arith.subi %c63, %t : index
        %next = scf.for %j = %c0 to %c8 step %c1 iter_args(%in = %acc) -> (f16) {
          %a = memref.load %AS[%r, %j] : memref<64x8xf16, #ws>
          %b = memref.load %WS[%r, %j] : memref<64x8xf16, #ws>
          %p = arith.mulf %a, %b : f16
          %q = arith.addf %in, %p : f16
          scf.yield %q : f16
        }
        gpu.barrier
        scf.yield %next : f16
      } {alcop.pipeline = #alcop.pipeline<{stage = [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 1, 1], order = [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16]}>}
      memref.store %sum, %C[%t] : memref<64xf16>
      gpu.return
    }
  }
}
