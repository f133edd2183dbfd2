// source: llvm/llvm-project 2811a388560edd7c9bd7136c42a47371ac09d3f2 mlir/test/Dialect/NVGPU/transform-pipeline-shared.mlir
// function: async_depth_2_predicated
// does: an asynchronous copy with fewer elements in the last iteration, waited for where it stands; its tail is predicated
// expect: pipelined shared=1
#ws = #gpu.address_space<workgroup>
module attributes {gpu.container_module} {
  gpu.module @kernels {
    gpu.func @kernel(%A: memref<1792xf32>, %C: memref<64xf32>, %n: index)
        workgroup(%a : memref<1792xf32, #ws>)
        kernel attributes {known_block_size = array<i32: 64, 1, 1>} {
      %c0 = arith.constant 0 : index
      %c1 = arith.constant 1 : index
      %c2 = arith.constant 2 : index
      %c4 = arith.constant 4 : index
      %c63 = arith.constant 63 : index
      %zero = arith.constant 0.0 : f32
      %t = gpu.thread_id x
      %other = arith.subi %c63, %t : index
      %c256 = arith.constant 256 : index
      %t4 = arith.muli %t, %c4 : index
      %whole = arith.subi %n, %c1 : index
      %sum = scf.for %k = %c0 to %n step %c1 iter_args(%acc = %zero) -> (f32) {
        %i = arith.muli %k, %c256 : index
        %at = arith.addi %i, %t4 : index
        %inside = arith.cmpi slt, %k, %whole : index
        %size = arith.select %inside, %c4, %c2 : index
        %token = nvgpu.device_async_copy %A[%at], %a[%at], 4, %size : memref<1792xf32> to memref<1792xf32, #ws>
        %group = nvgpu.device_async_create_group %token
        nvgpu.device_async_wait %group
        gpu.barrier
        %from = arith.addi %i, %other : index
        %x = memref.load %a[%from] : memref<1792xf32, #ws>
        %next = arith.addf %acc, %x : f32
        gpu.barrier
        scf.yield %next : f32
      }
      memref.store %sum, %C[%t] : memref<64xf32>
      gpu.return
    }
  }
}
