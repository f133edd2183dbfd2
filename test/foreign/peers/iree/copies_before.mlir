// source: iree-org/iree b48a5955575cf8924ffc191f3b0804976e5738b9 compiler/src/iree/compiler/Codegen/LLVMGPU/test/prefetch_shared_memory.mlir
// function: gather_to_lds_pre_loop_gets_explicit_wait
// does: two asynchronous copies before the loop, waited for before a barrier
// expect: pipelined shared=1
#ws = #gpu.address_space<workgroup>
module attributes {gpu.container_module} {
  gpu.module @kernels {
    gpu.func @kernel(%A: memref<7x64xf32>, %B: memref<7x64xf32>, %C: memref<64xf32>, %n: index)
        workgroup(%q : memref<128xf32, #ws>, %a : memref<64xf32, #ws>)
        kernel attributes {known_block_size = array<i32: 64, 1, 1>} {
      %c0 = arith.constant 0 : index
      %c1 = arith.constant 1 : index
      %c63 = arith.constant 63 : index
      %c64 = arith.constant 64 : index
      %t = gpu.thread_id x
      %other = arith.subi %c63, %t : index
      %other1 = arith.addi %t, %c64 : index
      %q0 = nvgpu.device_async_copy %A[%c0, %t], %q[%t], 1 : memref<7x64xf32> to memref<128xf32, #ws>
      %q1 = nvgpu.device_async_copy %A[%c1, %t], %q[%other1], 1 : memref<7x64xf32> to memref<128xf32, #ws>
      %qg = nvgpu.device_async_create_group %q0, %q1
      nvgpu.device_async_wait %qg
      gpu.barrier
      %u = memref.load %q[%other] : memref<128xf32, #ws>
      %w = memref.load %q[%other1] : memref<128xf32, #ws>
      %start = arith.addf %u, %w : f32
      %sum = scf.for %k = %c0 to %n step %c1 iter_args(%acc = %start) -> (f32) {
        %ca = nvgpu.device_async_copy %B[%k, %t], %a[%t], 1 : memref<7x64xf32> to memref<64xf32, #ws>
        %g = nvgpu.device_async_create_group %ca
        nvgpu.device_async_wait %g
        gpu.barrier
        %x = memref.load %a[%other] : memref<64xf32, #ws>
        %next = arith.mulf %x, %acc : f32
        gpu.barrier
        scf.yield %next : f32
      }
      memref.store %sum, %C[%t] : memref<64xf32>
      gpu.return
    }
  }
}
