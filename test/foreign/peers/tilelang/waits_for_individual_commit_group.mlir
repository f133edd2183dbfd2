// source: tile-ai/tilelang a35008a42531c62b976ae4cec3855d4383db0f3c testing/python/transform/test_tilelang_transform_Inject_software_pipeline.py
// function: test_async_pipeline_waits_for_individual_physical_commit_group
// does: three copies, each with its consumer, which add up in global memory; stages 0,3,0,3,0,3
// expect: pipelined shared=3
// lists: kept
// options: noalias
#ws = #gpu.address_space<workgroup>
module attributes {gpu.container_module} {
  gpu.module @kernels {
    gpu.func @kernel(%A: memref<16x16xf32>, %B: memref<16x16xf32>, %D: memref<16x16xf32>, %C: memref<16x16xf32>)
        workgroup(%AS : memref<16xf32, #ws>, %BS : memref<16xf32, #ws>, %DS : memref<16xf32, #ws>)
        kernel attributes {known_block_size = array<i32: 16, 1, 1>} {
      %c0 = arith.constant 0 : index
      %c1 = arith.constant 1 : index
      %c8 = arith.constant 8 : index
      %c15 = arith.constant 15 : index
      %t = gpu.thread_id x
      %other = arith.subi %c15, %t : index
      scf.for %i = %c0 to %c8 step %c1 {
        %a = memref.load %A[%t, %i] : memref<16x16xf32>
        memref.store %a, %AS[%t] : memref<16xf32, #ws>
        gpu.barrier
        %x = memref.load %AS[%other] : memref<16xf32, #ws>
        memref.store %x, %C[%t, %i] : memref<16x16xf32>
        %b = memref.load %B[%t, %i] : memref<16x16xf32>
        memref.store %b, %BS[%t] : memref<16xf32, #ws>
        gpu.barrier
        %y = memref.load %BS[%other] : memref<16xf32, #ws>
        %c1_ = memref.load %C[%t, %i] : memref<16x16xf32>
        %s1 = arith.addf %c1_, %y : f32
        memref.store %s1, %C[%t, %i] : memref<16x16xf32>
        %d = memref.load %D[%t, %i] : memref<16x16xf32>
        memref.store %d, %DS[%t] : memref<16xf32, #ws>
        gpu.barrier
        %z = memref.load %DS[%other] : memref<16xf32, #ws>
        %c2_ = memref.load %C[%t, %i] : memref<16x16xf32>
        %s2 = arith.addf %c2_, %z : f32
        memref.store %s2, %C[%t, %i] : memref<16x16xf32>
        gpu.barrier
      } {alcop.pipeline = #alcop.pipeline<{stage = [0, 0, 0, 3, 3, 0, 0, 0, 3, 3, 3, 3, 0, 0, 0, 3, 3, 3, 3, 3], order = [2, 3, 4, 0, 1, 9, 10, 11, 5, 6, 7, 8, 17, 18, 19, 12, 13, 14, 15, 16]}>}
      gpu.return
    }
  }
}
