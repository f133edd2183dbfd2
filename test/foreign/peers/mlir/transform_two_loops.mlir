// source: llvm/llvm-project 00b172da43e9fefe6cb44f6dfdb0036226ec9c8c mlir/test/Dialect/MemRef/transform-ops.mlir
// function: multi_buffer_uses_with_no_loop_dominator#1
// does: one buffer used by two loops, the first of which is under a condition
// expect: pipelined shared=2
// there: refused
// sizes: 1 5
#ws = #gpu.address_space<workgroup>
module attributes {gpu.container_module} {
  gpu.module @kernels {
    gpu.func @kernel(%A: memref<1024xf32>, %C: memref<64xf32>, %n: index)
        workgroup(%a : memref<64xf32, #ws>)
        kernel attributes {known_block_size = array<i32: 64, 1, 1>} {
      %c0 = arith.constant 0 : index
      %c2 = arith.constant 2 : index
      %c63 = arith.constant 63 : index
      %c64 = arith.constant 64 : index
      %zero = arith.constant 0.0 : f32
      %one = arith.constant 1.0 : f32
      %t = gpu.thread_id x
      %other = arith.subi %c63, %t : index
      %c1024 = arith.constant 1024 : index
      %some = arith.cmpi ugt, %n, %c2 : index
      %first = scf.if %some -> (f32) {
        %sum = scf.for %k = %c0 to %c1024 step %c64 iter_args(%acc = %zero) -> (f32) {
          %tile = memref.subview %A[%k] [64] [1] : memref<1024xf32> to memref<64xf32, strided<[1], offset: ?>>
          memref.copy %tile, %a : memref<64xf32, strided<[1], offset: ?>> to memref<64xf32, #ws>
          gpu.barrier
          %x = memref.load %a[%other] : memref<64xf32, #ws>
          %next = arith.addf %acc, %x : f32
          gpu.barrier
          scf.yield %next : f32
        }
        scf.yield %sum : f32
      } else {
        scf.yield %one : f32
      }

      %sum2 = scf.for %k = %c0 to %c1024 step %c64 iter_args(%acc = %first) -> (f32) {
        %tile = memref.subview %A[%k] [64] [1] : memref<1024xf32> to memref<64xf32, strided<[1], offset: ?>>
        memref.copy %tile, %a : memref<64xf32, strided<[1], offset: ?>> to memref<64xf32, #ws>
        gpu.barrier
        %x = memref.load %a[%other] : memref<64xf32, #ws>
        %next = arith.addf %acc, %x : f32
        gpu.barrier
        scf.yield %next : f32
      }
      memref.store %sum2, %C[%t] : memref<64xf32>
      gpu.return
    }
  }
}
