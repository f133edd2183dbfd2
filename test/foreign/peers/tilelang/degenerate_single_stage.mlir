// source: tile-ai/tilelang a35008a42531c62b976ae4cec3855d4383db0f3c testing/python/transform/test_tilelang_transform_Inject_software_pipeline.py
// function: test_degenerate_pipeline_with_single_stage_is_not_expanded
// does: both statements in stage 2: the peer leaves the loop as it is
// expect: pipelined register=1
// there: refused
// lists: kept
// options: noalias
// stages: 1,2
module attributes {gpu.container_module} {
  gpu.module @kernels {
    gpu.func @kernel(%A: memref<4x128xf16>, %B: memref<128xf32>)
        kernel attributes {known_block_size = array<i32: 128, 1, 1>} {
      %c0 = arith.constant 0 : index
      %c1 = arith.constant 1 : index
      %c4 = arith.constant 4 : index
      %t = gpu.thread_id x
      scf.for %k = %c0 to %c4 step %c1 {
        %a = memref.load %A[%k, %t] : memref<4x128xf16>
        %f = arith.extf %a : f16 to f32
        memref.store %f, %B[%t] : memref<128xf32>
      } {alcop.pipeline = #alcop.pipeline<{stage = [2, 2, 2], order = [0, 1, 2]}>}
      gpu.return
    }
  }
}
