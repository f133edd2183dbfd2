// source: apache/tvm 5d4dc8721307cf9677becacf0395c19be130e206 tests/python/s_tir/meta_schedule/test_meta_schedule_schedule_rule_mlt_tc.py
// function: test_matmul_relu_pipeline
// does: tiles through registers into shared memory, fragments one step early; stages 0,0,0,0,0,1,1
// expect: pipelined shared=3
// options: noalias
#ws = #gpu.address_space<workgroup>
module attributes {gpu.container_module} {
  gpu.module @kernels {
    gpu.func @kernel(%A: memref<16x128xf16>, %B: memref<128x8xf16>, %C: memref<16x8xf32>)
        workgroup(%AS : memref<16x32xf16, #ws>, %BS : memref<32x8xf16, #ws>)
        kernel attributes {known_block_size = array<i32: 32, 1, 1>} {
      %c0 = arith.constant 0 : index
      %c2 = arith.constant 2 : index
      %c4 = arith.constant 4 : index
      %c8 = arith.constant 8 : index
      %c16 = arith.constant 16 : index
      %c32 = arith.constant 32 : index
      %c128 = arith.constant 128 : index
      %t = gpu.thread_id x
      %lrow = arith.remui %t, %c16 : index
      %lhalf = arith.divui %t, %c16 : index
      %lcol = arith.muli %lhalf, %c8 : index
      %crow = arith.divui %t, %c4 : index
      %crow8 = arith.addi %crow, %c8 : index
      %cq = arith.remui %t, %c4 : index
      %ccol = arith.muli %cq, %c2 : index
      %acc0 = arith.constant dense<0.0> : vector<2x2xf32>
      %sum = scf.for %k = %c0 to %c128 step %c32 iter_args(%acc = %acc0) -> (vector<2x2xf32>) {
        %ka = arith.addi %k, %lcol : index
        %a = vector.load %A[%lrow, %ka] : memref<16x128xf16>, vector<8xf16>
        vector.store %a, %AS[%lrow, %lcol] : memref<16x32xf16, #ws>, vector<8xf16>
        %lcol2 = arith.addi %lcol, %c16 : index
        %ka2 = arith.addi %k, %lcol2 : index
        %a2 = vector.load %A[%lrow, %ka2] : memref<16x128xf16>, vector<8xf16>
        vector.store %a2, %AS[%lrow, %lcol2] : memref<16x32xf16, #ws>, vector<8xf16>
        %kb = arith.addi %k, %t : index
        %b = vector.load %B[%kb, %c0] : memref<128x8xf16>, vector<8xf16>
        vector.store %b, %BS[%t, %c0] : memref<32x8xf16, #ws>, vector<8xf16>
        gpu.barrier
        %next = scf.for %s = %c0 to %c32 step %c16 iter_args(%in = %acc) -> (vector<2x2xf32>) {
          %sc = arith.addi %s, %lcol : index
          %fa = nvgpu.ldmatrix %AS[%lrow, %sc] {numTiles = 4 : i32, transpose = false} : memref<16x32xf16, #ws> -> vector<4x2xf16>
          %sr = arith.addi %s, %lrow : index
          %fb = nvgpu.ldmatrix %BS[%sr, %c0] {numTiles = 2 : i32, transpose = true} : memref<32x8xf16, #ws> -> vector<2x2xf16>
          %out = nvgpu.mma.sync (%fa, %fb, %in) {mmaShape = [16, 8, 16]} : (vector<4x2xf16>, vector<2x2xf16>, vector<2x2xf32>) -> vector<2x2xf32>
          scf.yield %out : vector<2x2xf32>
        }
        gpu.barrier
        scf.yield %next : vector<2x2xf32>
      }
      %rzero = arith.constant dense<0.0> : vector<2x2xf32>
      %relu = arith.maximumf %sum, %rzero : vector<2x2xf32>
      %r0 = vector.extract %relu[0] : vector<2xf32> from vector<2x2xf32>
      %r1 = vector.extract %relu[1] : vector<2xf32> from vector<2x2xf32>
      vector.store %r0, %C[%crow, %ccol] : memref<16x8xf32>, vector<2xf32>
      vector.store %r1, %C[%crow8, %ccol] : memref<16x8xf32>, vector<2xf32>
      gpu.return
    }
  }
}
