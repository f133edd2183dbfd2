// source: iree-org/iree b48a5955575cf8924ffc191f3b0804976e5738b9 compiler/src/iree/compiler/Codegen/LLVMGPU/test/prefetch_shared_memory.mlir
// function: gather_to_lds_inside_if_pipelined
// does: an asynchronous copy under a condition of the index; later iterations read what an earlier one left
// expect: refused: (rule 2): its condition changes from iteration to iteration
// sizes: 0,1 2,2 7,7 7,3
#ws = #gpu.address_space<workgroup>
module attributes {gpu.container_module} {
  gpu.module @kernels {
    gpu.func @kernel(%A: memref<7x64xf32>, %C: memref<64xf32>, %n: index, %m: index)
        workgroup(%a : memref<64xf32, #ws>)
        kernel attributes {known_block_size = array<i32: 64, 1, 1>} {
      %c0 = arith.constant 0 : index
      %c1 = arith.constant 1 : index
      %c63 = arith.constant 63 : index
      %zero = arith.constant 0.0 : f32
      %t = gpu.thread_id x
      %other = arith.subi %c63, %t : index
      %sum = scf.for %k = %c0 to %n step %c1 iter_args(%acc = %zero) -> (f32) {
        %in = arith.cmpi ult, %k, %m : index
        scf.if %in {
          %ca = nvgpu.device_async_copy %A[%k, %t], %a[%t], 1 : memref<7x64xf32> to memref<64xf32, #ws>
        }
        %g = "nvgpu.device_async_create_group"() : () -> !nvgpu.device.async.token
        nvgpu.device_async_wait %g
        gpu.barrier
        %x = memref.load %a[%other] : memref<64xf32, #ws>
        %next = arith.addf %x, %acc : f32
        gpu.barrier
        scf.yield %next : f32
      }
      memref.store %sum, %C[%t] : memref<64xf32>
      gpu.return
    }
  }
}
