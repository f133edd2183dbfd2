// source: tile-ai/tilelang a35008a42531c62b976ae4cec3855d4383db0f3c testing/python/transform/test_tilelang_transform_Inject_software_pipeline.py
// function: test_async_pipeline_does_not_mark_non_cp_async_compatible_copy
// does: a copy that converts bf16 to f32: early, but not asynchronous
// expect: pipelined register=1
// lists: kept
// options: noalias
// stages: 3,2
#ws = #gpu.address_space<workgroup>
module attributes {gpu.container_module} {
  gpu.module @kernels {
    gpu.func @kernel(%A: memref<16x16xbf16>, %C: memref<16x16xf32>)
        workgroup(%AS : memref<16xf32, #ws>)
        kernel attributes {known_block_size = array<i32: 16, 1, 1>} {
      %c0 = arith.constant 0 : index
      %c1 = arith.constant 1 : index
      %c4 = arith.constant 4 : index
      %c15 = arith.constant 15 : index
      %t = gpu.thread_id x
      %other = arith.subi %c15, %t : index
      scf.for %i = %c0 to %c4 step %c1 {
        %a = memref.load %A[%t, %i] : memref<16x16xbf16>
        %f = arith.extf %a : bf16 to f32
        memref.store %f, %AS[%t] : memref<16xf32, #ws>
        gpu.barrier
        %x = memref.load %AS[%other] : memref<16xf32, #ws>
        memref.store %x, %C[%t, %i] : memref<16x16xf32>
        gpu.barrier
      } {alcop.pipeline = #alcop.pipeline<{stage = [0, 0, 0, 0, 1, 1, 1], order = [0, 1, 2, 3, 4, 5, 6]}>}
      gpu.return
    }
  }
}
