// source: tile-ai/tilelang a35008a42531c62b976ae4cec3855d4383db0f3c testing/python/transform/test_tilelang_transform_Inject_software_pipeline.py
// function: test_inject_software_pipeline_rejects_side_effecting_replay_mask
// does: an atomic is marked as an op to be computed again: an error
// expect: refused: (no remark)
// there: refused
// lists: kept
// options: noalias
module attributes {gpu.container_module} {
  gpu.module @kernels {
    gpu.func @kernel(%n: memref<1xi32>, %out: memref<8xi32>)
        kernel attributes {known_block_size = array<i32: 1, 1, 1>} {
      %c0 = arith.constant 0 : index
      %c1 = arith.constant 1 : index
      %c2 = arith.constant 2 : index
      %c4 = arith.constant 4 : index
      %t = gpu.thread_id x
      %onei = arith.constant 1 : i32
      scf.for %i = %c0 to %c4 step %c1 {
        %pos = memref.atomic_rmw addi %onei, %n[%c0] : (i32, memref<1xi32>) -> i32
        %at = arith.muli %i, %c2 : index
        memref.store %pos, %out[%at] : memref<8xi32>
        %at1 = arith.addi %at, %c1 : index
        memref.store %pos, %out[%at1] : memref<8xi32>
      } {alcop.pipeline = #alcop.pipeline<{stage = [0, 1, 1, 1, 1], order = [0, 1, 2, 3, 4]}>}
      gpu.return
    }
  }
}
