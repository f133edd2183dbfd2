// C = A * B as beginners write it: 16 x 16 threads, one element each, tiles of A and B
// staged in shared memory by scalar loads and stores.
#ws = #gpu.address_space<workgroup>
module attributes {gpu.container_module} {
  gpu.module @kernels {
    gpu.func @thread_matmul(%A: memref<1024x1024xf32>,
        %B: memref<1024x1024xf32>, %C: memref<1024x1024xf32>)
        workgroup(%a : memref<16x16xf32, #ws>, %b : memref<16x16xf32, #ws>)
        kernel attributes {known_block_size = array<i32: 16, 16, 1>} {
      %c0 = arith.constant 0 : index
      %c1 = arith.constant 1 : index
      %c16 = arith.constant 16 : index
      %c1024 = arith.constant 1024 : index
      %zero = arith.constant 0.0 : f32
      %tx = gpu.thread_id x
      %ty = gpu.thread_id y
      %bx = gpu.block_id x
      %by = gpu.block_id y
      %r0 = arith.muli %by, %c16 : index
      %q0 = arith.muli %bx, %c16 : index
      %row = arith.addi %r0, %ty : index
      %col = arith.addi %q0, %tx : index
      %sum = scf.for %k = %c0 to %c1024 step %c16 iter_args(%s = %zero) -> (f32) {
        %ka = arith.addi %k, %tx : index
        %kb = arith.addi %k, %ty : index
        %va = memref.load %A[%row, %ka] : memref<1024x1024xf32>
        memref.store %va, %a[%ty, %tx] : memref<16x16xf32, #ws>
        %vb = memref.load %B[%kb, %col] : memref<1024x1024xf32>
        memref.store %vb, %b[%ty, %tx] : memref<16x16xf32, #ws>
        gpu.barrier
        %inner = scf.for %i = %c0 to %c16 step %c1 iter_args(%t = %s) -> (f32) {
          %x = memref.load %a[%ty, %i] : memref<16x16xf32, #ws>
          %y = memref.load %b[%i, %tx] : memref<16x16xf32, #ws>
          %p = arith.mulf %x, %y : f32
          %n = arith.addf %t, %p : f32
          scf.yield %n : f32
        }
        gpu.barrier
        scf.yield %inner : f32
      }
      memref.store %sum, %C[%row, %col] : memref<1024x1024xf32>
      gpu.return
    }
  }
}
