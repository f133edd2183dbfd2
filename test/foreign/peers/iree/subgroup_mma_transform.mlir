// source: iree-org/iree b48a5955575cf8924ffc191f3b0804976e5738b9 compiler/src/iree/compiler/Codegen/LLVMGPU/test/transform_gpu_pipelining.mlir
// function: matmul_pipelining
// does: the same by a transform script, four stages deep
// expect: pipelined shared=2
// stages: 4,1
// emulator: has no wmma
module attributes {gpu.container_module} {
  gpu.module @kernels {
    gpu.func @kernel(%A: memref<16x224xf16>, %B: memref<512x16xf16>, %C: memref<16x16xf16>, %n: index)
        workgroup(%a : memref<4x16x24xf16, 3>, %b : memref<4x16x24xf16, 3>)
        kernel attributes {known_block_size = array<i32: 32, 1, 1>} {
      %c0 = arith.constant 0 : index
      %c2 = arith.constant 2 : index
      %c4 = arith.constant 4 : index
      %c8 = arith.constant 8 : index
      %c16 = arith.constant 16 : index
      %t = gpu.thread_id x
      %odd = arith.remui %t, %c2 : index
      %nil = arith.constant 0.0 : f16
      %none = gpu.subgroup_mma_constant_matrix %nil : !gpu.mma_matrix<16x16xf16, "COp">
      %arow = arith.divui %t, %c2 : index
      %acol = arith.muli %odd, %c8 : index
      %last = arith.muli %n, %c16 : index
      %sum = scf.for %k = %c0 to %last step %c16 iter_args(%acc = %none) -> (!gpu.mma_matrix<16x16xf16, "COp">) {
        gpu.barrier
        %step = arith.divui %k, %c16 : index
        %slot = arith.remui %step, %c4 : index
        %ka = arith.addi %k, %acol : index
        %kb = arith.addi %k, %arow : index
        %ca = nvgpu.device_async_copy %A[%arow, %ka], %a[%slot, %arow, %acol], 8 : memref<16x224xf16> to memref<4x16x24xf16, 3>
        %cb = nvgpu.device_async_copy %B[%kb, %acol], %b[%slot, %arow, %acol], 8 : memref<512x16xf16> to memref<4x16x24xf16, 3>
        %g = nvgpu.device_async_create_group %ca, %cb
        nvgpu.device_async_wait %g
        gpu.barrier
        %x = gpu.subgroup_mma_load_matrix %a[%slot, %c0, %c0] {leadDimension = 24 : index} : memref<4x16x24xf16, 3> -> !gpu.mma_matrix<16x16xf16, "AOp">
        %y = gpu.subgroup_mma_load_matrix %b[%slot, %c0, %c0] {leadDimension = 24 : index} : memref<4x16x24xf16, 3> -> !gpu.mma_matrix<16x16xf16, "BOp">
        %next = gpu.subgroup_mma_compute %x, %y, %acc : !gpu.mma_matrix<16x16xf16, "AOp">, !gpu.mma_matrix<16x16xf16, "BOp"> -> !gpu.mma_matrix<16x16xf16, "COp">
        scf.yield %next : !gpu.mma_matrix<16x16xf16, "COp">
      }
      gpu.subgroup_mma_store_matrix %sum, %C[%c0, %c0] {leadDimension = 16 : index} : !gpu.mma_matrix<16x16xf16, "COp">, memref<16x16xf16>
      gpu.return
    }
  }
}
