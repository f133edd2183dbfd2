// source: apache/tvm 5d4dc8721307cf9677becacf0395c19be130e206 tests/python/s_tir/transform/test_s_tir_transform_inject_software_pipeline.py
// function: test_less_loop_than_num_stage_dynamic
// does: one thread, four stages in a chain, as many iterations as the caller says
// expect: pipelined register=1
// lists: kept
// options: noalias
// stages: 3,2
// sizes: 0 1 2 3 7
// lists-sizes: 0 2 3 7
#ws = #gpu.address_space<workgroup>
module attributes {gpu.container_module} {
  gpu.module @kernels {
    gpu.func @kernel(%A: memref<16xf32>, %E: memref<16xf32>, %n: index)
        workgroup(%B : memref<1xf32, #ws>, %C : memref<1xf32, #ws>, %D : memref<1xf32, #ws>)
        kernel attributes {known_block_size = array<i32: 1, 1, 1>} {
      %c0 = arith.constant 0 : index
      %c1 = arith.constant 1 : index
      %two = arith.constant 2.0 : f32
      %three = arith.constant 3.0 : f32
      %four = arith.constant 4.0 : f32
      %five = arith.constant 5.0 : f32
      %t = gpu.thread_id x
      scf.for %i = %c0 to %n step %c1 {
        %a = memref.load %A[%i] : memref<16xf32>
        %b = arith.mulf %a, %two : f32
        memref.store %b, %B[%c0] : memref<1xf32, #ws>
        %b1 = memref.load %B[%c0] : memref<1xf32, #ws>
        %c = arith.addf %b1, %three : f32
        memref.store %c, %C[%c0] : memref<1xf32, #ws>
        %c1_ = memref.load %C[%c0] : memref<1xf32, #ws>
        %d = arith.addf %c1_, %four : f32
        memref.store %d, %D[%c0] : memref<1xf32, #ws>
        %d1 = memref.load %D[%c0] : memref<1xf32, #ws>
        %e = arith.addf %d1, %five : f32
        memref.store %e, %E[%i] : memref<16xf32>
      } {alcop.pipeline = #alcop.pipeline<{stage = [0, 0, 0, 1, 1, 1, 2, 2, 2, 3, 3, 3], order = [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11]}>}
      gpu.return
    }
  }
}
