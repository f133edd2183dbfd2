// source: tile-ai/tilelang a35008a42531c62b976ae4cec3855d4383db0f3c testing/python/transform/test_tilelang_transform_pipeline_planning.py
// function: test_pipeline_planning_schedules_guarded_body_after_replayable_bind_inline
// does: a row is gathered by an index from a table, all of the body under a condition on the iteration
// expect: pipelined shared=1
// options: noalias
// tables: 4
#ws = #gpu.address_space<workgroup>
module attributes {gpu.container_module} {
  gpu.module @kernels {
    gpu.func @kernel(%A: memref<4x4xf16>, %ids: memref<4xi32>, %C: memref<4xf16>)
        workgroup(%S : memref<4xf16, #ws>)
        kernel attributes {known_block_size = array<i32: 4, 1, 1>} {
      %c0 = arith.constant 0 : index
      %c1 = arith.constant 1 : index
      %c3 = arith.constant 3 : index
      %c4 = arith.constant 4 : index
      %t = gpu.thread_id x
      %other = arith.subi %c3, %t : index
      scf.for %i = %c0 to %c4 step %c1 {
        %go = arith.cmpi sgt, %i, %c1 : index
        scf.if %go {
          %id = memref.load %ids[%i] : memref<4xi32>
          %ix = arith.index_cast %id : i32 to index
          %v1 = memref.subview %A[%ix, 0] [1, 4] [1, 1] : memref<4x4xf16> to memref<4xf16, strided<[1], offset: ?>>
          memref.copy %v1, %S : memref<4xf16, strided<[1], offset: ?>> to memref<4xf16, #ws>
          gpu.barrier
          %x = memref.load %S[%other] : memref<4xf16, #ws>
          memref.store %x, %C[%other] : memref<4xf16>
          gpu.barrier
        }
      }
      gpu.return
    }
  }
}
