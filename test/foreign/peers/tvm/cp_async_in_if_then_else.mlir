// source: apache/tvm 5d4dc8721307cf9677becacf0395c19be130e206 tests/python/s_tir/transform/test_s_tir_transform_inject_ptx_async_copy.py
// function: test_cp_async_in_if_then_else
// does: two copies with a boundary: the element or zero; three iterations early
// expect: pipelined shared=2
// lists: kept
// options: noalias
#ws = #gpu.address_space<workgroup>
module attributes {gpu.container_module} {
  gpu.module @kernels {
    gpu.func @kernel(%A: memref<16x14xf32>, %B: memref<16x14xf32>, %C: memref<16x16xf32>)
        workgroup(%AS : memref<16xf32, #ws>, %BS : memref<16xf32, #ws>)
        kernel attributes {known_block_size = array<i32: 16, 1, 1>} {
      %c0 = arith.constant 0 : index
      %c1 = arith.constant 1 : index
      %c15 = arith.constant 15 : index
      %c16 = arith.constant 16 : index
      %zero = arith.constant 0.0 : f32
      %t = gpu.thread_id x
      %other = arith.subi %c15, %t : index
      scf.for %i = %c0 to %c16 step %c1 {
        %lo = arith.cmpi sge, %i, %c1 : index
        %hi = arith.cmpi slt, %i, %c15 : index
        %inside = arith.andi %lo, %hi : i1
        %before = arith.subi %i, %c1 : index
        %ina = scf.if %inside -> (f32) {
          %a = memref.load %A[%t, %before] : memref<16x14xf32>
          scf.yield %a : f32
        } else {
          scf.yield %zero : f32
        }
        memref.store %ina, %AS[%t] : memref<16xf32, #ws>
        %inb = scf.if %inside -> (f32) {
          %b = memref.load %B[%t, %before] : memref<16x14xf32>
          scf.yield %b : f32
        } else {
          scf.yield %zero : f32
        }
        memref.store %inb, %BS[%t] : memref<16xf32, #ws>
        gpu.barrier
        %x = memref.load %AS[%other] : memref<16xf32, #ws>
        %y = memref.load %BS[%other] : memref<16xf32, #ws>
        %c = arith.addf %x, %y : f32
        memref.store %c, %C[%t, %i] : memref<16x16xf32>
        gpu.barrier
      } {alcop.pipeline = #alcop.pipeline<{stage = [0, 0, 0, 0, 0, 0, 0, 0, 0, 3, 3, 3, 3, 3], order = [0, 1, 2, 3, 4, 5, 11, 12, 13, 6, 7, 8, 9, 10]}>}
      gpu.return
    }
  }
}
