// source: apache/tvm 5d4dc8721307cf9677becacf0395c19be130e206 tests/python/s_tir/transform/test_s_tir_transform_inject_software_pipeline.py
// function: test_nest_pipeline_simple
// does: an outer loop copies rows by an inner loop, an inner pipelined loop reads them through a second buffer
// expect: pipelined shared=1
// lists: kept
// options: noalias
#ws = #gpu.address_space<workgroup>
module attributes {gpu.container_module} {
  gpu.module @kernels {
    gpu.func @kernel(%A: memref<16x16x16xf32>, %C: memref<16x16x16xf32>)
        workgroup(%AS : memref<16x16xf32, #ws>, %B : memref<16xf32, #ws>)
        kernel attributes {known_block_size = array<i32: 16, 1, 1>} {
      %c0 = arith.constant 0 : index
      %c1 = arith.constant 1 : index
      %c15 = arith.constant 15 : index
      %c16 = arith.constant 16 : index
      %one = arith.constant 1.0 : f32
      %two = arith.constant 2.0 : f32
      %t = gpu.thread_id x
      %other = arith.subi %c15, %t : index
      scf.for %i = %c0 to %c16 step %c1 {
        scf.for %j = %c0 to %c16 step %c1 {
          %a = memref.load %A[%t, %i, %j] : memref<16x16x16xf32>
          memref.store %a, %AS[%t, %j] : memref<16x16xf32, #ws>
        }
        gpu.barrier
        scf.for %j = %c0 to %c16 step %c1 {
          %x = memref.load %AS[%other, %j] : memref<16x16xf32, #ws>
          %x2 = arith.mulf %x, %two : f32
          memref.store %x2, %B[%t] : memref<16xf32, #ws>
          gpu.barrier
          %y = memref.load %B[%other] : memref<16xf32, #ws>
          %y1 = arith.addf %y, %one : f32
          memref.store %y1, %C[%t, %i, %j] : memref<16x16x16xf32>
          gpu.barrier
        } {alcop.pipeline = #alcop.pipeline<{stage = [0, 0, 0, 0, 1, 1, 1, 1], order = [0, 1, 2, 3, 4, 5, 6, 7]}>}
        gpu.barrier
      } {alcop.pipeline = #alcop.pipeline<{stage = [0, 0, 1, 1], order = [0, 1, 2, 3]}>}
      gpu.return
    }
  }
}
