// source: iree-org/iree b48a5955575cf8924ffc191f3b0804976e5738b9 compiler/src/iree/compiler/Codegen/LLVMGPU/test/prefetch_shared_memory.mlir
// function: noprefetch_copyback
// does: a copy from global to global memory
// expect: pipelined register=1
// there: refused
// options: noalias
// stages: 1,2
module attributes {gpu.container_module} {
  gpu.module @kernels {
    gpu.func @kernel(%A: memref<7x64xf32>, %C: memref<7x64xf32>, %n: index)
        kernel attributes {known_block_size = array<i32: 64, 1, 1>} {
      %c0 = arith.constant 0 : index
      %c1 = arith.constant 1 : index
      %t = gpu.thread_id x
      scf.for %k = %c0 to %n step %c1 {
        %v = memref.load %A[%k, %t] : memref<7x64xf32>
        memref.store %v, %C[%k, %t] : memref<7x64xf32>
      }
      gpu.return
    }
  }
}
