// source: tile-ai/tilelang a35008a42531c62b976ae4cec3855d4383db0f3c testing/python/transform/test_tilelang_transform_pipeline_planning.py
// function: test_pipeline_planning_before_after_mbarrier_arrive_wait_plan
// does: a tile in, arrival at an mbarrier and a wait for it, the tile out; two slots
// expect: pipelined shared=1
// lists: kept
// options: noalias
// emulator: has no mbarrier
#ws = #gpu.address_space<workgroup>
module attributes {gpu.container_module} {
  gpu.module @kernels {
    gpu.func @kernel(%A: memref<16xf16>, %C: memref<16xf16>)
        workgroup(%S : memref<4xf16, #ws>)
        kernel attributes {known_block_size = array<i32: 1, 1, 1>} {
      %c0 = arith.constant 0 : index
      %c1 = arith.constant 1 : index
      %c2 = arith.constant 2 : index
      %c4 = arith.constant 4 : index
      %t = gpu.thread_id x
      %bar = nvgpu.mbarrier.create -> !nvgpu.mbarrier.group<memorySpace = #ws>
      nvgpu.mbarrier.init %bar[%c0], %c1 : !nvgpu.mbarrier.group<memorySpace = #ws>
      %ticks = arith.constant 10000000 : index
      scf.for %i = %c0 to %c4 step %c1 {
        %base = arith.muli %i, %c4 : index
        %v = vector.load %A[%base] : memref<16xf16>, vector<4xf16>
        vector.store %v, %S[%c0] : memref<4xf16, #ws>, vector<4xf16>
        %token = nvgpu.mbarrier.arrive %bar[%c0] : !nvgpu.mbarrier.group<memorySpace = #ws> -> !nvgpu.mbarrier.token
        %odd = arith.remui %i, %c2 : index
        %phase = arith.cmpi eq, %odd, %c1 : index
        nvgpu.mbarrier.try_wait.parity %bar[%c0], %phase, %ticks : !nvgpu.mbarrier.group<memorySpace = #ws>
        %x = vector.load %S[%c0] : memref<4xf16, #ws>, vector<4xf16>
        vector.store %x, %C[%base] : memref<16xf16>, vector<4xf16>
      } {alcop.pipeline = #alcop.pipeline<{stage = [0, 0, 0, 1, 1, 1, 1, 1, 1], order = [0, 1, 2, 3, 4, 5, 6, 7, 8]}>}
      gpu.return
    }
  }
}
