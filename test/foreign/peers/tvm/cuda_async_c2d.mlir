// source: apache/tvm 5d4dc8721307cf9677becacf0395c19be130e206 tests/python/s_tir/meta_schedule/test_meta_schedule_space_cuda_async.py
// function: test_cuda_c2d
// does: convolution by input channels: padded image and weights, asynchronous, stages 0, 0, 2
// expect: pipelined shared=2
// lists: kept
// options: noalias
#ws = #gpu.address_space<workgroup>
module attributes {gpu.container_module} {
  gpu.module @kernels {
    gpu.func @kernel(%A: memref<4x30xf32>, %W: memref<4x32xf32>, %C: memref<32xf32>)
        workgroup(%AS : memref<32xf32, #ws>, %WS : memref<32xf32, #ws>)
        kernel attributes {known_block_size = array<i32: 32, 1, 1>} {
      %c0 = arith.constant 0 : index
      %c1 = arith.constant 1 : index
      %c3 = arith.constant 3 : index
      %c4 = arith.constant 4 : index
      %c12 = arith.constant 12 : index
      %c29 = arith.constant 29 : index
      %c30 = arith.constant 30 : index
      %zero = arith.constant 0.0 : f32
      %t = gpu.thread_id x
      %w1 = arith.subi %t, %c1 : index
      %inside = arith.cmpi ult, %w1, %c30 : index
      %isw = arith.cmpi ult, %t, %c12 : index
      %next0 = arith.constant 0.0 : f32
      %last = arith.minui %t, %c29 : index
      %sum = scf.for %k = %c0 to %c4 step %c1 iter_args(%acc = %next0) -> (f32) {
        %v = scf.if %inside -> (f32) {
          %l = memref.load %A[%k, %w1] : memref<4x30xf32>
          scf.yield %l : f32
        } else {
          scf.yield %zero : f32
        }
        memref.store %v, %AS[%t] : memref<32xf32, #ws>
        %w = memref.load %W[%k, %t] : memref<4x32xf32>
        memref.store %w, %WS[%t] : memref<32xf32, #ws>
        gpu.barrier
        %next = scf.for %j = %c0 to %c3 step %c1 iter_args(%in = %acc) -> (f32) {
          %at = arith.addi %last, %j : index
          %a = memref.load %AS[%at] : memref<32xf32, #ws>
          %b = memref.load %WS[%j] : memref<32xf32, #ws>
          %p = arith.mulf %a, %b : f32
          %q = arith.addf %in, %p : f32
          scf.yield %q : f32
        }
        gpu.barrier
        scf.yield %next : f32
      } {alcop.pipeline = #alcop.pipeline<{stage = [0, 0, 0, 0, 0, 2, 2], order = [0, 1, 2, 3, 4, 5, 6]}>}
      memref.store %sum, %C[%t] : memref<32xf32>
      gpu.return
    }
  }
}
