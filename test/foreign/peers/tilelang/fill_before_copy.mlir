// source: tile-ai/tilelang a35008a42531c62b976ae4cec3855d4383db0f3c testing/python/transform/test_tilelang_transform_Inject_software_pipeline.py
// function: test_async_pipeline_only_wraps_producer_statements_from_explicit_group_annotations
// does: a buffer is filled with zero, then by the copy; both early
// expect: pipelined shared=1
// lists: kept
// options: noalias
#ws = #gpu.address_space<workgroup>
module attributes {gpu.container_module} {
  gpu.module @kernels {
    gpu.func @kernel(%A: memref<16x16xf32>, %B: memref<16x16xf32>, %C: memref<16x16xf32>)
        workgroup(%AS : memref<16xf32, #ws>, %BS : memref<16xf32, #ws>)
        kernel attributes {known_block_size = array<i32: 16, 1, 1>} {
      %c0 = arith.constant 0 : index
      %c1 = arith.constant 1 : index
      %c4 = arith.constant 4 : index
      %c15 = arith.constant 15 : index
      %zero = arith.constant 0.0 : f32
      %t = gpu.thread_id x
      %other = arith.subi %c15, %t : index
      scf.for %i = %c0 to %c4 step %c1 {
        memref.store %zero, %AS[%t] : memref<16xf32, #ws>
        %a = memref.load %A[%t, %i] : memref<16x16xf32>
        memref.store %a, %AS[%t] : memref<16xf32, #ws>
        %b = memref.load %B[%t, %i] : memref<16x16xf32>
        memref.store %b, %BS[%t] : memref<16xf32, #ws>
        gpu.barrier
        %x = memref.load %AS[%other] : memref<16xf32, #ws>
        %y = memref.load %BS[%other] : memref<16xf32, #ws>
        %c = arith.addf %x, %y : f32
        memref.store %c, %C[%t, %i] : memref<16x16xf32>
        gpu.barrier
      } {alcop.pipeline = #alcop.pipeline<{stage = [0, 0, 0, 0, 0, 0, 1, 1, 1, 1, 1], order = [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10]}>}
      gpu.return
    }
  }
}
