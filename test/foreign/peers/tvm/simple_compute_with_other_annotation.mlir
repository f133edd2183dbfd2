// source: apache/tvm 5d4dc8721307cf9677becacf0395c19be130e206 tests/python/s_tir/transform/test_s_tir_transform_inject_software_pipeline.py
// function: test_simple_compute_with_other_annotation
// does: a doubled element goes through shared memory, in a loop that has another annotation too
// expect: pipelined register=1
// lists: kept
// options: noalias
// stages: 3,2
#ws = #gpu.address_space<workgroup>
module attributes {gpu.container_module} {
  gpu.module @kernels {
    gpu.func @kernel(%A: memref<16x16xf32>, %C: memref<16x16xf32>)
        workgroup(%B : memref<16xf32, #ws>)
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
        %a = memref.load %A[%t, %i] : memref<16x16xf32>
        %b = arith.mulf %a, %two : f32
        memref.store %b, %B[%t] : memref<16xf32, #ws>
        gpu.barrier
        %x = memref.load %B[%other] : memref<16xf32, #ws>
        %y = arith.addf %x, %one : f32
        memref.store %y, %C[%t, %i] : memref<16x16xf32>
        gpu.barrier
      } {alcop.pipeline = #alcop.pipeline<{stage = [0, 0, 0, 0, 1, 1, 1, 1], order = [0, 1, 2, 3, 4, 5, 6, 7]}>, peer.partition_hint}
      gpu.return
    }
  }
}
