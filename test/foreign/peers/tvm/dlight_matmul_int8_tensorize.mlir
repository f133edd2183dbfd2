// source: apache/tvm 5d4dc8721307cf9677becacf0395c19be130e206 tests/python/s_tir/dlight/test_gpu_matmul_tensorize.py
// function: test_matmul_int8_tensorize
// does: int8 matmul, two levels
// expect: pipelined shared=2
// options: noalias
#ws = #gpu.address_space<workgroup>
module attributes {gpu.container_module} {
  gpu.module @kernels {
    gpu.func @kernel(%A: memref<16x256xi8>, %W: memref<8x256xi8>, %C: memref<16x8xi32>)
        workgroup(%AS : memref<16x32xi8, #ws>, %WS : memref<8x32xi8, #ws>)
        kernel attributes {known_block_size = array<i32: 32, 1, 1>} {
      %c0 = arith.constant 0 : index
      %c2 = arith.constant 2 : index
      %c4 = arith.constant 4 : index
      %c8 = arith.constant 8 : index
      %c16 = arith.constant 16 : index
      %c32 = arith.constant 32 : index
      %c256 = arith.constant 256 : index
      %t = gpu.thread_id x
      %lrow = arith.remui %t, %c16 : index
      %lhalf = arith.divui %t, %c16 : index
      %lcol = arith.muli %lhalf, %c16 : index
      %crow = arith.divui %t, %c4 : index
      %crow8 = arith.addi %crow, %c8 : index
      %cq = arith.remui %t, %c4 : index
      %ccol = arith.muli %cq, %c2 : index
      %bt = arith.divui %t, %c8 : index
      %btp = arith.remui %bt, %c2 : index
      %brow8 = arith.remui %t, %c8 : index
      %bhalf = arith.muli %btp, %c16 : index
      %ncol = arith.muli %cq, %c8 : index
      %acc0 = arith.constant dense<0> : vector<2x2xi32>
      %sum = scf.for %k = %c0 to %c256 step %c32 iter_args(%acc = %acc0) -> (vector<2x2xi32>) {
        %ka = arith.addi %k, %lcol : index
        %a = vector.load %A[%lrow, %ka] : memref<16x256xi8>, vector<16xi8>
        vector.store %a, %AS[%lrow, %lcol] : memref<16x32xi8, #ws>, vector<16xi8>
        %kb = arith.addi %k, %ncol : index
        %b = vector.load %W[%crow, %kb] : memref<8x256xi8>, vector<8xi8>
        vector.store %b, %WS[%crow, %ncol] : memref<8x32xi8, #ws>, vector<8xi8>
        gpu.barrier
        %fa = nvgpu.ldmatrix %AS[%lrow, %lcol] {numTiles = 4 : i32, transpose = false} : memref<16x32xi8, #ws> -> vector<4x4xi8>
        %fb = nvgpu.ldmatrix %WS[%brow8, %bhalf] {numTiles = 2 : i32, transpose = false} : memref<8x32xi8, #ws> -> vector<2x4xi8>
        %next = nvgpu.mma.sync (%fa, %fb, %acc) {mmaShape = [16, 8, 32]} : (vector<4x4xi8>, vector<2x4xi8>, vector<2x2xi32>) -> vector<2x2xi32>
        gpu.barrier
        scf.yield %next : vector<2x2xi32>
      }
      %r0 = vector.extract %sum[0] : vector<2xi32> from vector<2x2xi32>
      %r1 = vector.extract %sum[1] : vector<2xi32> from vector<2x2xi32>
      vector.store %r0, %C[%crow, %ccol] : memref<16x8xi32>, vector<2xi32>
      vector.store %r1, %C[%crow8, %ccol] : memref<16x8xi32>, vector<2xi32>
      gpu.return
    }
  }
}
