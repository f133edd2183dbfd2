// source: iree-org/iree b48a5955575cf8924ffc191f3b0804976e5738b9 compiler/src/iree/compiler/Codegen/LLVMGPU/test/prefetch_shared_memory.mlir
// function: gather_to_lds_two_operands_one_predicated
// does: one asynchronous copy in each iteration, and another under a condition of the index
// expect: pipelined shared=1
// sizes: 0,1 2,2 7,7 7,3
#ws = #gpu.address_space<workgroup>
module attributes {gpu.container_module} {
  gpu.module @kernels {
    gpu.func @kernel(%A: memref<7x64xf32>, %B: memref<7x64xf32>, %C: memref<64xf32>, %n: index, %bound: index)
        workgroup(%a : memref<64xf32, #ws>, %b : memref<64xf32, #ws>)
        kernel attributes {known_block_size = array<i32: 64, 1, 1>} {
      %c0 = arith.constant 0 : index
      %c1 = arith.constant 1 : index
      %c63 = arith.constant 63 : index
      %zero = arith.constant 0.0 : f32
      %t = gpu.thread_id x
      %other = arith.subi %c63, %t : index
      %sum = scf.for %k = %c0 to %n step %c1 iter_args(%acc = %zero) -> (f32) {
        %ca = nvgpu.device_async_copy %A[%k, %t], %a[%t], 1 : memref<7x64xf32> to memref<64xf32, #ws>
        %in = arith.cmpi ult, %k, %bound : index
        scf.if %in {
          %cb = nvgpu.device_async_copy %B[%k, %t], %b[%t], 1 : memref<7x64xf32> to memref<64xf32, #ws>
        }
        %g = "nvgpu.device_async_create_group"() : () -> !nvgpu.device.async.token
        nvgpu.device_async_wait %g
        gpu.barrier
        %x = memref.load %a[%other] : memref<64xf32, #ws>
        %y = memref.load %b[%other] : memref<64xf32, #ws>
        %m = arith.mulf %x, %y : f32
        %next = arith.addf %m, %acc : f32
        gpu.barrier
        scf.yield %next : f32
      }
      memref.store %sum, %C[%t] : memref<64xf32>
      gpu.return
    }
  }
}
