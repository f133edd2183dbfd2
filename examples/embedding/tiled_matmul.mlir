// C = A * B as in many GPU courses: a block of 16 x 16 threads computes a tile of C; in
// each K step each thread copies one element of A and one of B to shared memory.
// Nothing here knows of alcop_mlir; mlir_opt.sh pipelines it.

#shared = #gpu.address_space<workgroup>

gpu.module @kernels {
  gpu.func @tiled_matmul(
      %A: memref<64x128xf32>, %B: memref<128x64xf32>, %C: memref<64x64xf32>)
      workgroup(%a: memref<16x16xf32, #shared>, %b: memref<16x16xf32, #shared>)
      kernel attributes {known_block_size = array<i32: 16, 16, 1>} {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c16 = arith.constant 16 : index
    %c128 = arith.constant 128 : index
    %zero = arith.constant 0.0 : f32
    %tx = gpu.thread_id x
    %ty = gpu.thread_id y
    %bx = gpu.block_id x
    %by = gpu.block_id y
    %row0 = arith.muli %by, %c16 : index
    %col0 = arith.muli %bx, %c16 : index
    %row = arith.addi %row0, %ty : index
    %col = arith.addi %col0, %tx : index

    %sum = scf.for %k = %c0 to %c128 step %c16 iter_args(%sum0 = %zero) -> (f32) {
      %ka = arith.addi %k, %tx : index
      %kb = arith.addi %k, %ty : index
      %from_a = memref.load %A[%row, %ka] : memref<64x128xf32>
      memref.store %from_a, %a[%ty, %tx] : memref<16x16xf32, #shared>
      %from_b = memref.load %B[%kb, %col] : memref<128x64xf32>
      memref.store %from_b, %b[%ty, %tx] : memref<16x16xf32, #shared>
      gpu.barrier
      %sum1 = scf.for %i = %c0 to %c16 step %c1 iter_args(%part0 = %sum0) -> (f32) {
        %x = memref.load %a[%ty, %i] : memref<16x16xf32, #shared>
        %y = memref.load %b[%i, %tx] : memref<16x16xf32, #shared>
        %xy = arith.mulf %x, %y : f32
        %part1 = arith.addf %part0, %xy : f32
        scf.yield %part1 : f32
      }
      gpu.barrier
      scf.yield %sum1 : f32
    }
    memref.store %sum, %C[%row, %col] : memref<64x64xf32>
    gpu.return
  }
}
