// source: iree-org/iree b48a5955575cf8924ffc191f3b0804976e5738b9 compiler/src/iree/compiler/Codegen/LLVMGPU/test/prefetch_shared_memory.mlir
// function: gather_to_lds_subview_escape_no_multibuffer
// does: the buffer is a view that is also read before the loop
// expect: refused: (rule 2): its buffer is also written by 'memref.store' outside of the loop
// there: refused
#ws = #gpu.address_space<workgroup>
module attributes {gpu.container_module} {
  gpu.module @kernels {
    gpu.func @kernel(%A: memref<7x64xf32>, %C: memref<64xf32>, %n: index)
        workgroup(%a : memref<128xf32, #ws>)
        kernel attributes {known_block_size = array<i32: 64, 1, 1>} {
      %c0 = arith.constant 0 : index
      %c1 = arith.constant 1 : index
      %c63 = arith.constant 63 : index
      %zero = arith.constant 0.0 : f32
      %one = arith.constant 1.0 : f32
      %t = gpu.thread_id x
      %other = arith.subi %c63, %t : index
      %v = memref.subview %a[64] [64] [1] : memref<128xf32, #ws> to memref<64xf32, strided<[1], offset: 64>, #ws>
      memref.store %one, %v[%t] : memref<64xf32, strided<[1], offset: 64>, #ws>
      gpu.barrier
      %before = memref.load %v[%other] : memref<64xf32, strided<[1], offset: 64>, #ws>
      gpu.barrier
      %sum = scf.for %k = %c0 to %n step %c1 iter_args(%acc = %zero) -> (f32) {
        %ca = nvgpu.device_async_copy %A[%k, %t], %v[%t], 1 : memref<7x64xf32> to memref<64xf32, strided<[1], offset: 64>, #ws>
        %g = nvgpu.device_async_create_group %ca
        nvgpu.device_async_wait %g
        gpu.barrier
        %x = memref.load %v[%other] : memref<64xf32, strided<[1], offset: 64>, #ws>
        %next = arith.addf %x, %acc : f32
        gpu.barrier
        scf.yield %next : f32
      }
      %all = arith.addf %sum, %before : f32
      memref.store %all, %C[%t] : memref<64xf32>
      gpu.return
    }
  }
}
