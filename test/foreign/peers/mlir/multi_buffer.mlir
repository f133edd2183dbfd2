// source: llvm/llvm-project 06887db22dc3ef6df6d76cb675c246401811b53c mlir/test/Dialect/MemRef/multibuffer.mlir
// function: multi_buffer
// does: a tile copied in each third iteration from 1 on, and used twice
// expect: pipelined shared=1
// sizes: 0 2 4 8 16 25
#ws = #gpu.address_space<workgroup>
module attributes {gpu.container_module} {
  gpu.module @kernels {
    gpu.func @kernel(%A: memref<26x64xf32>, %C: memref<64xf32>, %n: index)
        workgroup(%a : memref<4x64xf32, #ws>)
        kernel attributes {known_block_size = array<i32: 64, 1, 1>} {
      %c1 = arith.constant 1 : index
      %c3 = arith.constant 3 : index
      %c63 = arith.constant 63 : index
      %zero = arith.constant 0.0 : f32
      %t = gpu.thread_id x
      %other = arith.subi %c63, %t : index
      %sum = scf.for %k = %c1 to %n step %c3 iter_args(%acc = %zero) -> (f32) {
        %tile = memref.subview %A[%k, 0] [4, 64] [1, 1] : memref<26x64xf32> to memref<4x64xf32, strided<[64, 1], offset: ?>>
        memref.copy %tile, %a : memref<4x64xf32, strided<[64, 1], offset: ?>> to memref<4x64xf32, #ws>
        gpu.barrier
        %x = memref.load %a[%c1, %other] : memref<4x64xf32, #ws>
        %mid = arith.addf %acc, %x : f32
        %y = memref.load %a[%c3, %t] : memref<4x64xf32, #ws>
        %next = arith.mulf %mid, %y : f32
        gpu.barrier
        scf.yield %next : f32
      }
      memref.store %sum, %C[%t] : memref<64xf32>
      gpu.return
    }
  }
}
