// source: tile-ai/tilelang a35008a42531c62b976ae4cec3855d4383db0f3c testing/python/transform/test_tilelang_transform_Inject_software_pipeline.py
// function: test_inject_software_pipeline_expands_annotated_layout
// does: one thread: a tile with a layout of its own, copied by two nested loops and stored by two
// expect: refused: (rule 1): each thread copies 2 bytes at a time, cp.async 4, 8, 16
// lists: kept
// options: noalias
#ws = #gpu.address_space<workgroup>
module attributes {gpu.container_module} {
  gpu.module @kernels {
    gpu.func @kernel(%A: memref<4x8x16xf16>, %B: memref<4x8x16xf16>)
        workgroup(%S : memref<8x16xf16, strided<[16, 1]>, #ws>)
        kernel attributes {known_block_size = array<i32: 1, 1, 1>} {
      %c0 = arith.constant 0 : index
      %c1 = arith.constant 1 : index
      %c4 = arith.constant 4 : index
      %c8 = arith.constant 8 : index
      %c16 = arith.constant 16 : index
      %t = gpu.thread_id x
      scf.for %k = %c0 to %c4 step %c1 {
        scf.for %i = %c0 to %c8 step %c1 {
          scf.for %j = %c0 to %c16 step %c1 {
            %a = memref.load %A[%k, %i, %j] : memref<4x8x16xf16>
            memref.store %a, %S[%i, %j] : memref<8x16xf16, strided<[16, 1]>, #ws>
          }
        }
        scf.for %i = %c0 to %c8 step %c1 {
          scf.for %j = %c0 to %c16 step %c1 {
            %x = memref.load %S[%i, %j] : memref<8x16xf16, strided<[16, 1]>, #ws>
            memref.store %x, %B[%k, %i, %j] : memref<4x8x16xf16>
          }
        }
      } {alcop.pipeline = #alcop.pipeline<{stage = [0, 1], order = [0, 1]}>}
      gpu.return
    }
  }
}
