// source: llvm/llvm-project 06887db22dc3ef6df6d76cb675c246401811b53c mlir/test/Dialect/MemRef/multibuffer.mlir
// function: multi_buffer_chained_view_ops
// does: the buffer is used through a cast of a view
// expect: pipelined shared=1
// sizes: 0 2 4 8 16 25
#ws = #gpu.address_space<workgroup>
module attributes {gpu.container_module} {
  gpu.module @kernels {
    gpu.func @kernel(%A: memref<26x64xf32>, %C: memref<64xf32>, %n: index)
        workgroup(%a : memref<4x64xf32, #ws>)
        kernel attributes {known_block_size = array<i32: 64, 1, 1>} {
      %c0 = arith.constant 0 : index
      %c1 = arith.constant 1 : index
      %c2 = arith.constant 2 : index
      %c3 = arith.constant 3 : index
      %c32 = arith.constant 32 : index
      %c63 = arith.constant 63 : index
      %zero = arith.constant 0.0 : f32
      %t = gpu.thread_id x
      %other = arith.subi %c63, %t : index
      %sum = scf.for %k = %c1 to %n step %c3 iter_args(%acc = %zero) -> (f32) {
        %tile = memref.subview %A[%k, 0] [4, 64] [1, 1] : memref<26x64xf32> to memref<4x64xf32, strided<[64, 1], offset: ?>>
        memref.copy %tile, %a : memref<4x64xf32, strided<[64, 1], offset: ?>> to memref<4x64xf32, #ws>
        gpu.barrier
        %wide = memref.expand_shape %a [[0, 1], [2, 3]] output_shape [2, 2, 32, 2] : memref<4x64xf32, #ws> into memref<2x2x32x2xf32, #ws>
        %cast = memref.cast %wide : memref<2x2x32x2xf32, #ws> to memref<?x2x32x2xf32, #ws>
        %r = arith.remui %t, %c2 : index
        %q = arith.remui %other, %c32 : index
        %x = memref.load %cast[%c0, %r, %q, %r] : memref<?x2x32x2xf32, #ws>
        %next = arith.addf %acc, %x : f32
        gpu.barrier
        scf.yield %next : f32
      }
      memref.store %sum, %C[%t] : memref<64xf32>
      gpu.return
    }
  }
}
