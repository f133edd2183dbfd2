// source: tile-ai/tilelang a35008a42531c62b976ae4cec3855d4383db0f3c testing/python/language/test_tilelang_language_pipeline.py
// function: test_blocksparse_matmul#2
// does: block-sparse matmul: a mask is loaded, copies and matmul under it; 3 slots
// expect: pipelined shared=2
// options: noalias
// stages: 3,1
// tables: 2
#ws = #gpu.address_space<workgroup>
module attributes {gpu.container_module} {
  gpu.module @kernels {
    gpu.func @kernel(%A: memref<16x64xf16>, %B: memref<64x8xf16>, %mask: memref<4xi8>, %C: memref<16x8xf32>)
        workgroup(%AS : memref<16x16xf16, #ws>, %BS : memref<16x8xf16, #ws>)
        kernel attributes {known_block_size = array<i32: 32, 1, 1>} {
      %c0 = arith.constant 0 : index
      %c2 = arith.constant 2 : index
      %c4 = arith.constant 4 : index
      %c8 = arith.constant 8 : index
      %c16 = arith.constant 16 : index
      %c64 = arith.constant 64 : index
      %t = gpu.thread_id x
      %lrow = arith.remui %t, %c16 : index
      %lhalf = arith.divui %t, %c16 : index
      %lcol = arith.muli %lhalf, %c8 : index
      %crow = arith.divui %t, %c4 : index
      %crow8 = arith.addi %crow, %c8 : index
      %cq = arith.remui %t, %c4 : index
      %ccol = arith.muli %cq, %c2 : index
      %acc0 = arith.constant dense<0.0> : vector<2x2xf32>
      %brow = arith.divui %t, %c2 : index
      %bpart = arith.remui %t, %c2 : index
      %bcol = arith.muli %bpart, %c4 : index
      %sum = scf.for %k = %c0 to %c64 step %c16 iter_args(%acc = %acc0) -> (vector<2x2xf32>) {
        %step = arith.divui %k, %c16 : index
        %m = memref.load %mask[%step] : memref<4xi8>
        %zero8 = arith.constant 0 : i8
        %go = arith.cmpi ne, %m, %zero8 : i8
        %next = scf.if %go -> (vector<2x2xf32>) {
          %ka = arith.addi %k, %lcol : index
          %a = vector.load %A[%lrow, %ka] : memref<16x64xf16>, vector<8xf16>
          vector.store %a, %AS[%lrow, %lcol] : memref<16x16xf16, #ws>, vector<8xf16>
          %kb = arith.addi %k, %brow : index
          %b = vector.load %B[%kb, %bcol] : memref<64x8xf16>, vector<4xf16>
          vector.store %b, %BS[%brow, %bcol] : memref<16x8xf16, #ws>, vector<4xf16>
          gpu.barrier
          %fa = nvgpu.ldmatrix %AS[%lrow, %lcol] {numTiles = 4 : i32, transpose = false} : memref<16x16xf16, #ws> -> vector<4x2xf16>
          %fb = nvgpu.ldmatrix %BS[%lrow, %c0] {numTiles = 2 : i32, transpose = true} : memref<16x8xf16, #ws> -> vector<2x2xf16>
          %some = nvgpu.mma.sync (%fa, %fb, %acc) {mmaShape = [16, 8, 16]} : (vector<4x2xf16>, vector<2x2xf16>, vector<2x2xf32>) -> vector<2x2xf32>
          gpu.barrier
          scf.yield %some : vector<2x2xf32>
        } else {
          scf.yield %acc : vector<2x2xf32>
        }
        scf.yield %next : vector<2x2xf32>
      }
      %r0 = vector.extract %sum[0] : vector<2xf32> from vector<2x2xf32>
      %r1 = vector.extract %sum[1] : vector<2xf32> from vector<2x2xf32>
      vector.store %r0, %C[%crow, %ccol] : memref<16x8xf32>, vector<2xf32>
      vector.store %r1, %C[%crow8, %ccol] : memref<16x8xf32>, vector<2xf32>
      gpu.return
    }
  }
}
