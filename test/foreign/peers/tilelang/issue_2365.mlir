// source: tile-ai/tilelang a35008a42531c62b976ae4cec3855d4383db0f3c testing/python/issue/test_tilelang_issue_2365.py
// function: test_issue_2365
// does: K is one more than the step: the last tile has one column, the rest is zero
// expect: pipelined shared=2
// options: noalias
#ws = #gpu.address_space<workgroup>
module attributes {gpu.container_module} {
  gpu.module @kernels {
    gpu.func @kernel(%A: memref<8x17xf32>, %B: memref<17x8xf32>, %C: memref<8x8xf32>)
        workgroup(%AS : memref<8x8xf32, #ws>, %BS : memref<8x8xf32, #ws>)
        kernel attributes {known_block_size = array<i32: 64, 1, 1>} {
      %c0 = arith.constant 0 : index
      %c1 = arith.constant 1 : index
      %c8 = arith.constant 8 : index
      %c17 = arith.constant 17 : index
      %zero = arith.constant 0.0 : f32
      %t = gpu.thread_id x
      %ty = arith.divui %t, %c8 : index
      %tx = arith.remui %t, %c8 : index
      %sum = scf.for %k = %c0 to %c17 step %c8 iter_args(%acc = %zero) -> (f32) {
        %ka = arith.addi %k, %tx : index
        %oka = arith.cmpi ult, %ka, %c17 : index
        %a = scf.if %oka -> (f32) {
          %la = memref.load %A[%ty, %ka] : memref<8x17xf32>
          scf.yield %la : f32
        } else {
          scf.yield %zero : f32
        }
        memref.store %a, %AS[%ty, %tx] : memref<8x8xf32, #ws>
        %kb = arith.addi %k, %ty : index
        %okb = arith.cmpi ult, %kb, %c17 : index
        %b = scf.if %okb -> (f32) {
          %lb = memref.load %B[%kb, %tx] : memref<17x8xf32>
          scf.yield %lb : f32
        } else {
          scf.yield %zero : f32
        }
        memref.store %b, %BS[%ty, %tx] : memref<8x8xf32, #ws>
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
