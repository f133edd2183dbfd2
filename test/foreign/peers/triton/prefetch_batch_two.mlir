// source: triton-lang/triton 12d909bff965bccb355e41133615bf8331cf9475 test/TritonGPU/prefetch.mlir
// function: matmul_3D_loop_mixed2
// does: the first of several fragments of a batch of matmuls
// expect: pipelined register=2 shared=2
// stages: 3,2
#ws = #gpu.address_space<workgroup>
module attributes {gpu.container_module} {
  gpu.module @kernels {
    gpu.func @kernel(%A: memref<7x64xf32>, %B: memref<7x64xf32>, %C: memref<7x64xf32>, %n: index)
        workgroup(%a : memref<64xf32, #ws>, %b : memref<64xf32, #ws>)
        kernel attributes {known_block_size = array<i32: 64, 1, 1>} {
      %c0 = arith.constant 0 : index
      %c1 = arith.constant 1 : index
      %c4 = arith.constant 4 : index
      %c32 = arith.constant 32 : index
      %zero = arith.constant 0.0 : f32
      %two = arith.constant 2.0 : f32
      %t = gpu.thread_id x
      %warp = arith.divui %t, %c32 : index
      %sum = scf.for %k = %c0 to %n step %c1 iter_args(%acc = %zero) -> (f32) {
        %v = memref.load %A[%k, %t] : memref<7x64xf32>
        memref.store %v, %a[%t] : memref<64xf32, #ws>
        %w = memref.load %B[%k, %t] : memref<7x64xf32>
        memref.store %w, %b[%t] : memref<64xf32, #ws>
        gpu.barrier
        %part = scf.for %q = %c0 to %c4 step %c1 iter_args(%in = %acc) -> (f32) {
          %qa = arith.addi %q, %warp : index
          %xh = memref.load %a[%qa] : memref<64xf32, #ws>
          %y = memref.load %b[%q] : memref<64xf32, #ws>
          %x = arith.mulf %xh, %two : f32
          %m = arith.mulf %x, %y : f32
          %out = arith.addf %in, %m : f32
          scf.yield %out : f32
        }
        gpu.barrier
        scf.yield %part : f32
      }
      memref.store %sum, %C[%c0, %t] : memref<7x64xf32>
      gpu.return
    }
  }
}
