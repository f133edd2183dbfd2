// source: apache/tvm 5d4dc8721307cf9677becacf0395c19be130e206 tests/python/s_tir/transform/test_s_tir_transform_inject_double_buffer.py
// function: test_double_buffer_transform
// does: one thread: a row into a private buffer by a loop, its sum into global memory; two slots
// expect: refused: (rule 6): its source may be written by 'memref.store' in the loop
// options: noalias
// beside: register=1
// stages: 1,2
#local = #gpu.address_space<private>
module attributes {gpu.container_module} {
  gpu.module @kernels {
    gpu.func @kernel(%A: memref<16x32xf32>, %B: memref<16xf32>)
        kernel attributes {known_block_size = array<i32: 1, 1, 1>} {
      %c0 = arith.constant 0 : index
      %c1 = arith.constant 1 : index
      %c16 = arith.constant 16 : index
      %c32 = arith.constant 32 : index
      %zero = arith.constant 0.0 : f32
      %t = gpu.thread_id x
      %l = memref.alloca() : memref<32xf32, #local>
      scf.for %i = %c0 to %c16 step %c1 {
        scf.for %j = %c0 to %c32 step %c1 {
          %a = memref.load %A[%i, %j] : memref<16x32xf32>
          memref.store %a, %l[%j] : memref<32xf32, #local>
        }
        memref.store %zero, %B[%i] : memref<16xf32>
        scf.for %j = %c0 to %c32 step %c1 {
          %old = memref.load %B[%i] : memref<16xf32>
          %x = memref.load %l[%j] : memref<32xf32, #local>
          %new = arith.addf %old, %x : f32
          memref.store %new, %B[%i] : memref<16xf32>
        }
      }
      gpu.return
    }
  }
}
