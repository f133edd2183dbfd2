// source: tile-ai/tilelang a35008a42531c62b976ae4cec3855d4383db0f3c testing/python/transform/test_tilelang_transform_Inject_software_pipeline.py
// function: test_async_pipeline_relaxes_loop_wait_and_descends_trailing_drain
// does: one thread copies four bytes three iterations early; five iterations
// expect: pipelined shared=1
// lists: kept
// options: noalias
#ws = #gpu.address_space<workgroup>
module attributes {gpu.container_module} {
  gpu.module @kernels {
    gpu.func @kernel(%A: memref<40xi8>, %B: memref<40xi8>)
        workgroup(%AS : memref<4xi8, #ws>)
        kernel attributes {known_block_size = array<i32: 1, 1, 1>} {
      %c0 = arith.constant 0 : index
      %c1 = arith.constant 1 : index
      %c4 = arith.constant 4 : index
      %c5 = arith.constant 5 : index
      %t = gpu.thread_id x
      scf.for %i = %c0 to %c5 step %c1 {
        %at = arith.muli %i, %c4 : index
        %a = vector.load %A[%at] : memref<40xi8>, vector<4xi8>
        vector.store %a, %AS[%c0] : memref<4xi8, #ws>, vector<4xi8>
        scf.for %j = %c0 to %c4 step %c1 {
          %x = memref.load %AS[%j] : memref<4xi8, #ws>
          %to = arith.addi %at, %j : index
          memref.store %x, %B[%to] : memref<40xi8>
        }
      } {alcop.pipeline = #alcop.pipeline<{stage = [0, 0, 0, 3], order = [0, 1, 2, 3]}>}
      gpu.return
    }
  }
}
