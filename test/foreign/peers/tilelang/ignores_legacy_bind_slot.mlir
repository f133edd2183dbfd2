// source: tile-ai/tilelang a35008a42531c62b976ae4cec3855d4383db0f3c testing/python/transform/test_tilelang_transform_Inject_software_pipeline.py
// function: test_inject_software_pipeline_ignores_legacy_scalar_bind_annotation_slot
// does: the offset has a stage and an order of its own (3, 1), which do not count
// expect: pipelined shared=1
// lists: kept
// options: noalias
#ws = #gpu.address_space<workgroup>
module attributes {gpu.container_module} {
  gpu.module @kernels {
    gpu.func @kernel(%A: memref<128xf32>, %B: memref<128xf32>)
        workgroup(%S : memref<16xf32, #ws>)
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
        %from = arith.addi %base, %t : index
        %out = arith.addi %base, %other : index
        %a = memref.load %A[%from] : memref<128xf32>
        memref.store %a, %S[%t] : memref<16xf32, #ws>
        gpu.barrier
        %x = memref.load %S[%other] : memref<16xf32, #ws>
        memref.store %x, %B[%out] : memref<128xf32>
        gpu.barrier
      } {alcop.pipeline = #alcop.pipeline<{stage = [0, 0, 0, 0, 0, 0, 1, 1, 1], order = [3, 4, 5, 6, 7, 8, 0, 1, 2]}>}
      gpu.return
    }
  }
}
