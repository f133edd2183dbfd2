// source: llvm/llvm-project 00b172da43e9fefe6cb44f6dfdb0036226ec9c8c mlir/test/Dialect/MemRef/transform-ops.mlir
// function: multi_buffer_on_affine_loop
// does: the same in an affine loop
// expect: pipelined shared=1
// prepare: lower-affine
#ws = #gpu.address_space<workgroup>
module attributes {gpu.container_module} {
  gpu.module @kernels {
    gpu.func @kernel(%A: memref<1024xf32>, %C: memref<64xf32>)
        workgroup(%a : memref<64xf32, #ws>)
        kernel attributes {known_block_size = array<i32: 64, 1, 1>} {
      %c63 = arith.constant 63 : index
      %zero = arith.constant 0.0 : f32
      %t = gpu.thread_id x
      %other = arith.subi %c63, %t : index
      %sum = affine.for %k = 0 to 1024 step 64 iter_args(%acc = %zero) -> (f32) {
        %tile = memref.subview %A[%k] [64] [1] : memref<1024xf32> to memref<64xf32, strided<[1], offset: ?>>
        memref.copy %tile, %a : memref<64xf32, strided<[1], offset: ?>> to memref<64xf32, #ws>
        gpu.barrier
        %x = memref.load %a[%other] : memref<64xf32, #ws>
        %next = arith.addf %acc, %x : f32
        gpu.barrier
        affine.yield %next : f32
      }
      memref.store %sum, %C[%t] : memref<64xf32>
      gpu.return
    }
  }
}
