// source: tile-ai/tilelang a35008a42531c62b976ae4cec3855d4383db0f3c testing/python/transform/test_tilelang_transform_pipeline_planning.py
// function: test_pipeline_planning_before_after_explicit_plan_drops_replayable_bind_slot
// does: the user's order: the store, then the copy; an offset is shared
// expect: pipelined shared=1
// lists: kept
// options: noalias
#ws = #gpu.address_space<workgroup>
module attributes {gpu.container_module} {
  gpu.module @kernels {
    gpu.func @kernel(%A: memref<64xf16>, %C: memref<64xf16>)
        workgroup(%S : memref<16xf16, #ws>)
        kernel attributes {known_block_size = array<i32: 16, 1, 1>} {
      %c0 = arith.constant 0 : index
      %c1 = arith.constant 1 : index
      %c4 = arith.constant 4 : index
      %c15 = arith.constant 15 : index
      %c16 = arith.constant 16 : index
      %t = gpu.thread_id x
      %other = arith.subi %c15, %t : index
      scf.for %i = %c0 to %c4 step %c1 {
        %base = arith.muli %i, %c16 : index
        %v1 = memref.subview %A[%base] [16] [1] : memref<64xf16> to memref<16xf16, strided<[1], offset: ?>>
        memref.copy %v1, %S : memref<16xf16, strided<[1], offset: ?>> to memref<16xf16, #ws>
        gpu.barrier
        %x = memref.load %S[%other] : memref<16xf16, #ws>
        %to = arith.addi %base, %other : index
        memref.store %x, %C[%to] : memref<64xf16>
        gpu.barrier
      } {alcop.pipeline = #alcop.pipeline<{stage = [0, 0, 0, 0, 1, 1, 1, 1], order = [4, 5, 6, 7, 0, 1, 2, 3]}>}
      gpu.return
    }
  }
}
