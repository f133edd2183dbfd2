// source: apache/tvm 5d4dc8721307cf9677becacf0395c19be130e206 tests/python/s_tir/transform/test_s_tir_transform_inject_double_buffer.py
// function: test_double_buffer
// does: one thread, 100 steps: four elements by a loop into a shared buffer, read by a loop; two slots, the loop split by two
// expect: pipelined shared=1
// options: noalias
#ws = #gpu.address_space<workgroup>
module attributes {gpu.container_module} {
  gpu.module @kernels {
    gpu.func @kernel(%A: memref<400xf32>, %C: memref<4xf32>)
        workgroup(%B : memref<4xf32, #ws>)
        kernel attributes {known_block_size = array<i32: 1, 1, 1>} {
      %c0 = arith.constant 0 : index
      %c1 = arith.constant 1 : index
      %c4 = arith.constant 4 : index
      %c100 = arith.constant 100 : index
      %one = arith.constant 1.0 : f32
      %t = gpu.thread_id x
      scf.for %i = %c0 to %c100 step %c1 {
        %at = arith.muli %i, %c4 : index
        scf.for %j = %c0 to %c4 step %c1 {
          %from = arith.addi %at, %j : index
          %a = memref.load %A[%from] : memref<400xf32>
          memref.store %a, %B[%j] : memref<4xf32, #ws>
        }
        scf.for %j = %c0 to %c4 step %c1 {
          %b = memref.load %B[%j] : memref<4xf32, #ws>
          %c = arith.addf %b, %one : f32
          memref.store %c, %C[%j] : memref<4xf32>
        }
      }
      gpu.return
    }
  }
}
