// source: iree-org/iree b48a5955575cf8924ffc191f3b0804976e5738b9 compiler/src/iree/compiler/Codegen/LLVMGPU/test/prefetch_shared_memory.mlir
// function: prefetch_scf_if_transientreadwrite
// does: the copy passes through two private buffers, under conditions
// expect: pipelined shared=1
// sizes: 0,1 1,1 2,1 7,1
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
      %on = arith.cmpi ugt, %m, %c0 : index
      %sum = scf.for %k = %c0 to %n step %c1 iter_args(%acc = %zero) -> (f32) {

        %p = memref.alloca() : memref<1xf32>
        %q = memref.alloca() : memref<1xf32>
        scf.if %on {
          %v = memref.load %A[%k, %t] : memref<7x64xf32>
          memref.store %v, %p[%c0] : memref<1xf32>
        }
        scf.if %on {
          %u = memref.load %p[%c0] : memref<1xf32>
          memref.store %u, %q[%c0] : memref<1xf32>
        }
        %w = memref.load %q[%c0] : memref<1xf32>
        memref.store %w, %a[%t] : memref<64xf32, #ws>
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
