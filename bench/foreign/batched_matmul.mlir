// C[b] = A[b] * B[b]: a block per tile of a batch, the number of columns of A known when
// the kernel runs only; each thread moves 16 bytes of A and of B.
#ws = #gpu.address_space<workgroup>
module attributes {gpu.container_module} {
  gpu.module @kernels {
    gpu.func @batched_matmul(%A: memref<8x256x512xf32>, %B: memref<8x512x256xf32>,
        %C: memref<8x256x256xf32>, %depth: index)
        workgroup(%a : memref<32x16xf32, #ws>, %b : memref<16x32xf32, #ws>)
        kernel attributes {known_block_size = array<i32: 128, 1, 1>} {
      %c0 = arith.constant 0 : index
      %c1 = arith.constant 1 : index
      %c4 = arith.constant 4 : index
      %c8 = arith.constant 8 : index
      %c16 = arith.constant 16 : index
      %c32 = arith.constant 32 : index
          %t = gpu.thread_id x
      %batch = gpu.block_id z
      %bx = gpu.block_id x
      %by = gpu.block_id y
      %m0 = arith.muli %by, %c32 : index
      %n0 = arith.muli %bx, %c32 : index
      %ar = arith.divui %t, %c4 : index
      %ac0 = arith.remui %t, %c4 : index
      %ac = arith.muli %ac0, %c4 : index
      %br = arith.divui %t, %c8 : index
      %bc0 = arith.remui %t, %c8 : index
      %bc = arith.muli %bc0, %c4 : index
      %row = arith.addi %m0, %ar : index
      %column = arith.addi %n0, %bc : index
      %start = arith.constant dense<0.0> : vector<8xf32>
      %mr = arith.divui %t, %c4 : index
      %mq = arith.remui %t, %c4 : index
      %mc = arith.muli %mq, %c8 : index
      %sum = scf.for %k = %c0 to %depth step %c16 iter_args(%acc = %start) -> (vector<8xf32>) {
        %ka = arith.addi %k, %ac : index
        %va = vector.load %A[%batch, %row, %ka] : memref<8x256x512xf32>, vector<4xf32>
        vector.store %va, %a[%ar, %ac] : memref<32x16xf32, #ws>, vector<4xf32>
        %kb = arith.addi %k, %br : index
        %vb = vector.load %B[%batch, %kb, %column] : memref<8x512x256xf32>, vector<4xf32>
        vector.store %vb, %b[%br, %bc] : memref<16x32xf32, #ws>, vector<4xf32>
        gpu.barrier
        %in = scf.for %i = %c0 to %c16 step %c1 iter_args(%s = %acc) -> (vector<8xf32>) {
          %x = memref.load %a[%mr, %i] : memref<32x16xf32, #ws>
          %y = vector.load %b[%i, %mc] : memref<16x32xf32, #ws>, vector<8xf32>
          %xs = vector.broadcast %x : f32 to vector<8xf32>
          %n = vector.fma %xs, %y, %s : vector<8xf32>
          scf.yield %n : vector<8xf32>
        }
        gpu.barrier
        scf.yield %in : vector<8xf32>
      }
      %cr = arith.addi %m0, %mr : index
      %cc = arith.addi %n0, %mc : index
      vector.store %sum, %C[%batch, %cr, %cc] : memref<8x256x256xf32>, vector<8xf32>
      gpu.return
    }
  }
}
