// source: tile-ai/tilelang a35008a42531c62b976ae4cec3855d4383db0f3c testing/python/transform/test_tilelang_transform_pipeline_planning.py
// function: test_simple_pipeline
// does: f32 matmul by copies of whole tiles, three slots
// expect: pipelined shared=2
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
        %v1 = memref.subview %A[0, %k] [8, 8] [1, 1] : memref<8x64xf32> to memref<8x8xf32, strided<[64, 1], offset: ?>>
        memref.copy %v1, %AS : memref<8x8xf32, strided<[64, 1], offset: ?>> to memref<8x8xf32, #ws>
        %v2 = memref.subview %B[%k, 0] [8, 8] [1, 1] : memref<64x8xf32> to memref<8x8xf32, strided<[8, 1], offset: ?>>
        memref.copy %v2, %BS : memref<8x8xf32, strided<[8, 1], offset: ?>> to memref<8x8xf32, #ws>
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
      }
      memref.store %sum, %C[%ty, %tx] : memref<8x8xf32>
      gpu.return
    }
  }
}
