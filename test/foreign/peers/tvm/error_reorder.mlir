// source: apache/tvm 5d4dc8721307cf9677becacf0395c19be130e206 tests/python/s_tir/transform/test_s_tir_transform_inject_software_pipeline.py
// function: test_error_reorder
// does: stage 1 runs the reader before the writer: an error
// expect: refused: (rule 1): 'memref.store' stores a value that is computed from what was loaded
// there: refused
// lists: refused: and would run in the other order: expected a later place in the order
// options: noalias
#ws = #gpu.address_space<workgroup>
module attributes {gpu.container_module} {
  gpu.module @kernels {
    gpu.func @kernel(%A: memref<16x16xf32>, %D: memref<16x16xf32>)
        workgroup(%B : memref<16xf32, #ws>, %C : memref<16xf32, #ws>)
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
        %y = arith.addf %x, %two : f32
        memref.store %y, %C[%t] : memref<16xf32, #ws>
        gpu.barrier
        %z = memref.load %C[%other] : memref<16xf32, #ws>
        %w = arith.addf %z, %one : f32
        memref.store %w, %D[%t, %i] : memref<16x16xf32>
        gpu.barrier
      } {alcop.pipeline = #alcop.pipeline<{stage = [0, 0, 0, 0, 1, 1, 1, 1, 1, 1, 1, 1], order = [0, 1, 2, 3, 8, 9, 10, 11, 4, 5, 6, 7]}>}
      gpu.return
    }
  }
}
