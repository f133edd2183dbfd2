// source: triton-lang/triton 05114517263d4d9a29ae08e005514989f52a877b test/TritonGPU/loop-pipeline-cuda.mlir
// function: _jagged_hstu_attn_fwd_0d1d2d3d4d5de
// does: Q from before the loop, K transposed; what is made of both is passed on and multiplied with V
// expect: pipelined shared=2
// options: noalias
#ws = #gpu.address_space<workgroup>
module attributes {gpu.container_module} {
  gpu.module @kernels {
    gpu.func @kernel(%A: memref<7x64xf32>, %B: memref<7x64xf32>, %C: memref<7x64xf32>, %n: index)
        workgroup(%q : memref<64xf32, #ws>, %a : memref<64xf32, #ws>, %b : memref<64xf32, #ws>, %p : memref<64xf32, #ws>)
        kernel attributes {known_block_size = array<i32: 64, 1, 1>} {
      %c0 = arith.constant 0 : index
      %c1 = arith.constant 1 : index
      %c63 = arith.constant 63 : index
      %zero = arith.constant 0.0 : f32
      %t = gpu.thread_id x
      %other = arith.subi %c63, %t : index
      %v = memref.load %A[%c0, %t] : memref<7x64xf32>
      memref.store %v, %q[%t] : memref<64xf32, #ws>
      gpu.barrier
      %sum = scf.for %k = %c0 to %n step %c1 iter_args(%acc = %zero) -> (f32) {
        %u = memref.load %A[%k, %t] : memref<7x64xf32>
        memref.store %u, %a[%t] : memref<64xf32, #ws>
        %w = memref.load %B[%k, %t] : memref<7x64xf32>
        memref.store %w, %b[%t] : memref<64xf32, #ws>
        gpu.barrier
        %x = memref.load %q[%other] : memref<64xf32, #ws>
        %y = memref.load %a[%t] : memref<64xf32, #ws>
        %s = arith.mulf %x, %y : f32
        memref.store %s, %p[%t] : memref<64xf32, #ws>
        gpu.barrier
        %pv = memref.load %p[%other] : memref<64xf32, #ws>
        %z = memref.load %b[%other] : memref<64xf32, #ws>
        %m = arith.mulf %pv, %z : f32
        %next = arith.addf %acc, %m : f32
        gpu.barrier
        scf.yield %next : f32
      }
      memref.store %sum, %C[%c0, %t] : memref<7x64xf32>
      gpu.return
    }
  }
}
