// source: tile-ai/tilelang a35008a42531c62b976ae4cec3855d4383db0f3c examples/dequantize_gemm/test_example_dequantize_gemm.py
// function: test_example_dequant_gemm_w4a8
// does: int8 by packed int4: tiles of both, unpacked between shared memory and the multiplication
// expect: pipelined shared=2
// options: noalias
#ws = #gpu.address_space<workgroup>
module attributes {gpu.container_module} {
  gpu.module @kernels {
    gpu.func @kernel(%A: memref<8x128xi8>, %B: memref<8x64xi8>, %C: memref<8x8xi32>)
        workgroup(%AS : memref<8x32xi8, #ws>, %BS : memref<8x16xi8, #ws>)
        kernel attributes {known_block_size = array<i32: 64, 1, 1>} {
      %c0 = arith.constant 0 : index
      %c1 = arith.constant 1 : index
      %c2 = arith.constant 2 : index
      %c4 = arith.constant 4 : index
      %c8 = arith.constant 8 : index
      %c16 = arith.constant 16 : index
      %c32 = arith.constant 32 : index
      %t = gpu.thread_id x
      %ty = arith.divui %t, %c8 : index
      %tx = arith.remui %t, %c8 : index
      %four8 = arith.constant 4 : i8
      %izero = arith.constant 0 : i32
      %sum = scf.for %k = %c0 to %c4 step %c1 iter_args(%acc = %izero) -> (i32) {
        %ka = arith.muli %k, %c32 : index
        %va = memref.subview %A[0, %ka] [8, 32] [1, 1] : memref<8x128xi8> to memref<8x32xi8, strided<[128, 1], offset: ?>>
        memref.copy %va, %AS : memref<8x32xi8, strided<[128, 1], offset: ?>> to memref<8x32xi8, #ws>
        %k2 = arith.muli %k, %c16 : index
        %vb = memref.subview %B[0, %k2] [8, 16] [1, 1] : memref<8x64xi8> to memref<8x16xi8, strided<[64, 1], offset: ?>>
        memref.copy %vb, %BS : memref<8x16xi8, strided<[64, 1], offset: ?>> to memref<8x16xi8, #ws>
        gpu.barrier
        %next = scf.for %j = %c0 to %c16 step %c1 iter_args(%in = %acc) -> (i32) {
          %pack = memref.load %BS[%tx, %j] : memref<8x16xi8, #ws>
          %up = arith.shli %pack, %four8 : i8
          %low = arith.shrsi %up, %four8 : i8
          %high = arith.shrsi %pack, %four8 : i8
          %j0 = arith.muli %j, %c2 : index
          %j1 = arith.addi %j0, %c1 : index
          %a0 = memref.load %AS[%ty, %j0] : memref<8x32xi8, #ws>
          %a1 = memref.load %AS[%ty, %j1] : memref<8x32xi8, #ws>
          %x0 = arith.extsi %a0 : i8 to i32
          %x1 = arith.extsi %a1 : i8 to i32
          %y0 = arith.extsi %low : i8 to i32
          %y1 = arith.extsi %high : i8 to i32
          %p0 = arith.muli %x0, %y0 : i32
          %p1 = arith.muli %x1, %y1 : i32
          %s0 = arith.addi %in, %p0 : i32
          %s1 = arith.addi %s0, %p1 : i32
          scf.yield %s1 : i32
        }
        gpu.barrier
        scf.yield %next : i32
      }
      memref.store %sum, %C[%ty, %tx] : memref<8x8xi32>
      gpu.return
    }
  }
}
